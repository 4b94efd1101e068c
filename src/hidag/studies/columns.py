"""Columns of a study's rows: their names, their types, and which of them the machine decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hidag.versions import versions_used

#: A flat row: numbers, words, or None where there is nothing.
Row = dict[str, Any]

#: What tells a row from every other.
KEY = ("address", "method", "rule")

#: Columns that a clock fills in. All others are decided by the address, the method, the settings
#: in study.json and the library's source, and are the same to the last bit whoever runs them.
VARYING = ("cpu_seconds", "truth_started_cpu_seconds")

_PLACE = {
    "address": "text",
    "method": "text",
    "rule": "text",
    "study": "text",
    "cell": "text",
    "replicate": "whole",
    "model": "text",
    "q": "text",
    "family": "text",
    "n": "whole",
    "items": "text",
    "design": "text",
    "seed": "whole",
}
_OUTCOME = {
    "status": "text",
    "reason": "text",
    "warnings": "text",
    "notes": "text",
    "fit_seed": "whole",
    "cpu_seconds": "number",
}
#: What a row takes over from an evaluation of the fit, under the same names.
MEASURES = {
    "shd": "whole",
    "shd_graph": "whole",
    "shd_q": "whole",
    "graph_n_missing": "whole",
    "graph_n_extra": "whole",
    "graph_n_misdirected": "whole",
    "skeleton_f1": "number",
    "q_f1": "number",
    "tv_law": "number",
    "rmse_loadings": "number",
    "rmse_intercept": "number",
}
#: What it takes over from a fit of ours, under the same names but for "fit_method".
FIT_MEASURES = {
    "log_likelihood": "number",
    "n_iter": "whole",
    "converged": "truth",
    "fit_method": "text",
    "n_reached": "whole",
    "information_ratio": "number",
    "graph_rows": "number",
}
#: What it takes over from the truth-started yardstick, under "truth_started_" and the name.
YARDSTICK_MEASURES = {
    name: MEASURES[name]
    for name in ("shd", "shd_graph", "shd_q", "tv_law", "rmse_loadings", "rmse_intercept")
}
_YARDSTICKS = {
    **{f"truth_started_{name}": kind for name, kind in YARDSTICK_MEASURES.items()},
    "truth_started_cpu_seconds": "number",
    "truth_started_reason": "text",
    "true_latents_shd_graph": "whole",
    "true_latents_reason": "text",
}


def column_types() -> dict[str, str]:
    """Return the type of every column, in their order: text, whole, number or truth."""
    return {
        **_PLACE,
        **_OUTCOME,
        **MEASURES,
        **FIT_MEASURES,
        **_YARDSTICKS,
        **{f"version_{name}": "text" for name in versions_used()},
        "source": "text",
    }


def complete(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return rows that have every column, in order, with None where they have nothing.

    A name that is no column is a mistake of whoever made the row, and would be lost in silence.
    """
    names = column_types()
    for row in rows:
        unknown = sorted(set(row) - set(names))
        if unknown:
            raise KeyError(f"rows of studies have no column {', '.join(unknown)}")
    return [{name: row.get(name) for name in names} for row in rows]
