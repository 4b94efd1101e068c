"""What kind of model a fit is, in words: levels of the latents, effects, interactions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hidag.formatting import plural
from hidag.latent.state_space import MAX_LISTED_STATES
from hidag.measurement.families.registry import family_named
from hidag.measurement.terms import ALL_ORDERS, Effects
from hidag.plotting.q_matrix import standardized_loadings

if TYPE_CHECKING:
    from hidag.results import FitResult


#: Items named for each latent.
_STRONGEST = 3
#: A share below this would read as none.
_RARE = 5e-4


def all_binary(result: FitResult) -> bool:
    """Return whether every latent has two levels."""
    return max(result.terms.levels) == 2


def latents_in_words(result: FitResult) -> str:
    """Return how many hidden causes there are and how many levels they have."""
    levels = result.terms.levels
    if all_binary(result):
        return plural(len(levels), "hidden yes/no cause", "hidden yes/no causes")
    causes = plural(len(levels), "hidden cause", "hidden causes")
    if len(set(levels)) == 1:
        return f"{causes} with {levels[0]} levels{' each' if len(levels) > 1 else ''}"
    parts = [f"{count} with {m} levels" for m, count in sorted(Counter(levels).items())]
    return f"{causes}, {', '.join(parts[:-1])} and {parts[-1]}"


def effects_in_words(result: FitResult) -> str:
    """Return a sentence on what an item's causes do together."""
    effects = Effects.of(result.settings.get("effects", "main"))
    if effects.main_only:
        return "The effects of an item's causes add up (main effects only)."
    if effects.conjunctive:
        if effects.reversed:
            how = "as soon as any of them is present, and then in full (DINO)"
        else:
            how = "only when all of them are present (DINA)"
        if not all_binary(result):
            how = how.replace("present", "high enough")
        return f"An item with several causes responds {how}."
    found = interactions_of(result)
    limit = f"of up to {effects.highest} causes" if effects.highest < ALL_ORDERS else "of any order"
    if not result.terms.interactions:
        return f"Interactions {limit} were allowed, but no item has several causes."
    if not found:
        return (
            f"Interactions {limit} inside an item's causes were allowed; none was worth its price."
        )
    n_items = len({one.item for one in found})
    kept = f"{plural(len(found), 'is', 'are')} in the model, in {plural(n_items, 'item', 'items')}"
    given = result.q_given is not None and bool((result.q_given >= 0).all())
    why = "all are fitted with a given Q-matrix" if given else "those worth their price are kept"
    return f"Interactions {limit} inside an item's causes were allowed ({why}); {kept}."


@dataclass(frozen=True)
class Interaction:
    """One coefficient that causes have together.

    Attributes
    ----------
    item, term : str
    coefficient : float
    rarest : float
        Share of rows in the rarest combination that the coefficient is a contrast of (causes
        present and absent); NaN where joint states are too many to list.
    ruled_out : bool
        Whether prerequisites leave that combination to nobody.
    """

    item: str
    term: str
    coefficient: float
    rarest: float
    ruled_out: bool = False

    def rarest_in_words(self) -> str:
        """Return how rare the rarest combination is; "" where that is not known."""
        if np.isnan(self.rarest):
            return ""
        if self.ruled_out:
            return "ruled out by prerequisites"
        return f"{self.rarest:.1%} of rows" if self.rarest >= _RARE else "next to no row"


def interactions_of(result: FitResult) -> list[Interaction]:
    """Return the interactions other than zero, item by item."""
    terms = result.terms
    names = terms.names(result.latent_names)
    together = result.loadings[:, terms.n_main :]
    places = np.argwhere(together).tolist()
    rarest = {i: _rarest(result, terms.interactions[i]) for _, i in places}
    return [
        Interaction(
            result.response_names[j], names[terms.n_main + i], float(together[j, i]), *rarest[i]
        )
        for j, i in places
    ]


def _rarest(result: FitResult, pairs: tuple[tuple[int, int], ...]) -> tuple[float, bool]:
    """Return the smallest probability of the 2^s combinations of s latents at their levels.

    Beside it whether one of the combinations is ruled out: then its share is zero.
    """
    if result.law.space.n_states > MAX_LISTED_STATES:
        return float("nan"), False
    states = result.law.space.states()
    cell = np.zeros(len(states), dtype=np.int64)
    for k, u in pairs:
        cell = 2 * cell + (states[:, k] >= u)
    shares = np.bincount(cell, np.asarray(result.law.probabilities), minlength=1 << len(pairs))
    if result.ruled_out is not None:
        possible = np.bincount(cell, ~result.ruled_out, minlength=len(shares))
        if (possible == 0).any():
            return 0.0, True
    return float(shares.min()), False


@dataclass(frozen=True)
class LatentShares:
    """How common a latent's levels are, and how many items it has.

    Attributes
    ----------
    name : str
    shares : tuple of float
        Of level 0, 1, ...
    n_items : int
    strongest : tuple of str
        The items it moves most, in their standard deviations or on the scale of their type.
    """

    name: str
    shares: tuple[float, ...]
    n_items: int
    strongest: tuple[str, ...]


def marginals_of(result: FitResult) -> list[LatentShares]:
    """Return the share of each level of each latent, and where it shows."""
    table = np.asarray(result.law.marginals())
    strength, q, _ = standardized_loadings(result)
    counts = result.q_matrix.sum(axis=0)
    order = np.argsort(-np.abs(strength) * q, axis=0, kind="stable")
    return [
        LatentShares(
            name,
            tuple(table[k, :m].tolist()),
            int(counts[k]),
            tuple(result.item_names[j] for j in order[: min(counts[k], _STRONGEST), k]),
        )
        for k, (name, m) in enumerate(zip(result.latent_names, result.terms.levels, strict=True))
    ]


def loadings_in_words(result: FitResult) -> str:
    """Return what the numbers of the loadings' table and picture are."""
    to = "from 0 to 1"
    if not all_binary(result):
        to = "from its lowest level to its highest (loadings.csv has the steps one by one)"
    together = bool((result.loadings[:, result.terms.n_main :] != 0).any())
    average = ", averaged over even levels of the item's other causes" if together else ""
    if together and result.has_prerequisites:
        average += " as far as prerequisites let them occur"
    return (
        f"A loading is how much the item moves when the latent goes {to}{average}. It is on the "
        "scale of the item's type: for instance the log-odds of a yes, of a higher grade or of a "
        "share, the logarithm of an expected count, amount or time, or the measurement itself."
    )


def dispersions_in_words(result: FitResult) -> tuple[str, str]:
    """Return the heading of the items' dispersions and a note on what they are; "" if nothing."""
    kinds = {name: family_named(name) for name in sorted(set(result.parameters.families))}
    means = {name: kind.dispersion_meaning for name, kind in kinds.items() if kind.has_dispersion}
    if all(kinds[name].is_location_scale for name in means):
        return "variance", ""
    listed = "; ".join(f"{name}: {words}" for name, words in means.items())
    return "dispersion", f"The dispersion of an item is for {listed}."
