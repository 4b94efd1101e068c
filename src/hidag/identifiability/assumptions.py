"""Assumptions of the theorems: positive distribution, faithfulness, monotone items, families.

Most of them cannot be decided without a fit. An item's fitted predictor depends on its own latents
only. It is stored as a table with one axis for each of them, so no joint states are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import SettingError
from hidag.formatting import join_names, with_noun
from hidag.identifiability.blocks import subset_violations
from hidag.identifiability.design import (
    Bools,
    Condition,
    Finding,
    FittedModel,
    Ints,
    MeasurementDesign,
)
from hidag.identifiability.strict_conditions import RELATIVE_TIE
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families import ITEM_TYPES, item_type, split_name
from hidag.measurement.families.base import AnalyticCondition
from hidag.measurement.terms import Terms, interactions_within

Array = NDArray[np.float64]

#: Smaller probabilities count as zero: no data set shows such a state.
SMALLEST_PROBABILITY = 1e-12
#: Relative rounding error of singular values and projections.
_ROUNDING = 1e-9


def design_matrix(
    design: MeasurementDesign, row: Bools, states: NDArray[np.integer]
) -> tuple[Array, list[str]]:
    """Return an item's features in states (n, K), (n, P), and their names, by its row of Q (K,).

    A constant, 1{Z_k >= u} for its latents, and products of these up to the order of effects.
    """
    terms = Terms(design.levels, interactions_within(row[None], design.levels, design.order))
    own = np.flatnonzero(terms.support(row[None])[0])
    names = terms.names(design.latent_names)
    features = np.hstack([np.ones((len(states), 1)), terms.features(states)[:, own]])
    return features, ["intercept", *(names[t] for t in own)]


def estimable_designs(design: MeasurementDesign) -> tuple[list[Array], list[list[str]]]:
    """Return each item's design over the possible states, (S, P_j), without collinear features."""
    states = StateSpace(design.levels).states()[design.possible()]
    matrices, names = [], []
    for row in design.q:
        features, words = design_matrix(design, row, states)
        columns: list[int] = []
        for c in range(len(words)):
            matrix = features[:, [*columns, c]]
            if design.ruled_out is None or np.linalg.matrix_rank(matrix) > len(columns):
                columns.append(c)
        matrices.append(features[:, columns])
        names.append([words[c] for c in columns])
    return matrices, names


def _possible_designs(design: MeasurementDesign) -> list[Array]:
    """Return for each item its features in the possible patterns of its latents, (n_j, P_j)."""
    states = StateSpace(design.levels).states()[design.possible()]
    rows, place = np.unique(design.q, axis=0, return_inverse=True)
    found = [
        design_matrix(design, row, np.unique(np.where(row, states, 0), axis=0))[0] for row in rows
    ]
    return [found[number] for number in place.ravel()]


def n_estimable(design: MeasurementDesign) -> int:
    """Return the number of estimable coefficients of all items, intercepts included."""
    return sum(int(np.linalg.matrix_rank(features)) for features in _possible_designs(design))


def estimable_coefficients(design: MeasurementDesign) -> Finding | None:
    """Check whether the possible states determine all coefficients; None if all are possible."""
    if design.ruled_out is None:
        return None
    source = "states that the hierarchy rules out"
    condition = Condition("estimable-coefficients", source, required=False)
    designs = zip(design.item_names, _possible_designs(design), strict=True)
    names = [name for name, x in designs if np.linalg.matrix_rank(x) < x.shape[1]]
    if not names or design.effects.conjunctive:  # conjunctive items have one coefficient each
        return condition.holds("the possible states determine the coefficients of every item")
    return condition.fails(
        f"{with_noun('item', names)}: only sums of some coefficients are estimable, because the "
        "states that would separate them are ruled out; predictions in possible states do not "
        "depend on it",
        {"items": names},
        provably_bad=True,
    )


def mask_undetermined(design: MeasurementDesign, tables: Sequence[Array]) -> tuple[Array, ...]:
    """Return items' predictors with NaN where the possible states do not determine them."""
    if design.ruled_out is None:
        return tuple(tables)
    out = []
    for row, possible, table in zip(design.q, _possible_designs(design), tables, strict=True):
        every = Terms.main(design.levels).states_of(np.flatnonzero(row))
        _, sizes, right = np.linalg.svd(possible)
        null_space = right[int((sizes > _ROUNDING * sizes[0]).sum()) :]
        outside = design_matrix(design, row, every)[0] @ null_space.T
        determined = (outside**2).sum(axis=1) <= _ROUNDING
        out.append(np.where(determined.reshape(table.shape), table, np.nan))
    return tuple(out)


def level_order(table: Array, axis: int) -> Bools:
    """Return which levels of a latent (M, M) an item puts below which, by its predictor's table.

    Monotone items are largest in one combination of their latents' levels, the highest ones, and
    rise by level of each latent with the others there. Levels that tie are below each other.
    """
    equal = RELATIVE_TIE * (np.nanmax(table) - np.nanmin(table))
    lines = np.moveaxis(table, axis, -1)
    lines = lines[(lines >= np.nanmax(table) - equal).any(axis=-1)]
    # Comparisons with predictors that the possible states do not determine (NaN) are false.
    below = lines[:, :, None] <= lines[:, None, :] + equal
    return np.asarray(below.any(axis=0) & ~np.eye(table.shape[axis], dtype=np.bool_))


def contradictory_levels(
    tables: Sequence[Array], q: Bools, levels: Sequence[int]
) -> dict[int, list[int]]:
    """Return latents for which no order of levels suits all items, and items against the most."""
    orders: list[dict[int, Bools]] = [{} for _ in levels]
    for j, (table, row) in enumerate(zip(tables, q, strict=True)):
        if not np.isnan(table).all():
            for axis, k in enumerate(np.flatnonzero(row).tolist()):
                orders[k][j] = level_order(table, axis)
    found = {}
    for k, by_item in enumerate(orders):
        if _has_cycle(sum(by_item.values(), np.zeros((levels[k],) * 2, dtype=bool))):
            words = {j: order.tobytes() for j, order in by_item.items() if not _has_cycle(order)}
            usual = Counter(words.values()).most_common(1)
            found[k] = [j for j in by_item if not usual or words.get(j) != usual[0][0]]
    return found


def _has_cycle(below: Bools) -> bool:
    paths = below.astype(np.int64)
    for _ in range((len(below) - 1).bit_length()):
        paths = np.minimum(paths + paths @ paths, 1)
    return bool(paths.diagonal().any())


def items_with_ties(tables: Sequence[Array]) -> Ints:
    """Return items with equal predictors for different combinations of their latents."""
    bad = []
    for j, table in enumerate(tables):
        values = np.sort(table[~np.isnan(table)])
        if len(values) > 1 and np.diff(values).min() <= RELATIVE_TIE * (values[-1] - values[0]):
            bad.append(j)
    return np.array(bad, dtype=np.int64)


def zero_states(design: MeasurementDesign, probabilities: Array) -> list[str]:
    """Return the joint states with probability zero (Assumption 1(a) excludes them)."""
    return design.state_names(np.flatnonzero(~(probabilities > SMALLEST_PROBABILITY)))


def zero_entries(design: MeasurementDesign, law: NetworkLaw) -> list[str]:
    """Return the zero entries of conditional tables, such as "B = 1 with A = 0"."""
    out = []
    for name, parents, table in zip(design.latent_names, law.parents, law.tables, strict=True):
        for where in np.argwhere(~(table > SMALLEST_PROBABILITY)).tolist():
            pairs = zip(design.latents(parents), where[:-1], strict=True)
            given = [f"{parent} = {value}" for parent, value in pairs]
            out.append(f"{name} = {where[-1]}{' with ' * bool(given)}{join_names(given)}")
    return out


def monotone_items(design: MeasurementDesign, fitted: FittedModel | None = None) -> Finding:
    """Check monotonicity: Assumption 1(b), 1'(b) for main effects, or the ordered analogue.

    It is a condition up to the names of levels, and holds if some naming satisfies it: with other
    names the same distribution of the data has the same verdict.
    """
    if design.binary and design.main_effects:
        return _loading_sums(design, fitted)
    ordered = not design.binary
    condition = Condition("monotone", "Assumption S.3" if ordered else "Assumption 1(b)")
    if fitted is None:
        more = ", and they must agree on the order of levels below it" * ordered
        return condition.undecided(
            "every item's predictor must be largest where all its latents are at one level, the "
            f"same for all items of a latent{more}; this depends on coefficients, not on Q"
        )
    against = contradictory_levels(fitted.tables, design.q, design.levels)
    if not against:
        return condition.holds(
            "every item increases with its latents, whose levels have the same order in all items"
        )
    latents = design.latents(list(against))
    names = design.items(sorted({j for items in against.values() for j in items}))
    return condition.fails(
        f"no order of the levels of {join_names(latents, limit=4)} lets all of their items "
        f"increase: {with_noun('item', names)} {'do' if len(names) > 1 else 'does'} not agree with "
        "the others, or would tie",
        {"latents": latents, "items": names},
        "reverse-score or drop items" + ", or fit fewer levels" * ordered,
    )


def _loading_sums(design: MeasurementDesign, fitted: FittedModel | None) -> Finding:
    condition = Condition("monotone", "Assumption 1'(b)")
    if fitted is None:
        return condition.undecided(
            "the loadings of every latent must have a sum other than zero, which fixes its "
            "polarity; this depends on coefficients, not on Q"
        )
    sums, sizes = np.zeros((2, len(design.latent_names)))
    for table, row in zip(fitted.tables, design.q, strict=True):
        for axis, k in enumerate(np.flatnonzero(row).tolist()):
            change = np.diff(table, axis=axis).ravel()
            # Without interactions all changes are equal; NaN if none is determined.
            change = change[~np.isnan(change)][:1]
            sums[k] += change[0] if len(change) else np.nan
            sizes[k] += abs(change).sum()
    names = design.latents(np.flatnonzero(~(abs(sums) > RELATIVE_TIE * sizes)))
    if not names:
        return condition.holds(
            "the loadings of every latent have a sum other than zero, which fixes its polarity"
        )
    return condition.fails(
        f"the loadings of {with_noun('latent', names)} add up to zero, which fixes no polarity",
        {"latents": names},
        f"reverse-score or drop an item of {join_names(names)}",
    )


def analytic_families(design: MeasurementDesign, fitted: FittedModel | None = None) -> Finding:
    """Check that the response families are analytic and identified (Assumption 2)."""
    condition = Condition("analytic-families", "Assumption 2")
    if design.families is None:
        return condition.undecided(
            "the families of the items were not given; most families satisfy the assumption"
        )
    known: dict[str, AnalyticCondition] = {}
    for name in design.families:
        kind = ITEM_TYPES.get(split_name(name)[0])
        unknown = AnalyticCondition("undecided", f"the family {name!r} is unknown")
        known[name] = unknown if kind is None else kind.analytic_condition
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


def enough_response_patterns(design: MeasurementDesign) -> Finding | None:
    """Check the necessary number of response patterns: more than parameters and than levels."""
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
    """Describe the indeterminacy of unrestricted predictors, of monotone items if known."""
    condition = Condition("disentangled", "Corollary 1", required=False)
    if len(subset_violations(design.q)):
        sentence = (
            "the subset condition fails, so with items of arbitrary form a latent can be mixed "
            "with another whose items include its own"
        )
        if design.binary and design.main_effects:
            sentence += "; with main effects only the order of the latents is open (Corollary S.3)"
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
    )
    sentence += f" except {join_names(left)}" * bool(left)
    sentence += "; a given Q-matrix fixes the order" * bool(groups)
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
            others = zero_states(design, law)
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
    states = zero_states(design, fitted.law.probabilities)
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
