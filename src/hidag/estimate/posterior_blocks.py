"""Posteriors of joint states, a block of rows at a time, by halves of the latents if possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import (
    StateScores,
    block_rows,
    iterate_posteriors,
    log_probabilities,
    unnormalised,
)
from hidag.estimate.halves import SMALLEST_MASS, Halves
from hidag.estimate.halving import halves_of
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters

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
