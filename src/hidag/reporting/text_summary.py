"""A fit on one screen of text: what was found, how certain it is, and what to beware of."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from math import isnan

from hidag.causal.probability_queries import MEAN
from hidag.exceptions import PYTHON_STYLE, Style
from hidag.formatting import sentence_case
from hidag.reporting.findings import describe_findings
from hidag.reporting.fit_description import describe_latents, list_concerns
from hidag.results import AnyFit, as_result
from hidag.views import text_lines

#: Characters of a line, rows of the table of items, and warnings in full.
_WIDTH, _MAX_ITEMS, _MAX_CONCERNS = 88, 12, 3


def summarize(result: AnyFit, *, style: Style = PYTHON_STYLE) -> str:
    """Return what was found, how certain it is, what items do, and the most serious warnings.

    Parameters
    ----------
    result : FitResult or DCRL
    style : Style, in which warnings name settings; that of Python by default

    Returns
    -------
    str
    """
    return "\n".join(_lines(result, style))


def _lines(fit: AnyFit, style: Style) -> Iterator[str]:
    result = as_result(fit)
    share = f", {result.missing_share:.1%} of the cells missing" if result.missing_share else ""
    yield f"{describe_latents(result)}; {result.n_items:,} items, {result.n_samples:,} rows{share}"
    if not isnan(result.log_likelihood):
        yield f"log-likelihood {result.log_likelihood:,.2f}"
    for paragraph in describe_findings(result):
        yield ""
        yield from textwrap.wrap(paragraph, _WIDTH)
    columns, rows = result.content("items")
    with_mean = {row[0] for row in rows if row[2] == MEAN}
    # Probabilities of single grades are in to_frame("items").
    rows = [row for row in rows if row[2] == MEAN or row[0] not in with_mean]
    if rows:
        yield ""
        yield "what items do, expected responses by the state of a latent"
        yield from text_lines(columns, rows, _MAX_ITEMS)
    concerns = list_concerns(result)
    for number, one in enumerate(concerns[:_MAX_CONCERNS], start=1):
        text = one if isinstance(one, str) else one.render(style)
        yield from ["", "warnings"] if number == 1 else []
        yield from textwrap.wrap(
            f"{number}. {sentence_case(text)}.", _WIDTH, subsequent_indent="   "
        )
    if len(concerns) > _MAX_CONCERNS:
        yield f"   {len(concerns) - _MAX_CONCERNS} more in the report: model.report('report.html')"
