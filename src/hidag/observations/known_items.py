"""Tables for items that are known already: found by name, in their order, values checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hidag.errors import DataError
from hidag.observations.frames import frame_labels, open_frame, refuse_duplicates
from hidag.observations.table import Observations, read_table
from hidag.observations.values import check_values
from hidag.shown_text import counted


def read_known_items(X: Any, names: Sequence[str], families: Sequence[str]) -> Observations:
    """Return the table of the items of a fit, in the fit's order.

    Parameters
    ----------
    X : array, frame or Observations
        A frame's columns are found by the items' names, in any order, and other columns are left
        out; without any such name, and in an array, there is one column per item in the fit's
        order.
    names : sequence of str, length J
        The fit's items.
    families : sequence of str, length J
        Their families; values that no family could take are refused.
    """
    labels = frame_labels(X)
    if labels is not None and set(names) & {str(label) for label in labels}:
        place = {str(label): label for label in labels}
        absent = [name for name in names if name not in place]
        if absent:
            raise DataError(
                f"the table must have the items of the fit, but it lacks {absent[0]!r} "
                f"({len(absent)} of {len(names)} items); give the table that was fitted, or one "
                "with the same columns"
            )
        repeated = [str(label) for label in labels if str(label) in names]
        refuse_duplicates(tuple(repeated))
        X = _chosen(X, labels, [place[name] for name in names])
    table = read_table(X, allow_empty_items=True)
    if table.n_items != len(names):
        raise DataError(
            f"the table must have the {counted(len(names), 'item')} of the fit, but it has "
            f"{counted(table.n_items, 'column')}; give the table that was fitted, or "
            "one with the same columns"
        )
    # Sentences about cells speak of the fit's items, also where the table has no names.
    table = replace(table, names=tuple(names))
    check_values(table, families, for_fitting=False)
    return table


def _chosen(X: Any, labels: Sequence[Any], wanted: Sequence[Any]) -> Any:
    """Return some columns of a frame; others may have any names, the same ones too."""
    if len(set(labels)) < len(labels):
        # Libraries that allow repeated names take columns by their places.
        places = [list(labels).index(label) for label in wanted]
        return X.iloc[:, places] if hasattr(X, "iloc") else X.select(places)
    return open_frame(X)[list(wanted)].to_native()
