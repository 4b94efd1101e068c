"""The commands and their options; what they do is in the modules beside this one.

Modules are loaded when their command runs, so that `hidag --help` answers at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hidag.cli.console import show_error
from hidag.cli.fit_options import add_fit_command, add_select_command
from hidag.cli.messages import command_style
from hidag.cli.options import FitFile, Json, parse_levels
from hidag.cli.result_options import add_explain_commands, add_whatif_commands
from hidag.exceptions import HidagError

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


#: Entry points of other packages: groups of commands (typer applications), and functions.
COMMANDS, FUNCTIONS = "hidag.commands", "hidag.functions"


def _registered_commands() -> Iterator[tuple[str, Any]]:
    """Yield the name and the application of each group of commands that a package adds."""
    for point in sorted(entry_points(group=COMMANDS), key=lambda one: one.name, reverse=True):
        found = point.load()
        if found.registered_commands:
            yield point.name, found


def _registered_function(name: str) -> Any:
    """Return the function that a package registered under this name."""
    for point in entry_points(group=FUNCTIONS, name=name):
        return point.load()
    raise HidagError(f"no installed package offers {name!r}; install hidag again")


def _has_option(ctx: Any, option: str) -> bool:
    """Return whether the command that is running has an option."""
    command = ctx.command.commands.get(ctx.invoked_subcommand)
    return command is None or any(option in parameter.opts for parameter in command.params)


class _Commands(TyperGroup):
    """Commands whose errors are one sentence and an exit code, never a traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        # A path of no letters is the current folder: a variable that was not set would fill that.
        if "--out=" in args or ("--out", "") in pairwise(args):
            raise typer.BadParameter(
                "it is empty; name a folder or a file, and write . for the current folder",
                ctx,
                param_hint="--out",
            )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with command_style(partial(_has_option, ctx)):
            try:
                return super().invoke(ctx)
            except HidagError as error:
                show_error(error)
                raise typer.Exit(FAILED) from None
            except MemoryError:
                show_error(
                    "the machine has not enough memory for this; use fewer latents or rows, or "
                    "--method saem"
                )
                raise typer.Exit(FAILED) from None
            except KeyboardInterrupt:
                show_error("interrupted")
                raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with `hidag demo`, then `hidag fit answers.csv --latents 3 --out fit`.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from hidag import __version__

        typer.echo(f"hidag {__version__}")
        raise typer.Exit(OK)


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Find hidden causes with a few levels in a table of mixed answers, and their causal graph."""


add_fit_command(app)
add_select_command(app)


@app.command(
    epilog="Example:\n\n`hidag simulate --model Chain-10 --q Q1 -n 3000 --seed 1 --out sim`"
)
def simulate(
    out: Annotated[Path, typer.Option(help="Folder for the data and the truth.")],
    model: Annotated[
        str,
        typer.Option(
            help="Chain-5, Tree-5, Model-5, Chain-10, Tree-10, Model-7, Model-8 or Model-13."
        ),
    ] = "Chain-5",
    q: Annotated[str, typer.Option("--q", help="Measurement matrix: Q1 or Q2.")] = "Q1",
    family: Annotated[
        str, typer.Option(help="bernoulli, poisson, poisson-identity, gaussian or lognormal.")
    ] = "gaussian",
    design: Annotated[
        str, typer.Option(help="text (as printed) or research-code (as run).")
    ] = "research-code",
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="Number of rows.")] = 3000,
    levels: Annotated[
        str,
        typer.Option(
            help="Levels per latent: one number for all, or one per latent (2,3,2,2,2). With more "
            "than 2 the tables of the network are drawn by our own rule: the paper has none."
        ),
    ] = "2",
    missing: Annotated[float, typer.Option(help="Share of cells that go missing.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same data.")] = 0,
) -> None:
    """Draw data from a design of the paper: responses.csv, types.csv and truth.json."""
    from hidag.cli.commands.simulate import run_simulate

    run_simulate(out, model, q, family, design, parse_levels(levels), rows, missing, seed)


@app.command(epilog="Example:\n\n`hidag evaluate fit/result.npz sim/truth.json`")
def evaluate(
    result: FitFile,
    truth: Annotated[Path, typer.Argument(help="truth.json, or the folder that holds it.")],
    json: Json = False,
) -> None:
    """Hold a saved fit against the truth it should have found."""
    from hidag.cli.commands.inspection import run_evaluate

    run_evaluate(result, truth, as_json=json)


@app.command(
    epilog="Examples:\n\n"
    "`hidag check q.csv`\n\n"
    "`hidag check q.csv --effects all --families bernoulli`\n\n"
    "`hidag check q.csv --levels 2,3,3 --families types.csv`"
)
def check(
    q: Annotated[
        Path,
        typer.Argument(
            help="CSV with the column item, then one column of 1 and 0 per latent; or a folder "
            "with q.csv.",
            show_default=False,
        ),
    ],
    levels: Annotated[
        str, typer.Option(help="Values per latent: one number, or one per latent (2,3,2).")
    ] = "2",
    effects: Annotated[
        str,
        typer.Option(
            help="As in fit: main or acdm, all or gdina, the highest order of interactions, dina "
            "or dino."
        ),
    ] = "main",
    families: Annotated[
        str | None,
        typer.Option(
            help="One family for all items, one per item with commas between, or a types.csv.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say whether a Q-matrix lets the model be identified, why, and which items to add."""
    from hidag.cli.commands.inspection import run_check

    run_check(q, parse_levels(levels), effects, families, as_json=json)


@app.command(epilog="Example: `hidag report fit --out report.html`")
def report(
    result: Annotated[
        Path,
        typer.Argument(
            help="What `hidag fit --out` wrote: its folder, or result.npz in it.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write.", show_default="report.html beside the result"),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Another title.", show_default="that of the fit")
    ] = None,
) -> None:
    """Write the report of a fit: one page that opens offline and can be mailed."""
    from hidag.cli.commands.report import run_report

    run_report(result, out, title)


@app.command()
def info(
    result: Annotated[
        Path | None,
        typer.Argument(help="result.npz, or the folder that holds it.", show_default=False),
    ] = None,
) -> None:
    """Print versions, or what a saved fit says."""
    from hidag.cli.commands.inspection import run_info

    run_info(result)


class Demo(StrEnum):
    """What `hidag demo` can show."""

    seesaw = "seesaw"
    assessment = "assessment"


@app.command()
def demo(
    which: Annotated[
        Demo,
        typer.Argument(
            help="seesaw: hidden causes found in images. assessment: skills behind answers, "
            "counts and times of a test."
        ),
    ] = Demo.seesaw,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results and pictures.", show_default="demo or demo-assessment"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same demo.")] = 1,
) -> None:
    """Simulate data, fit them, and show what was found beside the truth."""
    if which is Demo.seesaw:
        _registered_function("demo_seesaw")(out or Path("demo"), seed=seed)
    else:
        from hidag.cli.commands.demo import run_assessment

        run_assessment(out or Path("demo-assessment"), seed)


add_explain_commands(app)
add_whatif_commands(app)
for _name, _commands in _registered_commands():
    app.add_typer(_commands, name=_name)
