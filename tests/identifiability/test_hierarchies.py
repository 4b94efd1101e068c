"""Certificates of designs in which a hierarchy rules states out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hidag.identifiability import check_identifiability
from hidag.identifiability.assumptions import mask_undetermined, n_estimable
from hidag.identifiability.certificate import certify
from hidag.identifiability.design import FittedModel, MeasurementDesign
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement.terms import ALL_ORDERS, Effects

Q = np.array([[1, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]] * 2, dtype=bool)
#: Of the states 00, 01, 10, 11 nobody is in the second.
LINE = np.array([False, True, False, False])


def make_design(q=Q, ruled_out=LINE, order=ALL_ORDERS, conjunctive=False):
    items = tuple(f"item_{j}" for j in range(len(q)))
    latents = tuple("ABC"[: q.shape[1]])
    families = ("bernoulli",) * len(q)
    return MeasurementDesign(
        q, items, latents, (2,) * q.shape[1], Effects(order, conjunctive), families, ruled_out
    )


def test_with_ruled_out_states_only_sums_of_coefficients_are_estimable():
    found = check_identifiability(make_design())
    assert (found.strict, found.generic, found.provably_bad) == (False, False, True)
    law = found.finding("positive-law")
    assert law.status == "fails"
    assert law.sentence == (
        "the hierarchy rules out state 01 (levels in the order of the latents), and the theorems "
        "require that every state has positive probability"
    )
    estimable = found.finding("estimable-coefficients")
    assert estimable.witness == {"items": ["item_6", "item_7"]}
    assert estimable.sentence == (
        "items item_6 and item_7: only sums of some coefficients are estimable, because the states "
        "that would separate them are ruled out; predictions in possible states do not depend on "
        "it"
    )
    text = " ".join(found.summary().split())
    assert "only sums of some coefficients are estimable. Quantities that depend on these" in text
    assert "unless the latent distribution is restricted" not in text
    # Two of the law, two for each item with one latent, and three for each of the others.
    assert "(20 parameters, 255 degrees of freedom in the data)" in text


@pytest.mark.parametrize("more", [{"order": 1}, {"conjunctive": True}])
def test_coefficients_of_main_effects_and_conjunctive_items_are_estimable(more):
    found = check_identifiability(make_design(**more))
    assert found.generic is False
    assert not found.provably_bad
    assert found.finding("estimable-coefficients").holds


def test_without_a_hierarchy_there_is_no_finding_about_estimability():
    found = check_identifiability(make_design(ruled_out=None))
    assert (found.strict, found.generic) == (True, True)
    assert "estimable-coefficients" not in [one.name for one in found.findings]


def test_predictors_that_possible_states_do_not_determine_are_masked():
    asked = make_design()
    tables = [np.array([0.0, 1.0])] * 6 + [np.array([[0.0, 9.0], [1.0, 2.0]])] * 2
    masked = mask_undetermined(asked, tables)
    np.testing.assert_array_equal(masked[6], [[0.0, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(masked[5], tables[5])
    main = mask_undetermined(make_design(order=1), tables)
    np.testing.assert_array_equal(main[6], tables[6])
    assert n_estimable(asked) == n_estimable(make_design(order=1)) == 18


@pytest.mark.parametrize("unknown", [-30.0, 0.5, 30.0])
def test_a_fit_is_certified_over_possible_states(unknown):
    asked = make_design()
    states = StateSpace((2, 2)).states()
    eta = np.array([3.0 * states[:, k] - 1.0 for k in (0, 0, 0, 1, 1, 1)])
    eta = np.vstack([eta, [[-1.0, unknown, 0.5, 2.0]] * 2])
    law = SaturatedLaw(StateSpace((2, 2)), np.array([0.3, 0.0, 0.3, 0.4]))
    tables = [line.reshape(2, 2)[tuple(slice(None) if own else 0 for own in row)]
              for line, row in zip(eta, Q, strict=True)]  # fmt: skip
    found = certify(asked, FittedModel(mask_undetermined(asked, tables), law, eta))
    assert found.finding("monotone").holds
    assert found.finding("distinct-states").holds
    # The law's two, and every sum once.
    assert found.finding("information").witness == {"rank": 20, "parameters": 20}
    assert found.finding("positive-law").witness == {"states": ["01"], "ruled_out": ["01"]}
    empty = SaturatedLaw(StateSpace((2, 2)), np.array([0.6, 0.0, 0.0, 0.4]))
    fitted = FittedModel(mask_undetermined(asked, tables), empty, eta)
    found = certify(asked, fitted, information=False)
    assert found.finding("positive-law").sentence.endswith(
        "; state 10 has probability zero in the fit"
    )


def test_latents_that_are_never_alone_may_be_identified():
    # Nobody has B without A; no item is about A alone, or about B alone.
    q = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]] * 4, dtype=bool)
    line = np.array([b and not a for a, b, _ in product((False, True), repeat=3)])
    free = check_identifiability(make_design(q, None, conjunctive=True)).finding("own-items")
    held = check_identifiability(make_design(q, line, conjunctive=True)).finding("own-items")
    assert free.witness == {"latents": ["A", "B", "C"]}
    # C may be the only one present, and the only one absent.
    assert held.witness == {"latents": ["C"]}
    both = np.array([[1, 1]] * 6, dtype=bool)
    held = check_identifiability(make_design(both, LINE, conjunctive=True)).finding("own-items")
    assert held.status == "undecided"


def test_levels_are_not_exchanged_into_ruled_out_states():
    # A has every item of B, and nobody has B without A.
    q = np.array([[1, 0]] * 3 + [[1, 1]] * 4, dtype=bool)
    free, held = (
        check_identifiability(make_design(q, out)).finding("subset") for out in (None, LINE)
    )
    assert free.provably_bad
    assert not held.provably_bad
    assert held.sentence == (
        "every item of B loads on A too; the theorem does not apply, and with a hierarchy it is "
        "unknown whether the model is identified"
    )
