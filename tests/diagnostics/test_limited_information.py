"""M2, RMSEA2 and SRMSR of categorical items."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from hidag import DCRL
from hidag.diagnostics.limited_information import compute_limited_information
from hidag.information.free_parameters import FreeParameters
from hidag.information.moment_tests import ScoredColumns
from hidag.latent import NetworkLaw, SaturatedLaw

from ..fitted_models import columns_of, drawn, moved, two_latents


def all_answers(families) -> np.ndarray:
    sizes = {"bernoulli": 2, "ordinal(3)": 3, "categorical(3)": 3, "binomial(2)": 3}
    return np.array(list(product(*(range(sizes[name]) for name in families))), dtype=float)


def moments_of(families, answers: np.ndarray) -> np.ndarray:
    """Return what M2 compares, for each answer: numbers and their products, items apart."""
    columns, item = [], []
    for j, name in enumerate(families):
        if name == "categorical(3)":
            columns += [answers[:, j] == 0, answers[:, j] == 1]
            item += [j, j]
        else:
            columns.append(answers[:, j])
            item.append(j)
    singles = np.column_stack(columns).astype(float)
    pairs = [
        singles[:, a] * singles[:, b]
        for a in range(len(item))
        for b in range(a + 1, len(item))
        if item[a] != item[b]
    ]
    return np.column_stack([singles, *pairs])


@pytest.mark.parametrize(
    "families",
    [("bernoulli",) * 9, ("categorical(3)", "ordinal(3)", "bernoulli", "binomial(2)") * 2],
)
def test_m2_agrees_with_enumerated_answers(families):
    result = two_latents(families, law="saturated")
    X, _ = drawn(result, 400, seed=2)
    free = FreeParameters.of(result, X)
    found = compute_limited_information(free, ScoredColumns.of(free, X))
    answers = all_answers(families)
    chance = np.exp(result.row_log_likelihood(answers))
    assert chance.sum() == pytest.approx(1.0)
    moments = moments_of(families, answers)
    expected = chance @ moments
    covariance = (moments * chance[:, None]).T @ moments - np.outer(expected, expected)
    step, slopes = 1e-5, []
    for p in range(free.n_parameters):
        up, down = (
            np.exp(moved(result, free, p, h).row_log_likelihood(answers)) @ moments
            for h in (step, -step)
        )
        slopes.append((up - down) / (2 * step))
    slopes = np.array(slopes).T
    inverse = np.linalg.inv(covariance)
    slopes /= np.sqrt((slopes**2).sum(axis=0))
    rank = int(np.linalg.matrix_rank(slopes, tol=1e-7))
    inner = np.linalg.pinv(slopes.T @ inverse @ slopes, rcond=1e-9, hermitian=True)
    weight = inverse - inverse @ slopes @ inner @ slopes.T @ inverse
    residual = moments_of(families, X).mean(axis=0) - expected
    assert found.m2 == pytest.approx(len(X) * residual @ weight @ residual, rel=1e-4)
    assert found.degrees == len(expected) - rank
    assert found.n_rows == 400


def test_rmsea_interval_comes_from_the_noncentral_chi_square():
    result = two_latents(("bernoulli",) * 9)
    X, _ = drawn(result, 500, seed=0)
    X[:, 1] = X[:, 0]
    found = compute_limited_information(*columns_of(result, X))
    low, high = found.interval
    assert found.p_value == pytest.approx(chi2.sf(found.m2, found.degrees))
    assert 0 < low < found.rmsea < high
    shift = 500 * found.degrees * high**2
    assert ncx2.cdf(found.m2, found.degrees, shift) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize(
    ("families", "missing", "sentence"),
    [
        (("gaussian",) * 5, 0.0, "M2 needs at least 3 categorical items, but the table has 0"),
        (
            ("gaussian",) * 4 + ("bernoulli",),
            0.0,
            "M2 needs at least 3 categorical items, but the table has 1",
        ),
        (
            ("bernoulli",) * 3,
            0.0,
            "M2 has no degrees of freedom: 6 moments and at least as many parameters",
        ),
        (
            ("bernoulli",) * 9,
            0.6,
            "M2 needs at least 30 rows without a missing cell, but the table has 0",
        ),
    ],
)
def test_missing_m2_has_a_reason(families, missing, sentence):
    result = two_latents(families)
    X, _ = drawn(result, 200, seed=0, missing=missing)
    found = compute_limited_information(*columns_of(result, X))
    assert str(found) == sentence


@pytest.mark.parametrize("law", ["saturated", "network"])
def test_m2_tests_given_prerequisites_but_not_estimated_zeros(law):
    families = ("bernoulli",) * 9
    result = two_latents(families, effects="all")
    parents = ((), (0,))
    line = NetworkLaw(
        result.law.space, parents, (np.array([0.4, 0.6]), np.array([[1.0, 0.0], [0.3, 0.7]]))
    )
    held = SaturatedLaw(line.space, line.probabilities) if law == "saturated" else line
    found = replace(result, law=held)
    known = {"knowledge": {"hierarchy": [["Z1", "Z2"]]}}
    given = replace(found, settings={**found.settings, **known})
    X, _ = drawn(found, 400, seed=3)

    def degrees(fit) -> int:
        free = FreeParameters.of(fit, X)
        return compute_limited_information(free, ScoredColumns.of(free, X)).degrees

    def moments(numbers: np.ndarray) -> np.ndarray:
        """Return means and products of items by their chances in three profiles, and shares."""
        shares = np.array([*numbers[:2], 1 - numbers[:2].sum()])
        chance = np.empty((3, 9))
        profiles, at = np.array([[0, 0], [1, 0], [1, 1]]), 2
        for j, row in enumerate(result.q_given):
            own, place = np.unique(profiles * row, axis=0, return_inverse=True)
            chance[:, j] = numbers[at + place.ravel()]
            at += len(own)
        left, right = np.triu_indices(9, 1)
        return np.concatenate([shares @ chance, shares @ (chance[:, left] * chance[:, right])])

    n_free = 2 + sum(3 if row.all() else 2 for row in result.q_given)
    middle = np.random.default_rng(0).uniform(0.2, 0.4, n_free)
    slopes = [(moments(middle + h) - moments(middle - h)) / 2e-5 for h in 1e-5 * np.eye(n_free)]
    assert degrees(given) == 45 - np.linalg.matrix_rank(np.array(slopes), tol=1e-6)
    # An estimated zero is a free parameter.
    assert degrees(found) < degrees(given)


@pytest.mark.parametrize("effects", ["main", "all"])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("item", [0, -1])
def test_m2_degrees_are_the_same_on_and_near_the_boundary(effects, sign, item):
    result = two_latents(("bernoulli",) * 9, effects=effects)
    X, _ = drawn(result, 400, seed=3)
    own = np.flatnonzero(result.loadings[item])

    def at(far: float):
        """Return M2 where nobody, or everybody, says yes who has none of the item's latents."""
        intercept, loadings = result.intercept.copy(), result.loadings.copy()
        intercept[item] = sign * far
        # All others say yes as often as not, also those with both latents if these interact.
        loadings[item, own] = -sign * far * np.where(own < 2, 1.0, -1.0)
        items = replace(result.parameters, intercept=intercept, loadings=loadings)
        fit = replace(result, parameters=items)
        return compute_limited_information(*columns_of(fit, X))

    near, beyond = at(10.0), at(40.0)
    assert beyond.degrees == near.degrees
    assert beyond.m2 == pytest.approx(near.m2, rel=1e-3)


@pytest.fixture(scope="module")
def mixed():
    """M2 of fits to the same rows, by what their items of three categories are said to be."""
    result = two_latents(("categorical(3)", "ordinal(3)", "bernoulli", "binomial(2)") * 2)
    X, _ = drawn(result, 500, seed=4)
    q = np.asarray(result.q_matrix)

    @cache
    def absolute(nominal: str):
        families = [f if f != "categorical(3)" else nominal for f in result.families]
        # One start: what is compared are fits at the same maximum, however it was found.
        model = DCRL(
            2, family=families, q_matrix=q, n_starts=1, random_state=0, tol=1e-8, max_iter=2000
        )
        return compute_limited_information(*columns_of(model.fit(X).result_, X))

    return absolute


@pytest.mark.parametrize("offered", [(0, 1, 2, 3), (0, 1, 2, 3, 4, 5), (-2, -1, 0, 1, 2)])
def test_categories_nobody_chose_do_not_count(offered, mixed):
    plain, more = mixed("categorical(3)"), mixed(f"categorical({','.join(map(str, offered))})")
    assert more.degrees == plain.degrees
    assert more.m2 == pytest.approx(plain.m2, rel=2e-3)
    assert more.srmsr == pytest.approx(plain.srmsr, rel=2e-3)
