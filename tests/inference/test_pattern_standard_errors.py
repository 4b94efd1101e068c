"""Standard errors of items by pattern: against numerical derivatives and on the boundary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from hidag.causal import what_if
from hidag.inference.standard_errors import standard_errors
from hidag.information.free_parameters import FreeParameters
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters
from hidag.measurement.terms import Effects

from ..fitted_models import drawn, moved, result_at, two_latents

Q = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1]], dtype=np.int8)
#: Chance of a yes of each item in the states 00, 01, 10, 11.
CHANCES = np.array(
    [
        [0.2, 0.2, 0.8, 0.8],
        [0.3, 0.3, 0.9, 0.9],
        [0.1, 0.7, 0.1, 0.7],
        [0.2, 0.9, 0.2, 0.9],
        [0.15, 0.4, 0.5, 0.8],
        [0.3, 0.6, 0.35, 0.9],
    ]
)
SHARES = np.array([0.3, 0.15, 0.2, 0.35])


def saturated_items(chances, effects="all"):
    """Return a fit of yes/no items with these chances in each state."""
    terms = Effects.of(effects).terms(Q, (2, 2))
    features = np.column_stack([np.ones(4), terms.features(StateSpace((2, 2)).states())])
    coefficients = np.linalg.lstsq(features, logit(chances).T, rcond=None)[0].T
    coefficients[:, 1:] *= terms.support(Q)
    parameters = MeasurementParameters(
        ("bernoulli",) * len(Q), coefficients[:, 0], coefficients[:, 1:], np.ones(len(Q)), terms
    )
    law = SaturatedLaw(StateSpace((2, 2)), SHARES)
    return result_at(parameters, law, n_samples=1500, effects=effects, q_given=Q)


def log_likelihood(X, groups, chances, ratios):
    """Return the log-likelihood by the chances themselves, without anything of the library.

    ``groups`` (J, 4) says which of an item's log odds holds in each state.
    """
    p = np.exp(np.concatenate([ratios, [0.0]]))
    p /= p.sum()
    total = np.tile(np.log(p), (len(X), 1))
    for x, group, odds in zip(X.T, groups, chances, strict=True):
        chance = expit(np.asarray(odds)[group])
        total += np.where(x[:, None] == 1, np.log(chance), np.log1p(-chance))
    return float(np.logaddexp.reduce(total, axis=1).sum())


def errors_by_hessian(X, chances, held=()):
    """Return errors of each item's log odds by pattern, from numerical second derivatives.

    ``held`` are (item, pattern) that do not move.
    """
    groups = np.array([np.unique(row, return_inverse=True)[1] for row in chances])
    odds = [logit(np.unique(row)) for row in chances]
    places = [(j, g) for j, own in enumerate(odds) for g in range(len(own)) if (j, g) not in held]
    n = len(places) + 3

    def value(step):
        now = [own.copy() for own in odds]
        for (j, g), by in zip(places, step, strict=False):
            now[j][g] += by
        ratios = np.log(SHARES[:3] / SHARES[3]) + step[-3:]
        return log_likelihood(X, groups, now, ratios)

    h, unit = 1e-3, np.eye(n)
    hessian = np.empty((n, n))
    for a in range(n):
        for b in range(a + 1):
            corners = [
                sa * sb * value(h * (sa * unit[a] + sb * unit[b]))
                for sa in (1, -1)
                for sb in (1, -1)
            ]
            hessian[a, b] = hessian[b, a] = sum(corners) / (4 * h * h)
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    return {(f"X{j + 1}", float(np.unique(chances[j])[g])): errors[i]
            for i, (j, g) in enumerate(places)}  # fmt: skip


def test_errors_agree_with_a_numerical_hessian():
    result = saturated_items(CHANCES)
    X, _ = drawn(result, 1500, seed=1)
    expected = errors_by_hessian(X, CHANCES)
    found = standard_errors(result, X, level=0.9).patterns
    assert len(found) == 4 * 2 + 2 * 4
    for row in found.to_dicts():
        p = row["estimate"]
        error = expected[row["item"], round(p, 6)]
        assert row["standard_error"] == pytest.approx(p * (1 - p) * error, rel=1e-3)
        ends = expit(logit(p) + norm.ppf(0.95) * error * np.array([-1, 1]))
        assert (row["lower"], row["upper"]) == pytest.approx(tuple(ends), rel=1e-3)
    first = found.where(item="X5").to_dicts()
    assert [row["pattern"] for row in first] == ["00", "01", "10", "11"]
    assert [row["latents"] for row in first] == ["Z1*Z2"] * 4
    assert [row["share"] for row in first] == pytest.approx(SHARES)


#: Coefficients of an item of two latents that its answers in the states 00 and 11 have a part in.
TAKEN_ALONG = {0: ["intercept", "Z1", "Z2", "Z1*Z2"], 3: ["Z1*Z2"]}


@pytest.mark.parametrize(
    ("state", "chance"), [(0, 1e-16), (0, 1e-10), (0, 1e-4), (3, 1 - 1e-10), (3, 1 - 1e-4)]
)
def test_an_answer_on_the_boundary_leaves_the_other_patterns_identified(state, chance):
    # At any distance from the boundary at which the search for the maximum stopped.
    chances = CHANCES.copy()
    chances[4, state] = chance
    result = saturated_items(chances)
    X, _ = drawn(result, 1500, seed=2)
    found = standard_errors(result, X)
    unknown = TAKEN_ALONG[state]
    assert found.not_estimated == tuple(f"X5: {term}" for term in unknown)
    for row in found.table.where(kind="coefficient", of="X5").to_dicts():
        assert np.isnan(row["standard_error"]) == (row["term"] in unknown)
    rows = found.patterns.where(item="X5").to_dicts()
    for at, row in enumerate(rows):
        assert np.isnan([row["standard_error"], row["lower"], row["upper"]]).all() == (at == state)
    expected = errors_by_hessian(X, chances, held=[(4, 0 if state == 0 else 3)])
    for row in rows[:state] + rows[state + 1 :]:
        p = row["estimate"]
        error = expected["X5", round(p, 6)]
        assert row["standard_error"] == pytest.approx(p * (1 - p) * error, rel=1e-3)


def test_rare_answers_are_estimated():
    chances = CHANCES.copy()
    chances[4, 3] = 0.995
    result = saturated_items(chances)
    X, _ = drawn(result, 1500, seed=2)
    found = standard_errors(result, X)
    assert found.not_estimated == ()
    row = found.patterns.where(item="X5").to_dicts()[3]
    error = errors_by_hessian(X, chances)["X5", 0.995]
    assert row["standard_error"] == pytest.approx(0.995 * 0.005 * error, rel=1e-3)


def test_conjunctive_items_have_a_guess_and_a_slip():
    chances = np.where(np.array([[0, 0, 0, 1]]), 0.85, np.full((6, 1), 0.2))
    chances[:4] = CHANCES[:4]
    for effects, alone in (("dina", ["00 01 10", "11"]), ("dino", ["00", "01 10 11"])):
        if effects == "dino":
            chances[4:] = [[0.2, 0.85, 0.85, 0.85]] * 2
        result = saturated_items(CHANCES, "all")
        terms = Effects.of(effects).terms(Q, (2, 2))
        features = np.column_stack([np.ones(4), terms.features(StateSpace((2, 2)).states())])
        coefficients = np.linalg.lstsq(features, logit(chances).T, rcond=None)[0].T
        parameters = replace(
            result.parameters,
            intercept=coefficients[:, 0],
            loadings=coefficients[:, 1:],
            terms=terms,
        )
        result = replace(result, parameters=parameters, settings={"effects": effects, "seed": 0})
        X, _ = drawn(result, 1500, seed=3)
        found = standard_errors(result, X).patterns
        rows = found.where(item="X6").to_dicts()
        assert [row["pattern"] for row in rows] == alone
        assert [row["called"] for row in rows] == ["guess", "1 - slip"]
        assert [row["estimate"] for row in rows] == pytest.approx([0.2, 0.85])
        assert all(0.005 < row["standard_error"] < 0.05 for row in rows)


def test_patterns_that_prerequisites_rule_out_are_left_out():
    result = saturated_items(CHANCES)
    law = SaturatedLaw(result.law.space, np.array([0.3, 0.0, 0.3, 0.4]))
    reported = {**result.settings, "knowledge": {"hierarchy": [["Z1", "Z2"]]}}
    result = replace(result, law=law, settings=reported)
    X, _ = drawn(result, 1500, seed=4)
    rows = standard_errors(result, X).patterns.where(item="X5")
    assert rows.column("pattern") == ["00", "10", "11"]
    assert rows.column("share") == pytest.approx([0.3, 0.3, 0.4])
    assert not np.isnan(rows.column("standard_error")).any()


@pytest.mark.parametrize("family", ["gaussian", "poisson", "lognormal", "ordinal(4)", "gamma"])
def test_means_of_other_families_use_all_their_parameters(family):
    result = two_latents((family,) * 12)
    X, _ = drawn(result, 2000, seed=5)
    found = standard_errors(result, X)
    free = FreeParameters.of(result, X)
    states = result.law.space.states()
    h = 1e-5
    slopes = np.array(
        [
            (
                moved(result, free, p, h).item_means(states)
                - moved(result, free, p, -h).item_means(states)
            )
            / (2 * h)
            for p in range(free.n_of_items)
        ]
    )
    scale = np.array(
        [
            free.data.scale[free.channels[c].response]
            if free.channels[c].kind == "predictor"
            else 1
            for c in free.channel[: free.n_of_items]
        ]
    )
    covariance = found.covariance[: free.n_of_items, : free.n_of_items]
    rows = found.patterns.where(item="X3").to_dicts()
    for state, row in zip(states, rows, strict=True):
        assert row["pattern"] == "".join(map(str, state))
        at = int(np.flatnonzero((states == state).all(axis=1))[0])
        slope = slopes[:, at, 2] / scale
        assert row["estimate"] == pytest.approx(result.item_means(states)[at, 2])
        assert row["standard_error"] == pytest.approx(np.sqrt(slope @ covariance @ slope), rel=1e-4)
        assert row["lower"] < row["estimate"] < row["upper"]


def test_nominal_items_have_the_probabilities_of_their_categories():
    families = ("gaussian", "gaussian", "categorical(3)") * 4
    result = two_latents(families)
    X, _ = drawn(result, 1500, seed=6)
    found = standard_errors(result, X, level=0.9)
    free = FreeParameters.of(result, X)
    states = result.law.space.states()
    own = np.flatnonzero(result.responses.item == 2)

    def chances(fit):
        yes = fit.item_means(states)[:, own]
        none = (1 - yes[:, 0]) * (1 - yes[:, 1])
        return np.column_stack([yes[:, 0], (1 - yes[:, 0]) * yes[:, 1], none])

    h = 1e-5
    slopes = np.array(
        [
            (chances(moved(result, free, p, h)) - chances(moved(result, free, p, -h))) / (2 * h)
            for p in range(free.n_of_items)
        ]
    )
    covariance = found.covariance[: free.n_of_items, : free.n_of_items]
    rows = found.patterns.where(latents="Z1*Z2").to_dicts()
    rows = [row for row in rows if row["item"].startswith("X3")]
    assert [row["item"] for row in rows] == [f"X3={c}" for c in "000011112222"]
    assert [row["pattern"] for row in rows] == ["00", "01", "10", "11"] * 3
    assert {row["called"] for row in rows} == {""}
    for place, row in enumerate(rows):
        category, at = divmod(place, 4)
        p = chances(result)[at, category]
        error = np.sqrt(slopes[:, at, category] @ covariance @ slopes[:, at, category])
        ends = expit(logit(p) + norm.ppf(0.95) * error / (p * (1 - p)) * np.array([-1, 1]))
        assert row["estimate"] == pytest.approx(p)
        assert row["standard_error"] == pytest.approx(error, rel=1e-4)
        assert (row["lower"], row["upper"]) == pytest.approx(tuple(ends), rel=1e-4)
        seen = what_if(result, given={"Z1": states[at, 0], "Z2": states[at, 1]})
        reported = {one["what"]: one["before"] for one in seen.rows() if one["name"] == "X3"}
        assert row["estimate"] == pytest.approx(reported[f"P(={category})"])


def test_an_empty_category_leaves_the_others_identified():
    result = two_latents(("gaussian", "gaussian", "categorical(3)") * 4)
    row = int(np.flatnonzero(result.responses.item == 2)[0])
    intercept, loadings = result.parameters.intercept.copy(), result.parameters.loadings.copy()
    intercept[row], loadings[row, 0] = -36.0, 36.0
    result = replace(
        result, parameters=replace(result.parameters, intercept=intercept, loadings=loadings)
    )
    X, _ = drawn(result, 1500, seed=7)
    found = standard_errors(result, X).patterns
    for pattern in ("00", "11"):
        errors = {
            row["item"]: row["standard_error"]
            for row in found.where(pattern=pattern).to_dicts()
            if row["item"].startswith("X3=")
        }
        assert np.isnan(errors["X3=0"]) == (pattern == "00")
        assert np.isfinite([errors["X3=1"], errors["X3=2"]]).all()
