"""`hidag fit`: read, fit, print, write."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from hidag.cli.console import collected_warnings, progress_bar, say, show_warning
from hidag.cli.data_source import (
    Source,
    boolean_columns,
    choose_families,
    families_for_all,
    read_source,
)
from hidag.cli.folders import FIT_SIGN, check_folder, fill_folder
from hidag.cli.messages import join_command, render
from hidag.cli.options import parse_arrows, split_known
from hidag.cli.output_files import (
    FIT_FILES,
    fit_files,
    is_another_fit,
    remove_bootstrap,
    remove_goodness,
)
from hidag.cli.read_options import ReadOptions, store_options, warn_of_ids
from hidag.cli.result_text import say_result
from hidag.data.readers import find_part
from hidag.data.sample_weights import MANY_EMPTY_ROWS, describe_empty_rows
from hidag.data.table import read_table
from hidag.estimator import DCRL
from hidag.exceptions import FileError, HidagWarning, SettingError
from hidag.formatting import plural
from hidag.reporting.assembly import assemble_report
from hidag.reporting.fit_description import list_concerns
from hidag.results import FitResult
from hidag.structure.knowledge import Knowledge

# --- What is known beforehand, as options and as a file


def read_knowledge(
    file: Path | None,
    required: Sequence[str],
    forbidden: Sequence[str],
    tiers: str | None,
    hierarchy: Sequence[str],
    names: Collection[str] = (),
) -> Knowledge | None:
    """Return what options and a file say together; None if they say nothing.

    Parameters
    ----------
    file : Path or None
        JSON with the lists required, forbidden, tiers and hierarchy, as `Knowledge.to_dict` writes.
    required, forbidden, hierarchy : sequence of str
        Such as "A->B", several with commas.
    tiers : str or None
        Such as "A,B;C": A and B before C.
    names : collection of str
        Of the latents, where they are known beforehand: their commas part nothing.
    """
    told = Knowledge() if file is None else _read_file(file)
    levels = [
        tuple(name for name in split_known(tier, lambda part: part in names) if name)
        for tier in (tiers or "").split(";")
        if tier.strip()
    ]
    if levels and told.tiers:
        raise SettingError(f"tiers are in {file} and in --tiers; say them once")
    whole = Knowledge(
        (*told.required, *parse_arrows(required, "--require", names)),
        (*told.forbidden, *parse_arrows(forbidden, "--forbid", names)),
        tuple(levels) or told.tiers,
        (*told.hierarchy, *parse_arrows(hierarchy, "--hierarchy", names)),
    )
    return whole if whole.to_dict() else None


def _read_file(path: Path) -> Knowledge:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or error
        raise FileError(f"cannot read the knowledge in {path}: {words}") from error
    except json.JSONDecodeError as error:
        raise FileError(
            f"{path} is not JSON ({error}); it should look like "
            '{"required": [["Z1", "Z2"]], "tiers": [["Z1"], ["Z2", "Z3"]]}'
        ) from error
    return Knowledge.from_dict(content)


# ---


@dataclass(frozen=True)
class FitOrder:
    """What the user asked for.

    Attributes
    ----------
    table, types, q, out : Path or None
    latents : int, "auto" or None
        None where a Q-matrix or a list of levels tells; "auto" is chosen from the table.
    levels : int or list of int
    family : tuple of str
        As `choose_families` takes them.
    use_folder_q, plots : bool
    statistics : bool or None
        Whether the report says how well the model fits; None where that is quick.
    settings : mapping
        Of the estimator.
    reading : ReadOptions
        What is said about the columns.
    knowledge : function of the latents' names
        Gives what is known beforehand; without names where no Q-matrix has them.
    """

    table: Path
    latents: int | str | None
    levels: int | list[int]
    types: Path | None
    family: tuple[str, ...]
    q: Path | None
    use_folder_q: bool
    out: Path | None
    plots: bool
    statistics: bool | None
    settings: Mapping[str, Any]
    reading: ReadOptions
    knowledge: Callable[[Collection[str]], Knowledge | None]


def run_fit(order: FitOrder) -> None:
    """Carry out `hidag fit`."""
    source = read_source(
        order.table,
        order.types,
        order.q,
        use_folder_types=not families_for_all(order.family),
        use_folder_q=order.use_folder_q,
        reading=order.reading,
    )
    if order.out is not None:
        _refuse_folder_of_table(order.out)
        check_folder(order.out, FIT_FILES, source.files, sign=FIT_SIGN)
    n_latents = _number_of_latents(order, source)
    for note in source.notes:
        say(note)
    if source.ids is not None and order.reading.id_column is not None:
        warn_of_ids(source.ids, order.reading.id_column)
    known = order.knowledge(() if source.q is None else source.q.column_names)
    settings = {**order.settings, "levels": order.levels, "knowledge": known}
    result, values, warnings = fit_source(source, n_latents, order.family, settings)
    result = store_options(result, order.reading)
    say(
        f"{order.table}: {result.n_samples:,} rows, {plural(len(result.item_names), 'item')}, "
        f"{result.missing_share:.1%} of the cells missing"
    )
    n_empty = result.n_unanswered
    # Where they are many a warning says it.
    if 0 < n_empty <= MANY_EMPTY_ROWS * result.n_samples:
        say(describe_empty_rows(n_empty, result.n_samples))
    if result.n_latents_reason:
        say(f"number of latents: {len(result.latent_names)}, as {result.n_latents_reason}")
    say()
    say_result(result)
    for concern in list_concerns(result, warnings):
        show_warning(concern)
    if order.out is None:
        say("\nnothing was written; add --out FOLDER to keep the result")
        return
    content = assemble_report(
        result,
        values,
        sample_weight=source.weights,
        statistics=order.statistics,
        title=source.title,
        warnings=warnings,
        render=render,
    )
    content = replace(content, command=typed_command())
    for sentence in content.misfits:
        show_warning(sentence)
    files = fit_files(result, values, content=content, plots=order.plots, ids=source.ids)
    before = (order.out / FIT_SIGN).exists()
    another = is_another_fit(order.out, result)
    fill_folder(order.out, files, FIT_FILES)
    say(f"\nwrote {len(files)} files into {order.out}: {', '.join(files)}")
    gone = remove_bootstrap(order.out, refits=another)
    if gone:
        say(f"removed what a bootstrap of the fit before had left there: {', '.join(gone)}")
    # Beside no fit they are about one that is kept elsewhere.
    gone = remove_goodness(order.out) if before and another else []
    if gone:
        say(f"removed what goodness had said of the fit before: {', '.join(gone)}")


def typed_command() -> str:
    """Return the command that was typed, without its output folder."""
    words, arguments = [], iter(sys.argv[1:])
    for word in arguments:
        if word in ("--out", "-o"):
            next(arguments, None)
        elif not word.startswith("--out="):
            words.append(word)
    return join_command(["hidag", *words])


def _refuse_folder_of_table(out: Path) -> None:
    """Refuse to write into the folder of a table, where the answer would be read as a question."""
    table = find_part(out, "responses") if out.is_dir() else None
    if table is not None:
        raise FileError(
            f"the results must not be written into {out}, which holds the table {table.name}, "
            "because their q.csv would be read there as a given Q-matrix; choose another folder "
            "with --out"
        )


def _number_of_latents(order: FitOrder, source: Source) -> int | str:
    """Return how many latents are asked for, in so many words or by a Q-matrix or levels."""
    if order.latents is not None:
        return order.latents
    if source.q is not None:
        return int(source.q.num_columns - 1)
    if isinstance(order.levels, list):
        return len(order.levels)
    raise typer.BadParameter(
        "say how many hidden causes to look for, for instance --latents 3, let --latents auto "
        "choose, or give a Q-matrix with --q",
        param_hint="--latents",
    )


def fit_source(
    source: Source, n_latents: int | str, family: tuple[str, ...], settings: Mapping[str, Any]
) -> tuple[FitResult, Any, list[HidagWarning]]:
    """Return the fit of a source, its values, shape (N, J), and the warnings it gave."""
    families = choose_families(family, source.types, tuple(source.table.column_names))
    with collected_warnings() as warnings, progress_bar() as observer:
        model = DCRL(
            n_latents,
            family=families,
            q_matrix=source.q,
            observer=observer,
            **settings,
        ).fit(source.table, sample_weight=source.weights)
    result = _with_truths(model.result_, boolean_columns(source.table))
    return result, read_table(source.table).values, warnings


def _with_truths(result: FitResult, truths: Sequence[str]) -> FitResult:
    """Return a fit whose reasons for items' types say where words were read as 1 and 0."""
    reasons = (
        f"{reason}, read from yes and no or so"
        if name in truths and reason != "set by the user"
        else reason
        for name, reason in zip(result.item_names, result.family_reasons, strict=True)
    )
    return replace(result, family_reasons=tuple(reasons))
