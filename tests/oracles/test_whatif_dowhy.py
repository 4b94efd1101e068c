"""The exported graph opens in dowhy, which adjusts for the right latents and finds our effect."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hidag.causal import average_effects, to_dowhy
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulation import make_truth

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dowhy = pytest.importorskip("dowhy")
    pandas = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore")

#: A common cause of a cause and its effect, and something that the cause acts through.
LAW = NetworkLaw(
    StateSpace.binary(4),
    ((), (0,), (1,), (0, 2)),
    (
        np.array([0.5, 0.5]),
        np.array([[0.8, 0.2], [0.3, 0.7]]),
        np.array([[0.7, 0.3], [0.1, 0.9]]),
        np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]),
    ),
)
N_ROWS = 20_000


@pytest.mark.parametrize(
    "names",
    [("before", "cause", "between", "after"), ('a "b"', "c: d", "e -> f", "back\\slash; [g]")],
)
def test_dowhy_adjusts_for_the_common_cause_and_finds_our_effect(names, as_result):
    q = np.repeat(np.eye(4, dtype=int), 2, axis=0)
    result = as_result(make_truth(LAW, q, "gaussian", rng=1), latent_names=names)
    states = result.law.sample(N_ROWS, np.random.default_rng(5))
    columns = {name: states[:, k] for k, name in enumerate(names)}
    columns[names[1]] = columns[names[1]].astype(bool)
    values = result.sample_items(states, np.random.default_rng(6))
    columns |= {name: values[:, j] for j, name in enumerate(result.item_names)}
    model = dowhy.CausalModel(
        pandas.DataFrame(columns), treatment=names[1], outcome=names[3], graph=to_dowhy(result)
    )
    question = model.identify_effect(proceed_when_unidentifiable=True)
    assert question.get_backdoor_variables() == [names[0]]
    theirs = model.estimate_effect(question, method_name="backdoor.propensity_score_weighting")
    ours = average_effects(result, items=False).rows()
    low, high = next(
        (row["low"], row["high"])
        for row in ours
        if (row["cause"], row["effect"]) == (names[1], names[3])
    )
    # Four standard errors of a difference of shares in so many rows.
    assert low - 0.028 <= theirs.value <= high + 0.028
