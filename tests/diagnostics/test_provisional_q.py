"""Validation of a Q other than the fit's: knowledge about latents is passed on or left out."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from hidag import DCRL, Knowledge
from hidag.diagnostics import validate_q
from hidag.diagnostics.q_validation import fit_provisional
from hidag.exceptions import HidagWarning, SettingError
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulation import Truth, simulate

Q = np.array([[1, 0, 0]] * 4 + [[0, 1, 0]] * 4 + [[0, 0, 1]] * 4)
#: One more entry than the fit was given.
OTHER = Q.copy()
OTHER[0, 1] = 1
REPORTED = Knowledge(
    required=[("A", "C")], forbidden=[("B", "C"), ("C", "B")], hierarchy=[(0, "B")], tiers=[["A"]]
)
INSTEAD = "pass a DCRL with settings for the latents of that Q instead of the fit"


def framed(q, names, items):
    """Return a Q with names of latents and items."""
    return pd.DataFrame(q, columns=list(names)).assign(item=list(items))[["item", *names]]


@pytest.fixture(scope="module")
def rows():
    tables = (
        np.array([0.4, 0.6]),
        np.array([[1.0, 0.0], [0.4, 0.6]]),
        np.array([[0.6, 0.4], [0.4, 0.6]]),
    )
    law = NetworkLaw(StateSpace.binary(3), ((), (0,), (0,)), tables)
    items = np.full(12, -1.2), 2.4 * Q.astype(float), np.ones(12)
    truth = Truth(Q, *items, ("bernoulli",) * 12, law, latent_names=("A", "B", "C"))
    return np.array(simulate(truth, 600, rng=np.random.default_rng(0)).X)


def fitted(rows, **settings):
    chosen = {
        "family": "bernoulli",
        "q_matrix": Q,
        "latent_names": ("A", "B", "C"),
        "n_starts": 1,
        "effective_size": "all",
        "random_state": 0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HidagWarning)
        return DCRL(3, **{**chosen, **settings}).fit(rows).result_


@pytest.fixture(scope="module")
def reported(rows):
    return fitted(rows, knowledge=REPORTED)


def warned(call):
    """Return what a call returns, and the sentences of its warnings with where they point to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = call()
    return out, [str(warning.message) for warning in caught], {w.filename for w in caught}


def test_knowledge_is_passed_on_to_the_fit_of_another_q(rows, reported):
    again, said, _ = warned(lambda: fit_provisional(reported, rows, OTHER, 0))
    assert said == []
    wanted = fitted(rows, knowledge=REPORTED, q_matrix=OTHER)
    np.testing.assert_array_equal(again.parameters.loadings, wanted.parameters.loadings)
    np.testing.assert_array_equal(again.law.probabilities, wanted.law.probabilities)
    np.testing.assert_array_equal(again.graph.adjacency, wanted.graph.adjacency)
    assert again.latent_names == ("A", "B", "C")
    assert again.law.probabilities[again.ruled_out].max() == 0.0
    assert again.ruled_out.sum() == 2
    for name in ("n_starts", "effective_size"):
        assert again.settings[name] == reported.settings[name]


def test_validation_of_another_q_holds_the_hierarchy(rows):
    held, free = (fitted(rows, law="saturated", knowledge=known) for known in (REPORTED, None))
    found = validate_q(held, rows, OTHER, max_changes=1)
    assert found.latent_names == ("A", "B", "C")
    by_hand = validate_q(
        fitted(rows, law="saturated", knowledge=REPORTED, q_matrix=OTHER), rows, max_changes=1
    )
    assert found.to_rows() == by_hand.to_rows()
    # Two joint states less cost likelihood.
    other = validate_q(free, rows, OTHER, max_changes=1)
    assert found.log_likelihood < other.log_likelihood - 0.1


def test_latents_are_matched_by_name_in_any_order(rows, reported):
    order = [2, 0, 1]
    names = [reported.latent_names[k] for k in order]
    given = framed(OTHER[:, order], names, reported.item_names)
    moved, said, _ = warned(lambda: fit_provisional(reported, rows, given, 0))
    assert said == []
    assert moved.latent_names == ("C", "A", "B")
    known = Knowledge.from_dict(moved.settings["knowledge"])
    wanted = REPORTED.constraints(reported.latent_names)[np.ix_(order, order)]
    np.testing.assert_array_equal(known.constraints(moved.latent_names), wanted)
    cube = reported.ruled_out.reshape(2, 2, 2).transpose(order)
    np.testing.assert_array_equal(moved.ruled_out, cube.ravel())


def test_levels_follow_their_latents(rows):
    grades = fitted(rows, levels=(2, 3, 2))
    given = framed(OTHER[:, [1, 0, 2]], "BAC", grades.item_names)
    assert fit_provisional(grades, rows, given, 0).law.space.levels == (3, 2, 2)
    assert fit_provisional(grades, rows, OTHER, 0).law.space.levels == (2, 3, 2)
    with pytest.raises(SettingError) as caught:
        fit_provisional(grades, rows, framed(OTHER, "XYZ", grades.item_names), 0)
    assert str(caught.value) == (
        "the provisional Q has the latents X, Y, Z, the fit A, B, C, and the latents of the fit "
        "have 2, 3, 2 levels; pass a DCRL with the levels of the latents of that Q instead of the "
        "fit"
    )
    three = fitted(rows, levels=3, latent_names=None)
    assert fit_provisional(three, rows, OTHER[:, :2], 0).law.space.levels == (3, 3)


@pytest.mark.parametrize(
    ("q", "sentence"),
    [
        (
            framed(OTHER, "XYZ", [f"item_{j}" for j in range(12)]),
            "the provisional Q has the latents X, Y, Z, the fit A, B, C: the settings about the "
            "latents of the fit (required, forbidden, tiers, hierarchy) are left out; " + INSTEAD,
        ),
        (
            OTHER[:, :2],
            "the provisional Q has 2 latents, the fit 3: the settings about the latents of the fit "
            "(required, forbidden, tiers, hierarchy, latent_names) are left out; " + INSTEAD,
        ),
    ],
)
def test_settings_left_out_are_listed_in_a_warning(rows, reported, q, sentence):
    found, said, where = warned(lambda: validate_q(reported, rows, q, max_changes=0))
    assert said == [sentence]
    assert where == {__file__}
    assert len(found.latent_names) == np.asarray(found.provisional).shape[1]


def test_no_warning_without_settings_about_latents(rows):
    plain = fitted(rows, latent_names=None)
    for q in (OTHER, OTHER[:, :2], framed(OTHER, "XYZ", plain.item_names)):
        assert warned(lambda q=q: fit_provisional(plain, rows, q, 0))[1] == []


def test_estimated_latents_are_matched_by_name_only(rows):
    free = fitted(rows, q_matrix=None, latent_names=None, knowledge=Knowledge(tiers=[["Z1"]]))
    _, said, _ = warned(lambda: fit_provisional(free, rows, OTHER, 0))
    assert said == [
        "the fit estimated its Q, and the columns of the provisional Q have no names to match its "
        "latents: the settings about the latents of the fit (tiers) are left out; " + INSTEAD
    ]
    given = framed(OTHER, free.latent_names, free.item_names)
    named, said, _ = warned(lambda: fit_provisional(free, rows, given, 0))
    assert said == []
    assert Knowledge.from_dict(named.settings["knowledge"]) == Knowledge(tiers=((0,),))


def test_replacing_a_user_defined_search_gives_a_warning(rows):
    def empty(score, names, knowledge):
        return np.zeros((len(names),) * 2, dtype=int)

    own = fitted(rows, search=empty)
    again, said, _ = warned(lambda: fit_provisional(own, rows, OTHER, 0))
    assert said == [
        "the fit of the provisional Q uses the default search, because a result does not store "
        "user-defined ones; pass the fitted DCRL instead of the result"
    ]
    assert again.settings["search"] == "xges"
