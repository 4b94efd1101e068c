from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from hidag import DCRL
from hidag.diagnostics import validate_q
from hidag.diagnostics.q_entry_tests import fit_given_q, flip_entry, screen_entries
from hidag.diagnostics.q_validation import QValidation, _likelihood_ratio
from hidag.exceptions import DataError, SettingError
from hidag.inference.result_tables import Table
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters
from hidag.measurement.terms import Effects

from ..fitted_models import drawn, result_at

TRUE_Q = np.array([[1, 0]] * 5 + [[0, 1]] * 5 + [[1, 1]] * 2, dtype=np.int8)
LAW = NetworkLaw(
    StateSpace((2, 2)), ((), (0,)), (np.array([0.5, 0.5]), np.array([[0.7, 0.3], [0.35, 0.65]]))
)


def truth(effects="main", family="bernoulli", size=2.2):
    rng = np.random.default_rng(3)
    wanted = Effects.of(effects)
    terms = wanted.terms(TRUE_Q, (2, 2))
    loadings = np.where(
        wanted.support(terms, TRUE_Q), size * rng.uniform(0.8, 1.2, (12, terms.n_terms)), 0.0
    )
    if wanted.reversed:
        # Absences pull items down: levels go up with the items in total.
        loadings = -loadings
    parameters = MeasurementParameters(
        (family,) * 12, -0.5 * loadings.sum(axis=1), loadings, np.ones(12), terms
    )
    if wanted.reversed:
        parameters = parameters.flipped(np.ones(2, dtype=bool))
    return result_at(parameters, LAW, n_samples=2000, effects=effects, q_given=TRUE_Q)


WRONG = [(0, 1), (7, 0), (10, 1)]


def wrong_q():
    """Return Q with two entries too many and one too few."""
    q = TRUE_Q
    for item, latent in WRONG:
        q = flip_entry(q, item, latent)
    return q


@pytest.fixture(scope="module")
def provisional():
    X, _ = drawn(truth(), 2000, seed=1)
    model = DCRL(2, q_matrix=wrong_q(), family="bernoulli", random_state=0, n_starts=2,
                 latent_names=["A", "B"])  # fmt: skip
    return model.fit(X).result_, X


def test_planted_errors_are_found_and_nothing_else(provisional):
    result, X = provisional
    found = validate_q(result, X, n_resamples=5)
    np.testing.assert_array_equal(found.suggested, TRUE_Q)
    np.testing.assert_array_equal(found.provisional, wrong_q())
    assert len(found.steps) == 3
    rows = {(r["item"], r["latent"]): r for r in found.to_rows()}
    missing = rows["item_10", "B"]
    assert missing["action"] == "add"
    assert missing["likelihood_ratio"] > 50
    assert missing["support"] == 1.0
    assert rows["item_0", "B"]["action"] == "drop"
    assert rows["item_0", "B"]["likelihood_ratio"] < rows["item_0", "B"]["penalty"]
    assert rows["item_0", "B"]["penalty"] == pytest.approx(np.log(2000) + np.log(2))
    text = found.summary()
    assert "3 of 24 entries would be changed" in text
    assert "item_10  1  +" in text


def test_screening_approximates_the_likelihood_ratio(provisional):
    result, X = provisional
    model = fit_given_q(result, X)
    reported = {(t.item, t.latent): t for t in screen_entries(model)}
    for key in [(10, 1), (0, 1), (7, 0), (3, 1), (11, 0)]:
        other = model.refit(flip_entry(model.q, *key))
        ratio = abs(2 * (other.log_likelihood - model.log_likelihood))
        assert reported[key].statistic == pytest.approx(ratio, rel=0.25, abs=0.7)


def test_a_refit_equals_a_fit_with_that_q(provisional):
    result, X = provisional
    other = flip_entry(wrong_q(), 10, 1)
    ours = fit_given_q(result, X).refit(other)
    theirs = DCRL(2, q_matrix=other, family="bernoulli", law="saturated", tol=1e-7, max_iter=2000,
                  n_starts=2, random_state=0).fit(X)  # fmt: skip
    if isinstance(result.law, NetworkLaw):
        assert len(result.law.parents[0]) + len(result.law.parents[1]) == 1
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood_, abs=0.05)
    total = ours.result.row_log_likelihood(X).sum()
    assert ours.log_likelihood == pytest.approx(total, abs=1e-6)


def plain_em(result, X, n_steps: int) -> float:
    """Return where plain EM over free chances of each item's profiles ends, its log-likelihood."""
    states, law = result.law.space.states(), np.asarray(result.law.probabilities)
    chances = result.item_means(states)
    profiles = [np.unique(states[:, row == 1], axis=0, return_inverse=True)[1].ravel()
                for row in result.q_matrix]  # fmt: skip
    for _ in range(n_steps):
        joint = X @ np.log(chances).T + (1 - X) @ np.log1p(-chances).T + np.log(law)
        rows = logsumexp(joint, axis=1, keepdims=True)
        posterior = np.exp(joint - rows)
        law = posterior.mean(axis=0)
        for j, own in enumerate(profiles):
            right = np.bincount(own, X[:, j] @ posterior)
            shares = right / np.bincount(own, posterior.sum(axis=0))
            chances[:, j] = np.clip(shares, 1e-12, 1 - 1e-12)[own]
    return float(rows.sum())


def test_a_refit_continues_through_slow_convergence():
    # Skills that hardly anybody has without the ones before them: EM crawls.
    rng = np.random.default_rng(1)
    pairs = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    q = np.vstack([np.repeat(np.eye(3, dtype=int), 4, axis=0), pairs])
    third = rng.random(800) < 0.65
    second = third & (rng.random(800) < 0.75) | (rng.random(800) < 0.02)
    first = second & (rng.random(800) < 0.6) | (rng.random(800) < 0.02)
    skills = np.column_stack([first, second, third])
    chances = np.where(skills @ q.T >= q.sum(axis=1), 0.85, 0.45)
    X = (rng.random(chances.shape) < chances).astype(float)
    model = DCRL(3, q_matrix=q, effects="gdina", family="bernoulli", law="saturated", n_starts=3,
                 random_state=0)  # fmt: skip
    refitted = fit_given_q(model.fit(X).result_, X).refit(flip_entry(q, 10, 0))
    assert plain_em(refitted.result, X, 1500) - refitted.log_likelihood < 0.02


def left_without_mass(model, states):
    """Return the model without mass in some of its joint states."""
    law = np.array(model.result.law.probabilities)
    law[states] = 0.0
    empty = SaturatedLaw(model.result.law.space, law / law.sum())
    result = replace(model.result, law=empty)
    total = float(result.row_log_likelihood(model.values).sum())
    return replace(model, result=result, log_likelihood=total)


@pytest.fixture(scope="module")
def at_its_maximum(provisional):
    result, X = provisional
    law = SaturatedLaw(result.law.space, np.array(result.law.probabilities))
    return fit_given_q(replace(result, law=law), X)


def test_a_refit_returns_mass_to_empty_states(at_its_maximum):
    again = left_without_mass(at_its_maximum, [1, 2]).refit(at_its_maximum.q)
    assert again.log_likelihood == pytest.approx(at_its_maximum.log_likelihood, abs=0.01)
    np.testing.assert_allclose(
        again.result.law.probabilities, at_its_maximum.result.law.probabilities, atol=0.01
    )


def test_a_larger_q_never_fits_worse(at_its_maximum):
    for key in [(0, 0), (10, 1), (3, 1)]:
        one, other = at_its_maximum, at_its_maximum.refit(flip_entry(at_its_maximum.q, *key))
        small, large = sorted([one, other], key=lambda model: model.q.sum())
        assert large.log_likelihood >= small.log_likelihood - 1e-6
        # Nor where the fit was not at its maximum.
        assert _likelihood_ratio(left_without_mass(one, [1, 2]), *key).value >= -1e-6


@pytest.mark.parametrize("effects", ["all", "dina", "dino"])
def test_a_missing_latent_of_an_interaction_is_found(effects):
    start = truth(effects, size=2.5)
    X, _ = drawn(start, 1500, seed=2)
    lacking = flip_entry(TRUE_Q, 10, 1)
    model = DCRL(2, q_matrix=lacking, effects=effects, family="bernoulli", law="saturated",
                 random_state=0, n_starts=2)  # fmt: skip
    found = validate_q(model, X, max_changes=2)
    assert found.suggested[10].tolist() == [1, 1]
    assert found.suggested_log_likelihood > found.log_likelihood + 10


def test_the_estimated_q_is_shown_for_comparison(provisional):
    _, X = provisional
    free = DCRL(2, family="bernoulli", random_state=0).fit(X)
    q = pd.DataFrame(wrong_q(), columns=["A", "B"]).assign(item=free.result_.item_names)
    found = validate_q(free, X, q[["item", "A", "B"]], max_changes=0)
    assert found.latent_names == ("A", "B")
    np.testing.assert_array_equal(found.estimated, TRUE_Q)
    assert len(found.steps) == 0
    assert "in brackets: estimated without a given Q" in found.summary()


def test_invalid_input_is_refused(provisional):
    result, X = provisional
    open_fit = replace(result, q_given=None)
    with pytest.raises(DataError) as error:
        validate_q(open_fit, X)
    assert str(error.value) == (
        "the fit was not given a Q with only 1 and 0 as entries; pass a DCRL and the provisional Q"
    )
    with pytest.raises(DataError) as error:
        validate_q(result, X, TRUE_Q)
    assert str(error.value) == (
        "a result can only be validated with the Q that it was given; pass a DCRL and the "
        "provisional Q"
    )
    with pytest.raises(DataError) as error:
        validate_q(result, X, np.where(wrong_q() == 1, -1, 0))
    assert str(error.value) == (
        "the provisional Q must have only 1 and 0 as entries, but 15 entries are to be estimated; "
        "fit it and validate the estimated Q"
    )
    with pytest.raises(DataError) as error:
        validate_q(DCRL(2), X)
    assert str(error.value) == "there is no Q to validate; pass it as provisional_q"
    with pytest.raises(SettingError) as error:
        validate_q(result, X, n_resamples=-1)
    assert str(error.value) == "n_resamples must be a whole number of at least 0, got -1"


def test_weights_are_numbers_of_identical_rows(provisional):
    result, X = provisional
    weights = 1.0 + (np.arange(len(X)) % 3 == 0)
    weighted = validate_q(result, X, sample_weight=weights)
    repeated = validate_q(result, np.repeat(X, weights.astype(int), axis=0))
    assert np.array_equal(weighted.suggested, repeated.suggested)
    assert weighted.n_counted == repeated.n_rows
    rows = f"{weighted.n_rows:,} rows with weights that sum to {repeated.n_rows:,}: log-likelihood "
    assert weighted.summary().startswith(f"provisional Q on {rows}")
    assert f"on {repeated.n_rows:,} rows: log-likelihood " in repeated.summary()
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, abs=1e-2)
    ours = np.array(weighted.entries.column("likelihood_ratio"), dtype=float)
    theirs = np.array(repeated.entries.column("likelihood_ratio"), dtype=float)
    both = np.isfinite(ours) & np.isfinite(theirs)
    assert both.sum() >= len(WRONG)
    np.testing.assert_allclose(ours[both], theirs[both], atol=0.05)
    assert not np.allclose(
        ours, np.array(validate_q(result, X).entries.column("likelihood_ratio"), dtype=float),
        atol=0.05, equal_nan=True,
    )  # fmt: skip


@pytest.mark.parametrize("family", ["bernoulli", "gaussian"])
def test_screening_treats_weights_as_repeated_rows(family):
    wrong = replace(truth(family=family), q_given=wrong_q())
    X, _ = drawn(truth(family=family), 600, seed=4)
    model = fit_given_q(wrong, X)
    weights = 1.0 + np.arange(len(X)) % 3
    weighted = replace(model, weights=weights)
    repeated = replace(model, values=np.repeat(X, weights.astype(int), axis=0))
    ours, theirs = (
        {(t.item, t.latent): t.statistic for t in screen_entries(one)}
        for one in (weighted, repeated)
    )
    assert ours == pytest.approx(theirs, rel=1e-6)
    twice = {
        (t.item, t.latent): t.statistic
        for t in screen_entries(replace(model, weights=np.full(len(X), 2.0)))
    }
    for reported in screen_entries(model):
        # Regression on scores takes as many rows' worth of spread, which are a smaller share.
        value = 2 * reported.statistic
        assert twice[reported.item, reported.latent] == pytest.approx(value, rel=0.1)


def test_a_weighted_fit_needs_its_weights(provisional):
    result, X = provisional
    weighted = replace(result, weighted=True)
    with pytest.raises(SettingError) as reported:
        validate_q(weighted, X)
    assert str(reported.value) == (
        "the fit used row weights, and judging its Q without them would describe another fit; give "
        "the same weights as sample_weight"
    )


def test_headings_state_the_q_of_each_test():
    entries = Table.of(
        [
            *("item", "latent", "provisional", "suggested", "action"),
            *("screening", "likelihood_ratio", "penalty", "support"),
        ],
        [["x2", "Speed", 0, 1, "add", 0.1, 0.009, 6.0, float("nan")]],
    )
    steps = Table.of(
        ["item", "latent", "action", "gain", "penalty"], [["x2", "Speed", "add", 7.9, 6.0]]
    )
    nothing, added = np.zeros((1, 1), np.int8), np.ones((1, 1), np.int8)
    found = QValidation(
        entries, nothing, added, None, steps, -10.0, -6.05, 300, 300.0, 0, ("x2",), ("Speed",)
    )
    lines = found.summary().split("\n")
    assert "stepwise changes, each tested in the Q of the step before" in lines
    assert "doubtful entries, each tested as the only change of the provisional Q" in lines
