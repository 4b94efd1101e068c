"""Leading eigenvectors by projection."""

from __future__ import annotations

import numpy as np

from hidag.initialization.rotations import leading_eigenvectors


def test_projection_finds_the_eigenvectors_of_the_full_decomposition(configure):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(300, 8)) * np.linspace(1.0, 3.0, 8)
    matrix = factors @ factors.T + 0.3 * np.diag(rng.uniform(0, 1, 300))
    exact = leading_eigenvectors(matrix, 8)
    configure("initialization", max_dense_items=100)
    values, vectors = leading_eigenvectors(matrix, 8)
    np.testing.assert_allclose(values, exact[0], rtol=1e-6)
    np.testing.assert_allclose(np.abs(np.sum(vectors * exact[1], axis=0)), 1.0, atol=1e-6)
    again = leading_eigenvectors(matrix, 8)
    np.testing.assert_array_equal(vectors, again[1])
