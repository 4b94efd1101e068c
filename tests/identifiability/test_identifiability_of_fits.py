"""Certificates of fits, and the warning if no theorem covers their Q-matrix."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, Knowledge, check_identifiability, load
from hidag.exceptions import IdentifiabilityWarning
from hidag.identifiability import certificate
from hidag.latent import NetworkLaw
from hidag.simulation import chain_dag, make_truth, random_law, simulate


def table(q, family="gaussian", n_samples=1500, seed=3):
    rng = np.random.default_rng(seed)
    law = random_law(chain_dag(np.shape(q)[1]), rng=rng)
    return np.array(simulate(make_truth(law, q, family, rng=rng), n_samples, rng=rng).X)


def test_a_fit_of_a_good_design_has_a_guarantee_and_no_warning(tmp_path):
    q = np.tile(np.eye(3, dtype=int), (3, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DCRL(3, family="gaussian", q_matrix=q, random_state=0).fit(table(q))
    found = model.result_.identifiability
    assert found.generic is True
    assert found.strict is True
    assert found.design.item_names == model.result_.item_names
    assert found.design.families == ("gaussian",) * 9
    again = load(model.result_.save(tmp_path / "fit.npz"))
    assert again.identifiability.summary() == found.summary()


def test_a_failing_condition_gives_one_warning():
    # Three latents, seven items; the third latent has only two items, so none is left for Q3.
    q = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]])
    with pytest.warns(IdentifiabilityWarning) as caught:
        model = DCRL(3, family="gaussian", q_matrix=q, random_state=0).fit(table(q))
    assert model.result_.identifiability.generic is False
    sentences = [str(warning.message) for warning in caught]
    assert sentences == [
        "this Q-matrix has no guarantee of identifiability: the Q-matrix must contain two "
        "disjoint blocks Q1 and Q2 with 1 item per latent in each, and another item (Q3) for every "
        "latent, but latent Z3 has only items item_5 and item_6, which Q1 and Q2 need: 1 more "
        "item that loads on it is needed"
    ]


def test_effects_and_levels_of_the_fit_are_certified():
    q = np.tile(np.eye(2, dtype=int), (5, 1))
    q[0, 1] = 1
    settings = {"family": "gaussian", "q_matrix": q, "random_state": 0}
    main = DCRL(2, **settings).fit(table(q)).result_.identifiability
    every = DCRL(2, effects="all", **settings).fit(table(q)).result_.identifiability
    assert (main.design.order, every.design.order) == (1, 2)
    three = DCRL(2, levels=[3, 2], **settings).fit(table(q)).result_.identifiability
    assert three.design.levels == (3, 2)
    assert three.strict is None


def test_the_certificate_of_a_fit_names_the_rank_of_its_information():
    q = np.tile(np.eye(2, dtype=int), (3, 1))
    model = DCRL(2, family="bernoulli", q_matrix=q, random_state=0).fit(table(q, "bernoulli"))
    found = model.result_.certify()
    assert found.finding("information").holds is True
    assert found.finding("positive-law").holds is True


def network(fit, least):
    """Return a chain with an entry ``least`` in each table, in place of the fitted law."""
    k = fit.law.space.n_latents
    parents = ((), *((a,) for a in range(k - 1)))
    tables = [np.array([least, 1 - least])]
    tables += [np.array([[least, 1 - least], [0.5, 0.5]])] * (k - 1)
    return replace(fit, law=NetworkLaw(fit.law.space, parents, tuple(tables)))


@pytest.fixture(scope="module")
def good_fit():
    q = np.vstack([np.tile(np.eye(3, dtype=int), (3, 1)), [[1, 1, 0], [0, 1, 1]]])
    return DCRL(3, family="gaussian", q_matrix=q, random_state=0).fit(table(q)).result_


def test_rare_states_of_a_network_are_positive_if_no_table_has_a_zero(good_fit):
    rare = network(good_fit, 1e-5)
    assert rare.law.probabilities.min() < 1e-12
    found = rare.certify(information=False)
    assert found.finding("positive-law").holds is True
    assert (found.strict, found.generic) == (True, True)
    found = network(good_fit, 0.0).certify(information=False)
    assert found.finding("positive-law").witness == {
        "entries": ["Z1 = 0", "Z2 = 0 with Z1 = 0", "Z3 = 0 with Z2 = 0"]
    }
    assert found.generic is False


def test_the_verdict_item_by_item_is_that_over_all_joint_states(good_fit, monkeypatch):
    listed = good_fit.certify()
    monkeypatch.setattr(certificate, "MOST_LISTED_STATES", 4)
    single = good_fit.certify()
    assert single.finding("information").status == "undecided"
    same = [one.status for one in single.findings[:-1]]
    assert same == [one.status for one in listed.findings[:-1]]
    assert (single.strict, single.generic) == (listed.strict, listed.generic)


def test_more_latents_than_states_can_be_listed_for_are_certified():
    k = 24
    q = np.tile(np.eye(k, dtype=int), (3, 1))
    rng = np.random.default_rng(0)
    law = random_law(chain_dag(k), rng=rng)
    truth = make_truth(law, q, "gaussian", rng=rng)
    X = simulate(truth, 300, rng=rng).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DCRL(k, family="gaussian", q_matrix=q, random_state=0, max_iter=3, n_starts=1)
        fit = replace(model.fit(np.array(X)).result_, law=law)
    found = fit.certify()
    assert found.finding("positive-law").holds is True
    assert found.finding("distinct-states").holds is True
    assert found.generic is True


CYCLE = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]] * 4)


@pytest.mark.parametrize("effects", ["dina", "dino"])
def test_conjunctive_items_need_a_pure_item_for_every_latent(effects):
    # DINA items have the same distribution in 000, 100, 010 and 001.
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, (1000, 3))
    together = np.stack([states[:, row == 1].all(axis=1) for row in CYCLE], axis=1)
    sign = 1.0 if effects == "dina" else -1.0
    X = sign * (3.0 * together + rng.normal(size=together.shape))
    with pytest.warns(IdentifiabilityWarning) as caught:
        model = DCRL(3, effects=effects, q_matrix=CYCLE, family="gaussian", random_state=0).fit(X)
    assert [str(warning.message) for warning in caught] == [
        "this Q-matrix has no guarantee of identifiability: no item loads on Z1, Z2 or Z3 alone, "
        "so DINA and DINO items have the same distribution whether that latent is the only one "
        "present (absent) or none is, and other latent distributions give the same distribution "
        "of the data"
    ]
    found = model.result_.identifiability
    assert (found.generic, found.strict, found.provably_bad) == (False, False, True)


def test_names_of_models_are_accepted_as_effects():
    thrice = np.vstack([np.tile(np.eye(3, dtype=int), (3, 1)), CYCLE])
    for name, same in (("acdm", "main"), ("gdina", "all")):
        for q in (CYCLE, thrice):
            named, plain = (check_identifiability(q, effects=e) for e in (name, same))
            assert named.summary() == plain.summary()
    found = check_identifiability(thrice, effects="dina")
    assert (found.generic, found.strict) == (None, None)
    assert found.finding("distinct-states").holds
    twice = np.vstack([np.tile(np.eye(3, dtype=int), (2, 1)), CYCLE])
    assert check_identifiability(twice, effects="dina").finding("distinct-states").holds is False
    # Without products there is nothing conjunctive: the theorems apply.
    pure = np.tile(np.eye(3, dtype=int), (3, 1))
    assert check_identifiability(pure, effects="dino").strict is True


def test_a_fit_with_a_hierarchy_is_certified_with_it_without_a_warning(tmp_path):
    q = np.array([[1, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]] * 2)
    rng = np.random.default_rng(0)
    states = np.array([[0, 0], [1, 0], [1, 1]])[rng.choice(3, 1000, p=[0.3, 0.3, 0.4])]
    share = states @ q.T / q.sum(axis=1)
    X = (rng.random(share.shape) < 0.15 + 0.7 * share) * 1.0
    with warnings.catch_warnings():
        # States that the user rules out are no reason for a warning about Q.
        warnings.simplefilter("error")
        fit = DCRL(
            2,
            q_matrix=q,
            effects="gdina",
            family="bernoulli",
            knowledge=Knowledge(hierarchy=[("Z1", "Z2")]),
            random_state=0,
        ).fit(X)
    for found in (fit.result_.identifiability, fit.result_.certify()):
        assert (found.strict, found.generic) == (False, False)
        assert found.finding("positive-law").witness["ruled_out"] == ["01"]
        assert found.finding("estimable-coefficients").witness == {"items": ["item_6", "item_7"]}
    again = load(fit.result_.save(tmp_path / "fit.npz"))
    assert again.identifiability.summary() == fit.result_.identifiability.summary()
