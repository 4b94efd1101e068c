"""`hidag study` and its options; what it does is in `hidag.cli.study`.

The studies share one set of options, so one function serves them all: a new study is a line in
`STUDY_HELP` here and an entry in the catalogue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: Studies of the catalogue, what they are and a part of them to begin with; said here so that
#: `--help` need not load them.
STUDY_HELP = {
    "table1": (
        "Five latents, Gaussian items: three graphs at N = 1,000, 5,000 and 10,000, against other "
        "methods; also with distinct slopes, where mixture components can be counted.",
        "--cells Chain-5 --replicates 20",
    ),
    "table2": (
        "Seven to thirteen latents: five graphs, two Q, three families at N = 3,000, 5,000 and "
        "7,000.",
        "--cells Chain-10 --replicates 20",
    ),
    "table-s1": (
        "The cells of Table 2 with f(N) = N, 2N and 3N rows drawn from the fitted law, and with "
        "our default; one fit for all of them.",
        "--cells Chain-10/Q1/bernoulli --replicates 20",
    ),
    "consistency": (
        "How often graph and Q are found without error as N grows, for f(N) = sqrt N, N, N log N, "
        "N^1.5, N^2 and our default.",
        "--cells Chain-5/Q1/gaussian --replicates 20",
    ),
}

study_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Run the paper's simulation studies and print ours beside the published numbers.",
)


def _run(
    ctx: typer.Context,
    cells: Annotated[
        str | None,
        typer.Option(
            help="Only cells whose names hold this, such as Chain-10 or Q2/poisson, or match it, "
            "such as 'Chain-*/Q1/*/3000'; several with commas.",
            show_default="all",
        ),
    ] = None,
    replicates: Annotated[
        int | None,
        typer.Option("--replicates", "-r", help="Tables of a cell.", show_default="20"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A few small cells and few tables, to see it work in a minute or two."
        ),
    ] = False,
    methods: Annotated[
        str | None,
        typer.Option(
            help="What is run on every table, with commas: ours, and in table1 and table2 any "
            "baseline; in the other two also saturated and research-code.",
            show_default="table1: all; else the study's own",
        ),
    ] = None,
    design: Annotated[
        str, typer.Option(help="text (as printed) or research-code (as run).")
    ] = "research-code",
    n: Annotated[
        str | None,
        typer.Option("--n", "-n", help="Other numbers of rows.", show_default="the paper's"),
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(
            help="Other families of items, with commas; counts have an identity link in the "
            "research-code design and a log link in the text's.",
            show_default="the paper's",
        ),
    ] = None,
    q: Annotated[
        str | None,
        typer.Option("--q", help="Q1, Q2 or both with a comma.", show_default="the paper's"),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Root of all seeds; a run's own seed comes from its place.")
    ] = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; never changes a row but for its CPU seconds.")
    ] = 1,
    published: Annotated[
        Path | None,
        typer.Option(
            help="Folder with other numbers to stand beside ours, study1_shd.csv and "
            "study2_shd.csv.",
            show_default="the paper's",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the rows; what it holds already is not run again.",
            show_default="study-NAME",
        ),
    ] = None,
) -> None:
    from hidag.cli.study import run_study_command

    name = str(ctx.info_name)
    run_study_command(
        name,
        out or Path(f"study-{name}"),
        cells=cells,
        n=n,
        families=families,
        q=q,
        replicates=replicates,
        quick=quick,
        methods=methods,
        design=design,
        seed=seed,
        workers=workers,
        published=published,
    )


for _name, (_about, _example) in STUDY_HELP.items():
    study_app.command(
        _name,
        help=f"{_about} A study that was stopped goes on where it ended.",
        epilog=f"Example:\n\n`hidag study {_name} {_example}`",
    )(_run)


@study_app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder that a study was run into.")],
    published: Annotated[
        Path | None,
        typer.Option(
            help="Folder with other numbers to stand beside ours.",
            show_default="those of the run",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the pages and pictures.", show_default="FOLDER/report"),
    ] = None,
) -> None:
    """Print what a folder of runs says, finished or not, and write it as pages with pictures.

    The pages are report.md, report.tex and report.html; the numbers are in cells.csv.
    """
    from hidag.cli.study import run_report

    run_report(folder, published, out)
