"""Certificates: verdicts, findings, witnesses, text, and invalid arguments."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hidag
from hidag import check_identifiability
from hidag.exceptions import DataError, SettingError

from .fitted import certify_items

ROOT = Path(__file__).resolve().parents[2]
EYE = np.eye(3, dtype=int)
BLOCK = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])


def named(q: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(
        q,
        columns=[f"Z{k + 1}" for k in range(q.shape[1])],
        index=[f"x{j + 1}" for j in range(len(q))],
    )


def test_three_identities_give_both_guarantees() -> None:
    found = check_identifiability(np.vstack([EYE] * 3))
    assert (found.strict, found.generic) == (True, True)
    assert found.blocks is not None
    assert found.additions == ()
    assert str(found) == found.summary()
    assert found.summary().startswith(
        "Identifiability of 9 items on 3 binary latents, main effects\n\n"
        "generic: guaranteed (Corollary S.3), given the assumptions marked ? below."
    )


def test_names_of_items_and_latents_are_used() -> None:
    by_index = check_identifiability(named(np.vstack([EYE] * 3)))
    witness = by_index.finding("blocks").witness
    assert list(witness) == ["Z1", "Z2", "Z3"]
    assert sorted(
        [*witness["Z1"]["first"], *witness["Z1"]["second"], witness["Z1"]["outside"]]
    ) == [
        "x1",
        "x4",
        "x7",
    ]
    frame = named(np.vstack([EYE] * 3)).reset_index(names="item")
    by_column = check_identifiability(pl.from_pandas(frame))
    assert by_column.finding("blocks").witness == witness


def test_a_q_matrix_read_for_a_fit_is_accepted() -> None:
    spec = hidag.data.q_matrix.read_q_matrix(
        named(np.vstack([EYE] * 3)), [f"x{j}" for j in range(1, 10)]
    )
    found = check_identifiability(spec)
    assert found.design.latent_names == ("Z1", "Z2", "Z3")
    assert found.generic is True


def test_a_shortage_names_its_latents_and_items() -> None:
    # Latents 2 and 5 share items 3, 7 and 9; all others have three items of their own.
    q = np.zeros((18, 7), dtype=int)
    q[[2, 6, 8], 1] = q[[2, 6, 8], 4] = 1
    free = [j for j in range(18) if j not in (2, 6, 8)]
    for place, k in enumerate([0, 2, 3, 5, 6]):
        q[free[3 * place : 3 * place + 3], k] = 1
    found = check_identifiability(named(q))
    assert found.generic is False
    assert (
        "latents Z2 and Z5 share only items x3, x7 and x9: 2 more items that load on either are "
        "needed"
    ) in found.finding("blocks").sentence
    assert found.finding("blocks").witness["violating"] == [
        {"latents": ["Z2", "Z5"], "items": ["x3", "x7", "x9"], "needed": 5, "kind": "blocks"}
    ]
    assert found.finding("blocks").advice in (
        "add 2 items: 1 item on Z2 and 1 item on Z2 and Z5",
        "add 2 items: 1 item on Z5 and 1 item on Z2 and Z5",
    )
    assert len(found.additions) == 2
    assert found.fewest


def test_items_that_q1_and_q2_need_are_missing_in_q3() -> None:
    found = check_identifiability(named(np.vstack([EYE, EYE, [[1, 1, 0]]])))
    assert (
        "latent Z3 has only items x3 and x6, which Q1 and Q2 need: 1 more item that loads on it "
        "is needed"
    ) in found.finding("blocks").sentence
    assert found.additions == (("Z3",),)


def test_items_that_cannot_fill_all_blocks_at_once() -> None:
    # One item to spare: it could serve any latent, but no item loads on all three.
    q = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    found = check_identifiability(named(q))
    assert found.generic is False
    assert (
        "the 7 items of latents Z1, Z2 and Z3 cannot fill Q1, Q2 and Q3 at once: every choice "
        "leaves some latent without an item in Q3"
    ) in found.finding("blocks").sentence
    assert len(found.additions) == 1
    q[6] = 1
    assert check_identifiability(named(q)).generic is True


def test_a_latent_without_items_is_not_identified() -> None:
    found = check_identifiability(named(np.vstack([EYE] * 3) * [1, 1, 0]))
    assert (found.strict, found.generic, found.provably_bad) == (False, False, True)
    assert found.finding("covered").sentence == (
        "latent Z3 has no item, so the data contain no information about it"
    )
    assert "different parameters give the same distribution of the data" in found.summary().replace(
        "\n", " "
    )


def test_the_counterexample_fails_the_subset_condition_and_nothing_else() -> None:
    q = np.vstack([BLOCK] * 3)
    found = check_identifiability(named(q), effects="all")
    assert found.finding("blocks").status == "holds"
    assert found.finding("subset").status == "fails"
    assert found.finding("subset").witness == {"contained": [{"outer": "Z1", "inner": "Z3"}]}
    assert (found.generic, found.provably_bad) == (False, True)
    assert found.additions == (("Z3",),)
    main = check_identifiability(q)
    assert main.generic is True
    assert not main.finding("subset").required


def test_the_example_has_two_models_with_one_distribution(capsys) -> None:
    page = runpy.run_path(str(ROOT / "examples" / "identifiability.py"))
    for seed in range(3):
        eta, law = page["one_model"](np.random.default_rng(seed))
        other_eta, other_law = page["exchange"](eta, law)
        one, other = page["distribution"](eta, law), page["distribution"](other_eta, other_law)
        assert np.abs(one - other).max() < 1e-16
        assert one.sum() == pytest.approx(1.0)
        before, after = page["coefficients"](eta[2]), page["coefficients"](other_eta[2])
        b0, b1, b3, b13 = before
        np.testing.assert_allclose(after, [b0 + b3, b1 - b3, -b3, 2 * b3 + b13], atol=1e-12)
        assert not np.isclose(np.sort(before)[:, None], after[3]).any()
        for table, p in ((eta, law), (other_eta, other_law)):
            fitted = certify_items(page["Q"], table, p, effects="all")
            assert fitted.finding("monotone").status == "holds"
            assert fitted.finding("positive-law").status == "holds"
            assert fitted.generic is False
    page["main"]()
    printed = capsys.readouterr().out
    assert 'generic: no guarantee, because "Subset condition" fails.' in printed


def test_orders_of_effects_between_main_and_all() -> None:
    q = np.vstack([np.ones((4, 3), dtype=int), np.vstack([EYE] * 3)])
    assert check_identifiability(q, effects=2).generic is True
    assert "stated for all effects" in check_identifiability(q, effects=2).summary()
    assert "stated for all effects" not in check_identifiability(q, effects="all").summary()
    contained = np.vstack([BLOCK] * 3)
    wide = np.vstack([contained, [[1, 1, 1, 1]] * 2])
    assert check_identifiability(contained, effects=2).provably_bad
    # Items of Z3 with four latents have no room for the interactions that an exchange would need.
    assert not check_identifiability(wide, effects=2).provably_bad
    assert check_identifiability(wide, effects=2).generic is False
    assert check_identifiability(wide, effects="all").provably_bad


def test_families_affect_the_generic_verdict_only_if_given() -> None:
    q = np.vstack([EYE] * 3)
    assert check_identifiability(q, families="bernoulli").finding("analytic-families").holds is True
    for name in (
        "gaussian",
        "lognormal",
        "poisson",
        "gamma",
        "beta",
        "negative-binomial",
        "ordinal(4)",
    ):
        assert check_identifiability(q, families=name).generic is True
    mixed = ["gaussian", "binary", "Binomial(5)"] * 3
    assert check_identifiability(q, families=mixed).finding("analytic-families").holds is True
    for name in ("poisson-identity", "categorical(3)", "weibull", "a(b", ""):
        assert check_identifiability(q, families=name).finding("analytic-families").holds is None
    two_pure = np.vstack([EYE, np.tril(np.ones((3, 3), dtype=int)), np.ones((2, 3), dtype=int)])
    assert check_identifiability(two_pure).generic is True
    assert check_identifiability(two_pure, families="weibull").generic is None


def test_response_patterns_are_counted() -> None:
    small = check_identifiability([[1, 0], [0, 1], [1, 1]], families="bernoulli")
    assert small.finding("answer-patterns").witness == {"parameters": 10, "degrees_of_freedom": 7}
    assert small.provably_bad
    few = check_identifiability(np.ones((2, 1), dtype=int), levels=5, families="bernoulli")
    assert few.finding("answer-patterns").sentence == (
        "latent latent_0 has 5 levels, but its items have only 4 response patterns"
    )
    many = check_identifiability(np.ones((40, 1), dtype=int), levels=5, families="bernoulli")
    assert many.finding("answer-patterns").status == "holds"
    names = [found.name for found in check_identifiability(EYE, families="gaussian").findings]
    assert "answer-patterns" not in names


def test_remaining_indeterminacy() -> None:
    q = np.vstack([EYE] * 5)
    assert check_identifiability(named(q), levels=[2, 3, 3]).finding("disentangled").witness == {
        "exchangeable": [["Z2", "Z3"]],
        "levels_open": True,
    }
    found = check_identifiability(named(q), levels=[2, 3, 4]).finding("disentangled")
    assert found.witness["exchangeable"] == []
    assert check_identifiability(np.vstack([BLOCK] * 3)).finding("disentangled").status == "fails"


def test_a_certificate_fits_into_json() -> None:
    for q in (np.vstack([EYE] * 3), np.vstack([BLOCK] * 2), EYE):
        for effects in ("main", "all"):
            found = check_identifiability(q, effects=effects, families="bernoulli")
            again = json.loads(json.dumps(found.to_dict()))
            assert again["generic"] is found.generic
            assert len(again["findings"]) == len(found.findings)


def test_reasons_are_those_of_the_requested_guarantee() -> None:
    q = np.vstack([EYE, np.tril(np.ones((3, 3), dtype=int)), np.ones((2, 3), dtype=int)])

    def names(found: hidag.identifiability.Certificate, claim: str) -> list[str]:
        return [finding.name for finding in found.reasons(claim)]

    found = check_identifiability(q)
    assert names(found, "generic") == []
    assert names(found, "strict") == ["identity-blocks"]
    assert names(check_identifiability(q, families="weibull"), "generic") == ["analytic-families"]
    nested = np.vstack([BLOCK] * 3)
    assert names(check_identifiability(nested, effects="all"), "generic") == ["subset"]
    open_one = check_identifiability([[1, 0], [0, 1], [1, 0], [0, 1], [1, 1]])
    assert names(open_one, "strict") == ["distinct-states"]
    assert 'strict:  undecided, because "Separated states" is undecided.' in str(open_one)


def test_names_of_findings_are_unique_and_statuses_are_three() -> None:
    found = check_identifiability(EYE, families="bernoulli").findings
    assert len({finding.name for finding in found}) == len(found)
    assert {finding.status for finding in found} <= {"holds", "fails", "undecided"}


@pytest.mark.parametrize(
    ("q", "settings", "error", "sentence"),
    [
        (
            [[1, 0], [0, 2]],
            {},
            DataError,
            "identifiability is checked for a Q-matrix of ones and zeros, but the entry of item "
            "'item_1' for latent 'latent_1' is 2 (1 of 4 entries); use 1 if the item loads on the "
            "latent and 0 otherwise",
        ),
        (
            [[1, -1], [0, 1]],
            {},
            DataError,
            "identifiability is checked for a Q-matrix of ones and zeros, but the entry of item "
            "'item_0' for latent 'latent_1' is to be estimated (1 of 4 entries); decide "
            "every entry, or check the Q-matrix of a fit",
        ),
        (
            pd.DataFrame({"item": ["a", "a"], "Z": [1, 1]}),
            {},
            DataError,
            "each item must have one row in the Q-matrix, but item 'a' has 2; drop or rename the "
            "others",
        ),
        (
            EYE,
            {"levels": 1},
            SettingError,
            "levels must be an integer of at least 2, or one for each of the 3 latents, got 1",
        ),
        (
            EYE,
            {"levels": [2, 3]},
            SettingError,
            "levels must be an integer of at least 2, or one for each of the 3 latents, got [2, 3]",
        ),
        (
            EYE,
            {"families": ["bernoulli"]},
            SettingError,
            "families must be one name, or a list of one name for each of the 3 items, got "
            "['bernoulli']",
        ),
        (
            EYE,
            {"families": {"item_0": "bernoulli"}},
            SettingError,
            "families must name a family for every item, but item 'item_1' has none (2 of 3 items)",
        ),
    ],
)
def test_invalid_arguments_raise(q, settings, error, sentence) -> None:
    with pytest.raises(error) as caught:
        check_identifiability(q, **settings)
    assert str(caught.value) == sentence


def test_invalid_effects_raise() -> None:
    with pytest.raises(SettingError, match=r"effects must be .*, got 0"):
        check_identifiability(EYE, effects=0)


def test_names_and_numbers_on_the_page_match_the_code() -> None:
    from hidag.identifiability.information import DRAWS_PER_PARAMETER, FLAT

    text = (ROOT / "docs" / "identifiability.md").read_text("utf-8")
    table = text.split("| name | condition |")[1].split("\n\n")[0]
    documented = re.findall(r"^\| `([a-z-]+)` \|", table, re.M)
    q = np.vstack([EYE] * 3)
    found = certify_items(q, np.zeros((9, 8)), np.full(8, 0.125), families="bernoulli")
    assert documented == [finding.name for finding in found.findings]
    assert (DRAWS_PER_PARAMETER, FLAT) == (8, 1e-7)
    assert "at least eight per parameter" in text
    assert "below 1e-7" in text
