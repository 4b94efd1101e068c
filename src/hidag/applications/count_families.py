"""Which family counts have, by evidence: fits that differ in nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hidag.criteria import information_criteria
from hidag.select.candidates import Table

COUNT_FAMILIES = ("poisson", "zero-inflated-poisson", "negative-binomial")
#: Latents with which families of counts are compared: enough to explain some of the spread.
LATENTS_FOR_FAMILIES = 3

#: Family, log-likelihood, parameters and BIC of a fit.
FamilyFit = tuple[str, float, int, float]


def compared_families(
    table_with: Callable[[str], Table], settings: Mapping[str, Any], n_rows: float | None = None
) -> list[FamilyFit]:
    """Return the fits with each family of counts.

    Counts that differ between rows more than a Poisson law lets them need not be overdispersed:
    latents may be why. So the comparison is one of fits, with the same number of latents.

    Parameters
    ----------
    table_with : callable
        From a family to the table whose counts have it.
    settings : mapping
        Of the fits.
    n_rows : float, optional
        What the likelihood counts on; by default the fit's rows, or the sum of their weights.
    """
    out = []
    for name in COUNT_FAMILIES:
        result = table_with(name).fit(LATENTS_FOR_FAMILIES, None, settings).result_
        found = information_criteria(result, n_rows)
        out.append((name, found.log_likelihood, found.n_parameters, found.bic))
    return out


def best_family(fits: list[FamilyFit]) -> str:
    """Return the family with the best BIC."""
    return min(fits, key=lambda row: row[3])[0]
