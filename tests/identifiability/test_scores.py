"""Scores of rows with missing responses are those of a model without the missing items."""

from __future__ import annotations

import numpy as np

from hidag.identifiability import ResponseModel

FAMILIES = ("bernoulli", "gaussian", "ordinal(3)", "poisson", "bernoulli")


def test_missing_items_have_zero_scores_and_do_not_affect_the_others():
    rng = np.random.default_rng(0)
    states = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    designs = [np.column_stack([np.ones(4), states[:, j % 2]]) for j in range(5)]
    eta = np.stack([design @ rng.normal(size=2) for design in designs])
    p = np.array([0.4, 0.2, 0.1, 0.3])
    model = ResponseModel.create(eta, p, FAMILIES, np.full(5, 0.7), np.full((5, 1), 0.9))
    rows = model.sample(50, 0)
    gappy = rows.copy()
    gappy[:, 2] = np.nan
    gappy[:25, 1] = np.nan
    found = model.scores(gappy, designs)
    # Two coefficients each, a dispersion of the second and a cutpoint of the third.
    begin = np.array([0, 2, 5, 8, 10, 12])
    for part, kept in ((slice(0, 25), [0, 3, 4]), (slice(25, 50), [0, 1, 3, 4])):
        reduced = ResponseModel(
            eta[kept],
            p,
            tuple(FAMILIES[j] for j in kept),
            tuple(model.auxiliary[j] for j in kept),
        )
        alone = reduced.scores(rows[part][:, kept], [designs[j] for j in kept])
        columns = np.concatenate([np.arange(begin[j], begin[j + 1]) for j in kept])
        np.testing.assert_allclose(found[part][:, columns], alone[:, : len(columns)], atol=1e-9)
        np.testing.assert_allclose(found[part][:, 12:], alone[:, len(columns) :], atol=1e-9)
        others = np.setdiff1d(np.arange(12), columns)
        np.testing.assert_array_equal(found[part][:, others], 0.0)
