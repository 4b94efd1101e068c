"""Findings about the theorems' assumptions: monotone items, families, what remains open.

Without a fit most of them cannot be decided; with one, `fitted` holds what is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import SettingError
from hidag.identifiability.blocks import contained_pairs
from hidag.identifiability.design import MeasurementDesign
from hidag.identifiability.findings import Finding, items_phrase, join_names, latents_phrase
from hidag.identifiability.fitted_conditions import (
    absent_states,
    column_sums,
    empty_entries,
    items_with_ties,
    ladders_out_of_order,
    n_told_apart,
    not_highest_at_the_top,
)
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.families import ITEM_TYPES, item_type, split_name
from hidag.measurement.families.base import AnalyticCondition
from hidag.measurement.families.registry import canonical_name

# --- The analytic-family condition (Assumption 2), family by family

Verdict = Literal["holds", "undecided"]


def analytic_condition(name: str) -> AnalyticCondition:
    """Return whether a family satisfies Assumption 2; any name is accepted."""
    kind = ITEM_TYPES.get(split_name(canonical_name(name))[0])
    if kind is None:
        return AnalyticCondition(
            "undecided", f"nothing is known here about a family called {name!r}"
        )
    return kind.analytic_condition


def number_of_values(name: str) -> int | None:
    """Return how many values an item of the family can take, None if unknown or unlimited."""
    try:
        values = item_type(canonical_name(name)).possible_values()
    except SettingError:
        return None
    return None if values is None else len(values)


# ---

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit says about items and law.

    Attributes
    ----------
    tables : tuple of J ndarrays
        Linear predictor of each item, one axis for each of its own latents; NaN where it does not
        follow from states that may occur.
    law : LatentLaw
    eta : ndarray, shape (J, S), or None
        Linear predictor of every item in every joint state; None where these are too many.
    """

    tables: tuple[Array, ...]
    law: LatentLaw
    eta: Array | None = None


def monotone_items(design: MeasurementDesign, fitted: Fitted | None = None) -> Finding:
    """Return whether items rise with their latents (Assumption 1(b), 1'(b), ordered analogue)."""
    if design.binary and design.main_effects:
        return _positive_sums(design, fitted)
    source = "Assumption 1(b)" + ("" if design.binary else " for ordered levels")
    if fitted is None:
        more = "" if design.binary else ", and must rise level by level below that"
        return Finding(
            "monotone",
            source,
            "undecided",
            "every item must be highest where all its latents are at their highest level"
            f"{more}; that is about coefficients, not about Q",
        )
    low = not_highest_at_the_top(fitted.tables)
    if len(low):
        names = design.items(low)
        return Finding(
            "monotone",
            source,
            "fails",
            f"{items_phrase(names)}: the fitted predictor is not highest where all latents of the "
            "item are at their highest level",
            {"items": names},
            "exchange the levels of a latent that lowers most of its items, recode items that are "
            "scored the other way round, or drop the item",
        )
    steps = [] if design.binary else ladders_out_of_order(fitted.tables, design.q)
    if steps:
        named = [(design.item_names[j], design.latent_names[k]) for j, k in steps]
        return Finding(
            "monotone",
            source,
            "fails",
            join_names([f"{j} does not rise with every level of {k}" for j, k in named], limit=4),
            {"steps": [{"item": j, "latent": k} for j, k in named]},
            "fit fewer levels, or bring the levels of the latent into their order",
        )
    return Finding("monotone", source, "holds", "every item rises with its latents")


def _positive_sums(design: MeasurementDesign, fitted: Fitted | None) -> Finding:
    source = "Assumption 1'(b)"
    if fitted is None:
        return Finding(
            "monotone",
            source,
            "undecided",
            "the loadings of every latent must add up to a positive number, which says which level "
            "is called 1; that is about coefficients, not about Q",
        )
    low = np.flatnonzero(~(column_sums(fitted.tables, design.q) > 0))
    if not len(low):
        sentence = "the loadings of every latent add up to a positive number"
        return Finding("monotone", source, "holds", sentence)
    names = design.latents(low)
    return Finding(
        "monotone",
        source,
        "fails",
        f"the loadings of {latents_phrase(names)} do not add up to a positive number",
        {"latents": names},
        f"exchange the two levels of {join_names(names)}: that changes nothing else",
    )


def analytic_families(design: MeasurementDesign, fitted: Fitted | None = None) -> Finding:
    """Return whether the response families are analytic and identified (Assumption 2)."""
    source = "Assumption 2"
    if design.families is None:
        return Finding(
            "analytic-families",
            source,
            "undecided",
            "the families of the items were not given; most families satisfy the assumption",
        )
    open_ones: dict[str, list[int]] = {}
    for j, name in enumerate(design.families):
        if not _satisfies(analytic_condition(name), fitted, j):
            open_ones.setdefault(name, []).append(j)
    kinds = list(dict.fromkeys(design.families))
    if not open_ones:
        return Finding(
            "analytic-families",
            source,
            "holds",
            f"the families ({join_names(kinds)}) are analytic and determine their predictors",
            {name: analytic_condition(name).reason for name in kinds},
        )
    name, items = next(iter(open_ones.items()))
    more = "" if len(open_ones) == 1 else f" (and {len(open_ones) - 1} more families)"
    return Finding(
        "analytic-families",
        source,
        "undecided",
        f"{name} ({items_phrase(design.items(items))}): {analytic_condition(name).reason}{more}",
        {kind: design.items(rows) for kind, rows in open_ones.items()},
    )


def _satisfies(condition: AnalyticCondition, fitted: Fitted | None, item: int) -> bool:
    """Return whether an item satisfies the assumption, by its family or at its fitted means."""
    if condition.verdict == "holds":
        return True
    positive = fitted is not None and bool(np.nanmin(fitted.tables[item]) > 0)
    return condition.holds_if_positive and positive


def enough_answers(design: MeasurementDesign) -> Finding | None:
    """Return whether items with few possible answers can carry the parameters; None if unknown.

    A distribution over A answer patterns has A - 1 free numbers, and no more parameters than that
    can be read from it. And l items with a_1, ..., a_l answers cannot tell more than
    a_1 * ... * a_l levels of one latent apart.
    """
    if design.families is None:
        return None
    answers = [number_of_values(name) for name in design.families]
    source = "necessary"
    for k, name in enumerate(design.latent_names):
        own = [answers[j] for j in np.flatnonzero(design.q[:, k])]
        if own and None not in own and prod(a for a in own if a) < design.levels[k]:
            return Finding(
                "answer-patterns",
                source,
                "fails",
                f"latent {name} has {design.levels[k]} levels, but its items have only "
                f"{prod(a for a in own if a)} answer patterns together",
                {"latent": name},
                f"give {name} more items or fewer levels",
                provably_bad=True,
            )
    if None in answers:
        return None
    patterns = prod(a for a in answers if a)
    if design.ruled_out is None:
        parameters = prod(design.levels) - 1 + sum(_coefficients(design, row) for row in design.q)
    else:
        parameters = int((~design.ruled_out).sum()) - 1 + n_told_apart(design)
    numbers = f"{_short(parameters)} parameters, {_short(patterns - 1)} free numbers in the data"
    if parameters < patterns:
        sentence = f"there are more answer patterns than parameters ({numbers})"
        return Finding("answer-patterns", source, "holds", sentence)
    return Finding(
        "answer-patterns",
        source,
        "fails",
        f"there are more parameters than answer patterns can determine ({numbers}), unless the "
        "graph among the latents leaves out enough edges",
        {"parameters": parameters, "free_numbers": patterns - 1},
        "add items, or use fewer latents",
        provably_bad=True,
    )


def _coefficients(design: MeasurementDesign, row: NDArray[np.bool_]) -> int:
    """Return the number of coefficients of an item, with interactions up to the order design."""
    by_order = [1] + [0] * design.order
    for k in np.flatnonzero(row):
        for size in range(design.order, 0, -1):
            by_order[size] += by_order[size - 1] * (design.levels[k] - 1)
    return sum(by_order)


def _short(number: int) -> str:
    return str(number) if number < 10**6 else f"about 2^{number.bit_length() - 1}"


def disentangled(
    design: MeasurementDesign, fitted: Fitted | None, monotone: bool | None
) -> Finding:
    """Return what no data can determine, if predictors are not restricted (Corollary on f).

    Parameters
    ----------
    design : MeasurementDesign
    fitted : Fitted or None
    monotone : bool or None
        Whether items are known to be monotone.
    """
    source = "disentanglement corollary"
    pairs = contained_pairs(design.q)
    if len(pairs):
        sentence = (
            "if items may depend on their latents in any way, latents whose items another one has "
            "too can be mixed with it, so more than names stays open"
        )
        if design.binary and design.main_effects:
            sentence += "; with main effects only the order of the latents does (Corollary 2)"
        return Finding("disentangled", source, "fails", sentence, {}, required=False)
    tied = None if fitted is None else items_with_ties(fitted.tables)
    if tied is not None and len(tied):
        names = design.items(tied)
        return Finding(
            "disentangled",
            source,
            "fails",
            f"{items_phrase(names)}: the fitted predictor is the same for different combinations "
            "of the item's latents, and the corollary is about items without such ties",
            {"items": names},
            required=False,
        )
    if design.ruled_out is not None:
        sentence = (
            "the corollary compares items in all combinations of levels, and what items of any "
            "form would be in those that prerequisites rule out stays open"
        )
        return Finding("disentangled", source, "undecided", sentence, {}, required=False)
    alike: dict[int, list[str]] = {}
    for name, level in zip(design.latent_names, design.levels, strict=True):
        alike.setdefault(level, []).append(name)
    groups = [names for names in alike.values() if len(names) > 1]
    left = []
    if groups:
        who = "; ".join(join_names(names) for names in groups)
        left.append(f"the order of latents with equally many levels ({who})")
    if monotone is not True:
        left.append("which level of a latent is called which, unless items are monotone")
    sentence = (
        "however items depend on their latents, as long as each differs between any two "
        f"combinations of them, all that stays open is {join_names(left) if left else 'nothing'}"
    )
    if groups:
        sentence += "; a Q-matrix that is given fixes the order"
    witness = {"exchangeable": groups, "levels_open": monotone is not True}
    return Finding("disentangled", source, "holds", sentence, witness, required=False)


# --- Findings about the law of the latents: every combination occurs, and the graph shows it


def positive_law(design: MeasurementDesign, fitted: Fitted | None = None) -> Finding:
    """Return whether every joint state has a positive probability (Assumption 1(a))."""
    source = "Assumption 1(a)"
    if design.ruled_out is not None:
        return _with_prerequisites(design, design.ruled_out, fitted)
    if fitted is None:
        sentence = "every combination of levels must occur; Q does not say whether it does"
        return Finding("positive-law", source, "undecided", sentence)
    if isinstance(fitted.law, NetworkLaw):
        return _positive_tables(design, fitted.law)
    absent = absent_states(fitted.law.probabilities)
    if not len(absent):
        least = float(fitted.law.probabilities.min())
        sentence = f"every combination of levels occurs (the rarest with probability {least:.2g})"
        return Finding("positive-law", source, "holds", sentence)
    names = _state_names(design, absent)
    return Finding(
        "positive-law",
        source,
        "fails",
        f"{'states' if len(names) > 1 else 'state'} {join_names(names)} (levels in the order of "
        f"the "
        f"latents) {'have' if len(names) > 1 else 'has'} no probability in the fit",
        {"states": names},
        "fit fewer latents or levels, or more rows; a law over a graph has no empty states unless "
        "its tables hold zeros",
    )


def _with_prerequisites(
    design: MeasurementDesign, ruled_out: NDArray[np.bool_], fitted: Fitted | None
) -> Finding:
    """Return that states were said not to occur, and which others do not in a fit."""
    told = _state_names(design, np.flatnonzero(ruled_out))
    sentence = (
        f"prerequisites rule {'states' if len(told) > 1 else 'state'} {join_names(told)} out "
        f"(levels "
        "in the order of the latents), and the theorems are about laws in which every state occurs"
    )
    witness = {"states": told, "ruled_out": told}
    if fitted is not None:
        absent = absent_states(np.where(ruled_out, 1.0, fitted.law.probabilities))
        others = _state_names(design, absent)
        if others:
            sentence += (
                f"; besides, {'states' if len(others) > 1 else 'state'} {join_names(others)} "
                f"{'have' if len(others) > 1 else 'has'} no probability in the fit"
            )
            witness = {"states": [*told, *others], "ruled_out": told}
    return Finding("positive-law", "Assumption 1(a)", "fails", sentence, witness)


def _state_names(design: MeasurementDesign, numbers: NDArray[np.intp]) -> list[str]:
    """Return states by the digits of their levels."""
    states = np.stack(np.unravel_index(numbers, design.levels), axis=1)
    return ["".join(map(str, state)) for state in states.tolist()]


def _positive_tables(design: MeasurementDesign, law: NetworkLaw) -> Finding:
    source = "Assumption 1(a)"
    empty = empty_entries(law)
    if not empty:
        least = min(float(table.min()) for table in law.tables)
        sentence = (
            "every combination of levels occurs: no latent has a level with a probability below "
            f"{least:.2g}, whatever its parents are"
        )
        return Finding("positive-law", source, "holds", sentence)
    words = []
    for k, where in empty:
        given = [
            f"{design.latent_names[a]} = {value}"
            for a, value in zip(law.parents[k], where[:-1], strict=True)
        ]
        words.append(
            f"{design.latent_names[k]} = {where[-1]}{' with ' * bool(given)}{join_names(given)}"
        )
    return Finding(
        "positive-law",
        source,
        "fails",
        f"{join_names(words, limit=4)} {'have' if len(words) > 1 else 'has'} no probability in "
        f"the fit",
        {"entries": words},
        "fit fewer latents or levels, or more rows",
    )


def faithful_graph(design: MeasurementDesign) -> Finding:
    """Return that the graph is assumed to show every independence of the law (Assumption 1(a))."""
    return Finding(
        "faithful-graph",
        "Assumption 1(a)",
        "undecided",
        "the graph among the latents must show all independences of their law and no others; no "
        "data can decide that, it is assumed",
    )
