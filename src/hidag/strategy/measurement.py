"""The estimate of Stage I in the user's order, as the graph search and the report need it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_law_e_step
from hidag.em.em import Estimate
from hidag.em.information import effective_sample_ratio, information_ratio
from hidag.latent.counts import LatentCounts, expected_counts
from hidag.latent.laws import (
    LatentLaw,
    NetworkLaw,
    Parents,
    SaturatedLaw,
    fit_network_law,
    possible_margin,
)
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.network_em.em import law_from_draws, run_network_em
from hidag.network_em.junction_tree import TreePosterior
from hidag.strategy.labels import canonicalise_labels, same_class, shares_of_draws, shares_of_law
from hidag.strategy.observed_likelihood.likelihood_search import (
    ObservedFit,
)
from hidag.strategy.problem import LevelTest, StageOne, StartRecord
from hidag.strategy.saem_network import (
    SampledStageOne,
    rows_for_graph,
    sampled_information_ratio,
    scale_counts,
)
from hidag.structure.graphs import CPDAG

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StageOneRecord:
    """The course of Stage I."""

    method: str  # {"em", "saem"}.
    n_iter: int
    converged: bool
    # Of the observed data, without and with the penalty; NaN if states are not enumerated.
    log_likelihood: float
    objective: float
    trace: Array  # Shape (n_iter, 2).
    starts: tuple[StartRecord, ...]
    n_reached: int  # Starts that reached the best solution.
    penalty: Penalty  # With the strength that was used.
    # Log-likelihood lost by the states that a hierarchy excludes; NaN without a hierarchy.
    hierarchy_loss: float = math.nan
    # Items whose latents interact, by score tests, although the model has main effects only.
    interacting: tuple[int, ...] = ()
    level_tests: tuple[LevelTest, ...] = ()  # With selected levels, latent by latent.
    # Smallest loss in the criterion of an end with other latents; NaN if all ends are the same.
    rival_gap: float = math.nan


class Measurement(Protocol):
    """Items and latents after Stage I, in the user's order."""

    @property
    def parameters(self) -> MeasurementParameters:
        """Coefficients in the user's order and units."""
        ...

    @property
    def law(self) -> LatentLaw:
        """The latents' law."""
        ...

    @property
    def record(self) -> StageOneRecord:
        """The course of Stage I."""
        ...

    @property
    def n_samples(self) -> float:
        """Number of rows, N."""
        ...

    @property
    def observed(self) -> ObservedFit | None:
        """Data and items for comparing laws by observed-data likelihood; None if too expensive."""
        ...

    def information_ratio(self) -> float:
        """Return the share of the latents' pairwise information that the items carry."""
        ...

    def effective_sample_ratio(self, ratio: float) -> float:
        """Return the effective number of rows of the graph search, per row of the table."""
        ...

    def counts(self, n_rows: float, names: tuple[str, ...]) -> LatentCounts:
        """Return the counts of latent states for the graph search."""
        ...

    def log_likelihood_of(self, law: LatentLaw) -> float:
        """Return the observed-data log-likelihood under a law; NaN if it is too expensive."""
        ...

    def idle(self) -> NDArray[np.intp]:
        """Return the latents without items."""
        ...

    def restricted(self, latents: NDArray[np.intp]) -> Measurement:
        """Return the measurement of some of the latents."""
        ...

    def law_over(self, graph: CPDAG, known: Array | None, *, obey: bool = False) -> LatentLaw:
        """Return the law that factorises over a graph, or the present law.

        With ``obey``, a saturated law is replaced too.
        """
        ...


@dataclass(frozen=True)
class ExactMeasurement:
    """The estimate of Stage I with enumerated joint states."""

    stage_one: StageOne  # The best estimate and the records of all starts, in canonical order.
    observed: ObservedFit  # Data and parameters in canonical order, latents as in ``law``.
    parameters: MeasurementParameters  # In the user's order and units.
    law: LatentLaw  # Saturated, or a network law.
    # The law for the graph search: ``law`` itself if saturated, otherwise ``law`` after a few
    # unconstrained updates.
    shown: SaturatedLaw
    interacting: tuple[int, ...] = ()  # As in the record, in the user's order.
    level_tests: tuple[LevelTest, ...] = ()

    @property
    def estimate(self) -> Estimate:
        """The estimate to report."""
        return self.stage_one.estimate

    @property
    def record(self) -> StageOneRecord:
        best = self.estimate
        return StageOneRecord(
            method=self.stage_one.method,
            n_iter=best.n_iter,
            converged=best.converged,
            log_likelihood=best.log_likelihood,
            objective=best.objective,
            trace=best.trace,
            starts=self.stage_one.records,
            n_reached=self.stage_one.n_reached,
            penalty=self.stage_one.penalty,
            hierarchy_loss=self.stage_one.hierarchy_loss,
            rival_gap=self.stage_one.rival_gap,
            interacting=self.interacting,
            level_tests=self.level_tests,
        )

    @property
    def n_samples(self) -> float:
        return self.observed.data.n_counted

    def information_ratio(self) -> float:
        return information_ratio(self.observed.parameters, self.shown, self.observed.data)

    def effective_sample_ratio(self, ratio: float) -> float:
        config = CONFIG.structural_em
        is_network = isinstance(self.law, NetworkLaw)
        steps = config.unconstrained_steps if is_network else self.estimate.n_iter
        return effective_sample_ratio(ratio, max(steps, 1))

    def counts(self, n_rows: float, names: tuple[str, ...]) -> LatentCounts:
        """Return the expected counts of latent states in ``n_rows`` rows."""
        return expected_counts(self.shown, n_rows, names)

    def law_over(self, graph: CPDAG, known: Array | None, *, obey: bool = False) -> LatentLaw:
        """Return the law that factorises over a graph, unless the present law is saturated.

        ``known`` are its probabilities, shape (S,), if already estimated. With ``obey``, a
        saturated law is replaced too.
        """
        now = self.law
        if same_class(graph, now) if isinstance(now, NetworkLaw) else not obey:
            return now
        if known is None:
            known = self.observed.law_under(graph)[0]
        return fit_network_law(known, graph.to_dag().parents, now.space)

    def log_likelihood_of(self, law: LatentLaw) -> float:
        """Return the observed data's log-likelihood under another law, with the same items."""
        if law is self.law:
            return self.estimate.log_likelihood
        seen = self.observed
        features = seen.parameters.terms.features(seen.wide.states())
        probabilities = seen.wide.with_nuisances(np.asarray(law.probabilities))
        return run_law_e_step(
            seen.parameters, probabilities, seen.data, features, n_threads=seen.n_threads
        )[1]

    def idle(self) -> NDArray[np.intp]:
        used = np.asarray(self.observed.parameters.support.any(axis=0))
        return np.flatnonzero(~used[: self.law.space.n_latents])

    def restricted(self, latents: NDArray[np.intp]) -> ExactMeasurement:
        """Return the measurement of some of the latents, with the law's margin."""
        nuisances = np.arange(self.law.space.n_latents, self.parameters.n_latents)
        kept = np.concatenate([latents, nuisances]).astype(np.intp)
        space = StateSpace(tuple(self.law.space.levels[k] for k in latents))
        others = tuple(k for k in range(self.law.space.n_latents) if k not in latents)
        cube = self.shown.probabilities.reshape(self.law.space.levels).sum(axis=others)
        # Sums leave the axes in the old order.
        cube = np.transpose(cube, np.argsort(np.argsort(latents)))
        left = SaturatedLaw(space, cube.ravel() / cube.sum())
        possible = self.observed.possible
        if possible is not None:
            possible = possible_margin(possible, self.law.space, latents.tolist()).ravel()
        return ExactMeasurement(
            self.stage_one,
            replace(
                self.observed,
                parameters=self.observed.parameters.reordered(latents=kept),
                space=space,
                law=np.asarray(left.probabilities),
                possible=possible,
            ),
            self.parameters.reordered(latents=kept),
            left,
            left,
        )


def exact_measurement(
    stage_one: StageOne,
    data: WorkingData,
    space: StateSpace,
    columns: NDArray[np.intp],
    *,
    reorder: bool,
    relevel: bool = True,
    possible: NDArray[np.bool_] | None = None,
    n_threads: int,
) -> ExactMeasurement:
    """Return the estimate of Stage I with canonical labels and items in the user's order.

    Parameters
    ----------
    columns : ndarray of int, shape (J,)
        The user's number of each item of ``data``.
    reorder : bool
        Whether latents are sorted by falling strength.
    relevel : bool
        Whether levels are sorted; not for conjunctive items, whose levels have a meaning.
    possible : ndarray of bool, shape (S,), optional
        Joint states that a hierarchy allows, in the order of ``stage_one``.
    """
    best, parents = stage_one.best, None
    network = stage_one.network
    if network is not None:
        best, parents = network.estimate, network.parents
    working, cube = best.parameters, best.probabilities.reshape(space.levels)
    shown = cube
    if network is not None and parents is not None:
        shown = network.unconstrained.reshape(space.levels)
    working, levels, order = canonicalise_labels(
        working,
        data,
        shares_of_law(cube),
        reorder=reorder,
        relevel=relevel,
        n_nuisances=space.n_nuisances,
    )
    working = working.pruned()
    # Nuisances come last, and keep their levels.
    n_latents = space.real.n_latents
    levels, order, places = levels[:n_latents], order[:n_latents], space.real.levels
    cube = space.without_nuisances(cube.ravel()).reshape(places)[np.ix_(*levels)]
    shown = space.without_nuisances(shown.ravel()).reshape(places)[np.ix_(*levels)]
    cube, shown, space = np.transpose(cube, order), np.transpose(shown, order), space.real
    shown_law = SaturatedLaw(space, shown.ravel() / shown.sum())
    final: LatentLaw = shown_law
    if parents is not None:
        final = fit_network_law(cube.ravel(), _reorder_parents(parents, order), space)
    return ExactMeasurement(
        stage_one,
        ObservedFit(data, working, space, np.asarray(shown_law.probabilities), n_threads, possible),
        data.to_user(working).reordered(items=np.argsort(columns)),
        final,
        shown_law,
        tuple(sorted(columns[list(stage_one.interacting)].tolist())),
        tuple(stage_one.level_tests[k] for k in order if stage_one.level_tests),
    )


def _reorder_parents(parents: Parents, order: NDArray[np.intp]) -> Parents:
    """Return the graph with latents in a new order."""
    place = np.argsort(order)
    return tuple(tuple(sorted(int(place[a]) for a in parents[k])) for k in order)


@dataclass(frozen=True)
class SampledMeasurement:
    """The estimate of Stage I with sampled latents."""

    stage_one: SampledStageOne
    parameters: MeasurementParameters  # In the user's order and units.
    law: NetworkLaw
    # Draws of the latents given the data, latents as in ``law``, shape (R, N, K).
    draws: NDArray[np.uint8]
    data: WorkingData  # In canonical order.
    # On the scale and in the order of ``data``, latents as in ``law``.
    working: MeasurementParameters
    ratio: float  # Share of the latents' pairwise information that the items carry.

    @property
    def observed(self) -> None:
        """None: the observed-data likelihood needs an enumeration of joint states."""
        return None

    @property
    def record(self) -> StageOneRecord:
        stage = self.stage_one
        value = self.log_likelihood_of(self.law)
        unknown = float("nan")
        moves = np.column_stack([np.full(len(stage.trace), unknown), stage.trace])
        start = StartRecord("factors", unknown, unknown, stage.n_iter, stage.converged)
        return StageOneRecord(
            method="saem",
            n_iter=stage.n_iter,
            converged=stage.converged,
            log_likelihood=value,
            objective=value - self._price(),
            trace=moves,
            starts=(start,),
            n_reached=1,
            penalty=stage.penalty,
        )

    def _price(self) -> float:
        """Return the penalty of the loadings, all of which exceed its threshold."""
        penalty = self.stage_one.penalty
        if penalty.name is None:
            return 0.0
        return penalty.strength * float((self.parameters.loadings != 0).sum())

    @property
    def n_samples(self) -> float:
        return self.data.n_counted

    def information_ratio(self) -> float:
        return self.ratio

    def effective_sample_ratio(self, ratio: float) -> float:
        return rows_for_graph(self.n_samples, ratio) / self.n_samples

    def counts(self, n_rows: float, names: tuple[str, ...]) -> LatentCounts:
        """Return the draws as counts that stand for ``n_rows`` rows."""
        states = self.draws.reshape(-1, self.draws.shape[-1])
        return scale_counts(states, n_rows, names, self.law.space.levels, self.data.weights)

    def log_likelihood_of(self, law: LatentLaw) -> float:
        """Return the observed data's log-likelihood under a law.

        NaN if there are too many joint states and the treewidth is too large.
        """
        if law.space.n_states > CONFIG.enumeration.largest_exact_states:
            tree = TreePosterior.of(self.working, law)
            return float("nan") if tree is None else tree.log_likelihood(self.data, self.working)
        features = self.working.terms.features(law.space.states())
        return run_law_e_step(self.working, np.asarray(law.probabilities), self.data, features)[1]

    def idle(self) -> NDArray[np.intp]:
        return np.flatnonzero(~self.parameters.support.any(axis=0))

    def restricted(self, latents: NDArray[np.intp]) -> SampledMeasurement:
        """Return the measurement of some of the latents, with a law of independent ones."""
        draws = np.ascontiguousarray(self.draws[:, :, latents])
        levels = tuple(self.law.space.levels[k] for k in latents)
        return replace(
            self,
            parameters=self.parameters.reordered(latents=latents),
            working=self.working.reordered(latents=latents),
            draws=draws,
            law=law_from_draws(((),) * len(latents), draws, levels, weights=self.data.weights),
            ratio=sampled_information_ratio(draws[[0, -1]], self.data.weights),
        )

    def law_over(self, graph: CPDAG, known: Array | None, *, obey: bool = False) -> LatentLaw:
        """Return the law that factorises over a graph, the present one if that is its graph."""
        if same_class(graph, self.law):
            return self.law
        drawn = law_from_draws(
            graph.to_dag().parents,
            self.draws,
            self.law.space.levels,
            weights=self.data.weights,
        )
        found = run_network_em(self.working, drawn, self.data, fix_items=True)
        return drawn if found is None else found.law


def sampled_measurement(
    stage_one: SampledStageOne, data: WorkingData, columns: NDArray[np.intp], *, reorder: bool
) -> SampledMeasurement:
    """Return the estimate of Stage I with canonical labels and items in the user's order.

    Parameters as in ``exact_measurement``.
    """
    shares = shares_of_draws(stage_one.draws, stage_one.law.space.levels, data.weights)
    working, levels, order = canonicalise_labels(
        stage_one.parameters, data, shares, reorder=reorder
    )
    draws = np.empty_like(stage_one.draws)
    for place, k in enumerate(order):
        draws[:, :, place] = np.argsort(levels[k]).astype(np.uint8)[stage_one.draws[:, :, k]]
    return SampledMeasurement(
        stage_one,
        data.to_user(working).reordered(items=np.argsort(columns)),
        stage_one.law.relabelled(order, [levels[k] for k in order]),
        draws,
        data,
        working,
        stage_one.information_ratio,
    )
