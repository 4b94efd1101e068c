"""Interactions that main effects leave out: warning, advice, and silence where there are none."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import hidag
from hidag import DCRL, simulate
from hidag.cli.messages import CommandLineStyle
from hidag.exceptions import MisfitWarning
from hidag.fitting.fit_warnings import interactions_message
from hidag.measurement.parameters import Responses
from hidag.reporting.fit_description import list_concerns
from hidag.simulation import Truth, chain_dag, random_law, random_truth

Q = np.array([[1, 1, 0], [0, 1, 1], *np.tile(np.eye(3, dtype=int), (3, 1)), [1, 0, 1]])
#: The items of two latents.
BOTH = ("item_0", "item_1", "item_11")
CODE = "interactions-left-out"


def table(effects, family="gaussian", n_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    truth = random_truth(random_law(chain_dag(3), rng=rng), Q, family, effects=effects, rng=rng)
    return np.array(simulate(truth, n_rows, rng=rng).X)


def fitted(X, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = DCRL(3, **{"random_state": 0, "n_starts": 2, **settings}).fit(X).result_
    return result, [w.message for w in caught if getattr(w.message, "code", "") == CODE]


@pytest.mark.parametrize("given", [{}, {"q_matrix": Q}], ids=["Q estimated", "Q given"])
def test_main_effects_name_the_items_and_the_setting(given):
    X = table("all")
    result, (warned,) = fitted(X, family="gaussian", **given)
    assert result.interacting == BOTH
    assert isinstance(warned, MisfitWarning)
    assert warned.params["items"] == BOTH
    wrong = "the graph" if given else "Q and the graph"
    assert str(warned) == (
        "score tests find interactions of the latents in 3 of 12 items ('item_0', 'item_1', "
        f"'item_11') that main effects leave out, so that {wrong} may be wrong; fit again with "
        "effects='auto', unless another family or number of levels is more plausible"
    )
    assert "fit again with --effects auto, unless" in warned.render(CommandLineStyle())
    again, none = fitted(X, family="gaussian", effects="auto", **given)
    assert none == []
    assert again.interacting == ()
    assert again.terms.interactions
    assert again.log_likelihood > result.log_likelihood + 100


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson"])
@pytest.mark.parametrize("given", [{}, {"q_matrix": Q}], ids=["Q estimated", "Q given"])
def test_true_main_effects_are_not_warned_about(family, given):
    result, warned = fitted(table("main", family), family=family, **given)
    assert result.interacting == ()
    assert warned == []
    assert interactions_message(result) is None


@pytest.mark.parametrize("effects", ["all", 2])
def test_fits_with_interactions_do_not_warn(effects):
    result, warned = fitted(table("all"), family="gaussian", effects=effects, q_matrix=Q)
    assert (result.interacting, warned) == ((), [])


def test_items_keep_their_names_in_any_order():
    order = np.random.default_rng(1).permutation(len(Q))
    result, _ = fitted(table("all")[:, order], family="gaussian", q_matrix=Q[order])
    assert result.interacting == tuple(
        f"item_{j}" for j in np.flatnonzero(np.isin(order, [0, 1, 11]))
    )


def test_nominal_items_are_named_without_a_category():
    rng = np.random.default_rng(0)
    law, twice = random_law(chain_dag(3), rng=rng), np.repeat(Q, 2, axis=0)
    truth = random_truth(law, twice, "bernoulli", effects="all", rng=rng)
    names = ["categorical(3)"] * len(Q)
    values = Responses.of(names).collapse(np.array(simulate(truth, 3000, rng=rng).X))
    result, _ = fitted(values, family=names, q_matrix=Q)
    assert set(result.interacting) <= set(BOTH)
    assert result.interacting


def test_a_saved_fit_has_the_same_warning(tmp_path):
    result, (warned,) = fitted(table("all"), family="gaussian", q_matrix=Q)
    again = hidag.load(result.save(tmp_path / "fit.npz"))
    assert again.interacting == result.interacting
    concerns = [str(one) for one in list_concerns(again, [MisfitWarning.of(warned.message)])]
    assert concerns.count(str(warned)) == 1


def test_overdispersed_items_are_left_to_their_own_warning():
    result, _ = fitted(table("all"), family="gaussian", q_matrix=Q)
    some = interactions_message(replace(result, overdispersed={"item_1": 2.0}))
    assert some.params["items"] == ("item_0", "item_11")
    assert interactions_message(replace(result, overdispersed=dict.fromkeys(BOTH, 2.0))) is None


def test_items_that_are_nearly_certain_do_not_interact():
    # Scores of combinations of levels in which an item is certain hardly vary.
    rng = np.random.default_rng(1)
    law = random_law(chain_dag(3), levels=(3, 4, 2), rng=rng)
    q = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], *np.tile(np.eye(3, dtype=int), (3, 1))])
    families = ("bernoulli",) * 3 + ("gaussian",) * 9
    intercept, step = np.repeat([-2.0, 0.0], [3, 9]), np.repeat([2.5, 2.0], [3, 9])
    truth = Truth(q, intercept, q * step[:, None], np.ones(12), families, law)
    X = np.array(simulate(truth, 3000, rng=rng).X)
    result, warned = fitted(X, family=families, q_matrix=q, levels=(3, 4, 2))
    assert (result.interacting, warned) == ((), [])
