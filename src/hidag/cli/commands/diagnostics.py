"""`hidag errors`, `goodness`, `classify`, `validate-q`: a fit or a Q held against a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hidag.cli.commands.inspection import load_result
from hidag.cli.console import collected_warnings, progress_bar, say, show_warning
from hidag.cli.data_source import (
    choose_families,
    choose_kind_of_errors,
    families_for_all,
    read_source,
    read_weights,
)
from hidag.cli.folders import check_folder, fill_folder
from hidag.cli.messages import message_style
from hidag.cli.output_files import (
    GOODNESS_FILES,
    check_file,
    files_read,
    jsonable,
    number,
    write_csv,
)
from hidag.cli.read_options import ReadOptions, find_id_column, read_items, warn_of_ids
from hidag.diagnostics.classification import classify
from hidag.diagnostics.goodness_of_fit import fit_statistics
from hidag.diagnostics.person_fit_statistics import person_fit
from hidag.diagnostics.q_validation import validate_q
from hidag.estimator import DCRL
from hidag.exceptions import FileError, SettingError
from hidag.formatting import plural
from hidag.inference.result_tables import Table
from hidag.inference.standard_errors import standard_errors
from hidag.results import FitResult


def run_errors(
    fit: Path,
    table: Path,
    kind: str | None,
    weights: str | None,
    level: float,
    out: Path | None,
    patterns: Path | None,
    missing: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Carry out `hidag errors`; without a kind, the weights say which."""
    check_file(out, [fit, table])
    check_file(patterns, [fit, table])
    if out is not None and patterns is not None and out.resolve() == patterns.resolve():
        raise SettingError(f"--out and --patterns both name {out}; they are two tables")
    result = load_result(fit)
    rows, labels = read_items(result, table, [] if weights is None else [weights], missing)
    counts = read_weights(labels, weights, rows)
    chosen = choose_kind_of_errors(counts) if kind is None else kind
    found = standard_errors(result, rows, sample_weight=counts, kind=chosen, level=level)
    _answer(found.table, out, found.to_rows() if as_json else found.summary())
    if patterns is not None:
        _keep(found.patterns, patterns)
        if not as_json:
            say(f"\nwrote {plural(len(found.patterns), 'row')} into {patterns}")


def run_goodness(
    fit: Path,
    table: Path,
    n_tables: int,
    seed: int,
    out: Path | None,
    ids: str | None,
    weights: str | None,
    missing: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Carry out `hidag goodness`."""
    if out is not None:
        sign = list(GOODNESS_FILES)[-1]
        check_folder(out, GOODNESS_FILES, [*files_read(fit), *files_read(table)], sign=sign)
    result = load_result(fit)
    beside = [] if weights is None else [weights]
    rows, names, labels = _rows_and_names(result, table, ids, missing, beside)
    counts = read_weights(labels, weights, rows)
    found = fit_statistics(result, rows, sample_weight=counts, n_tables=n_tables, random_state=seed)
    persons = person_fit(result, rows, ids=names, random_state=seed)
    if as_json:
        say(
            json.dumps(
                jsonable({**found.to_dict(style=message_style()), "persons": persons.to_rows()}),
                indent=1,
            )
        )
    else:
        say(found.summary(style=message_style()))
        say()
        say(persons.summary(5))
    if out is not None:
        parts = (found.pairs, found.items, found.checks, persons.table)
        writers = {
            name: partial(_write_table, table=part)
            for name, part in zip(GOODNESS_FILES, parts, strict=True)
            # What is not computed for so many latents has not even columns.
            if part.columns
        }
        fill_folder(out, writers, GOODNESS_FILES)
        if not as_json:
            say(f"\nwrote {', '.join(writers)} into {out}")


def run_classify(
    fit: Path,
    table: Path,
    out: Path | None,
    ids: str | None,
    missing: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Carry out `hidag classify`."""
    check_file(out, [fit, table])
    result = load_result(fit)
    rows, names, _ = _rows_and_names(result, table, ids, missing)
    found = classify(result, rows, ids=names)
    text = found.summary(style=message_style())
    _answer(found.to_table(), out, found.to_rows() if as_json else text)


@dataclass(frozen=True)
class ValidationOrder:
    """What the user of `hidag validate-q` asked for.

    Attributes
    ----------
    table, q, types, out : Path or None
    reading : ReadOptions
    family : tuple of str
    levels, effects : as `DCRL` takes them
    resamples, changes, seed : int
    estimate, as_json : bool
    """

    table: Path
    q: Path | None
    types: Path | None
    reading: ReadOptions
    family: tuple[str, ...]
    levels: int | list[int]
    effects: str | int
    resamples: int
    changes: int
    estimate: bool
    seed: int
    out: Path | None
    as_json: bool


def run_validate_q(order: ValidationOrder) -> None:
    """Carry out `hidag validate-q`."""
    check_file(order.out, [order.table, order.q, order.types])
    source = read_source(
        order.table,
        order.types,
        order.q,
        use_folder_types=not families_for_all(order.family),
        optional_q=False,
        reading=order.reading,
    )
    if source.q is None:
        raise FileError(
            "say which Q-matrix is to be validated with --q, or give a folder that holds q.csv"
        )
    settings: dict[str, Any] = {
        "family": choose_families(order.family, source.types, tuple(source.table.column_names)),
        "effects": order.effects,
        "levels": order.levels,
        "random_state": order.seed,
    }
    n_latents = int(source.q.num_columns - 1)
    if not order.as_json:
        for note in source.notes:
            say(note)
    with collected_warnings() as warnings, progress_bar() as observer:
        settings["observer"] = observer
        free = None
        if order.estimate:
            model = DCRL(n_latents, **settings)
            free = model.fit(source.table, sample_weight=source.weights).result_
        found = validate_q(
            DCRL(n_latents, **settings),
            source.table,
            source.q,
            estimated=free,
            sample_weight=source.weights,
            n_resamples=order.resamples,
            max_changes=order.changes,
            random_state=order.seed,
        )
    for warning in warnings:
        show_warning(warning)
    _answer(found.entries, order.out, found.to_rows() if order.as_json else found.summary())


def _rows_and_names(
    result: FitResult,
    table: Path,
    ids: str | None,
    missing: Sequence[str],
    beside: Sequence[str] = (),
) -> tuple[Any, list[Any] | None, dict[str, list[Any]]]:
    """Return the columns of a fit's items in a table, the rows' names if a column has them, and
    other columns as they stand."""
    column = find_id_column(result, table, ids)
    named = [] if column is None else [column]
    rows, labels = read_items(result, table, [*named, *beside], missing)
    if column is None:
        return rows, None, labels
    warn_of_ids(labels[column], column)
    return rows, labels[column], labels


def _answer(table: Table, out: Path | None, told: str | list[dict[str, Any]]) -> None:
    """Print what was found, and write all of it if a file was named."""
    if out is not None:
        _keep(table, out)
    if isinstance(told, str):
        say(told)
        if out is not None:
            say(f"\nwrote {plural(len(table), 'row')} into {out}")
    else:
        say(json.dumps(jsonable(told), indent=1))


def _keep(table: Table, path: Path) -> None:
    try:
        _write_table(path, table)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error


def _write_table(path: Path, table: Table) -> None:
    rows = ([number(c) if isinstance(c, float) else c for c in row] for row in table.rows)
    write_csv(path, table.columns, rows)
