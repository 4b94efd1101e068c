"""Prerequisites rule states out: the certificate says so, and what that leaves unknown."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hidag.identifiability import check_identifiability
from hidag.identifiability.assumptions import Fitted
from hidag.identifiability.design import MeasurementDesign
from hidag.identifiability.fit_certificate import certify_parameters
from hidag.identifiability.fitted_conditions import n_told_apart, only_told
from hidag.latent import SaturatedLaw, StateSpace

Q = np.array([[1, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]] * 2, dtype=bool)
#: Of the states 00, 01, 10, 11 nobody is in the second.
LINE = np.array([False, True, False, False])


def question(q=Q, ruled_out=LINE, order=None, **more):
    items = tuple(f"item_{j}" for j in range(len(q)))
    latents = tuple("ABC"[: q.shape[1]])
    families = ("bernoulli",) * len(q)
    return MeasurementDesign.about(
        q, items, latents, (2,) * q.shape[1], order, families, ruled_out=ruled_out, **more
    )


def test_states_that_are_ruled_out_leave_no_guarantee_and_some_sums():
    found = check_identifiability(question())
    assert (found.strict, found.generic, found.provably_bad) == (False, False, True)
    law = found.finding("positive-law")
    assert law.status == "fails"
    assert law.sentence == (
        "prerequisites rule state 01 out (levels in the order of the latents), and the theorems "
        "are about laws in which every state occurs"
    )
    in_sum = found.finding("known-in-sum")
    assert in_sum.witness == {"items": ["item_6", "item_7"]}
    assert in_sum.sentence == (
        "items item_6 and item_7: some coefficients are known in sum only, as nobody is in the "
        "states that would tell them apart; what is expected of items in states that occur does "
        "not depend on it"
    )
    text = " ".join(found.summary().split())
    assert "some coefficients are known in sum only. What depends on their sums alone" in text
    assert "unless the law of the latents is restricted" not in text
    # Two of the law, two for each item with one latent, and three for each of the others.
    assert "(20 parameters, 255 free numbers in the data)" in text


@pytest.mark.parametrize("more", [{"order": 1}, {"conjunctive": True}])
def test_main_effects_and_conjunctive_items_are_known_in_states_that_occur(more):
    found = check_identifiability(question(**more))
    assert found.generic is False
    assert not found.provably_bad
    assert found.finding("known-in-sum").holds


def test_without_prerequisites_nothing_is_said_of_sums():
    found = check_identifiability(question(ruled_out=None))
    assert (found.strict, found.generic) == (True, True)
    assert "known-in-sum" not in [one.name for one in found.findings]


def test_predictors_that_do_not_follow_from_states_that_occur_are_left_out():
    asked = question()
    tables = [np.array([0.0, 1.0])] * 6 + [np.array([[0.0, 9.0], [1.0, 2.0]])] * 2
    told = only_told(asked, tables)
    np.testing.assert_array_equal(told[6], [[0.0, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(told[5], tables[5])
    main = only_told(question(order=1), tables)
    np.testing.assert_array_equal(main[6], tables[6])
    assert n_told_apart(asked) == n_told_apart(question(order=1)) == 18


@pytest.mark.parametrize("unknown", [-30.0, 0.5, 30.0])
def test_a_fit_is_certified_by_states_that_may_occur(unknown):
    asked = question()
    states = StateSpace((2, 2)).states()
    eta = np.array([3.0 * states[:, k] - 1.0 for k in (0, 0, 0, 1, 1, 1)])
    eta = np.vstack([eta, [[-1.0, unknown, 0.5, 2.0]] * 2])
    law = SaturatedLaw(StateSpace((2, 2)), np.array([0.3, 0.0, 0.3, 0.4]))
    tables = [line.reshape(2, 2)[tuple(slice(None) if own else 0 for own in row)]
              for line, row in zip(eta, Q, strict=True)]  # fmt: skip
    found = certify_parameters(asked, Fitted(only_told(asked, tables), law, eta))
    assert found.finding("monotone").holds
    assert found.finding("distinct-states").holds
    # The law's two, and every sum once.
    assert found.finding("information").witness == {"rank": 20, "parameters": 20}
    assert found.finding("positive-law").witness == {"states": ["01"], "ruled_out": ["01"]}
    empty = SaturatedLaw(StateSpace((2, 2)), np.array([0.6, 0.0, 0.0, 0.4]))
    fitted = Fitted(only_told(asked, tables), empty, eta)
    found = certify_parameters(asked, fitted, information=False)
    assert found.finding("positive-law").sentence.endswith(
        "; besides, state 10 has no probability in the fit"
    )


def test_latents_that_are_never_alone_are_not_called_lost():
    # Nobody has B without A; no item is about A alone, or about B alone.
    q = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]] * 4, dtype=bool)
    line = np.array([b and not a for a, b, _ in product((False, True), repeat=3)])
    free = check_identifiability(question(q, None, conjunctive=True)).finding("own-items")
    held = check_identifiability(question(q, line, conjunctive=True)).finding("own-items")
    assert free.witness == {"latents": ["A", "B", "C"]}
    # C may be the only one present, and the only one absent.
    assert held.witness == {"latents": ["C"]}
    both = np.array([[1, 1]] * 6, dtype=bool)
    held = check_identifiability(question(both, LINE, conjunctive=True)).finding("own-items")
    assert held.status == "undecided"


def test_levels_are_not_exchanged_into_states_that_are_ruled_out():
    # A has every item of B, and nobody has B without A.
    q = np.array([[1, 0]] * 3 + [[1, 1]] * 4, dtype=bool)
    free, held = (check_identifiability(question(q, out)).finding("subset") for out in (None, LINE))
    assert free.provably_bad
    assert not held.provably_bad
    assert held.sentence == (
        "latent A has every item of B; the theorem does not apply then; whether anything is lost "
        "is not known with prerequisites"
    )
