"""The exported network opens in pgmpy and answers there as it does here."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest

from hidag.causal import to_bif, what_if
from hidag.causal.exports import network_law
from hidag.latent import SaturatedLaw
from hidag.simulation import make_truth, random_dag, random_law
from hidag.structure import DAG

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    inference = pytest.importorskip("pgmpy.inference")
    readwrite = pytest.importorskip("pgmpy.readwrite")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def a_result(as_result):
    def make(seed, levels=(2, 3, 2, 2, 2), names=None, saturated=False):
        rng = np.random.default_rng(seed)
        dag = random_dag(len(levels), 1.4, rng=rng)
        q = np.vstack([np.eye(len(levels), dtype=int), np.ones((1, len(levels)), dtype=int)])
        truth = make_truth(random_law(dag, rng=rng, levels=levels), q, "bernoulli", rng=rng)
        law = truth.law
        if saturated:
            law = SaturatedLaw(law.space, np.asarray(law.probabilities))
        return as_result(truth, law=law, latent_names=names)

    return make


def member_of(result):
    adjacency = np.zeros(result.graph.adjacency.shape, dtype=np.int8)
    for child, causes in enumerate(network_law(result).parents):
        adjacency[list(causes), child] = 1
    return DAG(adjacency, result.latent_names)


def opened(result, **settings):
    model = readwrite.BIFReader(string=to_bif(result, **settings)).get_model()
    assert model.check_model()
    return model


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize("saturated", [False, True])
def test_seeing_and_setting_agree_with_pgmpy(seed, saturated, a_result):
    result = a_result(seed, saturated=saturated)
    model = opened(result)
    elimination = inference.VariableElimination(model)
    causal = inference.CausalInference(model)
    seen = what_if(result, given={"Z2": 2, "Z5": 0})
    done = what_if(result, do={"Z2": 2}, graph=member_of(result))
    for k, name in enumerate(result.latent_names):
        if name not in ("Z2", "Z5"):
            theirs = elimination.query([name], evidence={"Z2": "2", "Z5": "0"}, show_progress=False)
            order = [theirs.name_to_no[name][f"{v}"] for v in range(len(seen.latents_before[k]))]
            np.testing.assert_allclose(seen.latents_before[k], theirs.values[order], atol=1e-9)
        # pgmpy answers for effects only; causes of what is set stay as they were.
        if name in nx.ancestors(model, "Z2"):
            before = what_if(result).latents_before[k]
            np.testing.assert_allclose(done.latents_after[k][0], before, atol=1e-9)
        elif name != "Z2":
            theirs = causal.query([name], do={"Z2": "2"}, show_progress=False)
            order = [theirs.name_to_no[name][f"{v}"] for v in range(len(done.latents_after[k][0]))]
            np.testing.assert_allclose(done.latents_after[k][0], theirs.values[order], atol=1e-9)


def test_items_are_in_the_network_if_wanted(a_result):
    result = a_result(1)
    elimination = inference.VariableElimination(opened(result, items=True))
    theirs = elimination.query(["Z1"], evidence={"X6": "1", "X2": "0"}, show_progress=False)
    ours = what_if(result, given={"X6": 1, "X2": 0})
    order = [theirs.name_to_no["Z1"][v] for v in ("0", "1")]
    np.testing.assert_allclose(ours.latents_before[0], theirs.values[order], atol=1e-9)


def test_names_that_bif_cannot_hold_are_made_plain_and_reported(a_result):
    names = ("a b", "a_b", "ß|{", 'say "x"', "Z5")
    result = a_result(0, names=names)
    assert {"a_b", "a_b_2", "___", "say__x_", "Z5"} == set(opened(result).nodes())
    assert '// a_b is "a b"\n' in to_bif(result)
