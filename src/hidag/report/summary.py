"""What the report says of the fit itself: its numbers, its words and its pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.plots import plot_q, plot_trace, render_png, size_of_q
from hidag.plots.canvas import Size
from hidag.plots.trace import SIZE as TRACE_SIZE
from hidag.report.model_words import (
    all_binary,
    dispersions_in_words,
    interactions_of,
    loadings_in_words,
    marginals_of,
)
from hidag.report.page import as_data_address
from hidag.report.words import (
    concerns,
    edges_in_words,
    family_counts,
    knowledge_in_words,
    what_was_fitted,
    why_not_judged,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.result import FitResult

#: A table of more rows than this is folded away behind a line to click.
_OPEN_TABLE_ITEMS = 60
#: Letters for which a page has room beside an item, its type, intercept and variance; a loading
#: takes the fewest of a column, and a name goes on below after the most.
_PRINTED_LETTERS = 70
_FEWEST_LETTERS, _MOST_LETTERS = 7, 20
#: Starts may be many where Q is given; longer lists of them are folded.
_OPEN_STARTS = 12
_LONGEST_SETTING = 160
#: Items named for each type and reason.
_SHOWN_NAMES = 8


def summary_content(
    result: FitResult,
    *,
    warnings: Iterable[str] = (),
    plots: bool = True,
    examined: bool = False,
    only_checks: bool = False,
    doubts_kept: bool = True,
    by_weights: bool = False,
) -> dict[str, Any]:
    """Return what the page shows of the fit itself, by the names of its template.

    Parameters
    ----------
    result : FitResult
    warnings : iterable of str
        Warnings of the fit, shown with those that the result itself gives reason for.
    plots : bool
        Whether to draw Q and the trace.
    examined : bool
        Whether the model was held against its table: without that the page cannot call it fine.
    only_checks : bool
        Whether predictive checks were all that it was held against: they see too little for that.
    doubts_kept : bool
        Whether what was found against it then is among the warnings.
    by_weights : bool
        Whether rows were counted by weights then.
    """
    return {
        "result": result,
        "concerns": concerns(result, warnings),
        "not_judged": why_not_judged(
            result,
            examined=examined,
            only_checks=only_checks,
            doubts_kept=doubts_kept,
            by_weights=by_weights,
        ),
        "sentences": what_was_fitted(result),
        "told": bool(knowledge_in_words(result)),
        "edges": edges_in_words(result.graph),
        "n_directed": len(result.graph.directed_edges),
        "n_undirected": len(result.graph.undirected_edges),
        "families": family_counts(result),
        "reasons": _reasons(result),
        "binary": all_binary(result),
        "marginals": marginals_of(result),
        "loading_note": loadings_in_words(result),
        "interactions": interactions_of(result),
        "rows": _loading_rows(result),
        "listed_on_paper": _too_wide_for_paper(result.latent_names),
        "longest_open": _OPEN_TABLE_ITEMS,
        "longest_starts": _OPEN_STARTS,
        "has_dispersion": bool(np.isfinite(result.dispersion).any()),
        "dispersion": dispersions_in_words(result),
        "nested": len(result.response_names) > len(result.item_names),
        "has_cutpoints": bool(np.isfinite(result.cutpoints).any()),
        "pictures": _pictures(result) if plots else {},
        "settings": sorted((str(k), _plain(v)) for k, v in result.settings.items()),
        "versions": sorted(result.versions.items()),
    }


def _pictures(result: FitResult) -> dict[str, str]:
    """Return the figures as data addresses."""
    drawn: dict[str, tuple[Callable[[Axes], object], Size]] = {
        "q": (lambda ax: plot_q(result, ax), size_of_q(*result.q_matrix.shape)),
        "trace": (lambda ax: plot_trace(result, ax), TRACE_SIZE),
    }
    return {name: as_data_address(render_png(draw, size)) for name, (draw, size) in drawn.items()}


def _loading_rows(result: FitResult) -> list[dict[str, Any]]:
    """Return one entry per item, one per category of a nominal item; None where Q is 0."""
    q, strengths = result.q_matrix, result.response_strengths
    return [
        {
            "item": name,
            "family": result.families[j],
            "intercept": float(result.intercept[r]),
            "loadings": [float(strengths[r, k]) if q[j, k] else None for k in range(q.shape[1])],
            "dispersion": float(result.dispersion[j])
            if np.isfinite(result.dispersion[j])
            else None,
        }
        for r, (j, name) in enumerate(
            zip(result.responses.item, result.response_names, strict=True)
        )
    ]


def _too_wide_for_paper(latents: Sequence[str]) -> bool:
    """Return whether a column for each latent is more than a printed page has room for."""
    widths = (min(max(len(name) + 1, _FEWEST_LETTERS), _MOST_LETTERS) for name in latents)
    return sum(widths) > _PRINTED_LETTERS


def _reasons(result: FitResult) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """Return (family, reason, number of items, some of their names), alike items together."""
    pairs = list(zip(result.families, result.family_reasons, strict=True))
    out = []
    for (family, reason), count in Counter(pairs).most_common():
        names = [
            n for n, pair in zip(result.item_names, pairs, strict=True) if pair == (family, reason)
        ]
        out.append((family, reason, count, tuple(names[:_SHOWN_NAMES])))
    return out


def _plain(value: object) -> str:
    text = "default" if value is None else str(value)
    return text if len(text) <= _LONGEST_SETTING else text[: _LONGEST_SETTING - 3] + "..."
