"""Options of `hidag study` and `hidag app`; the implementations are imported on use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hidag.cli.options import Seed, parse_range

#: Studies of the catalogue with a description and options for a first run; repeated here so that
#: `--help` does not import them.
STUDY_HELP = {
    "table1": (
        "Five latents, Gaussian items: three graphs at N = 1,000, 5,000 and 10,000, compared with "
        "baselines; also with distinct slopes, where mixture components can be counted.",
        "--cells Chain-5 --replicates 20",
    ),
    "table2": (
        "Seven to thirteen latents: five graphs, two Q, three families at N = 3,000, 5,000 and "
        "7,000.",
        "--cells Chain-10 --replicates 20",
    ),
    "table-s1": (
        "The cells of Table 2 with f(N) = N, 2N and 3N rows drawn from the fitted distribution, "
        "and with the default; one fit for all of them.",
        "--cells Chain-10/Q1/bernoulli --replicates 20",
    ),
    "consistency": (
        "Share of exact graphs and Q as N grows, for f(N) = sqrt N, N, N log N, N^1.5, N^2 and the "
        "default.",
        "--cells Chain-5/Q1/gaussian --replicates 20",
    ),
}

study_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Run the simulation studies of the paper and compare with the published numbers.",
)


def _run(
    ctx: typer.Context,
    cells: Annotated[
        str | None,
        typer.Option(
            help="Only cells whose names contain this, such as Chain-10 or Q2/poisson, or match "
            "it, such as 'Chain-*/Q1/*/3000'; several separated by commas.",
            show_default="all",
        ),
    ] = None,
    replicates: Annotated[
        int | None,
        typer.Option("--replicates", "-r", help="Simulated tables per cell.", show_default="20"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A few small cells and few tables, for a trial of a minute or two."
        ),
    ] = False,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas: ours, and in table1 and table2 any baseline; in "
            "the other two also saturated, printed and research-code.",
            show_default="table1: all; else those of the study",
        ),
    ] = None,
    design: Annotated[
        str, typer.Option(help="text (as published) or research-code (as run).")
    ] = "research-code",
    n: Annotated[
        str | None,
        typer.Option("--n", "-n", help="Other numbers of rows.", show_default="as in the paper"),
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(
            help="Other families of items, separated by commas; counts have an identity link in "
            "the research-code design and a log link in the text design.",
            show_default="as in the paper",
        ),
    ] = None,
    q: Annotated[
        str | None,
        typer.Option("--q", help="Q1, Q2 or Q1,Q2.", show_default="as in the paper"),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Root seed; the seed of a run is derived from it and the name of the run."
        ),
    ] = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; they change no result but CPU seconds.")
    ] = 1,
    published: Annotated[
        Path | None,
        typer.Option(
            help="Folder with other numbers to compare with, study1_shd.csv and study2_shd.csv.",
            show_default="as in the paper",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results; runs that it contains are not repeated.",
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
        help=f"{_about} An interrupted study resumes where it stopped.",
        epilog=f"Example:\n\n`hidag study {_name} {_example}`",
    )(_run)


@study_app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a study.")],
    published: Annotated[
        Path | None,
        typer.Option(
            help="Folder with other numbers to compare with.",
            show_default="those of the run",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the pages and figures.", show_default="FOLDER/report"),
    ] = None,
) -> None:
    """Print the results of a study, complete or not, and write them as pages with figures.

    The pages are report.md, report.tex and report.html; the numbers are in cells.csv.
    """
    from hidag_paper.commands.study import run_report

    run_report(folder, published, out)


Folder = Annotated[Path, typer.Option(help="Folder for figures, tables and the page.")]

application_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Analyse real data: figures, tables and a page.",
)


@application_app.command()
def seesaw(
    out: Folder = Path("app-seesaw"),
    seed: Seed = 1,
    images: Annotated[int, typer.Option(min=2, help="Number of images.")] = 10_000,
    jitter: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.05,
            help="Largest random shift of pivot, plank and balls, relative to the image side.",
            show_default="0.001, as in the paper",
        ),
    ] = None,
) -> None:
    """Simulate images of a seesaw; estimate the latents and their graph from the pixels."""
    from hidag_paper.commands.application import run_seesaw_application

    run_seesaw_application(out, seed=seed, n_images=images, jitter=jitter)


@application_app.command()
def assessment(out: Folder = Path("app-assessment"), seed: Seed = 1) -> None:
    """Simulate a small test; estimate the skills behind its answers, counts and times."""
    from hidag_paper.commands.assessment import run_assessment

    run_assessment(out, seed)


@application_app.command("timss")
def timss(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Folder with the TIMSS 2019 tables (timss2019_rt or its parent).",
            show_default=False,
        ),
    ] = None,
    q: Annotated[
        str, typer.Option("--q", help="Q-matrix: printed (in the paper) or official.")
    ] = "printed",
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", min=0, help="Bootstrap refits; 0 for none.")
    ] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds of the main fit.")] = 10,
    seed: Seed = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; they do not change the result.")
    ] = 1,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Folder where refits are stored, to resume after an interruption.",
            show_default=False,
        ),
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulated data instead of a folder.")
    ] = False,
    out: Folder = Path("app-timss"),
) -> None:
    """Skills in response times: causal graph of seven skills of TIMSS 2019, with its stability."""
    from hidag.exceptions import Setting, SettingError
    from hidag_paper.applications.timss import run_timss
    from hidag_paper.applications.timss_data import input_files
    from hidag_paper.commands.application import run_on_folder

    if (folder is None) != simulated:
        raise SettingError(
            "exclusive-options",
            "either the folder of the TIMSS tables or {simulated} is required, not both",
            simulated=Setting("simulated"),
        )
    run_on_folder(
        run_timss,
        folder,
        out,
        () if folder is None else input_files(folder),
        q=q,
        seed=seed,
        n_resamples=bootstrap,
        n_seeds=seeds,
        n_jobs=workers,
        resample_folder=keep,
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
        typer.Option(help="Candidate numbers of latents, such as 2..6.", show_default="2..6"),
    ] = None,
) -> None:
    """Health of adults: continuous, ordinal, binary and count items with survey weights."""
    from hidag_paper.applications.nhanes import NUMBERS, input_files, run_nhanes
    from hidag_paper.commands.application import run_on_folder

    numbers = parse_range(latents) or NUMBERS
    run_on_folder(run_nhanes, folder, out, input_files(folder), seed=seed, numbers=numbers)


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
        typer.Option(help="Candidate numbers of latents, such as 4,6,8.", show_default="4,6,8"),
    ] = None,
) -> None:
    """Topics in the counts of hundreds of words, compared with the newsgroups after the fit."""
    from hidag_paper.applications.newsgroups import NUMBERS, input_files, run_newsgroups
    from hidag_paper.commands.application import run_on_folder

    numbers = parse_range(latents) or NUMBERS
    run_on_folder(run_newsgroups, folder, out, input_files(folder), seed=seed, numbers=numbers)


@application_app.command()
def ecpe(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder with responses.csv and the Q-matrix q.csv.",
            show_default=False,
        ),
    ],
    out: Folder = Path("app-ecpe"),
    seed: Seed = 1,
) -> None:
    """Three skills in a grammar test (ECPE): profiles, hierarchy, model comparison."""
    from hidag_paper.commands.application import run_ecpe_application

    run_ecpe_application(folder, out, seed=seed)
