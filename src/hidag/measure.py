"""Stage I as one function: items' coefficients and the latent law from a table of responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.discover import search_graph
from hidag.errors import SettingError
from hidag.estimate.canonical import canonical_order
from hidag.estimate.law_rounds import STEPS_FREE, LearnParents
from hidag.estimate.loop import Estimate, Schedule
from hidag.estimate.posterior import information_ratio, rows_worth
from hidag.estimate.working import WorkingData
from hidag.evidence import ObservedFit
from hidag.latent import LatentLaw, NetworkLaw, SaturatedLaw, StateSpace, expected_counts
from hidag.latent.factorise import Parents, network_of_counts
from hidag.measurement import MeasurementParameters, Penalty
from hidag.start.several import StageOne, StartProgress, choose_method
from hidag.start.spectral import StartPoint
from hidag.start.under_graph import estimate_with_law

Array = NDArray[np.float64]

LAWS = ("auto", "network", "saturated")


@dataclass(frozen=True)
class Measurement:
    """What Stage I leaves.

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

    def information_ratio(self) -> float:
        """Return which share of the latents' pairwise information the items carry."""
        return information_ratio(self.observed.parameters, self.shown, self.observed.data)

    def rows_worth(self, ratio: float) -> float:
        """Return how many rows a row of the table is worth to the graph search."""
        steps = STEPS_FREE if isinstance(self.law, NetworkLaw) else self.estimate.n_iter
        return rows_worth(ratio, max(steps, 1))

    def idle(self) -> NDArray[np.intp]:
        """Return the latents that drive no item: nothing but the law speaks of them."""
        return np.flatnonzero(~(self.observed.parameters.loadings != 0).any(axis=0))

    def restricted(self, latents: NDArray[np.intp]) -> Measurement:
        """Return the measurement of some of the latents, the others summed out of the law."""
        space = StateSpace(tuple(self.law.space.levels[k] for k in latents))
        others = tuple(k for k in range(self.law.space.n_latents) if k not in latents)
        cube = self.shown.probabilities.reshape(self.law.space.levels).sum(axis=others)
        left = SaturatedLaw(space, cube.ravel() / cube.sum())
        return Measurement(
            self.stage_one,
            replace(
                self.observed,
                parameters=self.observed.parameters.reordered(latents=latents),
                space=space,
            ),
            self.parameters.reordered(latents=latents),
            left,
            left,
        )


def estimate_measurement(
    values: Array,
    families: Sequence[str],
    n_latents: int,
    *,
    q_entries: NDArray[np.int8] | None = None,
    penalty: Penalty,
    schedule: Schedule,
    method: str = "auto",
    seed: int = 0,
    adapt: bool = True,
    n_starts: int | str = "auto",
    law: str = "auto",
    begin: tuple[MeasurementParameters, Array] | None = None,
    n_threads: int = 1,
    progress: StartProgress | None = None,
) -> Measurement:
    """Return Stage I's answer: items' coefficients and the latent law.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        Responses on the user's scale; NaN in missing cells.
    families : sequence of str, length J
    n_latents : int
    q_entries : ndarray of int8, shape (J, K), optional
        1, 0, or -1 where Q is to be estimated; None estimates all of it.
    n_starts : int or "auto"
        "auto" takes as many as are worth their cost.
    law : {"auto", "network", "saturated"}
        Whether the law is restricted to a graph, which is learned along with it; "auto" decides by
        the Bayesian information criterion.
    begin : (MeasurementParameters, ndarray of shape (2^K,)), optional
        Items, in the user's order and units, and a law to begin from instead of any start.
    penalty, schedule, method, seed, adapt, n_threads, progress
        As in ``hidag.start.several.estimate_from_starts``.
    """
    if law not in LAWS:
        raise SettingError(f"law must be 'auto', 'network' or 'saturated', got {law!r}")
    space = StateSpace.binary(n_latents)
    n_samples, n_items = values.shape
    entries = q_entries
    if entries is None:
        entries = np.full((n_items, n_latents), -1, dtype=np.int8)
    labels = [f"{f}{row.tolist()}" for f, row in zip(families, entries, strict=True)]
    rows, columns = canonical_order(values, labels)
    data = WorkingData.from_values(
        values[np.ix_(rows, columns)], tuple(families[j] for j in columns)
    )
    stage_one = estimate_with_law(
        data,
        space,
        np.ascontiguousarray(entries[columns]),
        penalty,
        schedule,
        law=law,
        method=choose_method(method, n_samples, n_items, space),
        seed=seed,
        learn_parents=_search_parents(space),
        adapt=adapt,
        n_starts=n_starts,
        begin=None if begin is None else _begun(begin, data, columns),
        n_threads=n_threads,
        progress=progress,
    )
    best, parents = stage_one.best, None
    network = stage_one.network
    if network is not None:
        best, parents = network.estimate, network.parents
    working, cube = best.parameters, best.probabilities.reshape(space.levels)
    shown = cube
    if network is not None and parents is not None:
        shown = network.freed.reshape(space.levels)
    flips = data.to_user(working).loadings.sum(axis=0) < 0
    turned = tuple(int(k) for k in np.flatnonzero(flips))
    working = working.flipped(flips)
    order = np.arange(n_latents)
    if q_entries is None:
        # Strongest first: an order that does not depend on how columns stand in the table.
        order = np.argsort(-np.abs(working.loadings).sum(axis=0), kind="stable")
        working = working.reordered(latents=order)
    cube = np.transpose(np.flip(cube, axis=turned), order)
    shown = np.transpose(np.flip(shown, axis=turned), order)
    shown_law = SaturatedLaw(space, shown.ravel() / shown.sum())
    final: LatentLaw = shown_law
    if parents is not None:
        final = network_of_counts(cube.ravel(), _renamed(parents, order), space)
    return Measurement(
        stage_one,
        ObservedFit(data, working, space, n_threads),
        data.to_user(working).reordered(items=np.argsort(columns)),
        final,
        shown_law,
    )


def _begun(
    begin: tuple[MeasurementParameters, Array], data: WorkingData, columns: NDArray[np.intp]
) -> StartPoint:
    items, probabilities = begin
    return StartPoint(data.to_working(items.reordered(items=columns)), probabilities, "given")


def _search_parents(space: StateSpace) -> LearnParents:
    """Return the search that finds the graph a law is restricted to while it is estimated."""
    names = tuple(f"{k}" for k in range(space.n_latents))

    def learn(
        parameters: MeasurementParameters, probabilities: Array, data: WorkingData, n_steps: int
    ) -> Parents:
        if space.n_latents == 1:
            return ((),)
        law = SaturatedLaw(space, probabilities / probabilities.sum())
        worth = rows_worth(information_ratio(parameters, law, data), n_steps)
        counts = expected_counts(law, max(worth * data.n_samples, 1.0), names)
        return search_graph(counts).graph.to_dag().parents

    return learn


def _renamed(parents: Parents, order: NDArray[np.intp]) -> Parents:
    """Return the graph with latents in a new order."""
    place = np.argsort(order)
    return tuple(tuple(sorted(int(place[a]) for a in parents[k])) for k in order)
