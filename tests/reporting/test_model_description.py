"""Descriptions of models with several levels and interactions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hidag import CPDAG, DCRL
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.reporting import render_report
from hidag.reporting.fit_description import (
    describe_effects,
    describe_fit,
    describe_latents,
    describe_loadings,
    list_interactions,
    summarize_latents,
)
from hidag.simulation import design, simulate


@pytest.fixture(scope="module")
def binary():
    data = simulate(design("Tree-5", rng=1), 400, rng=2)
    return DCRL(5, random_state=0, n_starts=1).fit(data.X).result_


def rewritten(binary, levels, interactions=(), loadings=None, **settings):
    """Return a fit of other latents made of a binary one: only what is read of it matters."""
    terms = Terms(levels, interactions)
    space = StateSpace(levels)
    if loadings is None:
        loadings = np.zeros((len(binary.item_names), terms.n_terms))
        loadings[np.arange(len(loadings)), np.arange(len(loadings)) % terms.n_main] = 1.0
    names = tuple("ABCDE"[: len(levels)])
    law = np.arange(1.0, space.n_states + 1)
    return dataclasses.replace(
        binary,
        parameters=MeasurementParameters(
            binary.families, binary.intercept, loadings, binary.dispersion, terms
        ),
        law=SaturatedLaw(space, law / law.sum()),
        latent_names=names,
        graph=CPDAG(np.zeros((len(levels), len(levels))), names),
        edge_tests=(),
        settings={**binary.settings, **settings},
    )


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ((2, 2), "2 binary latent variables"),
        ((3,), "1 latent variable with 3 levels"),
        ((3, 3), "2 latent variables with 3 levels each"),
        ((3, 2, 3), "3 latent variables, 1 with 2 levels and 2 with 3 levels"),
        ((4, 2, 3), "3 latent variables, 1 with 2 levels, 1 with 3 levels and 1 with 4 levels"),
    ],
)
def test_describe_latents(binary, levels, words):
    assert describe_latents(rewritten(binary, levels)) == words


def test_latents_with_three_levels(binary):
    fit = rewritten(binary, (3, 2))
    page = render_report(fit, plots=False)
    assert "binary latent" not in " ".join(describe_fit(fit)) + page
    assert "P(latent = 1)" not in page
    shares = summarize_latents(fit)
    assert [len(one.shares) for one in shares] == [3, 2]
    # States (0,0), (0,1), (1,0), ... have probabilities 1/21, 2/21, 3/21, ...
    np.testing.assert_allclose(shares[0].shares, [3 / 21, 7 / 21, 11 / 21])
    np.testing.assert_allclose(shares[1].shares, [9 / 21, 12 / 21])
    assert '<th scope="rowgroup" rowspan="3"><bdi>A</bdi></th>' in page
    assert '<td class="n">2</td><td class="n">0.524</td>' in page
    assert "from its lowest to its highest level (loadings.csv has the single steps)" in page


def test_describe_effects(binary):
    pairs = (((0, 1), (1, 1)),)
    loadings = np.zeros((len(binary.item_names), 3))
    loadings[:, 0] = 1.0
    loadings[:4, 1] = 0.5

    def words(coefficients, effects, **changes):
        fit = rewritten(binary, (2, 2), pairs, coefficients, effects=effects)
        return describe_effects(dataclasses.replace(fit, **changes))

    assert words(loadings, "acdm") == (
        "The latents of an item have additive effects (main effects only)."
    )
    assert words(loadings, 2) == (
        "Interactions up to order 2 among the latents of an item were allowed; none was selected."
    )
    loadings[:2, 2] = (0.25, -1.5)
    assert words(loadings, "all") == (
        "Interactions of any order among the latents of an item were allowed (selected by "
        "penalized likelihood); the model has 2 interactions in 2 items."
    )
    loadings[1, 2] = 0.0
    q = (loadings[:, :2] != 0).astype(np.int8)
    assert words(loadings, "gdina", q_given=q) == (
        "Interactions of any order among the latents of an item were allowed (all of them, as Q is "
        "given); the model has 1 interaction in 1 item."
    )
    assert words(loadings, "dina") == (
        "An item with several latents responds only if all of them are present (DINA)."
    )
    assert words(loadings, "dino") == (
        "An item with several latents responds if any of them is present (DINO)."
    )
    no_products = rewritten(binary, (2, 2), effects="all")
    assert describe_effects(no_products) == (
        "Interactions of any order were allowed, but no item has several latents."
    )


def test_interactions_come_with_the_rarest_combination(binary):
    pairs = (((0, 2), (1, 1)),)
    loadings = np.zeros((len(binary.item_names), 4))
    loadings[:, 0] = 1.0
    loadings[1, 3] = -1.25
    fit = rewritten(binary, (3, 2), pairs, loadings, effects=2)
    (found,) = list_interactions(fit)
    assert (found.item, found.term, found.coefficient) == (binary.item_names[1], "A>=2*B", -1.25)
    # A below 2 and B = 0 has 1 + 3, B = 1 has 2 + 4; A = 2 has 5 and 6 of 21.
    assert found.rarest == pytest.approx(4 / 21)
    page = render_report(fit, plots=False)
    assert "<h2>Interactions</h2>" in page
    assert (
        '<td><bdi>A&gt;=2*B</bdi></td><td class="n">-1.250</td><td class="n">19.0% of rows</td>'
        in page
    )
    assert (
        "averaged over the levels of the item's other latents with equal weights"
        in page.replace("&#39;", "'")
    )
    assert "<h2>Interactions</h2>" not in render_report(binary, plots=False)


def test_dispersions_that_are_no_variances_are_explained():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 400)
    amounts = rng.gamma(3.0, np.exp(1.2 * z)[:, None], (400, 5)) + 1e-6
    choice = (rng.random(400) < np.where(z, 0.7, 0.1)).astype(int) + 2 * (rng.random(400) < 0.2)
    X = np.column_stack([amounts, choice])
    X[:, 5] = X[:, 5] % 3
    fit = DCRL(1, family=["gamma"] * 5 + ["categorical"], random_state=0, n_starts=1).fit(X).result_
    page = render_report(fit, plots=False)
    assert '<th scope="col" class="n">dispersion</th>' in page
    assert (
        "Meaning of the dispersion by item type: gamma: squared ratio of standard deviation and "
        "mean." in page
    )
    assert "A nominal item has a line for each category but the last" in page
    assert page.count(f"<bdi>{fit.item_names[5]}=") == 2


def test_combinations_excluded_by_prerequisites(binary):
    pairs = (((0, 1), (1, 1)),)
    loadings = np.zeros((len(binary.item_names), 3))
    loadings[:, 0] = 1.0
    loadings[1, 2] = -1.25
    reported = {"hierarchy": [["A", "B"]]}
    fit = rewritten(binary, (2, 2), pairs, loadings, effects=2, knowledge=reported)
    (found,) = list_interactions(fit)
    assert found.describe_rarest() == "excluded by prerequisites"
    assert dataclasses.replace(found, ruled_out=False).describe_rarest() == "< 0.05% of rows"


def test_latents_are_listed_with_their_strongest_items(binary):
    for one in summarize_latents(binary):
        assert len(one.strongest) == min(one.n_items, 3)
    page = render_report(binary, plots=False)
    assert '<th scope="col">strongest items</th>' in page


def test_the_scale_of_loadings_is_that_of_the_families(binary):
    assert describe_loadings(binary).endswith("The predictor is the mean.")
    mixed = list(binary.families)
    mixed[:3] = "bernoulli-probit", "poisson-identity", "bernoulli"
    parameters = dataclasses.replace(binary.parameters, families=tuple(mixed))
    assert describe_loadings(dataclasses.replace(binary, parameters=parameters)).endswith(
        "The predictor is the probit of a 1 for bernoulli-probit items; mean for poisson-identity "
        "and gaussian items; log-odds of a 1 for bernoulli items."
    )
