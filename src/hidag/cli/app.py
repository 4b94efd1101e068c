"""The `hidag` command: its subcommands and how errors are reported."""

from __future__ import annotations

from importlib.metadata import entry_points
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from hidag.cli.commands import fit, model_choice, saved_fit, simulation, whatif
from hidag.cli.console import show_error
from hidag.cli.messages import command_style
from hidag.exceptions import HidagError

FAILED, INTERRUPTED = 1, 130
#: Entry points of groups of commands that other packages add.
_COMMANDS = "hidag.commands"


class _Commands(TyperGroup):
    """Commands that report errors as one sentence and an exit code, without a traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        # An unset shell variable gives an empty path, which would be the current folder.
        if "--out=" in args or ("--out", "") in pairwise(args):
            problem = "it is empty; name a folder or a file, and write . for the current folder"
            raise typer.BadParameter(problem, ctx, param_hint="--out")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        def has_option(option: str) -> bool:
            command = self.commands.get(ctx.invoked_subcommand)
            return command is None or any(option in parameter.opts for parameter in command.params)

        with command_style(has_option):
            try:
                return super().invoke(ctx)
            except HidagError as error:
                show_error(error)
            except MemoryError:
                show_error("not enough memory; use fewer latents or rows, or --method saem")
            except OSError as error:
                place = "" if error.filename is None else f"{str(error.filename)[:80]}: "
                show_error(f"{place}{error.strerror or error}")
            except KeyboardInterrupt:
                show_error("interrupted")
                raise typer.Exit(INTERRUPTED) from None
            raise typer.Exit(FAILED)


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
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Estimate discrete latent causes of a table of mixed responses, and their causal graph."""


for _module in (fit, model_choice, simulation, saved_fit, whatif):
    app.registered_commands += _module.app.registered_commands
for _point in sorted(entry_points(group=_COMMANDS), key=lambda point: point.name, reverse=True):
    # A package that is not completely installed has no commands.
    if (_group := _point.load()).registered_commands:
        app.add_typer(_group, name=_point.name)
