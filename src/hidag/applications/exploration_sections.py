"""Sections, tables and numbers of the outcome that every exploration of a table has."""

from __future__ import annotations

from typing import Any

from hidag.applications.count_families import FamilyFit
from hidag.applications.exploration import Exploration
from hidag.applications.exploration_parts import number_words
from hidag.applications.misfit import Misfit
from hidag.report.parts import Section, Table


def number_section(found: Exploration) -> Section:
    """Return the section on the number of latents."""
    return Section(
        "How many states",
        (number_words(found),),
        pictures=("number_of_latents", "agreement"),
        tables=("number_of_latents",),
    )


def misfit_section(found: Exploration, gaps: Misfit) -> Section:
    """Return the section on the pairs of items that stay unexplained."""
    first, second, seen, fitted = gaps.pairs[0]
    names = found.result.item_names
    return Section(
        "What the states do not explain",
        (
            f"The worst pair is {names[first]} and {names[second]}: their correlation is "
            f"{seen:.2f}, under the fit {fitted:.2f}.",
        ),
        tables=("misfit",),
    )


def count_family_table(counts: list[FamilyFit], caption: str) -> Table:
    """Return the comparison of families of counts: name, log-likelihood, parameters, BIC."""
    return Table(
        "count_families",
        caption,
        ("family of the counts", "log-likelihood", "parameters", "BIC"),
        tuple(counts),
        decimals=1,
    )


def common_numbers(found: Exploration, gaps: Misfit) -> dict[str, Any]:
    """Return the numbers of the summary that every exploration has."""
    return {
        "n_latents": found.chosen,
        "selection": found.selection.to_dict(),
        "split_half_agreement": {k: met.correlation for k, met in found.halves.items()},
        "misfit_root_mean_square": gaps.root_mean_square,
        "unexplained_root_mean_square": gaps.unexplained,
    }
