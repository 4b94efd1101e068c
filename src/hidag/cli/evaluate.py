"""`hidag evaluate`: a saved fit against a saved truth."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hidag.cli.console import say
from hidag.cli.folders import FIT_SIGN
from hidag.errors import DataError, FileError
from hidag.evaluate import evaluate
from hidag.result import FitResult, load
from hidag.simulate import Truth
from hidag.simulate.truth_file import read_truth


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
