"""Sentences and tables that describe a fitted model: levels, effects, interactions, loadings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hidag.formatting import plural
from hidag.latent.state_space import MAX_LISTED_STATES
from hidag.measurement.families.base import family_named
from hidag.measurement.terms import ALL_ORDERS, Effects
from hidag.plotting.q_matrix import standardized_loadings

if TYPE_CHECKING:
    from hidag.results import FitResult

#: Items named for each latent.
_N_STRONGEST = 3
#: Smaller shares would be displayed as 0.0 %.
_MIN_SHARE = 5e-4


def all_binary(result: FitResult) -> bool:
    """Return whether every latent has two levels."""
    return max(result.terms.levels) == 2


def describe_latents(result: FitResult) -> str:
    """Return the number of latents and their numbers of levels."""
    levels = result.terms.levels
    if all_binary(result):
        return plural(len(levels), "binary latent variable")
    latents = plural(len(levels), "latent variable")
    if len(set(levels)) == 1:
        return f"{latents} with {levels[0]} levels{' each' if len(levels) > 1 else ''}"
    parts = [f"{count} with {m} levels" for m, count in sorted(Counter(levels).items())]
    return f"{latents}, {', '.join(parts[:-1])} and {parts[-1]}"


def describe_effects(result: FitResult) -> str:
    """Return a sentence on how the latents of an item combine."""
    effects = Effects.of(result.settings.get("effects", "main"))
    if effects.main_only:
        return "The latents of an item have additive effects (main effects only)."
    if effects.conjunctive:
        state = "present" if all_binary(result) else "high enough"
        if effects.reversed:
            return f"An item with several latents responds if any of them is {state} (DINO)."
        return f"An item with several latents responds only if all of them are {state} (DINA)."
    found = list_interactions(result)
    order = f"up to order {effects.highest}" if effects.highest < ALL_ORDERS else "of any order"
    if not result.terms.interactions:
        return f"Interactions {order} were allowed, but no item has several latents."
    allowed = f"Interactions {order} among the latents of an item were allowed"
    given = result.q_given is not None and bool((result.q_given >= 0).all())
    if not found:
        return f"{allowed}; none was selected."
    kind = "all of them, as Q is given" if given else "selected by penalized likelihood"
    n_items = len({one.item for one in found})
    return (
        f"{allowed} ({kind}); the model has {plural(len(found), 'interaction')} in "
        f"{plural(n_items, 'item')}."
    )


@dataclass(frozen=True)
class Interaction:
    """An interaction coefficient.

    Attributes
    ----------
    item, term : str
    coefficient : float
    rarest : float
        Probability of the rarest combination that the coefficient contrasts; NaN if there are too
        many joint states to list.
    ruled_out : bool
        Whether prerequisites give that combination probability zero.
    """

    item: str
    term: str
    coefficient: float
    rarest: float
    ruled_out: bool = False

    def describe_rarest(self) -> str:
        """Return the share of the rarest combination as text; "" if unknown."""
        if np.isnan(self.rarest):
            return ""
        if self.ruled_out:
            return "excluded by prerequisites"
        return f"{self.rarest:.1%} of rows" if self.rarest >= _MIN_SHARE else "< 0.05% of rows"


def list_interactions(result: FitResult) -> list[Interaction]:
    """Return the nonzero interactions in the order of the items."""
    terms = result.terms
    names = terms.names(result.latent_names)
    coefficients = result.loadings[:, terms.n_main :]
    nonzero = np.argwhere(coefficients).tolist()
    rarest = {i: _rarest_combination(result, terms.interactions[i]) for _, i in nonzero}
    return [
        Interaction(
            result.response_names[j], names[terms.n_main + i], float(coefficients[j, i]), *rarest[i]
        )
        for j, i in nonzero
    ]


def _rarest_combination(
    result: FitResult, pairs: tuple[tuple[int, int], ...]
) -> tuple[float, bool]:
    """Return the smallest probability of the 2^s combinations of s latents below/at their levels.

    The second value is whether prerequisites rule out one of the combinations.
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
class LatentSummary:
    """Marginal distribution of a latent and the items that measure it.

    Attributes
    ----------
    name : str
    shares : tuple of float
        Probability of level 0, 1, ...
    n_items : int
    strongest : tuple of str
        Items with the largest standardized effects.
    """

    name: str
    shares: tuple[float, ...]
    n_items: int
    strongest: tuple[str, ...]


def summarize_latents(result: FitResult) -> list[LatentSummary]:
    """Return the marginal distribution and the strongest items of each latent."""
    table = np.asarray(result.law.marginals())
    strength, q, _ = standardized_loadings(result)
    counts = result.q_matrix.sum(axis=0)
    order = np.argsort(-np.abs(strength) * q, axis=0, kind="stable")
    return [
        LatentSummary(
            name,
            tuple(table[k, :m].tolist()),
            int(counts[k]),
            tuple(result.item_names[j] for j in order[: min(counts[k], _N_STRONGEST), k]),
        )
        for k, (name, m) in enumerate(zip(result.latent_names, result.terms.levels, strict=True))
    ]


def describe_loadings(result: FitResult) -> str:
    """Return a note on the scale of the loadings."""
    change = "from 0 to 1"
    if not all_binary(result):
        change = "from its lowest to its highest level (loadings.csv has the single steps)"
    average = ""
    if (result.loadings[:, result.terms.n_main :] != 0).any():
        average = ", averaged over the levels of the item's other latents with equal weights"
        if result.has_prerequisites:
            average += ", among the combinations that prerequisites allow"
    return (
        f"A loading is the change of the linear predictor when the latent changes {change}"
        f"{average}. The scale depends on the item type: log-odds for binary and ordinal items and "
        "for proportions, logarithm of the mean for counts, amounts and times, and the unit of the "
        "item for continuous measurements."
    )


def describe_dispersions(result: FitResult) -> tuple[str, str]:
    """Return the column heading of the items' dispersions and a note; "" if none is needed."""
    kinds = {name: family_named(name) for name in sorted(set(result.parameters.families))}
    means = {name: kind.dispersion_meaning for name, kind in kinds.items() if kind.has_dispersion}
    if all(kinds[name].is_location_scale for name in means):
        return "variance", ""
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in means.items())
    return "dispersion", f"Meaning of the dispersion by item type: {meanings}."
