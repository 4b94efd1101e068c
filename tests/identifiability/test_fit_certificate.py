"""Conditions that a fit decides: distribution, monotone items, separated states, information."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from hidag.identifiability import ResponseModel, information_rank
from hidag.identifiability.assumptions import (
    contradictory_levels,
    estimable_designs,
    items_with_ties,
)
from hidag.identifiability.design import read_design
from hidag.identifiability.strict_conditions import find_equal_states, unseparated_latents
from hidag.latent import StateSpace

from .fitted import certify_items, item_tables

TWO = np.vstack([np.eye(2, dtype=int)] * 3)


def main_effects(q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    states = StateSpace.binary(q.shape[1]).states()
    return rng.normal(size=(len(q), 1)) + (q * rng.uniform(0.5, 2.0, q.shape)) @ states.T


def any_law(n_states: int, rng: np.random.Generator) -> np.ndarray:
    return rng.dirichlet(np.full(n_states, 4.0))


def test_a_good_fit_decides_every_condition_except_faithfulness() -> None:
    rng = np.random.default_rng(0)
    found = certify_items(TWO, main_effects(TWO, rng), any_law(4, rng), families="bernoulli")
    assert (found.strict, found.generic) == (True, True)
    assert [f.name for f in found.findings if f.status == "undecided"] == ["faithful-graph"]
    assert found.finding("information").witness == {"rank": 15, "parameters": 15}


def test_a_state_with_probability_zero_removes_the_guarantee() -> None:
    rng = np.random.default_rng(1)
    found = certify_items(TWO, main_effects(TWO, rng), [0.5, 0.0, 0.2, 0.3])
    assert found.finding("positive-law").witness == {"states": ["01"]}
    assert (found.strict, found.generic) == (False, False)


def test_main_effects_need_loadings_that_do_not_cancel() -> None:
    rng = np.random.default_rng(2)
    states = StateSpace.binary(2).states()
    loadings = TWO * np.array([[1.0, 2.0]])
    loadings[0, 0] = -1.5
    law = any_law(4, rng)
    assert certify_items(TWO, loadings @ states.T, law).finding("monotone").status == "holds"
    loadings[2, 0] = 0.5
    found = certify_items(TWO, loadings @ states.T, law)
    assert found.finding("monotone").witness == {"latents": ["latent_0"]}
    assert found.generic is False


def test_items_of_a_latent_must_agree_on_its_higher_level() -> None:
    q = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 0]], dtype=bool)
    states = StateSpace.binary(3).states()
    eta = np.zeros((4, 8))
    eta[0] = states[:, 0] + states[:, 1] - 1.5 * states[:, 0] * states[:, 1]
    eta[1] = states[:, 0] * states[:, 2]
    eta[2] = -1.0 - states[:, 0]
    # Items 0 and 2 disagree with item 1; ties count against the first, which is not largest once.
    found = contradictory_levels(item_tables(eta, q, (2, 2, 2)), q, (2, 2, 2))
    assert found == {0: [0, 2], 1: [0]}
    eta[0] = -1.0 * states[:, 0] * (1 - states[:, 1])
    eta[1] *= -1.0
    assert contradictory_levels(item_tables(eta, q, (2, 2, 2)), q, (2, 2, 2))[0] == [0, 1]


def literally_monotone(eta: np.ndarray, row: np.ndarray, levels: tuple[int, ...]) -> bool:
    """The ordered assumption, read word for word."""
    states = list(product(*map(range, levels)))
    own = np.flatnonzero(row)
    top = [all(z[k] == levels[k] - 1 for k in own) for z in states]
    high = [e for e, t in zip(eta, top, strict=True) if t]
    low = [e for e, t in zip(eta, top, strict=True) if not t]
    if low and max(low) >= min(high):
        return False
    for k in own:
        for u in range(1, levels[k]):
            edge = [
                (z, e)
                for z, e in zip(states, eta, strict=True)
                if all(z[h] == levels[h] - 1 for h in own if h != k)
            ]
            above = [e for z, e in edge if z[k] >= u]
            below = [e for z, e in edge if z[k] <= u - 1]
            if max(below) >= min(above):
                return False
    return True


def test_the_ordered_assumption_word_for_word_in_some_naming() -> None:
    rng = np.random.default_rng(3)
    levels = (3, 2, 2)
    namings = list(product(*(list(permutations(range(m))) for m in levels)))
    grid = np.arange(12).reshape(levels)
    seen = {True: 0, False: 0}
    for _ in range(200):
        q = rng.random((int(rng.integers(1, 4)), 3)) < 0.6
        designs, _ = estimable_designs(read_design(q.astype(int), levels=levels, effects="all"))
        eta = np.array([d @ rng.normal(0.6, 0.7, d.shape[1]) for d in designs])
        good = not contradictory_levels(item_tables(eta, q, levels), q, levels)
        assert good == any(
            all(
                literally_monotone(line[grid[np.ix_(*naming)].ravel()], row, levels)
                for line, row in zip(eta, q, strict=True)
            )
            for naming in namings
        )
        seen[good] += 1
    assert min(seen.values()) > 30


def test_coefficients_decide_conditions_that_q_does_not() -> None:
    q = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [1, 1]])
    states = StateSpace.binary(2).states()
    law = np.full(4, 0.25)
    loadings = q * 1.0
    tied = certify_items(q, loadings @ states.T, law)
    assert tied.finding("distinct-states").witness == {"states": ["01", "10"]}
    assert (tied.strict, tied.generic) == (False, True)
    assert tied.finding("disentangled").witness == {"items": ["item_4"]}
    loadings[4, 1] = 0.5
    assert certify_items(q, loadings @ states.T, law).strict is True


def test_ties_are_found_within_the_latents_of_an_item() -> None:
    q = np.array([[1, 1], [1, 0]], dtype=bool)
    states = StateSpace.binary(2).states()
    eta = np.vstack([states.sum(axis=1), states[:, 0]]).astype(float)
    assert items_with_ties(item_tables(eta, q, (2, 2))).tolist() == [0]


def test_the_identity_link_is_covered_where_means_are_positive() -> None:
    rng = np.random.default_rng(4)
    eta = 6.0 + main_effects(TWO, rng)
    found = certify_items(TWO, eta, any_law(4, rng), families="poisson-identity", information=False)
    assert found.finding("analytic-families").status == "holds"
    low = eta - eta.max() + 0.5
    found = certify_items(TWO, low, any_law(4, rng), families="poisson-identity", information=False)
    assert found.finding("analytic-families").status == "undecided"


def bernoulli_distribution(eta: np.ndarray, law: np.ndarray) -> np.ndarray:
    chance = 1 / (1 + np.exp(-eta))
    answers = np.array(list(product((0, 1), repeat=len(eta))))
    return np.where(answers[:, :, None] == 1, chance, 1 - chance).prod(axis=1) @ law


@pytest.mark.parametrize(
    ("q", "rank"),
    [
        ([[1], [1]], 3),  # 5 parameters, 3 free numbers in the data
        ([[1], [1], [1]], 7),
        ([[1, 0], [0, 1], [1, 1]], 7),  # 10 parameters, 7 free numbers
        ([[1, 0], [1, 0], [1, 0]], 7),  # the second latent is never seen: 2 of 9 flat
        ([[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]], 15),
    ],
)
def test_the_rank_is_that_of_the_distribution_s_derivative(q, rank) -> None:
    rng = np.random.default_rng(5)
    q = np.array(q)
    asked = read_design(q)
    designs, names = estimable_designs(asked)
    b = [rng.normal(0.8, 0.3, d.shape[1]) for d in designs]
    law = any_law(2 ** q.shape[1], rng)

    def distribution(vector: np.ndarray) -> np.ndarray:
        cuts = np.cumsum([len(own) for own in b])
        parts = np.split(vector, cuts)
        eta = np.array([d @ own for d, own in zip(designs, parts[:-1], strict=True)])
        full = np.insert(parts[-1], int(np.argmax(law)), 0.0)
        return bernoulli_distribution(eta, np.exp(full) / np.exp(full).sum())

    logs = np.log(law / law.max())
    at = np.concatenate([*b, np.delete(logs, int(np.argmax(law)))])
    jacobian = np.array(
        [(distribution(at + h) - distribution(at - h)) / 2e-5 for h in 1e-5 * np.eye(len(at))]
    )
    assert np.linalg.matrix_rank(jacobian, tol=1e-8) == rank
    eta = np.array([d @ own for d, own in zip(designs, b, strict=True)])
    model = ResponseModel.create(eta, law, ["bernoulli"] * len(q))
    words = model.parameter_names(asked.item_names, names, asked.state_names(np.arange(len(law))))
    found = information_rank(model, designs, words)
    assert (found.n_parameters, found.rank, found.exact) == (len(at), rank, True)
    assert len(found.flat) == len(at) - rank
    assert found.full == (rank == len(at))


def test_flat_directions_are_named() -> None:
    rng = np.random.default_rng(6)
    q = np.array([[1, 0], [1, 0], [1, 0]])
    found = certify_items(q, main_effects(q, rng), any_law(4, rng), families="bernoulli")
    flat = found.finding("information").witness["flat"]
    assert len(flat) == 2
    assert all(name.startswith("log p(") for direction in flat for name in direction)
    assert found.finding("information").sentence.startswith(
        "the Fisher information has rank 7 for 9 parameters: the distribution of the data does not "
        "change, to first order, along 2 directions: "
    )


@pytest.mark.parametrize(
    ("family", "extra"),
    [
        ("gaussian", 1),
        ("lognormal", 1),
        ("poisson", 0),
        ("poisson-identity", 0),
        ("gamma", 1),
        ("beta", 1),
        ("negative-binomial", 1),
        ("zero-inflated-poisson", 1),
        ("censored-lognormal(20)", 1),
        ("binomial(6)", 0),
        ("ordinal(4)", 2),
    ],
)
def test_responses_that_cannot_be_listed_are_sampled(family, extra) -> None:
    rng = np.random.default_rng(7)
    eta = 1.0 + 0.5 * (main_effects(TWO, rng) + 3.0)
    law = any_law(4, rng)
    spread = np.full(6, 0.3)
    found = certify_items(TWO, eta, law, dispersion=spread, families=family)
    parameters = 15 + 6 * extra
    assert found.finding("information").witness == {"rank": parameters, "parameters": parameters}
    unseen = certify_items(TWO[::2], eta[::2], law, dispersion=spread[::2], families=family)
    assert (
        unseen.finding("information").witness["rank"]
        == unseen.finding("information").witness["parameters"] - 2
    )


def test_more_levels_and_interactions() -> None:
    rng = np.random.default_rng(8)
    levels = (3, 2)
    q = np.vstack([np.eye(2, dtype=int)] * 5 + [np.ones((1, 2), dtype=int)])
    asked = read_design(q, levels=levels, effects="all")
    designs, names = estimable_designs(asked)
    assert names[-1] == [
        "intercept",
        "latent_0>=1",
        "latent_0>=2",
        "latent_1",
        "latent_0>=1*latent_1",
        "latent_0>=2*latent_1",
    ]
    eta = np.array([d @ rng.uniform(0.4, 1.5, d.shape[1]) for d in designs])
    found = certify_items(
        q, eta, any_law(6, rng), levels=levels, effects="all", families="bernoulli"
    )
    assert found.finding("monotone").status == "holds"
    assert found.finding("information").witness == {"rank": 36, "parameters": 36}
    assert found.generic is True


def test_states_separated_item_by_item_are_separated() -> None:
    rng = np.random.default_rng(11)
    states = StateSpace.binary(4).states()
    seen = {True: 0, False: 0}
    for _ in range(300):
        q = rng.random((5, 4)) < 0.45
        # Whole numbers make ties.
        eta = (q * rng.integers(1, 3, q.shape)) @ states.T.astype(float)
        all_shown = not len(unseparated_latents(item_tables(eta, q, (2,) * 4), q))
        assert not all_shown or find_equal_states(eta) is None
        seen[all_shown] += 1
    assert min(seen.values()) > 30


def test_latents_separated_by_one_item_resolve_ties_of_another() -> None:
    q = np.array([[1, 1], [1, 0]], dtype=bool)
    states = StateSpace.binary(2).states()
    eta = np.vstack([states.sum(axis=1), states[:, 0]]).astype(float)
    tables = item_tables(eta, q, (2, 2))
    assert unseparated_latents(tables, q).tolist() == []
    assert unseparated_latents(tables[:1], q[:1]).tolist() == [0, 1]


def renamed(
    q: np.ndarray, eta: np.ndarray, law: np.ndarray, levels: tuple[int, ...], rng
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, ...]]:
    """The same distribution of the data with latents in another order and levels renamed."""
    order = rng.permutation(len(levels))
    names = [rng.permutation(m) for m in levels]
    states = np.arange(len(law)).reshape(levels)[np.ix_(*names)].transpose(order).ravel()
    return q[:, order], eta[:, states], law[states], tuple(levels[k] for k in order)


FAMILIES = ("bernoulli", "gaussian", "poisson", "ordinal(3)", "poisson-identity", "gamma")


@pytest.mark.parametrize("seed", range(120))
def test_verdicts_do_not_depend_on_the_names_of_latents_and_levels(seed) -> None:
    rng = np.random.default_rng([seed, 12])
    levels = ((2, 2), (2, 2, 2), (3, 2), (2, 3, 2))[seed % 4]
    effects = ("main", "all", "2")[seed // 4 % 3]
    n_latents = len(levels)
    q = np.vstack([np.eye(n_latents, dtype=int)] * int(rng.integers(2, 5)))
    q = np.vstack([q, rng.random((3, n_latents)) < 0.5]).astype(int)
    designs, _ = estimable_designs(read_design(q, levels=levels, effects=effects))
    kind = seed // 12 % 5
    sizes = [rng.uniform(0.3, 2.0, d.shape[1]) for d in designs]
    if kind == 1:  # signs of any kind
        sizes = [b * rng.choice([-1, 1], len(b)) for b in sizes]
    elif kind == 2:  # ties
        sizes = [np.round(b) for b in sizes]
    eta = np.array([d @ b for d, b in zip(designs, sizes, strict=True)])
    law = any_law(eta.shape[1], rng)
    if kind == 3:
        law[rng.integers(len(law))] = 0.0
        law /= law.sum()
    families = rng.choice(FAMILIES, len(q)).tolist() if kind != 4 else None
    settings = {"effects": effects, "families": families}
    found = certify_items(q, eta, law, levels=levels, **settings)
    for _ in range(4):
        other_q, other_eta, other_law, other_levels = renamed(q, eta, law, levels, rng)
        other = certify_items(other_q, other_eta, other_law, levels=other_levels, **settings)
        assert (other.strict, other.generic) == (found.strict, found.generic)
        assert [(f.name, f.status) for f in other.findings] == [
            (f.name, f.status) for f in found.findings
        ]
        assert (other.provably_bad, len(other.additions)) == (
            found.provably_bad, len(found.additions),
        )  # fmt: skip
        for name in ("monotone", "information"):
            one, two = (
                [f.witness.get(w) for f in c.findings if f.name == name for w in ("items", "rank")]
                for c in (found, other)
            )
            assert one == two


@pytest.mark.parametrize(("effects", "slope"), [("main", -2.0), ("all", -2.0), ("all", 2.0)])
def test_latents_with_exchanged_levels_keep_their_guarantee(effects, slope) -> None:
    states = StateSpace.binary(2).states()
    q = np.vstack([TWO, np.ones((1, 2), dtype=int)])
    eta = slope * (q * [1.0, 0.7]) @ states.T
    found = certify_items(q, eta, np.full(4, 0.25), effects=effects, families="bernoulli")
    assert (found.strict, found.generic) == (True, True)
