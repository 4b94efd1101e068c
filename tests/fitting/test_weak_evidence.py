"""Warnings about few rows, low information and unused latents."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hidag import DCRL
from hidag.exceptions import IdentifiabilityWarning
from hidag.fitting.fit_warnings import Needs, warn_of_weak_evidence
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters
from hidag.simulation import Truth, simulate

CHAIN = NetworkLaw(
    StateSpace((2, 2)), ((), (0,)), (np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.2, 0.8]]))
)


def items(n_items: int) -> MeasurementParameters:
    loadings = np.where(np.arange(n_items)[:, None] % 2 == np.arange(2), 2.6, 0.0)
    return MeasurementParameters(
        ("bernoulli",) * n_items, np.full(n_items, -1.3), loadings, np.ones(n_items)
    )


def warned(n_rows: float, entries: np.ndarray, *, ratio: float = 0.8, observed=None) -> list[str]:
    """Return the warnings for two latents in a chain."""
    observed = np.ones(len(entries)) if observed is None else observed
    needs = Needs.of(n_rows, observed, entries, (2, 2), CHAIN)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_weak_evidence(items(len(entries)), ("Z1", "Z2"), needs, ratio)
    return [str(one.message) for one in caught]


def test_more_items_do_not_make_rows_few():
    truth = Truth(
        items(60).q_matrix, items(60).intercept, items(60).loadings, np.ones(60),
        items(60).families, CHAIN,
    )  # fmt: skip
    X = simulate(truth, 200, rng=0).X
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdentifiabilityWarning)
        DCRL(2, q_matrix=truth.q_matrix, family="bernoulli", n_starts=1, random_state=0).fit(X)
    for n_items in (8, 80, 800):
        assert warned(60, np.full((n_items, 2), -1, dtype=np.int8)) == []


def test_rows_are_few_for_one_items_coefficients():
    given = np.array(items(8).q_matrix)
    assert warned(29, given) == [
        "29 rows are few for 2 coefficients of an item; they and the graph are unreliable; add rows"
    ]
    assert warned(30, given) == []
    # Entries of Q that may be selected count like selected ones.
    assert warned(44, np.full((8, 2), -1, dtype=np.int8)) == [
        "44 rows are few for 3 coefficients that an item may have; Q and the graph are unreliable; "
        "add rows or use fewer latents"
    ]


def test_rows_that_did_not_observe_an_item_do_not_count_for_it():
    given = np.array(items(8).q_matrix)
    gappy = np.ones(8)
    gappy[3] = 0.1
    assert warned(200, given, observed=gappy)[0].startswith("20 rows are few for 2")
    assert warned(400, given, observed=gappy) == []


def test_low_information_leaves_few_effective_rows_for_the_graph():
    given = np.array(items(8).q_matrix)
    assert warned(50, given, ratio=0.1) == [
        "the effective sample size for the dependence among the latents is 5 rows, few for 3 "
        "probabilities of the graph, which is unreliable; add rows or items"
    ]
    assert warned(200, given, ratio=0.1) == []


@pytest.mark.parametrize("ratio", [0.01, 0.049])
def test_low_information_warns_once(ratio):
    (sentence,) = warned(50, np.array(items(8).q_matrix), ratio=ratio)
    assert sentence.startswith("low information ratio: the items carry")


def test_one_start_may_have_missed_a_latent():
    parameters = items(6)
    idle = MeasurementParameters(
        parameters.families, parameters.intercept, parameters.loadings * [1.0, 0.0], np.ones(6)
    )
    entries = np.ones((6, 2), dtype=np.int8)
    needs = Needs.of(2000.0, np.ones(6), entries, (2, 2), CHAIN)
    fewer = "use n_latents=1 instead of 2"
    for one_start, expected in (
        (False, f"no item depends on Z2: the data support fewer latents; {fewer}"),
        (
            True,
            "no item depends on Z2: the data support fewer latents, or the only start that "
            f"converged missed some; fit again with a larger n_starts, or {fewer}",
        ),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_weak_evidence(idle, ("Z1", "Z2"), needs, 0.8, one_start=one_start)
        assert str(caught[0].message) == expected
