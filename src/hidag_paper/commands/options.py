"""`hidag app` and its options; what an application does is in `hidag_paper.applications`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hidag.cli.options import Seed, range_of

# --- `hidag study` and its options; what it does is in `hidag_paper.commands.study`

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
    from hidag_paper.commands.study import run_study_command

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
    from hidag_paper.commands.study import run_report

    run_report(folder, published, out)


# ---

Folder = Annotated[Path, typer.Option(help="Folder for pictures, tables and the page.")]

application_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Take real data from file to finding: pictures, tables and a page in plain words.",
)


@application_app.command()
def seesaw(
    out: Folder = Path("app-seesaw"),
    seed: Seed = 1,
    images: Annotated[int, typer.Option(min=2, help="How many images to draw.")] = 10_000,
    jitter: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.05,
            help="Largest random shift of pivot, plank and balls, in image sides.",
            show_default="0.001, the paper's",
        ),
    ] = None,
) -> None:
    """Draw images of a seesaw; find the hidden causes in their pixels, and their graph."""
    from hidag_paper.commands.application import run_seesaw_application

    run_seesaw_application(out, seed=seed, n_images=images, jitter=jitter)


@application_app.command("timss")
def timss(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Folder with the TIMSS 2019 tables (timss2019_rt, or the folder above it).",
            show_default=False,
        ),
    ] = None,
    q: Annotated[
        str, typer.Option("--q", help="Q-matrix: printed (the paper's table) or official.")
    ] = "printed",
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", min=0, help="Refits to resampled students; 0 for none.")
    ] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds that the fit is begun from.")] = 10,
    seed: Seed = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; never changes what is found.")
    ] = 1,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Folder where refits are kept, to go on after a stop.", show_default=False
        ),
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="A simulated stand-in in place of the data.")
    ] = False,
    out: Folder = Path("app-timss"),
) -> None:
    """Skills behind response times: the graph among seven skills of TIMSS 2019, and how stable."""
    from hidag.exceptions import SettingError
    from hidag_paper.applications.timss import explain_times
    from hidag_paper.applications.timss_fits import files_of
    from hidag_paper.commands.application import run_told_application

    if (folder is None) != simulated:
        raise SettingError("give the folder of the TIMSS tables, or --simulated, one of the two")
    run_told_application(
        explain_times,
        folder,
        out,
        () if folder is None else files_of(folder),
        q=q,
        seed=seed,
        n_resamples=bootstrap,
        n_seeds=seeds,
        n_jobs=workers,
        keep=keep,
    )


@application_app.command("nhanes")
def nhanes(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder with responses.csv, types.csv and covariates.csv.",
            show_default=False,
        ),
    ],
    out: Folder = Path("app-nhanes"),
    seed: Seed = 0,
    latents: Annotated[
        str | None,
        typer.Option(help="Numbers of latents to choose from, such as 2..6.", show_default="2..6"),
    ] = None,
) -> None:
    """Health of adults: measures, answers and counts with gaps and survey weights in one model."""
    from hidag_paper.applications.nhanes import NUMBERS, explain_health
    from hidag_paper.applications.nhanes_data import files_of
    from hidag_paper.commands.application import run_told_application

    numbers = range_of(latents) or NUMBERS
    run_told_application(explain_health, folder, out, files_of(folder), seed=seed, numbers=numbers)


@application_app.command("newsgroups")
def newsgroups(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder with responses_sparse.csv.gz, vocabulary.csv and labels.csv.",
            show_default=False,
        ),
    ],
    out: Folder = Path("app-newsgroups"),
    seed: Seed = 0,
    latents: Annotated[
        str | None,
        typer.Option(
            help="Numbers of latents to choose from, such as 4,6,8.", show_default="4,6,8"
        ),
    ] = None,
) -> None:
    """Topics behind the counts of hundreds of words; newsgroups are looked at after the fit."""
    from hidag_paper.applications.newsgroups import NUMBERS, explain_words
    from hidag_paper.applications.newsgroups_data import files_of
    from hidag_paper.commands.application import run_told_application

    numbers = range_of(latents) or NUMBERS
    run_told_application(explain_words, folder, out, files_of(folder), seed=seed, numbers=numbers)


@application_app.command()
def ecpe(
    folder: Annotated[
        Path,
        typer.Argument(
            help="With the answers, responses.csv, and the experts' Q-matrix, q.csv.",
            show_default=False,
        ),
    ],
    out: Folder = Path("app-ecpe"),
    seed: Seed = 1,
) -> None:
    """Three skills behind a grammar test (ECPE): profiles, their hierarchy, models side by side."""
    from hidag_paper.commands.application import run_ecpe_application

    run_ecpe_application(folder, out, seed=seed)
