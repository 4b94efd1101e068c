"""Posteriors of the block E-step are those of listed states, and so are moments of terms."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em.e_step import StateScores, iterate_posteriors
from hidag.em.information import DerivativeMeans
from hidag.em.m_step import Basis
from hidag.em.posterior import PosteriorBlocks

from .helpers import CASES, case


def listed(parameters, law, data, features):
    scores = StateScores.of(parameters.tables(features), law, data.incomplete)
    return np.vstack([posterior for _, posterior, _ in iterate_posteriors(scores, data)])


def by_number(blocks):
    """Return all posteriors with the states in the order of their numbers."""
    found = np.vstack([posterior.copy() for _, posterior in blocks])
    out = np.empty_like(found)
    out[:, blocks.order] = found
    return out


FAR = case(("gaussian",), (2,) * 6, size=40.0, seed=3, together=2)
FAR_LAW = np.full(64, 1e-300)
FAR_LAW[[0, 63]] = 0.5
FAR = (FAR[0], FAR_LAW, *FAR[2:])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("arguments", [*CASES.values(), FAR], ids=[*CASES, "digits lost"])
def test_posteriors_are_those_of_listed_states(arguments):
    parameters, law, data, features = arguments
    blocks = PosteriorBlocks.of(parameters, law, features, data)
    assert blocks.model is not None
    expected = listed(*arguments)
    np.testing.assert_allclose(by_number(blocks), expected, rtol=1e-8, atol=1e-12)
    columns = np.random.default_rng(0).standard_normal((len(law), 3))
    means = np.vstack([part for _, part in blocks.means(columns)])
    np.testing.assert_allclose(means, expected @ columns, rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("arguments", [CASES["gaussian"], CASES["levels"], FAR])
def test_second_moments_are_those_of_posteriors(arguments):
    parameters, law, data, features = arguments
    blocks = PosteriorBlocks.of(parameters, law, features, data)
    assert blocks.all_additive
    design = Basis.of(features).design
    expected = np.einsum("is,sp,sq->ipq", listed(*arguments), design, design, optimize=True)
    found = np.concatenate([moments for _, moments in blocks.second_moments()])
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["missing", "not additive", "one latent each"])
def test_all_additive_is_false_with_other_items(name):
    parameters, law, data, features = CASES[name]
    assert not PosteriorBlocks.of(parameters, law, features, data).all_additive


@pytest.mark.parametrize("linear", [0, 4, 12])
@pytest.mark.parametrize("name", ["gaussian", "not additive"])
def test_derivative_means_are_sums_over_states(name, linear):
    parameters, law, data, features = CASES[name]
    basis = Basis.of(features)
    rng = np.random.default_rng(0)
    sums = rng.standard_normal((linear, basis.design.shape[1])) @ basis.design.T
    slopes = np.vstack([rng.random((3, len(law))), sums])[::-1] if linear != 12 else sums
    blocks = PosteriorBlocks.of(parameters, law, features, data)
    means = DerivativeMeans.of(slopes, basis, blocks.order)
    found = np.concatenate([part for _, part in means.under(blocks)])
    expected = np.einsum(
        "is,ms,sp->imp",
        listed(parameters, law, data, features),
        slopes,
        basis.design,
        optimize=True,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_linear_derivatives_share_products():
    _, law, _, features = CASES["gaussian"]
    basis, order = Basis.of(features), np.arange(len(law))
    slopes = np.tile(basis.design[:, 1], (20, 1))
    assert DerivativeMeans.of(slopes, basis, order).products.shape[1] == basis.products.shape[1]
    assert len(DerivativeMeans.of(slopes[:2], basis, order).linear) == 0
    bent = slopes + 0.01 * basis.design[:, 1] * basis.design[:, 2]
    assert len(DerivativeMeans.of(bent, basis, order).linear) == 0
