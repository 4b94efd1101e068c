"""The part of the report about how sure the numbers are, before anything is refitted."""

from __future__ import annotations

from hidag.explain.standard_errors import StandardErrors
from hidag.report.headings import SURE_HEADING
from hidag.report.parts import Section, Table
from hidag.shown_text import counted

_OF_ITEMS = ("coefficient", "dispersion", "cutpoint")
_HEADER = ("of", "term", "estimate", "standard error", "lower", "upper")


def errors_panel(found: StandardErrors) -> tuple[Section, tuple[Table, ...]]:
    """Return what the page says about standard errors, Q and the graph taken as known."""
    words = [
        f"Standard errors and {found.level:.0%} intervals from {found.n_rows:,.0f} rows, for this "
        "Q and this graph. That other ones might have been found is not in them: `hidag bootstrap` "
        "fits resampled tables, and its answer then stands here."
    ]
    if found.flat:
        words.append(
            f"The data say nothing of {counted(len(found.flat), 'parameter')}, for instance of "
            f"{found.flat[0]}."
        )
    if found.known_in_sum:
        words.append(
            f"Prerequisites leave {counted(len(found.known_in_sum), 'parameter')} known in sum "
            f"only, for instance {found.known_in_sum[0]}: the states that would tell them apart do "
            "not occur."
        )
    if found.distance > 1.0:
        words.append(
            f"The fit is {found.distance:.1f} standard errors from the maximum of the likelihood, "
            "so that intervals are off by as much: the penalty holds coefficients back."
        )
    tables = []
    for name, caption, kinds in (
        ("share_errors", "How common each level of each latent is", ("share",)),
        ("errors", "Intercepts, loadings and what else items have", _OF_ITEMS),
    ):
        rows = tuple(tuple(row[1:]) for row in found.table.rows if row[0] in kinds)
        if rows:
            tables.append(Table(name, caption, _HEADER, rows))
    return Section(SURE_HEADING, tuple(words), (), tuple(t.name for t in tables)), tuple(tables)
