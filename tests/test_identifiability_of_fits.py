"""A fit brings its certificate along, and warns in one sentence when no theorem covers its Q."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hidag import DCRL, load
from hidag.errors import IdentifiabilityWarning
from hidag.simulate import chain_dag, make_truth, random_law, simulate


def table(q, family="gaussian", n_samples=1500, seed=3):
    rng = np.random.default_rng(seed)
    law = random_law(chain_dag(np.shape(q)[1]), rng=rng)
    return np.array(simulate(make_truth(law, q, family, rng=rng), n_samples, rng=rng).X)


def test_a_fit_of_a_good_design_is_certified_and_silent(tmp_path):
    q = np.tile(np.eye(3, dtype=int), (3, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DCRL(3, family="gaussian", q_matrix=q, random_state=0).fit(table(q))
    found = model.result_.identifiability
    assert found.generic is True
    assert found.strict is True
    assert found.asked.item_names == model.result_.item_names
    assert found.asked.families == ("gaussian",) * 9
    again = load(model.result_.save(tmp_path / "fit.npz"))
    assert again.identifiability.summary() == found.summary()


def test_a_condition_that_fails_is_one_warning_in_one_sentence():
    # Three latents, seven items; the third latent has but two items, so no third block is left.
    q = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]])
    with pytest.warns(IdentifiabilityWarning) as caught:
        model = DCRL(3, family="gaussian", q_matrix=q, random_state=0).fit(table(q))
    assert model.result_.identifiability.generic is False
    sentences = [str(warning.message) for warning in caught]
    assert sentences == [
        "this Q comes without a guarantee that it is identified: there must be two blocks of "
        "items, one item per latent in each, and an item outside them for every latent, but latent "
        "Z3 has only items item_5 and item_6, and the blocks need all of them: one more item that "
        "loads on it is needed"
    ]


def test_effects_and_levels_of_the_fit_are_what_is_certified():
    q = np.tile(np.eye(2, dtype=int), (5, 1))
    q[0, 1] = 1
    settings = {"family": "gaussian", "q_matrix": q, "random_state": 0}
    main = DCRL(2, **settings).fit(table(q)).result_.identifiability
    every = DCRL(2, effects="all", **settings).fit(table(q)).result_.identifiability
    assert (main.asked.order, every.asked.order) == (1, 2)
    three = DCRL(2, levels=[3, 2], **settings).fit(table(q)).result_.identifiability
    assert three.asked.levels == (3, 2)
    assert three.strict is None


def test_the_certificate_of_a_fit_names_the_rank_of_its_information():
    q = np.tile(np.eye(2, dtype=int), (3, 1))
    model = DCRL(2, family="bernoulli", q_matrix=q, random_state=0).fit(table(q, "bernoulli"))
    found = model.result_.certify()
    assert found.finding("information").holds is True
    assert found.finding("positive-law").holds is True
