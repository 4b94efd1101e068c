"""`hidag app` and its options; what an application does is in `hidag.applications`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hidag.cli.numbers import range_of
from hidag.cli.options import Seed

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
    from hidag.cli.application import run_seesaw_application

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
    from hidag.applications.timss import explain_times
    from hidag.applications.timss_data import files_of
    from hidag.cli.application import run_told_application
    from hidag.errors import SettingError

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
    from hidag.applications.nhanes import NUMBERS, explain_health
    from hidag.applications.nhanes_data import files_of
    from hidag.cli.application import run_told_application

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
    from hidag.applications.newsgroups import NUMBERS, explain_words
    from hidag.applications.newsgroups_data import files_of
    from hidag.cli.application import run_told_application

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
    from hidag.cli.application import run_ecpe_application

    run_ecpe_application(folder, out, seed=seed)
