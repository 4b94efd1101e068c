"""Assumptions of the theorems: positive distribution, faithfulness, monotone items, families.

Most of them cannot be decided without a fit.
"""

from __future__ import annotations

from math import prod

import numpy as np

from hidag.exceptions import SettingError
from hidag.identifiability.blocks import subset_violations
from hidag.identifiability.design import MeasurementDesign
from hidag.identifiability.findings import Condition, Finding, join_names, with_noun
from hidag.identifiability.fitted_conditions import (
    FittedModel,
    items_with_ties,
    loading_sums,
    n_estimable,
    nonmonotone_steps,
    not_maximal_at_top,
    zero_entries,
    zero_states,
)
from hidag.identifiability.flow import Bools
from hidag.latent.laws import NetworkLaw
from hidag.measurement.families import ITEM_TYPES, item_type, split_name
from hidag.measurement.families.base import AnalyticCondition


def monotone_items(design: MeasurementDesign, fitted: FittedModel | None = None) -> Finding:
    """Check monotonicity: Assumption 1(b), 1'(b) for main effects, or the ordered analogue."""
    if design.binary and design.main_effects:
        return _positive_loading_sums(design, fitted)
    source = "Assumption 1(b)" + ("" if design.binary else " for ordered levels")
    condition = Condition("monotone", source)
    if fitted is None:
        more = "" if design.binary else ", and must increase level by level below that"
        return condition.undecided(
            "every item's predictor must be largest where all its latents are at their top level"
            f"{more}; this depends on coefficients, not on Q"
        )
    names = design.items(not_maximal_at_top(fitted.tables))
    if names:
        return condition.fails(
            f"{with_noun('item', names)}: the fitted predictor is not largest where all latents of "
            "the item are at their top level",
            {"items": names},
            "exchange the levels of a latent with mostly negative effects, reverse-score items, or "
            "drop the item",
        )
    steps = [] if design.binary else nonmonotone_steps(fitted.tables, design.q)
    if steps:
        named = [(design.item_names[j], design.latent_names[k]) for j, k in steps]
        words = [f"{item} does not increase with every level of {latent}" for item, latent in named]
        return condition.fails(
            join_names(words, limit=4),
            {"steps": [{"item": item, "latent": latent} for item, latent in named]},
            "fit fewer levels, or reorder the levels of the latent",
        )
    return condition.holds("every item increases with its latents")


def _positive_loading_sums(design: MeasurementDesign, fitted: FittedModel | None) -> Finding:
    condition = Condition("monotone", "Assumption 1'(b)")
    if fitted is None:
        return condition.undecided(
            "the loadings of every latent must have a positive sum, which fixes its polarity; this "
            "depends on coefficients, not on Q"
        )
    names = design.latents(np.flatnonzero(~(loading_sums(fitted.tables, design.q) > 0)))
    if not names:
        return condition.holds("the loadings of every latent have a positive sum")
    return condition.fails(
        f"the sum of the loadings of {with_noun('latent', names)} is not positive",
        {"latents": names},
        f"exchange the two levels of {join_names(names)}; the model remains the same",
    )


def analytic_families(design: MeasurementDesign, fitted: FittedModel | None = None) -> Finding:
    """Check that the response families are analytic and identified (Assumption 2)."""
    condition = Condition("analytic-families", "Assumption 2")
    if design.families is None:
        return condition.undecided(
            "the families of the items were not given; most families satisfy the assumption"
        )
    known = {name: _analytic_condition(name) for name in dict.fromkeys(design.families)}
    undecided: dict[str, list[str]] = {}
    for j, name in enumerate(design.families):
        positive = fitted is not None and bool(np.nanmin(fitted.tables[j]) > 0)
        at_fit = known[name].holds_if_positive and positive
        if known[name].verdict != "holds" and not at_fit:
            undecided.setdefault(name, []).append(design.item_names[j])
    if not undecided:
        return condition.holds(
            f"the families ({join_names(list(known))}) are analytic and determine their predictors",
            {name: found.reason for name, found in known.items()},
        )
    name, items = next(iter(undecided.items()))
    more = "" if len(undecided) == 1 else f" (and {len(undecided) - 1} more families)"
    return condition.undecided(
        f"{name} ({with_noun('item', items)}): {known[name].reason}{more}", undecided
    )


def _analytic_condition(name: str) -> AnalyticCondition:
    """Return whether a family satisfies Assumption 2; any name is accepted."""
    kind = ITEM_TYPES.get(split_name(name)[0])
    if kind is None:
        return AnalyticCondition("undecided", f"the family {name!r} is unknown")
    return kind.analytic_condition


def enough_response_patterns(design: MeasurementDesign) -> Finding | None:
    """Check that discrete items have enough response patterns, which is necessary; else None.

    A distribution over A response patterns has A - 1 degrees of freedom, and no more parameters are
    identified. Items with a_1, ..., a_l responses distinguish at most a_1 * ... * a_l levels of
    one latent.
    """
    if design.families is None:
        return None
    condition = Condition("answer-patterns", "necessary")
    values = [_n_values(name) for name in design.families]
    for k, name in enumerate(design.latent_names):
        own = [values[j] for j in np.flatnonzero(design.q[:, k])]
        patterns = prod(a for a in own if a)
        if own and None not in own and patterns < design.levels[k]:
            return condition.fails(
                f"latent {name} has {design.levels[k]} levels, but its items have only {patterns} "
                "response patterns",
                {"latent": name},
                f"give {name} more items or fewer levels",
                provably_bad=True,
            )
    if None in values:
        return None
    degrees = prod(a for a in values if a) - 1
    if design.ruled_out is None:
        parameters = prod(design.levels) - 1 + sum(_n_coefficients(design, r) for r in design.q)
    else:
        parameters = int((~design.ruled_out).sum()) - 1 + n_estimable(design)
    numbers = f"{_short(parameters)} parameters, {_short(degrees)} degrees of freedom in the data"
    if parameters <= degrees:
        return condition.holds(f"there are more response patterns than parameters ({numbers})")
    return condition.fails(
        f"there are more parameters than the response patterns can determine ({numbers}), unless "
        "the latent graph omits enough edges",
        {"parameters": parameters, "degrees_of_freedom": degrees},
        "add items, or use fewer latents",
        provably_bad=True,
    )


def _n_values(family: str) -> int | None:
    """Return how many values an item of the family can take; None if unknown or unlimited."""
    try:
        values = item_type(family).possible_values()
    except SettingError:
        return None
    return None if values is None else len(values)


def _n_coefficients(design: MeasurementDesign, row: Bools) -> int:
    """Return the number of coefficients of an item, given its row of Q, shape (K,)."""
    by_order = [1] + [0] * design.order
    for k in np.flatnonzero(row):
        for size in range(design.order, 0, -1):
            by_order[size] += by_order[size - 1] * (design.levels[k] - 1)
    return sum(by_order)


def _short(number: int) -> str:
    return str(number) if number < 10**6 else f"about 2^{number.bit_length() - 1}"


def disentanglement(
    design: MeasurementDesign, fitted: FittedModel | None, monotone: bool | None
) -> Finding:
    """Describe the indeterminacy of unrestricted predictors (disentanglement corollary).

    Parameters
    ----------
    design : MeasurementDesign
    fitted : FittedModel or None
    monotone : bool or None
        Whether items are known to be monotone.
    """
    condition = Condition("disentangled", "disentanglement corollary", required=False)
    if len(subset_violations(design.q)):
        sentence = (
            "the subset condition fails, so with items of arbitrary form a latent can be mixed "
            "with another whose items include its own"
        )
        if design.binary and design.main_effects:
            sentence += "; with main effects only the order of the latents is open (Corollary 2)"
        return condition.fails(sentence)
    tied = [] if fitted is None else design.items(items_with_ties(fitted.tables))
    if tied:
        return condition.fails(
            f"{with_noun('item', tied)}: the fitted predictor is equal for different combinations "
            "of the item's latents, and the corollary requires different values",
            {"items": tied},
        )
    if design.ruled_out is not None:
        return condition.undecided(
            "the corollary compares items in all combinations of levels, and the hierarchy rules "
            "some of them out"
        )
    by_levels: dict[int, list[str]] = {}
    for name, level in zip(design.latent_names, design.levels, strict=True):
        by_levels.setdefault(level, []).append(name)
    groups = [names for names in by_levels.values() if len(names) > 1]
    left = []
    if groups:
        members = "; ".join(join_names(names) for names in groups)
        left.append(f"the order of latents with the same number of levels ({members})")
    if monotone is not True:
        left.append("the labels of the levels, unless items are monotone")
    sentence = (
        "with items of arbitrary form, if each differs between any two combinations of its "
        "latents, the data determine everything"
    ) + (f" except {join_names(left)}" if left else "")
    if groups:
        sentence += "; a given Q-matrix fixes the order"
    return condition.holds(sentence, {"exchangeable": groups, "levels_open": monotone is not True})


def positive_law(design: MeasurementDesign, fitted: FittedModel | None = None) -> Finding:
    """Check that every joint state has positive probability (Assumption 1(a))."""
    condition = Condition("positive-law", "Assumption 1(a)")
    advice = "fit fewer latents or levels, or more rows"
    if design.ruled_out is not None:
        excluded = design.state_names(np.flatnonzero(design.ruled_out))
        sentence = (
            f"the hierarchy rules out {with_noun('state', excluded)} (levels in the order of the "
            "latents), and the theorems require that every state has positive probability"
        )
        others: list[str] = []
        if fitted is not None:
            law = np.where(design.ruled_out, 1.0, fitted.law.probabilities)
            others = design.state_names(zero_states(law))
            if others:
                sentence += f"; {_have_no_probability(with_noun('state', others), others)}"
        return condition.fails(sentence, {"states": [*excluded, *others], "ruled_out": excluded})
    if fitted is None:
        return condition.undecided(
            "every joint state must have positive probability, which Q does not decide"
        )
    if isinstance(fitted.law, NetworkLaw):
        entries = zero_entries(design, fitted.law)
        if entries:
            phrase = _have_no_probability(join_names(entries, limit=4), entries)
            return condition.fails(phrase, {"entries": entries}, advice)
        least = min(float(table.min()) for table in fitted.law.tables)
        return condition.holds(
            "every joint state has positive probability: the smallest entry of the conditional "
            f"probability tables is {least:.2g}"
        )
    states = design.state_names(zero_states(fitted.law.probabilities))
    if states:
        phrase = f"{with_noun('state', states)} (levels in the order of the latents)"
        return condition.fails(
            _have_no_probability(phrase, states),
            {"states": states},
            f"{advice}; or fit a latent distribution over a graph",
        )
    least = float(fitted.law.probabilities.min())
    return condition.holds(
        f"every joint state has positive probability (the smallest is {least:.2g})"
    )


def _have_no_probability(phrase: str, names: list[str]) -> str:
    return f"{phrase} {'have' if len(names) > 1 else 'has'} probability zero in the fit"


def faithfulness() -> Finding:
    """Return that the graph is assumed to be a perfect map of the distribution, Assumption 1(a)."""
    return Condition("faithful-graph", "Assumption 1(a)").undecided(
        "the latent graph must be a perfect map of the latent distribution (Markov and faithful); "
        "this is assumed, data cannot decide it"
    )
