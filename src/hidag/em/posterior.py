"""Posterior of the latents given responses: state probabilities, modes, log densities of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.block_e_step import BlockModel, factorise_states
from hidag.em.design_data import WorkingData
from hidag.em.e_step import (
    StateScores,
    block_rows,
    iterate_posteriors,
    log_probabilities,
    unnormalised_posterior,
)
from hidag.latent.laws import LatentLaw
from hidag.measurement.families.base import family_named, normal_base
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PosteriorBlocks:
    """Posteriors of all rows, computed a block of rows at a time."""

    # (S,): joint state at each position of a posterior: reordering arrays over states once is
    # cheaper than reordering every posterior
    order: NDArray[np.int64]
    features: Array  # (S, T): the terms' values by joint state
    tables: tuple[Array, Array]  # natural parameters and log partitions
    probabilities: Array  # (S,)
    model: BlockModel | None  # None if states are listed, in their natural order
    data: WorkingData

    @classmethod
    def of(
        cls,
        parameters: MeasurementParameters,
        probabilities: Array,
        features: Array,
        data: WorkingData,
    ) -> PosteriorBlocks:
        """Return the posteriors under item parameters and a latent distribution (S,)."""
        tables = parameters.tables(features)
        log_law = log_probabilities(probabilities)
        has_missing = not bool(data.complete.all())
        model = factorise_states(parameters, log_law, features, tables, data, has_missing)
        numbers = np.arange(len(probabilities), dtype=np.int64)
        order = numbers if model is None else model.split.order
        return cls(order, features, tables, probabilities, model, data)

    @cached_property
    def _scores(self) -> StateScores:
        return StateScores.of(self.tables, self.probabilities, self.data.incomplete)

    @property
    def all_additive(self) -> bool:
        """Whether all items are additive: moments of the terms then need no posteriors."""
        model = self.model
        return model is not None and len(model.additive) > 0 and len(model.tabled) == 0

    def second_moments(self) -> Iterator[tuple[slice, Array]]:
        """Yield rows and means of products of pairs of (1, terms), (n, P, P), if all additive."""
        if self.model is None:
            return
        for start in range(0, self.data.n_samples, self.model.n_rows):
            rows = slice(start, min(start + self.model.n_rows, self.data.n_samples))
            posterior = self.model.posterior(self.data.extended[rows])
            underflowed = posterior.mass < CONFIG.e_step.smallest_mass
            if underflowed.any():
                # Any other mass will do: these rows are listed below.
                posterior = replace(posterior, mass=np.where(underflowed, 1.0, posterior.mass))
            moments = posterior.second_moments(self.model)
            if underflowed.any():
                design = np.hstack([np.ones((len(self.features), 1)), self.features])
                moments[underflowed] = [
                    design.T @ (one[:, None] * design) for one in self._listed(rows, underflowed)
                ]
            yield rows, moments

    def means(self, columns: Array) -> Iterator[tuple[slice, Array]]:
        """Yield row ranges and posterior means, (n, q), of functions of the state, (S, q)."""
        ordered = columns[self.order]
        if self.model is None:
            for rows, posterior in self:
                yield rows, posterior @ ordered
            return
        # Weighting the columns once is cheaper than weighting every row.
        weighted = ordered * self.model.weights.ravel()[:, None]
        for rows, joint, mass in self._joint(self.model):
            found = joint @ weighted / mass[:, None]
            underflowed = mass < CONFIG.e_step.smallest_mass
            if underflowed.any():
                found[underflowed] = self._listed(rows, underflowed) @ columns
            yield rows, found

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Yield row ranges and posteriors, (n, S) in ``order``; each overwrites the one before."""
        if self.model is None:
            for rows, posterior, _ in iterate_posteriors(self._scores, self.data):
                yield rows, posterior
            return
        weights = self.model.weights.ravel()
        for rows, joint, mass in self._joint(self.model):
            underflowed = mass < CONFIG.e_step.smallest_mass
            joint *= weights
            joint /= mass[:, None]
            if underflowed.any():
                joint[underflowed] = self._listed(rows, underflowed)[:, self.order]
            yield rows, joint

    def _joint(self, model: BlockModel) -> Iterator[tuple[slice, Array, Array]]:
        """Yield row ranges, joint densities over weights (n, S), and positive marginals (n,)."""
        n_rows = block_rows(len(self.order))
        joint = np.empty((n_rows, len(self.order)))
        for start in range(0, self.data.n_samples, n_rows):
            rows = slice(start, min(start + n_rows, self.data.n_samples))
            mass, _ = model.joint_densities(self.data.extended[rows], joint)
            yield rows, joint[: len(mass)], np.maximum(mass, np.finfo(np.float64).tiny)

    def _listed(self, rows: slice, underflowed: NDArray[np.bool_]) -> Array:
        """Return posteriors of rows that underflowed, by joint state."""
        some = self.data.extended[rows][underflowed]
        posterior, factor, _ = unnormalised_posterior(self._scores, some)
        return np.asarray(posterior * factor[:, None])


def _iterate_blocks(
    parameters: MeasurementParameters, law: LatentLaw, values: Array
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield row ranges, posteriors (n, S) and log densities without their base (n,)."""
    features = parameters.terms.features(law.space.states())
    probabilities = np.asarray(law.probabilities)
    # Design data are made for some blocks at a time, so that memory stays that of the table.
    step = CONFIG.e_step.blocks_at_once * block_rows(law.space.n_states)
    for start in range(0, len(values), step):
        data = WorkingData.around(parameters, values[start : start + step])
        working = data.to_working(parameters)
        scores = StateScores.of(working.tables(features), probabilities, data.incomplete)
        for rows, posterior, marginal in iterate_posteriors(scores, data):
            yield slice(start + rows.start, start + rows.stop), posterior, marginal


def state_posteriors(
    parameters: MeasurementParameters, law: LatentLaw, values: Array
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges with the posterior probabilities of all joint states, (n, S)."""
    for rows, posterior, _ in _iterate_blocks(parameters, law, values):
        yield rows, posterior


def posterior_marginals(parameters: MeasurementParameters, law: LatentLaw, values: Array) -> Array:
    """Return P(Z_k = u) of each level u > 0, latent by latent, (N, F); NaN cells are missing."""
    terms = Terms.main(law.space.levels)
    at_level = (law.space.states()[:, terms.main_latents] == terms.main_levels).astype(np.float64)
    out = np.empty((len(values), terms.n_main))
    for rows, posterior, _ in _iterate_blocks(parameters, law, values):
        out[rows] = posterior @ at_level
    return np.clip(out, 0.0, 1.0)


def most_probable_states(
    parameters: MeasurementParameters, law: LatentLaw, values: Array
) -> NDArray[np.int64]:
    """Return the most probable joint state of each row, shape (N, K)."""
    states = law.space.states()
    out = np.empty((len(values), law.space.n_latents), dtype=np.int64)
    for rows, posterior, _ in _iterate_blocks(parameters, law, values):
        out[rows] = states[posterior.argmax(axis=1)]
    return out


def row_log_likelihood(parameters: MeasurementParameters, law: LatentLaw, values: Array) -> Array:
    """Return the observed-data log density of each row, shape (N,); 0 for empty rows."""
    out = np.empty(len(values))
    for rows, _, marginal in _iterate_blocks(parameters, law, values):
        out[rows] = marginal
    return out + log_bases(parameters, values)


def log_bases(parameters: MeasurementParameters, values: Array) -> Array:
    """Return rows' log densities free of latents, (N,), in the units of `WorkingData.around`."""
    out = np.zeros(len(values))
    for j, name in enumerate(parameters.families):
        family = family_named(name)
        seen = ~np.isnan(values[:, j])
        cells = values[seen, j]
        if family.is_location_scale:
            # The density of the standardised variable, with the Jacobian of the transformation.
            working = family.to_working(cells)
            scaled = (working - parameters.intercept[j]) / np.sqrt(parameters.dispersion[j])
            unit = np.ones(1)
            jacobian = family.base(cells, unit) - normal_base(working, unit)
            out[seen] += normal_base(scaled, unit) + jacobian
            out[seen] -= 0.5 * np.log(parameters.dispersion[j])
        else:
            out[seen] += family.base(cells, parameters.auxiliary(family, np.array([j]))[0])
    return out
