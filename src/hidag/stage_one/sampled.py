"""Stage I by sampling, for any number of latents: nothing here lists joint states."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, Knowledge, search_graph
from hidag.estimate.expectation import expect_states
from hidag.estimate.network_exact import run_exact_steps
from hidag.estimate.network_loop import law_of_draws
from hidag.estimate.network_structure import sampled_information_ratio
from hidag.estimate.tree_posterior import TreePosterior
from hidag.estimate.working import WorkingData
from hidag.latent import LatentCounts, LatentLaw, NetworkLaw, Parents
from hidag.measurement import MeasurementParameters
from hidag.stage_one.labels import same_class, settle_labels
from hidag.stage_one.record import StageOneRecord
from hidag.stage_one.rising import shares_of_draws
from hidag.start.budget import LARGEST_EXACT_STATES
from hidag.start.by_sampling import SampledStageOne
from hidag.start.records import StartRecord
from hidag.start.sampling_road import ParentsOfDraws, rows_for_graph

Array = NDArray[np.float64]

#: Parents that a search during estimation may give a latent: tables grow as 2^parents.
MOST_PARENTS = 6


@dataclass(frozen=True)
class SampledMeasurement:
    """What Stage I leaves when it sampled the latents.

    Attributes
    ----------
    stage_one : SampledStageOne
    parameters : MeasurementParameters
        In the user's order and units.
    law : NetworkLaw
    draws : ndarray of uint8, shape (R, N, K)
        Draws of the latents given the data, latents as in ``law``.
    data : WorkingData
        In canonical order.
    working : MeasurementParameters
        On the scale and in the order of ``data``, latents as in ``law``.
    ratio : float
        Share of the latents' pairwise information that the items carry.
    """

    stage_one: SampledStageOne
    parameters: MeasurementParameters
    law: NetworkLaw
    draws: NDArray[np.uint8]
    data: WorkingData
    working: MeasurementParameters
    ratio: float

    @property
    def observed(self) -> None:
        """Nothing: the observed data's likelihood takes a sum over all joint states."""
        return None

    @property
    def record(self) -> StageOneRecord:
        """How Stage I went."""
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
        """Return what the loadings cost: all of them are well past the penalty's threshold."""
        penalty = self.stage_one.penalty
        if penalty.name is None:
            return 0.0
        return penalty.strength * float((self.parameters.loadings != 0).sum())

    @property
    def n_samples(self) -> float:
        """Number of rows, N, or the sum of their weights."""
        return self.data.n_counted

    def information_ratio(self) -> float:
        """Return which share of the latents' pairwise information the items carry."""
        return self.ratio

    def rows_worth(self, ratio: float) -> float:
        """Return how many rows a row of the table is worth to the graph search."""
        return rows_for_graph(self.n_samples, ratio) / self.n_samples

    def counts(self, n_rows: float, names: tuple[str, ...]) -> LatentCounts:
        """Return the draws as counts that stand for ``n_rows`` rows."""
        states = self.draws.reshape(-1, self.draws.shape[-1])
        return _scaled(states, n_rows, names, self.law.space.levels, self.data.weights)

    def log_likelihood_of(self, law: LatentLaw) -> float:
        """Return the observed data's log-likelihood under a law.

        NaN where joint states are too many and latents hang together too closely for small sums.
        """
        if law.space.n_states > LARGEST_EXACT_STATES:
            tree = TreePosterior.of(self.working, law)
            return float("nan") if tree is None else tree.log_likelihood(self.data, self.working)
        features = self.working.terms.features(law.space.states())
        return expect_states(self.working, np.asarray(law.probabilities), self.data, features)[1]

    def idle(self) -> NDArray[np.intp]:
        """Return the latents that drive no item: nothing but the law speaks of them."""
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
            law=law_of_draws(((),) * len(latents), draws, levels, weights=self.data.weights),
            ratio=sampled_information_ratio(draws[[0, -1]], self.data.weights),
        )

    def law_over(self, graph: CPDAG, known: Array | None, *, obey: bool = False) -> LatentLaw:
        """Return the law over the graph that was found: Stage I's own when that is its graph."""
        if same_class(graph, self.law):
            return self.law
        drawn = law_of_draws(
            graph.to_dag().parents,
            self.draws,
            self.law.space.levels,
            weights=self.data.weights,
        )
        found = run_exact_steps(self.working, drawn, self.data, hold_items=True)
        return drawn if found is None else found.law


def sampled_measurement(
    stage_one: SampledStageOne, data: WorkingData, columns: NDArray[np.intp], *, reorder: bool
) -> SampledMeasurement:
    """Return Stage I's answer with signs settled and items in the user's order.

    Parameters as in ``exact_measurement``.
    """
    shares = shares_of_draws(stage_one.draws, stage_one.law.space.levels, data.weights)
    working, levels, order = settle_labels(stage_one.parameters, data, shares, reorder=reorder)
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


def parents_of_draws(
    search: str,
    levels: tuple[int, ...],
    weights: Array | None = None,
    knowledge: Knowledge | None = None,
) -> ParentsOfDraws:
    """Return the search that finds a graph from draws of the latents, one table after another.

    ``knowledge`` is about the latents by their numbers.
    """

    def learn(states: NDArray[np.uint8], n_rows: float) -> Parents:
        names = tuple(f"{k}" for k in range(states.shape[1]))
        counts = _scaled(states, n_rows, names, levels, weights)
        most = MOST_PARENTS
        if knowledge is not None:
            most = max(most, int(knowledge.required_adjacency(names).sum(axis=0).max()))
        # Levels of draws are in no order yet, which lean tables would need.
        score = "bdeu" if max(levels) == 2 else "bic"
        found = search_graph(
            counts,
            score=score,
            search=search,
            knowledge=knowledge,
            max_parents=most,
        )
        return found.graph.to_dag().parents

    return learn


def _scaled(
    states: NDArray[np.uint8],
    n_rows: float,
    names: tuple[str, ...],
    levels: tuple[int, ...],
    weights: Array | None,
) -> LatentCounts:
    if weights is None:
        counts = LatentCounts.from_rows(states, levels=levels, names=names)
    else:
        often = np.tile(weights, len(states) // len(weights))
        counts = LatentCounts(states, often, levels, names)
    return replace(counts, weights=counts.weights * (n_rows / counts.total))
