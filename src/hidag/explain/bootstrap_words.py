"""What a bootstrap found, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hidag.explain.intervals import interval_cautions
from hidag.explain.refit import SAME_LATENT
from hidag.shown_text import counted

if TYPE_CHECKING:
    from hidag.explain.bootstrap_result import BootstrapResult


#: Coefficients that are named one by one.
_NAMED = 5


def sums_in_words(found: BootstrapResult) -> list[str]:
    """Return which coefficients prerequisites leave without an interval, without a full stop."""
    terms = ("intercept", *found.term_names)
    names = [f"{found.response_names[r]}: {terms[t]}" for r, t in np.argwhere(found.in_sum)]
    if not names:
        return []
    more = ", ..." if len(names) > _NAMED else ""
    return [
        f"prerequisites leave {counted(len(names), 'parameter')} known in sum only, and so without "
        f"an interval: {', '.join(names[:_NAMED])}{more}"
    ]


def in_words(found: BootstrapResult) -> list[str]:
    """Return a few lines to read: refits, what went wrong, whether latents came back, edges."""
    rows = "rows drawn again" if found.kind == "nonparametric" else "rows drawn from the fit"
    lines = [f"{counted(found.n_refits, 'refit')} of {found.n_rows:,} {rows}"]
    if found.failures:
        lines.append(
            f"{len(found.failures)} of {found.n_resamples} resamples could not be fitted, for "
            f"instance: {found.failures[0]}"
        )
    unsettled = int((~found.converged).sum())
    if unsettled:
        lines.append(f"{counted(unsettled, 'refit')} had not settled")
    if found.start == "fitted":
        lines.append("refits began at the fit: other optima were not looked for")
    lines += interval_cautions(found.n_refits, found.q_given)
    lines += sums_in_words(found)
    lines.append(
        f"all latents are those of the fit (cosine of loadings at least {SAME_LATENT:g}) in "
        f"{found.same_latents.mean():.0%} of refits; {counted(int(found.moved.sum()), 'refit')} "
        "had latents renamed or reversed to match"
    )
    others = int((~found.same_latents).sum())
    if found.knowing and others:
        lines.append(
            f"in {others} of {found.n_refits} refits some latents are others than the fit's, and "
            "what is known about the fit's was held of these"
        )
    lines += [
        f"  {row['latent']}: the same in {row['share_same']:.0%}, median cosine "
        f"{row['median_cosine']:.2f}"
        for row in found.agreement_table()
    ]
    lines.append("edges, by how often two latents are joined")
    shown = [r for r in found.edge_table() if r["fit"] or r["joined"] >= 0.5]
    lines += [
        f"  {r['one']}, {r['other']}: {r['joined']:.0%} (-> {r['one_causes_other']:.0%}, "
        f"<- {r['other_causes_one']:.0%}, - {r['undirected']:.0%}); in the fit: "
        f"{r['fit'] or 'not joined'}"
        for r in shown
    ]
    if not shown:
        lines.append("  no pair in the fit or in half of the refits")
    return lines
