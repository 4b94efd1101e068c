"""Stage I with joint states listed: its answer in the user's order, ready for the graph search."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, Knowledge, search_graph
from hidag.discover.score_choice import score_for
from hidag.estimate.expectation import expect_states
from hidag.estimate.law_rounds import STEPS_FREE, LearnParents
from hidag.estimate.level_order import all_in_line
from hidag.estimate.loop import Estimate
from hidag.estimate.posterior import information_ratio, rows_worth
from hidag.estimate.working import WorkingData
from hidag.evidence import LikelihoodSearch, ObservedFit, SingleChanges, goes_by_likelihood
from hidag.latent import (
    LatentCounts,
    LatentLaw,
    NetworkLaw,
    Parents,
    SaturatedLaw,
    StateSpace,
    expected_counts,
)
from hidag.latent.factorise import network_of_counts, possible_among
from hidag.measurement import MeasurementParameters
from hidag.stage_one.labels import same_class, settle_labels
from hidag.stage_one.record import StageOneRecord
from hidag.stage_one.rising import shares_of_law
from hidag.start.records import StageOne

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ExactMeasurement:
    """What Stage I leaves when joint states can be listed.

    Attributes
    ----------
    stage_one : StageOne
        The best estimate and the record of all starts, in canonical order.
    observed : ObservedFit
        Data and parameters in canonical order, latents as in ``law``.
    parameters : MeasurementParameters
        In the user's order and units.
    law : LatentLaw
        Saturated, or over a graph.
    shown : SaturatedLaw
        The law whose dependence the graph search looks at: ``law`` itself when that is saturated,
        otherwise ``law`` after a few unrestricted steps.
    """

    stage_one: StageOne
    observed: ObservedFit
    parameters: MeasurementParameters
    law: LatentLaw
    shown: SaturatedLaw

    @property
    def estimate(self) -> Estimate:
        """Where Stage I ended."""
        network = self.stage_one.network
        return self.stage_one.best if network is None else network.estimate

    @property
    def record(self) -> StageOneRecord:
        """How Stage I went."""
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
        )

    @property
    def n_samples(self) -> float:
        """Number of rows, N, or the sum of their weights."""
        return self.observed.data.n_counted

    def information_ratio(self) -> float:
        """Return which share of the latents' pairwise information the items carry."""
        return information_ratio(self.observed.parameters, self.shown, self.observed.data)

    def rows_worth(self, ratio: float) -> float:
        """Return how many rows a row of the table is worth to the graph search."""
        steps = STEPS_FREE if isinstance(self.law, NetworkLaw) else self.estimate.n_iter
        return rows_worth(ratio, max(steps, 1))

    def counts(self, n_rows: float, names: tuple[str, ...]) -> LatentCounts:
        """Return the expected counts of latent states in ``n_rows`` rows."""
        return expected_counts(self.shown, n_rows, names)

    def law_over(self, graph: CPDAG, known: Array | None, *, obey: bool = False) -> LatentLaw:
        """Return the law over the graph that was found, unless the law is saturated.

        ``known`` is that law's probabilities, shape (S,), when they were found on the way;
        ``obey`` says that a saturated law is to give way too.
        """
        now = self.law
        if same_class(graph, now) if isinstance(now, NetworkLaw) else not obey:
            return now
        if known is None:
            known = self.observed.law_under(graph)[0]
        return network_of_counts(known, graph.to_dag().parents, now.space)

    def log_likelihood_of(self, law: LatentLaw) -> float:
        """Return the observed data's log-likelihood under another law, items as they are."""
        if law is self.law:
            return self.estimate.log_likelihood
        seen = self.observed
        features = seen.parameters.terms.features(law.space.states())
        probabilities = np.asarray(law.probabilities)
        return expect_states(
            seen.parameters, probabilities, seen.data, features, n_threads=seen.n_threads
        )[1]

    def idle(self) -> NDArray[np.intp]:
        """Return the latents that drive no item: nothing but the law speaks of them."""
        return np.flatnonzero(~self.observed.parameters.support.any(axis=0))

    def restricted(self, latents: NDArray[np.intp]) -> ExactMeasurement:
        """Return the measurement of some of the latents, the others summed out of the law."""
        space = StateSpace(tuple(self.law.space.levels[k] for k in latents))
        others = tuple(k for k in range(self.law.space.n_latents) if k not in latents)
        cube = self.shown.probabilities.reshape(self.law.space.levels).sum(axis=others)
        # Summing leaves axes in the old order; the latents may have been asked for in another.
        cube = np.transpose(cube, np.argsort(np.argsort(latents)))
        left = SaturatedLaw(space, cube.ravel() / cube.sum())
        possible = self.observed.possible
        if possible is not None:
            possible = possible_among(possible, self.law.space, latents.tolist()).ravel()
        return ExactMeasurement(
            self.stage_one,
            replace(
                self.observed,
                parameters=self.observed.parameters.reordered(latents=latents),
                space=space,
                law=np.asarray(left.probabilities),
                possible=possible,
            ),
            self.parameters.reordered(latents=latents),
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
    """Return Stage I's answer with signs settled and items in the user's order.

    Parameters
    ----------
    stage_one : StageOne
    data : WorkingData
    space : StateSpace
    columns : ndarray of int, shape (J,)
        Which of the user's items stands where in ``data``.
    reorder : bool
        Whether latents are put in an order of their own, the strongest first.
    relevel : bool
        Whether levels are put in order too; conjunctive items mean something by theirs.
    possible : ndarray of bool, shape (S,), optional
        Joint states that prerequisites allow, of latents and levels in the order they have.
    n_threads : int
    """
    best, parents = stage_one.best, None
    network = stage_one.network
    if network is not None:
        best, parents = network.estimate, network.parents
    working, cube = best.parameters, best.probabilities.reshape(space.levels)
    shown = cube
    if network is not None and parents is not None:
        shown = network.freed.reshape(space.levels)
    working, levels, order = settle_labels(
        working, data, shares_of_law(cube), reorder=reorder, relevel=relevel
    )
    working = working.pruned()
    cube = np.transpose(cube[np.ix_(*levels)], order)
    shown = np.transpose(shown[np.ix_(*levels)], order)
    shown_law = SaturatedLaw(space, shown.ravel() / shown.sum())
    final: LatentLaw = shown_law
    if parents is not None:
        final = network_of_counts(cube.ravel(), _renamed(parents, order), space)
    return ExactMeasurement(
        stage_one,
        ObservedFit(data, working, space, np.asarray(shown_law.probabilities), n_threads, possible),
        data.to_user(working).reordered(items=np.argsort(columns)),
        final,
        shown_law,
    )


def parents_by_search(
    space: StateSpace,
    knowledge: Knowledge | None = None,
    possible: NDArray[np.bool_] | None = None,
) -> LearnParents:
    """Return the search that finds the graph a law is restricted to while it is estimated.

    ``knowledge`` is about the latents by their numbers. ``possible``, shape (S,), says which joint
    states laws have mass on, if these are held to a hierarchy already.
    """
    names = tuple(f"{k}" for k in range(space.n_latents))

    def learn(
        parameters: MeasurementParameters, probabilities: Array, data: WorkingData, n_steps: int
    ) -> Parents:
        if space.n_latents == 1:
            return ((),)
        if max(space.levels) > 2:
            # The score goes by the order of levels; estimation keeps none.
            orders = all_in_line(parameters)
            parameters = parameters.relevelled(orders)
            probabilities = probabilities.reshape(space.levels)[np.ix_(*orders)].ravel()
        law = SaturatedLaw(space, probabilities / probabilities.sum())
        ratio = information_ratio(parameters, law, data)
        counts = expected_counts(law, max(rows_worth(ratio, n_steps) * data.n_counted, 1.0), names)
        found = search_graph(counts, score=score_for(space.levels), knowledge=knowledge)
        observed = ObservedFit(
            data, parameters, space, np.asarray(law.probabilities), possible=possible
        )
        if not goes_by_likelihood(observed, ratio):
            return found.dag.parents
        rules = None if knowledge is None else knowledge.rules(names)
        return LikelihoodSearch(observed, SingleChanges(rules)).best_from(found.dag.parents).parents

    return learn


def _renamed(parents: Parents, order: NDArray[np.intp]) -> Parents:
    """Return the graph with latents in a new order."""
    place = np.argsort(order)
    return tuple(tuple(sorted(int(place[a]) for a in parents[k])) for k in order)
