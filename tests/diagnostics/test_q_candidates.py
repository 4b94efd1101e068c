"""Another Q than the fit's: what the fit was told goes with its latents, or is said to be left."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from hidag import DCRL, Knowledge
from hidag.diagnostics import validate_q
from hidag.diagnostics.q_validation import provisional_fit
from hidag.exceptions import HidagWarning, SettingError
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulation import Truth, simulate

Q = np.array([[1, 0, 0]] * 4 + [[0, 1, 0]] * 4 + [[0, 0, 1]] * 4)
#: One more entry than the fit was given.
OTHER = Q.copy()
OTHER[0, 1] = 1
TOLD = Knowledge(
    required=[("A", "C")], forbidden=[("B", "C"), ("C", "B")], hierarchy=[(0, "B")], tiers=[["A"]]
)
INSTEAD = "give a DCRL with what is known of the latents of that Q instead of the fit"


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
def told(rows):
    return fitted(rows, knowledge=TOLD)


def warned(call):
    """Return what a call returns, and the sentences of its warnings with where they point to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = call()
    return out, [str(warning.message) for warning in caught], {w.filename for w in caught}


def test_a_fit_of_another_q_is_told_what_the_fit_was(rows, told):
    again, said, _ = warned(lambda: provisional_fit(told, rows, OTHER, 0))
    assert said == []
    wanted = fitted(rows, knowledge=TOLD, q_matrix=OTHER)
    np.testing.assert_array_equal(again.parameters.loadings, wanted.parameters.loadings)
    np.testing.assert_array_equal(again.law.probabilities, wanted.law.probabilities)
    np.testing.assert_array_equal(again.graph.adjacency, wanted.graph.adjacency)
    assert again.latent_names == ("A", "B", "C")
    assert again.law.probabilities[again.ruled_out].max() == 0.0
    assert again.ruled_out.sum() == 2
    for name in ("n_starts", "effective_size"):
        assert again.settings[name] == told.settings[name]


def test_validation_of_another_q_holds_the_hierarchy(rows):
    held, free = (fitted(rows, law="saturated", knowledge=known) for known in (TOLD, None))
    found = validate_q(held, rows, OTHER, max_changes=1)
    assert found.latent_names == ("A", "B", "C")
    by_hand = validate_q(
        fitted(rows, law="saturated", knowledge=TOLD, q_matrix=OTHER), rows, max_changes=1
    )
    assert found.to_rows() == by_hand.to_rows()
    # Two joint states less have their price in likelihood.
    other = validate_q(free, rows, OTHER, max_changes=1)
    assert found.log_likelihood < other.log_likelihood - 0.1


def test_latents_are_found_by_name_in_any_order(rows, told):
    order = [2, 0, 1]
    names = [told.latent_names[k] for k in order]
    given = framed(OTHER[:, order], names, told.item_names)
    moved, said, _ = warned(lambda: provisional_fit(told, rows, given, 0))
    assert said == []
    assert moved.latent_names == ("C", "A", "B")
    known = Knowledge.from_dict(moved.settings["knowledge"])
    wanted = TOLD.constraints(told.latent_names)[np.ix_(order, order)]
    np.testing.assert_array_equal(known.constraints(moved.latent_names), wanted)
    cube = told.ruled_out.reshape(2, 2, 2).transpose(order)
    np.testing.assert_array_equal(moved.ruled_out, cube.ravel())


def test_levels_go_with_their_latents(rows):
    grades = fitted(rows, levels=(2, 3, 2))
    given = framed(OTHER[:, [1, 0, 2]], "BAC", grades.item_names)
    assert provisional_fit(grades, rows, given, 0).law.space.levels == (3, 2, 2)
    assert provisional_fit(grades, rows, OTHER, 0).law.space.levels == (2, 3, 2)
    with pytest.raises(SettingError) as caught:
        provisional_fit(grades, rows, framed(OTHER, "XYZ", grades.item_names), 0)
    assert str(caught.value) == (
        "the latents of the provisional Q are X, Y, Z, those of the fit A, B, C, and the latents "
        "of the fit have 2, 3, 2 levels; give a DCRL with the levels of the latents of that Q "
        "instead of the fit"
    )
    three = fitted(rows, levels=3, latent_names=None)
    assert provisional_fit(three, rows, OTHER[:, :2], 0).law.space.levels == (3, 3)


@pytest.mark.parametrize(
    ("q", "sentence"),
    [
        (
            framed(OTHER, "XYZ", [f"item_{j}" for j in range(12)]),
            "the latents of the provisional Q are X, Y, Z, those of the fit A, B, C: what the fit "
            "was told of its latents (required, forbidden, tiers, hierarchy) is left out; "
            + INSTEAD,
        ),
        (
            OTHER[:, :2],
            "the provisional Q has 2 latents, the fit 3: what the fit was told of its latents "
            "(required, forbidden, tiers, hierarchy, latent_names) is left out; " + INSTEAD,
        ),
    ],
)
def test_what_cannot_go_along_is_said(rows, told, q, sentence):
    found, said, where = warned(lambda: validate_q(told, rows, q, max_changes=0))
    assert said == [sentence]
    assert where == {__file__}
    assert len(found.latent_names) == np.asarray(found.provisional).shape[1]


def test_where_nothing_was_told_nothing_is_said(rows):
    plain = fitted(rows, latent_names=None)
    for q in (OTHER, OTHER[:, :2], framed(OTHER, "XYZ", plain.item_names)):
        assert warned(lambda q=q: provisional_fit(plain, rows, q, 0))[1] == []


def test_latents_that_a_fit_found_by_itself_are_known_by_name_only(rows):
    free = fitted(rows, q_matrix=None, latent_names=None, knowledge=Knowledge(tiers=[["Z1"]]))
    _, said, _ = warned(lambda: provisional_fit(free, rows, OTHER, 0))
    assert said == [
        "the fit found its latents without a Q, and the provisional Q, whose columns have no "
        "names, does not say which of them is which: what the fit was told of its latents (tiers) "
        "is left out; " + INSTEAD
    ]
    given = framed(OTHER, free.latent_names, free.item_names)
    named, said, _ = warned(lambda: provisional_fit(free, rows, given, 0))
    assert said == []
    assert Knowledge.from_dict(named.settings["knowledge"]) == Knowledge(tiers=((0,),))


def test_a_search_of_ones_own_is_not_forgotten_without_a_word(rows):
    def empty(score, names, knowledge):
        return np.zeros((len(names),) * 2, dtype=int)

    own = fitted(rows, search=empty)
    again, said, _ = warned(lambda: provisional_fit(own, rows, OTHER, 0))
    assert said == [
        "the fit of the provisional Q takes the default search, because a result does not remember "
        "one's own; give the fitted DCRL instead of the result"
    ]
    assert again.settings["search"] == "xges"
