"""Counts that vary more than the fitted Poisson families let them: which, and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from hidag.errors import MisfitWarning
from hidag.estimate.count_dispersion import CountDispersion
from hidag.shown_numbers import shown_value

#: Chance that a table of Poisson items alone is warned about, at the most.
LEVEL = 0.001
#: Less variation beyond the family's than this, however sure, changes nothing that one would say.
SIZEABLE_RATIO = 1.2
#: The family with room for it.
CURE = "negative-binomial"
#: What settings call such items, and the words that every sentence about them has.
SETTING, SIGN = "overdispersed", "than Poisson counts do"
#: So many items are named one by one.
_FEW = 4


def overdispersed_items(found: CountDispersion, names: tuple[str, ...]) -> dict[str, float]:
    """Return how many times their Poisson variance items have, where that is no chance.

    Parameters
    ----------
    found : CountDispersion
    names : tuple of str
        Of the items that ``found`` numbers.
    """
    level = LEVEL / max(len(found.items), 1)
    sure = (found.p_value < level) & (found.ratio >= SIZEABLE_RATIO)
    # Digits beyond these depend on the order in which rows were added up.
    return {
        names[item]: float(np.round(ratio, 3))
        for item, ratio in zip(found.items[sure], found.ratio[sure], strict=True)
    }


def overdispersion_sentence(
    ratios: Mapping[str, float], n_items: int, cure: str | None = None
) -> str:
    """Return in a sentence which items vary too much for Poisson counts, and the cure.

    Parameters
    ----------
    ratios : mapping
        As `overdispersed_items` returns it, not empty.
    n_items : int
        All items of the table.
    cure : str, optional
        How families are set; as the estimator takes them by default.
    """
    worst = max(ratios, key=lambda name: ratios[name])
    vary = "items varies" if len(ratios) == 1 else "items vary"
    most = "" if len(ratios) == 1 else "most of all "
    return (
        f"{len(ratios)} of {n_items} {vary} more {SIGN} given the latents ({most}{worst!r}, "
        f"{_rounded(ratios[worst])} times as much), so levels of latents, edges and errors are "
        f"less certain than they seem; fit again with {cure or _family_setting(ratios, n_items)}, "
        "or with more latents or interactions"
    )


def _rounded(ratio: float) -> str:
    """Return two digits of a ratio, with zeros after them in place of a power of ten."""
    return shown_value(float(f"{ratio:.2g}"))


def _family_setting(ratios: Mapping[str, float], n_items: int) -> str:
    """Return the setting that gives such items their family, short enough to be read."""
    if len(ratios) == n_items:
        return f"family={CURE!r}"
    shown = dict.fromkeys(list(ratios)[:_FEW], CURE)
    if len(ratios) <= _FEW:
        return f"family={shown!r}"
    return f"family={repr(shown)[:-1]}, ...}} (result_.settings[{SETTING!r}] has them all)"


def warn_of_overdispersion(ratios: Mapping[str, float], n_items: int, *, stacklevel: int) -> None:
    """Warn of items that vary too much, if there are any."""
    if ratios:
        sentence = overdispersion_sentence(ratios, n_items)
        warnings.warn(sentence, MisfitWarning, stacklevel=stacklevel + 1)
