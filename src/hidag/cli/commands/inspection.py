"""`hidag evaluate`: a saved fit against a saved truth."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hidag.cli.console import columns, say, show_warning
from hidag.cli.folders import FIT_SIGN
from hidag.data.readers import check_file_exists, find_part, read_q, read_types
from hidag.exceptions import DataError, FileError
from hidag.identifiability.certificate import check_identifiability
from hidag.measurement.families import family_names
from hidag.metrics.evaluation import evaluate
from hidag.results import FitResult, load, versions_used
from hidag.simulation.truth import Truth, read_truth


def run_evaluate(result: Path, truth: Path, *, as_json: bool) -> None:
    """Carry out `hidag evaluate`."""
    found, true = load_result(result), read_truth(truth)
    evaluation = evaluate(_in_order(found, true), true)
    if as_json:
        say(json.dumps({k: _jsonable(v) for k, v in evaluation.to_dict().items()}, indent=1))
        return
    say(evaluation.summary())


def load_result(path: Path) -> FitResult:
    """Return the fit in a file, or in the folder that holds its result.npz."""
    if path.is_dir() and not (path / FIT_SIGN).exists():
        raise FileError(
            f"the folder {path} holds no fit ({FIT_SIGN}); give one that hidag fit --out wrote"
        )
    if not path.exists():
        raise FileError(f"there is no fit {path}; give a folder that hidag fit --out wrote")
    return load(path / FIT_SIGN if path.is_dir() else path)


def _in_order(result: FitResult, truth: Truth) -> FitResult:
    """Return the fit with its items in the order of the truth's."""
    if result.item_names == truth.item_names:
        return result
    place = {name: j for j, name in enumerate(result.item_names)}
    absent = [name for name in truth.item_names if name not in place]
    if absent or len(place) != truth.n_items:
        raise DataError(
            f"the fit and the truth must have the same items, but the fit has {len(place)} and the "
            f"truth {truth.n_items}"
            + (f"; the fit lacks {absent[0]!r} ({len(absent)} items)" if absent else "")
        )
    import numpy as np

    order = np.array([place[name] for name in truth.item_names], dtype=np.intp)
    # A nominal item has several rows of coefficients, which go where it goes.
    rows = np.concatenate([np.flatnonzero(result.responses.item == j) for j in order])
    families = result.item_families
    return replace(
        result,
        item_names=truth.item_names,
        parameters=result.parameters.reordered(items=rows),
        item_families=tuple(families[j] for j in order) if families else (),
        q_given=None if result.q_given is None else result.q_given[order],
        family_reasons=tuple(result.family_reasons[j] for j in order),
    )


def _jsonable(value: Any) -> Any:
    """Return NaN as null, which JSON has, and numbers and lists as they are."""
    return None if isinstance(value, float) and value != value else value


# --- `hidag check`: what a Q-matrix allows to be identified

#: Commas inside parentheses belong to a family's own settings.
_BETWEEN_FAMILIES = re.compile(r",(?![^()]*\))")


def run_check(
    path: Path, levels: int | list[int], effects: str, families: str | None, *, as_json: bool
) -> None:
    """Carry out `hidag check`."""
    matrix = read_q(_q_file(path))
    certificate = check_identifiability(
        matrix,
        effects=effects,
        levels=levels,
        families=_families(families, matrix),
    )
    say(json.dumps(certificate.to_dict(), indent=1) if as_json else certificate.summary())


def _q_file(path: Path) -> Path:
    if not path.is_dir():
        return check_file_exists(path)
    found = find_part(path, "q")
    if found is None:
        raise FileError(f"the folder {path} holds no q.csv; name the file with the Q-matrix")
    return found


def _families(text: str | None, matrix: Any) -> str | list[str] | dict[str, str] | None:
    if text is None:
        return None
    if text.lower().endswith((".csv", ".tsv", ".parquet")):
        items = tuple(str(name) for name in matrix.column(0).to_pylist())
        return dict(read_types(check_file_exists(Path(text)), items))
    names = [name.strip() for name in _BETWEEN_FAMILIES.split(text)]
    return names[0] if len(names) == 1 else names


# --- `hidag info`: versions, or a saved fit in words

_EXTRAS = ("pyarrow", "matplotlib", "jinja2", "typer", "rich")


def run_info(result: Path | None) -> None:
    """Carry out `hidag info`."""
    if result is None:
        _say_versions()
        return
    from hidag.cli.result_text import say_result
    from hidag.reporting.fit_description import describe_fit, list_concerns

    found = load_result(result)
    for sentence in describe_fit(found):
        say(sentence)
    say()
    say_result(found)
    say(f"\nseed {found.seed}, made with hidag {found.versions.get('hidag')}")
    for concern in list_concerns(found):
        show_warning(concern)


def _say_versions() -> None:
    known = versions_used()
    rows = [[name, known[name]] for name in ("hidag", *sorted(set(known) - {"hidag"}))]
    for name in _EXTRAS:
        try:
            rows.append([name, version(name)])
        except PackageNotFoundError:
            rows.append([name, "not installed"])
    rows.append(["families", ", ".join(family_names())])
    for line in columns(rows):
        say(line)
