"""Relabelling of a fit: the prior knowledge about its latents is relabelled too."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hidag import DCRL, Knowledge
from hidag.exceptions import DataError, HidagWarning
from hidag.fitting.information_criteria import count_parameters
from hidag.latent import NetworkLaw, StateSpace
from hidag.metrics import Matching, relabel_result
from hidag.simulation import Truth, simulate

Q = np.repeat(np.eye(3, dtype=np.int8), 4, axis=0)
#: B needs A; C stands apart, and has three levels.
KNOWN = Knowledge(hierarchy=[("A", "B")], forbidden=[(2, 0)], tiers=[("A",), ("B", "C")])


@pytest.fixture(scope="module")
def result():
    tables = (
        np.array([0.3, 0.7]),
        np.array([[1.0, 0.0], [0.3, 0.7]]),
        np.array([0.3, 0.4, 0.3]),
    )
    law = NetworkLaw(StateSpace((2, 2, 3)), ((), (0,), ()), tables)
    loadings = 2.5 * Q[:, [0, 1, 2, 2]].astype(float)
    truth = Truth(
        Q, np.full(12, -1.0), loadings, np.ones(12), ("bernoulli",) * 12, law,
        latent_names=("A", "B", "C"),
    )  # fmt: skip
    X = np.array(simulate(truth, 400, rng=np.random.default_rng(2)).X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HidagWarning)
        model = DCRL(
            3, levels=[2, 2, 3], family="bernoulli", q_matrix=Q, latent_names=("A", "B", "C"),
            knowledge=KNOWN, n_starts=1, max_iter=30, random_state=0,
        )  # fmt: skip
        return model.fit(X).result_


@pytest.mark.parametrize("names", [("x", "y", "z"), ("A", "B", "C")])
def test_the_same_states_are_ruled_out_under_other_names(result, names):
    other = relabel_result(result, Matching((1, 2, 0), (False, True, False)), names)
    first, second, third = names
    assert other.settings["knowledge"] == {
        "hierarchy": [[third, first]],
        "forbidden": [[second, third]],
        "tiers": [[third], [first, second]],
    }
    assert other.settings["levels"] == [2, 3, 2]
    assert other.settings["latent_names"] == list(names)
    ruled_out = result.ruled_out.reshape(2, 2, 3).transpose(1, 2, 0)
    np.testing.assert_array_equal(other.ruled_out, ruled_out.ravel())
    assert other.law.probabilities[other.ruled_out].max() == 0
    assert count_parameters(other) == count_parameters(result)


@pytest.mark.parametrize("flips", [(True, False, False), (False, False, True), (True, False, True)])
def test_latents_of_a_hierarchy_cannot_be_reversed(result, flips):
    with pytest.raises(DataError) as caught:
        relabel_result(result, Matching((1, 2, 0), flips), ("x", "y", "z"))
    turned = "B" if flips[0] else "A"
    assert str(caught.value) == (
        f"latent {turned!r} has a prerequisite or is one, so that its levels cannot be reversed: "
        "having the skill and lacking it would be exchanged; keep its polarity"
    )
