"""Latents given responses: marginals, most probable states, log densities of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.em.block_e_step import SMALLEST_MASS, Halves, halves_of
from hidag.em.design_data import WorkingData
from hidag.em.e_step import (
    StateScores,
    block_rows,
    iterate_posteriors,
    log_probabilities,
    unnormalised,
)
from hidag.latent.laws import LatentLaw
from hidag.measurement.families.base import normal_base
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

# --- Posteriors of joint states, a block of rows at a time, by halves of the latents if

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PosteriorBlocks:
    """Posteriors of all rows, never kept.

    Attributes
    ----------
    order : ndarray of int64, shape (S,)
        Number of the state that stands at each place of a posterior: arrays over states are put
        into this order once, posteriors need not be put back.
    features : ndarray, shape (S, T)
        The terms' values, by number of the state.
    tables : tuple of ndarray, shapes (D, S) and (J, S)
        Natural parameters and log partitions.
    probabilities : ndarray, shape (S,)
    halves : Halves or None
        None where states are listed, in the order of their numbers.
    data : WorkingData
    """

    order: NDArray[np.int64]
    features: Array
    tables: tuple[Array, Array]
    probabilities: Array
    halves: Halves | None
    data: WorkingData

    @classmethod
    def of(
        cls,
        parameters: MeasurementParameters,
        probabilities: Array,
        features: Array,
        data: WorkingData,
    ) -> PosteriorBlocks:
        """Return the posteriors under parameters and a law, shape (S,)."""
        tables = parameters.tables(features)
        log_law = log_probabilities(probabilities)
        gaps = not bool(data.complete.all())
        halves = halves_of(parameters, log_law, features, tables, data, gaps=gaps)
        numbers = np.arange(len(probabilities), dtype=np.int64)
        order = numbers if halves is None else halves.split.order
        return cls(order, features, tables, probabilities, halves, data)

    @cached_property
    def scores(self) -> StateScores:
        """What listed rows are multiplied with."""
        return StateScores.from_tables(*self.tables, self.probabilities, self.data.gappy)

    @property
    def add_up(self) -> bool:
        """Whether all items add up: then moments of the terms need no posteriors."""
        halves = self.halves
        return halves is not None and len(halves.additive) > 0 and len(halves.tabled) == 0

    def second_moments(self) -> Iterator[tuple[slice, Array]]:
        """Yield row ranges and means of products of two of a one and the terms, (rows, P, P).

        Only where all items add up; P = 1 + T.
        """
        if self.halves is None:
            return
        for start in range(0, self.data.n_samples, self.halves.n_rows):
            rows = slice(start, min(start + self.halves.n_rows, self.data.n_samples))
            meeting = self.halves.meet(self.data.extended[rows])
            lost = meeting.mass < SMALLEST_MASS
            with np.errstate(divide="ignore", invalid="ignore"):
                moments = meeting.second_moments(self.halves)
            if lost.any():
                design = np.hstack([np.ones((len(self.features), 1)), self.features])
                moments[lost] = [
                    design.T @ (posterior[:, None] * design)
                    for posterior in self._listed(rows, lost)
                ]
            yield rows, moments

    def means(self, columns: Array) -> Iterator[tuple[slice, Array]]:
        """Yield row ranges and posterior means of functions of the state, shape (rows, q).

        ``columns`` has their values by number of the state, shape (S, q).
        """
        by_place = columns[self.order]
        if self.halves is None:
            for rows, posterior in self:
                yield rows, posterior @ by_place
            return
        # Weighing the columns once is less than weighing every row.
        weighed = by_place * self.halves.weights.ravel()[:, None]
        for rows, joint, mass in self._joint():
            found = joint @ weighed / mass[:, None]
            lost = mass < SMALLEST_MASS
            if lost.any():
                found[lost] = self._listed(rows, lost) @ columns
            yield rows, found

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Yield row ranges and their posteriors, shape (rows, S); each is overwritten by the next.

        States stand where ``order`` says.
        """
        if self.halves is None:
            for rows, posterior, _ in iterate_posteriors(self.scores, self.data):
                yield rows, posterior
            return
        weights = self.halves.weights.ravel()
        for rows, joint, mass in self._joint():
            lost = mass < SMALLEST_MASS
            joint *= weights
            joint /= mass[:, None]
            if lost.any():
                joint[lost] = self._listed(rows, lost)[:, self.order]
            yield rows, joint

    def _joint(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield row ranges, joint densities over weights (rows, S), and those summed (rows,).

        A sum that is zero comes as the smallest number there is: such rows have lost their digits.
        """
        if self.halves is None:
            return
        n_rows = block_rows(len(self.order))
        room = np.empty((n_rows, len(self.order)))
        for start in range(0, self.data.n_samples, n_rows):
            rows = slice(start, min(start + n_rows, self.data.n_samples))
            mass, _ = self.halves.multiply_out(self.data.extended[rows], room)
            yield rows, room[: len(mass)], np.maximum(mass, np.finfo(np.float64).tiny)

    def _listed(self, rows: slice, lost: NDArray[np.bool_]) -> Array:
        """Return posteriors of rows that lost their digits, by number of the state."""
        posterior, factor, _ = unnormalised(self.scores, self.data.extended[rows][lost])
        return np.asarray(posterior * factor[:, None])


# ---

#: However little items say, a row of the table never counts for more rows than this.
MOST_ROWS_WORTH = 4.0
#: Averages over rows that need no more than two digits are taken from this many.
ROWS_FOR_AVERAGES = 2000
#: A share below this is taken for this: nothing is known of such levels together.
SMALLEST_SHARE = 1e-3
#: A mean over all pairs of latents needs fewer.
ROWS_FOR_RATIO = 1000
#: Where items carry a smaller share of latents' information than this they hardly show them: starts
#: that agree prove little, and counts from a fitted law are no ground for a graph.
HARDLY_SEEN = 0.1


def _blocks(
    parameters: MeasurementParameters, law: LatentLaw, values: Array
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield row ranges, posteriors (rows, S) and log densities without their base (rows,)."""
    features = parameters.terms.features(law.space.states())
    probabilities = np.asarray(law.probabilities)
    # Working copies are made for a few blocks at a time: memory stays that of the table.
    step = 64 * block_rows(law.space.n_states)
    for start in range(0, len(values), step):
        data = WorkingData.around(parameters, values[start : start + step])
        working = data.to_working(parameters)
        scores = StateScores.of(working, probabilities, features, data.gappy)
        for rows, posterior, marginal in iterate_posteriors(scores, data):
            yield slice(start + rows.start, start + rows.stop), posterior, marginal


def state_posteriors(
    parameters: MeasurementParameters, law: LatentLaw, values: Array
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges with the probabilities of all joint states given them, (rows, S)."""
    for rows, posterior, _ in _blocks(parameters, law, values):
        yield rows, posterior


def posterior_marginals(parameters: MeasurementParameters, law: LatentLaw, values: Array) -> Array:
    """Return the probability of each level above 0 given each row, shape (N, F).

    Latent by latent, levels ascending: for binary latents P(Z_k = 1), shape (N, K). NaN cells are
    missing.
    """
    terms = Terms.main(law.space.levels)
    at_level = (law.space.states()[:, terms.main_latents] == terms.main_levels).astype(np.float64)
    out = np.empty((len(values), terms.n_main))
    for rows, posterior, _ in _blocks(parameters, law, values):
        out[rows] = posterior @ at_level
    return np.clip(out, 0.0, 1.0)


def most_probable_states(
    parameters: MeasurementParameters, law: LatentLaw, values: Array
) -> NDArray[np.int64]:
    """Return the jointly most probable latent state of each row, shape (N, K)."""
    states = law.space.states()
    out = np.empty((len(values), law.space.n_latents), dtype=np.int64)
    for rows, posterior, _ in _blocks(parameters, law, values):
        out[rows] = states[posterior.argmax(axis=1)]
    return out


def row_log_likelihood(parameters: MeasurementParameters, law: LatentLaw, values: Array) -> Array:
    """Return the observed-data log density of each row, shape (N,); 0 for empty rows."""
    out = np.empty(len(values))
    for rows, _, marginal in _blocks(parameters, law, values):
        out[rows] = marginal
    return out + log_bases(parameters, values)


def log_bases(parameters: MeasurementParameters, values: Array) -> Array:
    """Return the part of rows' log densities that no latent enters, shape (N,).

    It is that of items in units of the fit: :meth:`hidag.em.design_data.WorkingData.around`.
    """
    out = np.zeros(len(values))
    for j, name in enumerate(parameters.families):
        family = family_named(name)
        seen = ~np.isnan(values[:, j])
        cells = values[seen, j]
        if family.is_location_scale:
            # In units of the fit: (x - intercept) / sd, and the base is that of the same variable.
            working = family.to_working(cells)
            scaled = (working - parameters.intercept[j]) / np.sqrt(parameters.dispersion[j])
            unit = np.ones(1)
            jacobian = family.base(cells, unit) - normal_base(working, unit)
            out[seen] += normal_base(scaled, unit) + jacobian
            out[seen] -= 0.5 * np.log(parameters.dispersion[j])
        else:
            out[seen] += family.base(cells, parameters.auxiliary(family, np.array([j]))[0])
    return out


def information_ratio(
    parameters: MeasurementParameters, law: LatentLaw, data: WorkingData
) -> float:
    """Return which share of the latents' pairwise information the items carry, between 0 and 1.

    For two latents and a level of each, ``s = (1{z_a >= u} - p)(1{z_b >= v} - q)`` is known with a
    share ``Var(E[s | x]) / Var(s)``. A pair of latents has the harmonic mean over its levels: an
    edge is judged by all of them at once, and the noise of one that is hardly seen counts as much
    as its share is small. The mean over pairs comes back (1 for a single latent).
    ``parameters`` are on the working scale of ``data``; averages are over its first few thousand
    rows.
    """
    data = data.first_rows(ROWS_FOR_RATIO)
    main = Terms.main(law.space.levels)
    steps = main.features(law.space.states())
    probabilities = np.asarray(law.probabilities)
    left, right = np.triu_indices(main.n_main, 1)
    apart = main.main_latents[left] != main.main_latents[right]
    left, right = left[apart], right[apart]
    if len(left) == 0:
        return 1.0
    mean = probabilities @ steps
    centred = steps - mean
    products = centred[:, left] * centred[:, right]
    total = np.zeros(len(left))
    squares = np.zeros(len(left))
    features = parameters.terms.features(law.space.states())
    posteriors = PosteriorBlocks.of(parameters, probabilities, features, data)
    counts = data.row_weights
    for rows, expected in _expected(posteriors, products, mean, left, right):
        total += counts[rows] @ expected
        squares += counts[rows] @ expected**2
    explained = squares / data.n_counted - (total / data.n_counted) ** 2
    variance = probabilities @ products**2 - (probabilities @ products) ** 2
    share = np.where(variance > 1e-12, explained / np.maximum(variance, 1e-12), 1.0)
    pair = main.main_latents[left] * law.space.n_latents + main.main_latents[right]
    return mean_of_pairs(np.clip(share, 0.0, 1.0), pair)


def _expected(
    posteriors: PosteriorBlocks,
    products: Array,
    mean: Array,
    left: NDArray[np.intp],
    right: NDArray[np.intp],
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges and what is expected of products of two centred terms, (rows, n).

    Parameters
    ----------
    posteriors : PosteriorBlocks
    products : ndarray, shape (S, n)
        The products by state.
    mean : ndarray, shape (F,)
        Means of the main terms.
    left, right : ndarray of int, shape (n,)
        Which terms.
    """
    if posteriors.add_up:
        for rows, moments in posteriors.second_moments():
            single = moments[:, 0, 1:] - mean
            both = moments[:, 1 + left, 1 + right]
            centre = mean[left] * single[:, right] + mean[right] * single[:, left]
            yield rows, both - centre - mean[left] * mean[right]
        return
    yield from posteriors.means(products)


def mean_of_pairs(shares: Array, pairs: NDArray[np.integer]) -> float:
    """Return the mean over pairs of latents of the harmonic means of their levels' shares.

    Parameters
    ----------
    shares : ndarray, shape (n,)
    pairs : ndarray of int, shape (n,)
        Which pair each share belongs to.
    """
    _, place = np.unique(pairs, return_inverse=True)
    number = np.bincount(place)
    harmonic = number / np.bincount(place, 1.0 / np.maximum(shares, SMALLEST_SHARE))
    # A pair of binary latents has one share, and that is its mean to the last bit.
    alone = number == 1
    harmonic[alone] = np.bincount(place, shares)[alone]
    return float(harmonic.mean())


def rows_worth(ratio: float, n_steps: int) -> float:
    """Return how many rows counts are worth per row of the table, when a graph is read from them.

    Seen latents would give one. Items carry a share ``ratio`` of that, once the law has settled. A
    law that was free for ``n_steps`` EM steps only shows a share ``a = 1 - (1 - ratio)^n_steps`` of
    a dependence it did not have before: its squares are made up for, so that an edge weighs what
    the score test of the observed data would give it.
    """
    shown = 1.0 - (1.0 - min(max(ratio, 1e-6), 1.0)) ** n_steps
    return float(min(ratio / shown**2, MOST_ROWS_WORTH))
