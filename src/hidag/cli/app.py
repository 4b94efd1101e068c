"""The commands and their options; what they do is in the modules beside this one.

Modules are loaded when their command runs, so that `hidag --help` answers at once.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hidag.cli.application_commands import application_app
from hidag.cli.console import show_error
from hidag.cli.explain_commands import add_explain_commands
from hidag.cli.numbers import effects_of, latents_of, levels_of, range_of, strengths_of
from hidag.cli.study_commands import study_app
from hidag.cli.whatif_commands import add_whatif_commands
from hidag.errors import HidagError

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class _Commands(TyperGroup):
    """Commands whose errors are one sentence and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except HidagError as error:
            show_error(str(error))
            raise typer.Exit(FAILED) from None
        except MemoryError:
            show_error(
                "the machine has not enough memory for this; ask for fewer latents or rows, or use "
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


@app.command(
    epilog="Examples:\n\n"
    "`hidag fit answers.csv --latents 3 --out fit`\n\n"
    "`hidag fit study/ --out fit` (a folder with responses.csv, types.csv and q.csv)\n\n"
    "`hidag fit log.csv -k 4 --family 'time_*=lognormal' --family clicks=poisson --seed 1`\n\n"
    "`hidag fit grades.csv --levels 3,3,2 --family ordinal --out fit` (three causes)\n\n"
    "`hidag fit study/ --effects all --out fit` (a G-DINA model with its Q-matrix)\n\n"
    "`hidag fit study/ --hierarchy 'Lexical->Cohesive' --out fit` (nobody has the second alone)"
)
def fit(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet file with one column per item; or a folder with "
            "responses.csv and perhaps types.csv and q.csv.",
            show_default=False,
        ),
    ],
    latents: Annotated[
        str | None,
        typer.Option(
            "--latents",
            "-k",
            help="Number of hidden causes, or auto to choose it from the table; not needed with a "
            "Q-matrix or a list of --levels.",
            show_default=False,
        ),
    ] = None,
    levels: Annotated[
        str,
        typer.Option(
            help="Levels per hidden cause, 2 for yes and no: one number for all, or one per cause "
            "(2,3,2). They are ordered."
        ),
    ] = "2",
    effects: Annotated[
        str,
        typer.Option(
            help="What an item's causes do together: main or acdm (their effects add up), all or "
            "gdina (every interaction), 2, 3, ... (interactions of up to so many), dina (only all "
            "of them together count), dino (any of them is enough)."
        ),
    ] = "main",
    types: Annotated[
        Path | None, typer.Option(help="CSV with the columns item and type.", show_default=False)
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            help="Type of all items (bernoulli, poisson, gaussian, lognormal, ordinal, ...; `hidag "
            "info` lists all; auto), or ITEM=TYPE for one item or a pattern such as "
            "'time_*=lognormal'; may be given several times.",
            show_default="auto",
        ),
    ] = None,
    q: Annotated[
        Path | None,
        typer.Option(
            "--q",
            help="CSV with the column item, then one column per latent: 1, 0, or -1 (estimate).",
            show_default=False,
        ),
    ] = None,
    no_q: Annotated[
        bool, typer.Option("--no-q", help="Ignore the q.csv of a folder and estimate Q.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results; made if need be.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 0,
    starts: Annotated[
        int | None,
        typer.Option(
            help="Number of starts; the best is kept. [default: as many as are worth their cost]",
            show_default=False,
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="auto, em (exact) or saem (sampling).")] = "auto",
    law: Annotated[
        str,
        typer.Option(help="Latent law: auto, network (over a graph) or saturated (the paper's)."),
    ] = "auto",
    penalty: Annotated[
        str, typer.Option(help="tlp, scad or none: what makes the loadings sparse.")
    ] = "tlp",
    penalty_strength: Annotated[
        float | None,
        typer.Option(help="Weight of the penalty.", show_default="chosen from the table"),
    ] = None,
    score: Annotated[
        str, typer.Option(help="Score of the graph: auto, bdeu, bic or lean.")
    ] = "auto",
    search: Annotated[str, typer.Option(help="Search of the graph: xges, ges or exact.")] = "xges",
    resample: Annotated[
        str,
        typer.Option(help="Rows the graph is searched on: expected, N, 2N, 3N or a number."),
    ] = "expected",
    effective_size: Annotated[
        str,
        typer.Option(help="Rows that expected counts stand for: auto, all or a share of N."),
    ] = "auto",
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="An edge that must be there: 'Z1->Z2'; several with commas, or several times.",
            show_default=False,
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(help="A direction that must not occur: 'Z2->Z1'.", show_default=False),
    ] = None,
    tiers: Annotated[
        str | None,
        typer.Option(
            help="Order in which later ones cause no earlier ones: 'Z1,Z2;Z3'.",
            show_default=False,
        ),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(
            help="A prerequisite: with 'A->B' nobody has B without A. Needs a Q-matrix.",
            show_default=False,
        ),
    ] = None,
    knowledge: Annotated[
        Path | None,
        typer.Option(
            help="JSON file with any of the lists required, forbidden, tiers and hierarchy.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; never changes a result. -1: all.")] = 1,
    max_iter: Annotated[int, typer.Option(help="Most steps per start.")] = 300,
    tol: Annotated[float, typer.Option(help="Gain per row below which a start ends.")] = 1e-4,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no pictures.")] = False,
    statistics: Annotated[
        bool | None,
        typer.Option(
            "--statistics/--no-statistics",
            help="Say in the report how well the model fits.",
            show_default="where it is quick",
        ),
    ] = None,
) -> None:
    """Fit the model to a table and write the results into a folder."""
    from hidag.cli.fit import FitOrder, run_fit
    from hidag.cli.knowledge import read_knowledge

    run_fit(
        FitOrder(
            table=table,
            latents=latents_of(latents),
            levels=levels_of(levels),
            types=types,
            family=tuple(family or ()),
            q=q,
            use_folder_q=not no_q,
            out=out,
            plots=not no_plots,
            statistics=statistics,
            settings={
                "effects": effects_of(effects),
                "random_state": seed,
                "n_starts": "auto" if starts is None else starts,
                "method": method,
                "law": law,
                "penalty": None if penalty.lower() == "none" else penalty,
                "penalty_strength": penalty_strength,
                "score": score,
                "search": search,
                "resample": int(resample) if resample.isdigit() else resample,
                "effective_size": _number_or_word(effective_size),
                "knowledge": read_knowledge(
                    knowledge, require or (), forbid or (), tiers, hierarchy or ()
                ),
                "n_jobs": jobs,
                "max_iter": max_iter,
                "tol": tol,
            },
        )
    )


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@app.command(
    epilog="Examples:\n\n"
    "`hidag select answers.csv --latents 2..8 --out numbers`\n\n"
    "`hidag select answers.csv --fits none` (in a second, from the correlations alone)"
)
def select(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet file with one column per item; or a folder with "
            "responses.csv and perhaps types.csv.",
            show_default=False,
        ),
    ],
    latents: Annotated[
        str | None,
        typer.Option(
            "--latents",
            "-k",
            help="Numbers to choose from: a range (2..8), or a list with commas between.",
            show_default="1 to as many as the items can identify, at most 40",
        ),
    ] = None,
    types: Annotated[
        Path | None, typer.Option(help="CSV with the columns item and type.", show_default=False)
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            help="Type of all items, or ITEM=TYPE, as in `hidag fit`; may be given several times.",
            show_default="auto",
        ),
    ] = None,
    fits: Annotated[
        str,
        typer.Option(help="Which numbers are fitted: near (what the correlations say), all, none."),
    ] = "near",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation; 0 leaves it out.")] = 3,
    penalty_strengths: Annotated[
        str | None,
        typer.Option(
            help="Strengths of the penalty to compare, with commas between; auto is learned.",
            show_default="auto",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the table and the picture.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; never changes a result. -1: all.")] = 1,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no picture.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Say how many hidden causes a table speaks for, by several criteria side by side."""
    from hidag.cli.select import SelectOrder, run_select

    run_select(
        SelectOrder(
            table=table,
            latents=range_of(latents),
            types=types,
            family=tuple(family or ()),
            out=out,
            plots=not no_plots,
            as_json=json,
            settings={
                "fits": fits,
                "folds": folds,
                "penalty_strengths": strengths_of(penalty_strengths),
                "random_state": seed,
                "n_jobs": jobs,
            },
        )
    )


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
    rows: Annotated[int, typer.Option("--rows", "-n", help="Number of rows.")] = 3000,
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
    from hidag.cli.simulate import run_simulate

    run_simulate(out, model, q, family, design, levels_of(levels), rows, missing, seed)


@app.command(epilog="Example:\n\n`hidag evaluate fit/result.npz sim/truth.json`")
def evaluate(
    result: Annotated[Path, typer.Argument(help="result.npz, or the folder that holds it.")],
    truth: Annotated[Path, typer.Argument(help="truth.json, or the folder that holds it.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Hold a saved fit against the truth it should have found."""
    from hidag.cli.evaluate import run_evaluate

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
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Say whether a Q-matrix lets the model be identified, why, and which items to add."""
    from hidag.cli.check import run_check

    run_check(q, levels_of(levels), effects, families, as_json=json)


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
    from hidag.cli.report import run_report

    run_report(result, out, title)


@app.command()
def info(
    result: Annotated[
        Path | None,
        typer.Argument(help="result.npz, or the folder that holds it.", show_default=False),
    ] = None,
) -> None:
    """Print versions, or what a saved fit says."""
    from hidag.cli.info import run_info

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
        from hidag.cli.application import run_seesaw_application

        run_seesaw_application(out or Path("demo"), seed=seed)
    else:
        from hidag.cli.demo import run_assessment

        run_assessment(out or Path("demo-assessment"), seed)


add_explain_commands(app)
add_whatif_commands(app)
app.add_typer(study_app, name="study")
if application_app.registered_commands:
    app.add_typer(application_app, name="app")
