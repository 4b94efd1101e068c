"""Free parameters of a fit do not depend on how its model is parametrised."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hidag import DCRL, Knowledge, fit_statistics
from hidag.exceptions import HidagWarning
from hidag.fitting.information_criteria import (
    count_parameters,
    information_criteria,
    law_parameters,
)
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace

Q = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]]
)
LINE = Knowledge(hierarchy=[("Z1", "Z2"), ("Z2", "Z3")])
#: Six items with one skill, two with two of which three states occur, and four profiles.
RIGHT = 6 * 2 + 2 * 3 + 3


def line_of_skills(n_rows: int, seed: int) -> np.ndarray:
    """Return responses of persons with a linear hierarchy of three skills."""
    rng = np.random.default_rng(seed)
    states = np.cumprod(rng.random((n_rows, 3)) < [0.7, 0.65, 0.6], axis=1)
    chance = 1 / (1 + np.exp(1.4 - 2.8 * (states @ Q.T) / np.sqrt(Q.sum(axis=1))))
    return (rng.random(chance.shape) < chance).astype(float)


def fitted(rows: np.ndarray, **settings):
    chosen = {"family": "bernoulli", "q_matrix": Q, "n_starts": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HidagWarning)
        return DCRL(3, **{**chosen, **settings}).fit(rows).result_


@pytest.mark.parametrize("law", ["saturated", "network"])
@pytest.mark.parametrize(("effects", "expected"), [("gdina", RIGHT), ("main", RIGHT), ("dina", 19)])
def test_excluded_states_have_no_free_parameters(law, effects, expected):
    rows = line_of_skills(400, 0)
    result = fitted(rows, effects=effects, knowledge=LINE, law=law)
    assert count_parameters(result) == expected
    criteria = fit_statistics(result, rows, n_tables=2).criteria
    assert criteria.n_parameters == expected
    assert criteria.n_at_edge == 0
    assert criteria.bic == pytest.approx(information_criteria(result).bic)


def test_bic_prefers_a_true_hierarchy():
    preferred = 0
    for seed in range(4):
        rows = line_of_skills(1000, seed)
        free, held = (
            information_criteria(fitted(rows, law="saturated", effects="gdina", knowledge=known))
            for known in (None, LINE)
        )
        assert free.n_parameters == 6 * 2 + 2 * 4 + 7
        preferred += held.bic < free.bic
    assert preferred == 4


def test_free_probabilities_of_a_law_exclude_impossible_states():
    space = StateSpace((3, 2, 2))
    at = np.indices(space.levels)
    ruled_out = ((at[1] > 0) & (at[0] == 0)).ravel()
    shares = np.where(ruled_out, 0.0, 1.0 / (~ruled_out).sum())
    assert law_parameters(SaturatedLaw(space, shares), ruled_out) == 12 - 2 - 1
    tables = (
        np.full(3, 1 / 3),
        np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]),
        np.full((3, 2, 2), 0.5),
    )
    law = NetworkLaw(space, ((), (0,), (0, 1)), tables)
    assert law_parameters(law) == 2 + 3 + 6
    # Level 0 of the first latent excludes level 1 of the second.
    assert law_parameters(law, ruled_out) == 2 + 2 + 5
