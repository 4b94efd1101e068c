"""Items whose dispersion ended as small as it may be: what that means, said in words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.errors import IdentifiabilityWarning
from hidag.estimate.dispersion_floor import BOUND_SHARE
from hidag.measurement import MeasurementParameters, family_named
from hidag.result import FitResult

#: What settings call such items, and the words that every sentence about them has.
SETTING, SIGN = "noiseless", "no noise beside the latents"
#: So many items are named one by one.
_FEW = 4


def noiseless_items(
    parameters: MeasurementParameters, smallest: NDArray[np.bool_], names: Sequence[str]
) -> list[str]:
    """Return the items that are all but functions of their latents.

    Parameters
    ----------
    parameters : MeasurementParameters
    smallest : ndarray of bool, shape (J,)
        Whose dispersions ended as small as they may be.
    names : sequence of str, length J
    """
    # Other families then are laws with noise of their own.
    return [
        names[j]
        for j in np.flatnonzero(smallest).tolist()
        if not family_named(parameters.families[j]).least_case
    ]


def noiseless_sentence(items: Sequence[str], n_items: int) -> str:
    """Return in a sentence which items are left no noise, and what to do.

    Parameters
    ----------
    items : sequence of str
        As `noiseless_items` returns them, not empty.
    n_items : int
        All items of the table.
    """
    have, their = ("items has", "its") if len(items) == 1 else ("items have", "their")
    return (
        f"{len(items)} of {n_items} {have} {SIGN} ({_listed([repr(name) for name in items])}): "
        f"{their} dispersion ended at the smallest that is allowed and is no estimate, and "
        "latents' levels are read off such a column alone; if it has few values, number them from "
        "0 up and give it a type for these (bernoulli, ordinal, categorical), and if it was made "
        "of other columns, or says what the latents are to find, drop the column"
    )


def warn_of_noiseless(items: Sequence[str], n_items: int, *, stacklevel: int) -> None:
    """Warn of items that are all but functions of their latents, if there are any."""
    if items:
        sentence = noiseless_sentence(items, n_items)
        warnings.warn(sentence, IdentifiabilityWarning, stacklevel=stacklevel + 1)


def least_cases_in_words(result: FitResult) -> list[str]:
    """Return which items ended in a simpler law than their family's, a sentence for each law."""
    found: dict[str, list[str]] = {}
    parameters = result.parameters
    for j, name in enumerate(result.response_names):
        family = family_named(parameters.families[j])
        least = (1.0 + BOUND_SHARE) * family.dispersion_bounds[0]
        if family.least_case and parameters.dispersion[j] <= least:
            found.setdefault(f"of the {family.name} items ended as {family.least_case}", []).append(
                name
            )
    return [
        f"{len(names):,} {words} with the smallest dispersion there is ({_listed(names)})."
        for words, names in found.items()
    ]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_FEW])
    rest = len(names) - _FEW
    return f"{shown} and {rest} more" if rest > 0 else shown
