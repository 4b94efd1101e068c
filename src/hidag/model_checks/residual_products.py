"""Products of residuals of different items given the latents, summed over groups of items.

Given its latents an item's score residual (the derivative of its log density by the predictor) has
mean zero and is independent of those of other items. So the posterior mean of a product of two such
residuals has mean zero under the model. Its sum over pairs of items is the score of the variance of
a further random effect that these items share (a C(alpha) test of homogeneity): within the items of
one latent this effect is the variation of a trait within its levels, across latents a response
style. Products of an item with itself are left out, so that no family needs second derivatives and
the dispersion of single items does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from hidag.information.free_parameters import FreeParameters, RowChannels, row_bases

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class MomentTests:
    """Tests of m moments that have mean zero under the model."""

    total: Array  # (m,), efficient sums: without the part that the parameters explain
    covariance: Array  # (m, m) of these sums

    @property
    def z(self) -> Array:
        """Standardised sums, shape (m,); 0 without variance."""
        return self.along(np.eye(len(self.total)))

    def along(self, directions: Array) -> Array:
        """Return z scores of weighted sums with weights (m, d), shape (d,)."""
        variance = np.einsum("md,mn,nd->d", directions, self.covariance, directions)
        return np.asarray(
            self.total @ directions / np.sqrt(np.where(variance > 0, variance, np.inf))
        )

    def effects(self) -> Array:
        """Return one-step estimates of the variances of random effects, shape (m,)."""
        information = np.diag(self.covariance)
        return np.asarray(2.0 * self.total / np.where(information > 0, information, np.inf))

    def chi_square(self) -> tuple[float, int]:
        """Return the statistic for all moments and its degrees of freedom."""
        size = np.sqrt(np.diag(self.covariance))
        own = np.flatnonzero(size > 0)
        if not len(own):
            return 0.0, 0
        scaled = self.covariance[np.ix_(own, own)] / np.outer(size[own], size[own])
        values, vectors = np.linalg.eigh(scaled)
        good = values > SMALLEST_EIGENVALUE * values[-1]
        sums = vectors[:, good].T @ (self.total[own] / size[own])
        return float((sums**2 / values[good]).sum()), int(good.sum())


#: The scores must leave this multiple of the share of a moment's variance that they explain by
#: chance.
LEAST_REST = 2.0
SMALLEST_EIGENVALUE = 1e-6  # Relative; combinations of moments with less variance are constant.


def test_moments(moments: Array, weights: Array, basis: Array, n_effective: float) -> MomentTests:
    """Return tests of moments (N, m), given an orthonormal basis (N, P) of the weighted scores."""
    weighted = weights[:, None] * moments
    rest = weighted - basis @ (basis.T @ weighted)
    spare = max(n_effective - basis.shape[1], 1.0)
    covariance = (n_effective / spare) * (rest.T @ rest)
    # Of moments that the parameters fit almost exactly, the variance is not known.
    known = np.diag(covariance) > LEAST_REST * basis.shape[1] / spare * (weighted**2).sum(axis=0)
    return MomentTests(np.where(known, rest.sum(axis=0), 0.0), covariance * np.outer(known, known))


class ResidualProducts:
    """Residual products of a fit on a table, by pairs of groups of items."""

    def __init__(self, free: FreeParameters, group: IntArray, n_groups: int) -> None:
        assert free.is_listed
        self.free, self.n_groups = free, n_groups
        self.channels = RowChannels(free, 0, row_bases(free))
        item = free.result.responses.item
        of_response = {
            one.response: c for c, one in enumerate(free.channels) if one.kind == "predictor"
        }
        self.own = np.array([of_response[r] for r in range(len(item))], dtype=np.intp)
        self.item = item
        self.group = group[item]  # (R,), -1 for responses that are left out

    def by_pair(self, direction: Array) -> Array:
        """Return posterior means of sums over pairs of different items of two groups, (N, G, G).

        ``direction`` (R,) are factors of the residuals. Within a group each pair counts twice.
        """
        out = np.zeros((self.free.data.n_samples, self.n_groups, self.n_groups))
        used = np.flatnonzero((self.group >= 0) & (direction != 0))
        slopes = self.channels.slopes[:, :, self.own[used]] * direction[used]
        falls = self.channels.falls[:, self.own[used]] * direction[used]
        members = [np.flatnonzero(self.group[used] == g) for g in range(self.n_groups)]
        for block in self.free.row_blocks():
            posterior = block.posteriors[0]
            columns = self.channels.columns(block.rows)[:, :, self.own[used]]
            seen = self.channels.seen(block.rows)[:, self.own[used]]
            columns = columns * seen
            # Sums of residuals in each state: one product of matrices for each group.
            sums = [
                sum(
                    part[:, own] @ slope[:, own].T
                    for part, slope in zip(columns, slopes, strict=True)
                )
                - seen[:, own] @ falls[:, own].T
                for own in members
            ]
            same = self._own_products(posterior, columns, seen, slopes, falls, used)
            for g in range(self.n_groups):
                weighted = posterior * sums[g]
                for h in range(g, self.n_groups):
                    found = np.einsum("ns,ns->n", weighted, sums[h])
                    if g == h:
                        found -= same[:, members[g]].sum(axis=1)
                    out[block.rows, g, h] = out[block.rows, h, g] = found
        return out

    def _own_products(
        self,
        posterior: Array,
        columns: Array,
        seen: Array,
        slopes: Array,
        falls: Array,
        used: IntArray,
    ) -> Array:
        """Return posterior means of products of residuals of the same item, shape (n, U)."""
        out = seen * (posterior @ falls**2)
        for d, e in combinations_with_replacement(range(len(slopes)), 2):
            factor = 1.0 if d == e else 2.0
            out += factor * columns[d] * columns[e] * (posterior @ (slopes[d] * slopes[e]))
        for part, slope in zip(columns, slopes, strict=True):
            out -= 2.0 * part * (posterior @ (slope * falls))
        # Responses of a nominal item are not independent of each other.
        item = self.item[used]
        for j in np.flatnonzero(np.bincount(item) > 1):
            own = np.flatnonzero(item == j)
            for a, b in zip(*np.triu_indices(len(own), 1), strict=True):
                r, s = own[a], own[b]
                product = seen[:, r] * seen[:, s] * (posterior @ (falls[:, r] * falls[:, s]))
                for part, slope in zip(columns, slopes, strict=True):
                    product -= part[:, r] * (posterior @ (slope[:, r] * falls[:, s]))
                    product -= part[:, s] * (posterior @ (slope[:, s] * falls[:, r]))
                    for other, tilt in zip(columns, slopes, strict=True):
                        both = posterior @ (slope[:, r] * tilt[:, s])
                        product += part[:, r] * other[:, s] * both
                out[:, r] += 2.0 * product
        return out
