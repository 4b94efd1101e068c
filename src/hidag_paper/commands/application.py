"""Running an application and writing its folder: pictures, tables, the fit, a page."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from hidag.cli.console import collected_warnings, progress_bar, say, show_warning, steps_told
from hidag.cli.folders import FIT_SIGN, Writer, check_folder, fill_folder
from hidag.cli.messages import join_command
from hidag.cli.output_files import number, write_csv
from hidag.plotting.figure import Format, render_figure
from hidag.reporting.fit_description import edges_in_words
from hidag.reporting.html_page import write_page
from hidag.reporting.sections import Table
from hidag_paper.applications.outcome import Outcome, Picture, render_outcome

#: Written last, so that it tells a folder that an application has filled.
SIGN = "summary.json"
_PAGE = "page.html"
_FORMATS: tuple[Format, ...] = ("png", "svg")


def run_application(
    compute: Callable[[], Outcome], out: Path, inputs: Iterable[Path] = ()
) -> Outcome:
    """Run an application, print what it found, and write its folder.

    Parameters
    ----------
    compute : callable
        Makes the outcome.
    out : Path
        Folder to write; checked before the work. Files that no application wrote stay.
    inputs : iterable of Path
        Files that are read, none of which may be overwritten.
    """
    begun = time.monotonic()
    check_folder(out, (_PAGE, FIT_SIGN, SIGN), inputs, sign=SIGN)
    with collected_warnings() as warnings:
        outcome = compute()
    files = outcome_files(outcome, command=_command())
    check_folder(out, files, inputs, sign=SIGN)
    fill_folder(out, files, _written_before(out))
    say(outcome.title)
    for sentence in outcome.findings:
        say(f"  {sentence}")
    say("\ngraph among the latents")
    for edge in edges_in_words(outcome.result.graph) or ["no edge"]:
        say(f"  {edge}")
    for warning in warnings:
        show_warning(warning)
    for sentence in outcome.cautions:
        show_warning(sentence)
    say(f"\n{time.monotonic() - begun:.0f} seconds; open {out / _PAGE}")
    return outcome


def run_told_application(
    explain: Callable[..., Outcome],
    folder: Path | None,
    out: Path,
    inputs: Iterable[Path],
    **settings: Any,
) -> None:
    """Run an application that tells what it is doing, on a folder of data."""
    with steps_told() as tell:
        run_application(lambda: explain(folder, tell=tell, **settings), out, inputs)


def run_seesaw_application(
    out: Path, *, seed: int, n_images: int | None = None, jitter: float | None = None
) -> None:
    """Carry out `hidag app seesaw`, which is also the demo."""
    from hidag_paper.applications.seesaw import run_seesaw
    from hidag_paper.seesaw import N_IMAGES

    def compute() -> Outcome:
        with progress_bar() as observer:
            return run_seesaw(
                seed=seed,
                n_images=N_IMAGES if n_images is None else n_images,
                jitter=jitter,
                observer=observer,
            )

    run_application(compute, out)


def run_ecpe_application(folder: Path, out: Path, *, seed: int) -> None:
    """Carry out `hidag app ecpe`."""
    from hidag.cli.data_source import read_source
    from hidag_paper.applications.ecpe import run_ecpe

    # Read here too, for the sentences about files that are not there or are not tables.
    source = read_source(folder, None, None)

    def compute() -> Outcome:
        with progress_bar() as observer:
            return run_ecpe(folder, seed=seed, observer=observer)

    run_application(compute, out, source.files)


def outcome_files(outcome: Outcome, *, command: str | None = None) -> dict[str, Writer]:
    """Return a writer for each file of an outcome, summary.json last."""
    files: dict[str, Writer] = {}
    for picture in outcome.pictures:
        for ending in _FORMATS:
            files[f"{picture.name}.{ending}"] = partial(
                _write_picture, picture=picture, ending=ending
            )
    for table in outcome.tables:
        files[f"{table.name}.csv"] = partial(_write_table, table=table)
    files[FIT_SIGN] = outcome.result.save
    files[_PAGE] = lambda path: write_page(render_outcome(outcome, command=command), path)
    content = {**outcome.summary(), "files": [*files, SIGN]}
    files[SIGN] = lambda path: path.write_text(
        json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8"
    )
    return files


def _write_picture(path: Path, *, picture: Picture, ending: Format) -> None:
    path.write_bytes(render_figure(picture.draw, picture.size, file_format=ending))


def _write_table(path: Path, *, table: Table) -> None:
    rows = (
        [number(value) if isinstance(value, float) else value for value in row]
        for row in table.rows
    )
    write_csv(path, table.header, rows)


def _written_before(folder: Path) -> list[str]:
    """Return what an earlier run says it wrote here, so that no folder holds files of two runs."""
    try:
        names = json.loads((folder / SIGN).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    # A summary that somebody edited must not make us remove files elsewhere.
    return [name for name in names if isinstance(name, str) and Path(name).name == name]


def _command() -> str:
    return join_command(["hidag", *sys.argv[1:]])
