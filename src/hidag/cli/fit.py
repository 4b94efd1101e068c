"""`hidag fit`: read, fit, print, write."""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from hidag.cli.console import collected_warnings, progress_bar, say, show_warning
from hidag.cli.folders import check_folder, fill_folder
from hidag.cli.printed import say_result
from hidag.cli.sources import Source, chosen_families, names_for_all, read_source
from hidag.cli.tables import FIT_FILES, fit_files
from hidag.errors import HidagError
from hidag.estimator import DCRL
from hidag.observations import read_table
from hidag.report import concerns
from hidag.result import FitResult


@dataclass(frozen=True)
class FitOrder:
    """What the user asked for.

    Attributes
    ----------
    table, types, q, out : Path or None
    latents : int or None
        None where a Q-matrix tells.
    family : tuple of str
        As `chosen_families` takes them.
    use_folder_q, plots : bool
    settings : mapping
        Of the estimator.
    """

    table: Path
    latents: int | None
    types: Path | None
    family: tuple[str, ...]
    q: Path | None
    use_folder_q: bool
    out: Path | None
    plots: bool
    settings: Mapping[str, Any]


def run_fit(order: FitOrder) -> None:
    """Carry out `hidag fit`."""
    source = read_source(
        order.table,
        order.types,
        order.q,
        use_folder_types=not names_for_all(order.family),
        use_folder_q=order.use_folder_q,
    )
    if order.out is not None:
        check_folder(order.out, FIT_FILES, source.files, sign="result.npz")
    n_latents = order.latents
    if n_latents is None:
        if source.q is None:
            raise typer.BadParameter(
                "say how many hidden causes to look for, for instance --latents 3, or give a "
                "Q-matrix with --q",
                param_hint="--latents",
            )
        n_latents = source.q.num_columns - 1
    for note in source.notes:
        say(note)
    result, values, warnings = fit_source(source, n_latents, order.family, order.settings)
    say(
        f"{order.table}: {result.n_samples:,} rows, {len(result.item_names)} items, "
        f"{result.missing_share:.1%} of the cells missing"
    )
    say()
    say_result(result)
    for sentence in concerns(result, warnings):
        show_warning(sentence)
    if order.out is None:
        say("\nnothing was written; add --out FOLDER to keep the result")
        return
    files = fit_files(result, values, title=source.title, warnings=warnings, plots=order.plots)
    fill_folder(order.out, files, FIT_FILES)
    say(f"\nwrote {len(files)} files into {order.out}: {', '.join(files)}")


def fit_source(
    source: Source, n_latents: int, family: tuple[str, ...], settings: Mapping[str, Any]
) -> tuple[FitResult, Any, list[str]]:
    """Return the fit of a source, its values, shape (N, J), and the warnings it gave."""
    families = chosen_families(family, source.types, tuple(source.table.column_names))
    try:
        with collected_warnings() as warnings, progress_bar() as observer:
            model = DCRL(
                n_latents,
                family=families,
                q_matrix=source.q,
                observer=observer,
                **settings,
            ).fit(source.table)
    except HidagError as error:
        raise _for_the_command_line(error) from error
    return model.result_, read_table(source.table).values, warnings


def _for_the_command_line(error: HidagError) -> HidagError:
    """Return the error with options in place of the settings that its sentence names."""
    text = str(error)
    for setting, option in _OPTIONS.items():
        text = text.replace(setting, option)
    pasted = re.search(r"family=(\{.*?\});", text)
    if pasted:
        text = text.replace(pasted[0], _family_options(pasted[1]) + ";")
    elif "not supported yet" in text or "use family=" in text:
        text += "; say so with --family 'ITEM=TYPE' or in a types.csv"
    return type(error)(text)


def _family_options(mapping: str) -> str:
    """Return the options that say what a dictionary from item to family says, the first few."""
    try:
        chosen = list(literal_eval(mapping).items())
    except (ValueError, SyntaxError):
        return "--family ITEM=TYPE"
    options = [f"--family {shlex.quote(f'{item}={family}')}" for item, family in chosen]
    return " ".join(options[:_SHOWN_OPTIONS]) + (" ..." if len(options) > _SHOWN_OPTIONS else "")


_SHOWN_OPTIONS = 3
#: Settings as the library's sentences name them, and the options that set them.
_OPTIONS = {
    "n_latents=": "--latents ",
    "n_latents must": "--latents must",
    "n_starts must": "--starts must",
    "n_jobs must": "--jobs must",
    "max_iter must": "--max-iter must",
    "penalty_strength must": "--penalty-strength must",
}
