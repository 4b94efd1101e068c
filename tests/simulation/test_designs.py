"""The paper's designs: shapes, graphs, tables and coefficients, as printed and as run."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.exceptions import SettingError
from hidag.simulation import design, design_law, make_truth, simulate

# The "#edges" column of the paper's table, and for the five-node models the same count by hand.
EDGES = {
    "Chain-5": (4, 27, 33),
    "Tree-5": (4, 27, 33),
    "Model-5": (3, 26, 32),
    "Chain-10": (9, 57, 73),
    "Tree-10": (9, 57, 73),
    "Model-7": (8, 41, 51),
    "Model-8": (8, 46, 58),
    "Model-13": (18, 81, 103),
}
DESIGNS = ("text", "research-code")

# Written from the figures, independently of how the library builds them.
FIGURES = {
    "Chain-5": "1>2 2>3 3>4 4>5",
    "Tree-5": "1>2 1>3 2>4 2>5",
    "Model-5": "1>2 3>4 5>4",
    "Chain-10": "1>2 2>3 3>4 4>5 5>6 6>7 7>8 8>9 9>10",
    "Tree-10": "1>2 1>3 2>4 2>5 3>6 3>7 4>8 4>9 5>10",
    "Model-7": "1>2 1>3 2>4 2>5 3>5 3>4 4>6 5>7",
    "Model-8": "1>2 1>3 2>4 2>5 3>6 3>7 5>8 6>8",
    "Model-13": "1>2 1>3 2>4 2>5 3>6 3>7 4>8 4>9 4>10 5>8 5>9 5>10 6>11 6>12 6>13 7>11 7>12 7>13",
}


def edges(text: str) -> set[tuple[str, str]]:
    return {(f"Z{a}", f"Z{b}") for a, b in (pair.split(">") for pair in text.split())}


@pytest.mark.parametrize("which", DESIGNS)
@pytest.mark.parametrize("model", EDGES)
def test_shapes_and_numbers_of_edges_are_the_papers(model: str, which: str) -> None:
    n_latents = int(model.split("-")[1])
    n_latent_edges, *composite = EDGES[model]
    for q, n_edges in zip(("Q1", "Q2"), composite, strict=True):
        truth = design(model, q, design=which, rng=0)
        assert truth.q_matrix.shape == (3 * n_latents, n_latents)
        assert truth.dag.n_edges == n_latent_edges
        assert truth.n_edges == n_edges
        assert np.array_equal(truth.q_matrix[n_latents:], np.tile(np.eye(n_latents), (2, 1)))


@pytest.mark.parametrize("model", FIGURES)
def test_graphs_are_the_figures(model: str) -> None:
    assert set(design(model, rng=0).dag.edges) == edges(FIGURES[model])


def test_research_code_drew_the_last_latent_of_model_8_from_5_and_7() -> None:
    printed = edges(FIGURES["Model-8"])
    ran = set(design("Model-8", design="research-code", rng=0).dag.edges)
    assert ran - printed == {("Z7", "Z8")}
    assert printed - ran == {("Z6", "Z8")}


def test_bands_of_both_measurement_matrices() -> None:
    assert design("Chain-5", "Q1", rng=0).q_matrix[:5].tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1],
        [0, 0, 0, 1, 1],
    ]
    assert design("Chain-5", "Q2", rng=0).q_matrix[:5].tolist() == [
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
        [0, 1, 1, 1, 1],
        [0, 0, 1, 1, 1],
    ]


@pytest.mark.parametrize(
    ("which", "family", "drawn_as", "intercept", "total"),
    [
        ("text", "gaussian", "gaussian", -1, 3),
        ("text", "lognormal", "lognormal", -1, 3),
        ("text", "poisson", "poisson", 1, 2),
        ("text", "bernoulli", "bernoulli", 1, 2),
        ("research-code", "gaussian", "gaussian", -1, 3),
        ("research-code", "poisson", "poisson-identity", 1, 2),
        ("research-code", "bernoulli", "bernoulli", -1, 3),
    ],
)
def test_coefficients(which: str, family: str, drawn_as: str, intercept: int, total: int) -> None:
    truth = design("Model-7", "Q2", family, design=which, rng=0)
    assert set(truth.families) == {drawn_as}
    assert np.all(truth.intercept == intercept)
    expected = total * truth.q_matrix / truth.q_matrix.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(truth.loadings, expected, rtol=1e-14)
    assert set(truth.loadings[7:].ravel()) == {0.0, float(total)}
    if family in ("gaussian", "lognormal"):
        assert np.all(truth.dispersion == 1)
    else:
        assert np.isnan(truth.dispersion).all()


def test_unequal_slopes_give_every_state_of_an_item_its_own_mean() -> None:
    equal = design("Chain-5", rng=0)
    truth = design("Chain-5", slope_ratio=2.0, rng=0)
    np.testing.assert_allclose(truth.loadings.sum(axis=1), 3.0)
    assert np.array_equal(truth.loadings != 0, truth.q_matrix == 1)
    states = truth.law.space.states()
    assert len(np.unique(np.round(truth.means(states)[:, 1], 9))) == 8
    assert len(np.unique(np.round(equal.means(states)[:, 1], 9))) == 4


def inside(value: float, low: float, high: float) -> bool:
    return low - 1e-12 <= value <= high + 1e-12


def at_one(law, k):
    return law.tables[k][..., 1]


def test_text_single_parent_tables_are_complementary_and_drawn_for_each_child() -> None:
    ups = []
    for seed in range(40):
        law = design_law("Tree-10", rng=seed)
        assert at_one(law, 0) == 0.5
        for k in range(1, 10):
            zero, one = at_one(law, k)
            assert zero == pytest.approx(1 - one)
            assert inside(one, 0.30, 0.35) or inside(one, 0.65, 0.70)
            ups.append(one)
    assert len(set(ups)) == 360
    # A fair coin: the share of increasing children is within 4 standard errors of 1/2.
    assert abs(np.mean(np.array(ups) > 0.5) - 0.5) < 4 * 0.5 / np.sqrt(360)


@pytest.mark.parametrize("model", ["Model-5", "Model-7", "Model-8", "Model-13"])
@pytest.mark.parametrize("which", DESIGNS)
def test_two_parent_tables(model: str, which: str) -> None:
    low_at_01 = []
    for seed in range(20):
        law = design_law(model, design=which, rng=seed)
        two = [at_one(law, k) for k, pa in enumerate(law.parents) if len(pa) == 2]
        for table in two:
            assert inside(table[0, 0], 0.20, 0.25)
            assert inside(table[1, 1], 0.60, 0.65)
            low, high = sorted([table[0, 1], table[1, 0]])
            assert inside(low, 0.35, 0.40)
            assert inside(high, 0.77, 0.82)
            low_at_01.append(table[0, 1] < table[1, 0])
        if which == "research-code":
            assert all(np.array_equal(table, two[0]) for table in two)
        elif len(two) > 1:
            assert not np.array_equal(two[0], two[1])
    if which == "research-code":
        assert not any(low_at_01)
    else:
        assert any(low_at_01)
        assert not all(low_at_01)


@pytest.mark.parametrize("model", ["Model-7", "Model-8", "Model-13"])
def test_research_code_models_draw_one_number_for_all_single_parents(model: str) -> None:
    law = design_law(model, design="research-code", rng=3)
    p = at_one(law, 1)[1]
    assert inside(p, 0.65, 0.70)
    for k, parents in enumerate(law.parents):
        if len(parents) == 1:
            left = k % 2 == 1
            np.testing.assert_allclose(at_one(law, k), [1 - p, p] if left else [p, 1 - p])


def test_research_code_chain_draws_both_conditionals_and_tree_shares_among_siblings() -> None:
    chain = design_law("Chain-10", design="research-code", rng=0)
    for k in range(1, 10):
        low, high = sorted(at_one(chain, k))
        assert inside(low, 0.35, 0.40)
        assert inside(high, 0.60, 0.65)
        assert abs(low + high - 1) > 1e-6
    tree = design_law("Tree-10", design="research-code", rng=0)
    for k in range(1, 10):
        zero, one = at_one(tree, k)
        assert zero == pytest.approx(1 - one)
        assert inside(min(zero, one), 0.35, 0.40)
    for left, right in ((1, 2), (3, 4), (5, 6), (7, 8)):
        assert np.array_equal(tree.tables[left], tree.tables[right])
    assert len({at_one(tree, k)[1] for k in (1, 3, 5, 7, 9)}) == 5


def test_same_seed_same_bits() -> None:
    one, two = (design("Model-13", "Q2", "poisson", rng=11) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one.law.tables, two.law.tables, strict=True))
    other = design("Model-13", "Q2", "poisson", rng=12)
    assert not np.array_equal(one.law.tables[1], other.law.tables[1])
    assert simulate(one, 50, rng=1).X.tobytes() == simulate(two, 50, rng=1).X.tobytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"model": "Chain-6"},
            "model must be 'Chain-5', 'Tree-5', 'Model-5', 'Chain-10', 'Tree-10', "
            "'Model-7', 'Model-8' or 'Model-13', got 'Chain-6'",
        ),
        ({"model": "Chain-5", "q": "Q3"}, "q must be 'Q1' or 'Q2', got 'Q3'"),
        (
            {"model": "Chain-5", "design": "paper"},
            "design must be 'text' or 'research-code', got 'paper'",
        ),
        (
            {"model": "Chain-5", "family": "normal"},
            "family must be 'gaussian', 'lognormal', 'poisson', 'poisson-identity' or "
            "'bernoulli', got 'normal'",
        ),
        ({"model": "Chain-5", "slope_ratio": 0}, "ratio must be > 0, got 0"),
    ],
)
def test_invalid_settings_are_reported(arguments: dict, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        design(**arguments)
    assert str(caught.value) == sentence


def test_mixed_families_get_the_coefficients_of_each() -> None:
    law = design_law("Chain-5", rng=0)
    q = design("Chain-5", rng=0).q_matrix
    truth = make_truth(law, q, ["gaussian", "bernoulli", "poisson"] * 5, dispersion=4.0)
    assert truth.intercept[:3].tolist() == [-1, -1, 1]
    np.testing.assert_allclose(truth.loadings.sum(axis=1)[:3], [3, 3, 2])
    assert truth.dispersion[0] == 4
    assert np.isnan(truth.dispersion[1:3]).all()
    with pytest.raises(SettingError) as caught:
        make_truth(law, q, ["gaussian"] * 3)
    assert str(caught.value) == "15 items need as many families, got 3"
