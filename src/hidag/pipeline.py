"""The three stages as plain functions: estimate, count, search (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, Knowledge, SearchResult, search_graph
from hidag.errors import SettingError
from hidag.estimate.canonical import canonical_order
from hidag.estimate.loop import Schedule
from hidag.estimate.posterior import information_ratio
from hidag.estimate.working import WorkingData
from hidag.evidence import EdgeTest, ObservedFit, confirm_edges
from hidag.latent import (
    LatentCounts,
    LatentLaw,
    SaturatedLaw,
    StateSpace,
    expected_counts,
    resample,
    resampled_rows,
)
from hidag.latent.resample import ResampleRule
from hidag.measurement import MeasurementParameters, Penalty
from hidag.start.several import (
    StageOne,
    StartProgress,
    choose_method,
    choose_n_starts,
    estimate_from_starts,
)

Array = NDArray[np.float64]

#: The weakest pairs of latents put to the test on the observed data, at the most.
MAX_EDGE_TESTS = 20
#: Fewer are made when an E-step is dear: this many multiplications divided by one E-step's.
WORK_FOR_EDGE_TESTS = 1e10
#: Stage II's draws are far from any start's in the tree of seeds.
_RESAMPLING_KEY = 1 << 20


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
    law : SaturatedLaw
    """

    stage_one: StageOne
    observed: ObservedFit
    parameters: MeasurementParameters
    law: SaturatedLaw

    def information_ratio(self) -> float:
        """Return which share of the latents' pairwise information the items carry."""
        return information_ratio(self.observed.parameters, self.law, self.observed.data)

    def idle(self) -> NDArray[np.intp]:
        """Return the latents that drive no item: nothing but the law speaks of them."""
        return np.flatnonzero(~(self.observed.parameters.loadings != 0).any(axis=0))

    def restricted(self, latents: NDArray[np.intp]) -> Measurement:
        """Return the measurement of some of the latents, the others summed out of the law."""
        space = StateSpace(tuple(self.law.space.levels[k] for k in latents))
        others = tuple(k for k in range(self.law.space.n_latents) if k not in latents)
        cube = self.law.probabilities.reshape(self.law.space.levels).sum(axis=others)
        return Measurement(
            self.stage_one,
            replace(
                self.observed,
                parameters=self.observed.parameters.reordered(latents=latents),
                space=space,
            ),
            self.parameters.reordered(latents=latents),
            SaturatedLaw(space, cube.ravel() / cube.sum()),
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
    penalty, schedule, method, seed, adapt, n_threads, progress
        As in ``hidag.start.several.estimate_from_starts``.
    """
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
    starts = n_starts
    if isinstance(starts, str):
        known = bool((entries >= 0).all())
        starts = choose_n_starts(n_samples, n_items, space, known=known)
    stage_one = estimate_from_starts(
        data,
        space,
        np.ascontiguousarray(entries[columns]),
        penalty,
        schedule,
        method=choose_method(method, n_samples, n_items, space),
        seed=seed,
        adapt=adapt,
        n_starts=starts,
        n_threads=n_threads,
        progress=progress,
    )
    working, cube = stage_one.best.parameters, stage_one.best.probabilities.reshape(space.levels)
    flips = data.to_user(working).loadings.sum(axis=0) < 0
    working = working.flipped(flips)
    cube = np.flip(cube, axis=tuple(np.flatnonzero(flips)))
    if q_entries is None:
        # Strongest first: an order that does not depend on how columns stand in the table.
        order = np.argsort(-np.abs(working.loadings).sum(axis=0), kind="stable")
        working = working.reordered(latents=order)
        cube = np.transpose(cube, order)
    return Measurement(
        stage_one,
        ObservedFit(data, working, space, n_threads),
        data.to_user(working).reordered(items=np.argsort(columns)),
        SaturatedLaw(space, cube.ravel() / cube.sum()),
    )


def count_latents(
    law: LatentLaw,
    n_samples: int,
    names: tuple[str, ...],
    *,
    rule: ResampleRule = "expected",
    share: float = 1.0,
    seed: int = 0,
) -> LatentCounts:
    """Return Stage II's counts: expected for ``share * n_samples`` rows, or of resampled rows."""
    if isinstance(rule, str) and rule == "expected":
        # Items that say nothing still leave one row: too little for any edge, enough for a score.
        return expected_counts(law, max(share * n_samples, 1.0), names)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_RESAMPLING_KEY,)))
    return resample(law, resampled_rows(rule, n_samples), names, rng)


def effective_share(effective_size: str | float, ratio: float) -> float:
    """Return how many rows expected counts stand for, as a share of N."""
    if effective_size == "auto":
        return ratio
    if effective_size == "all":
        return 1.0
    if isinstance(effective_size, (int, float)) and 0 < effective_size <= 1:
        return float(effective_size)
    raise SettingError(
        f"effective_size must be 'auto', 'all' or a share of N between 0 and 1, "
        f"got {effective_size!r}"
    )


def find_graph(
    counts: LatentCounts,
    *,
    score: Any = "bdeu",
    equivalent_sample_size: float = 1.0,
    search: str | Callable[..., Any] = "xges",
    knowledge: Knowledge | None = None,
    measurement: Measurement | None = None,
) -> tuple[CPDAG, tuple[EdgeTest, ...]]:
    """Return Stage III's graph and what the observed data said about its weakest edges.

    Edges are put to that test when ``measurement`` is given and the search is one of ours.
    """
    if counts.n_variables == 1:
        return CPDAG(np.zeros((1, 1), dtype=np.int8), counts.names), ()

    def run(known: Knowledge | None) -> SearchResult:
        return search_graph(
            counts,
            score=score,
            equivalent_sample_size=equivalent_sample_size,
            search=search,
            knowledge=known,
        )

    found = run(knowledge)
    if measurement is None or callable(search):
        return found.graph, ()
    return confirm_edges(
        found,
        run,
        knowledge,
        measurement.observed,
        np.asarray(measurement.law.probabilities),
        n_rows=counts.total,
        max_tests=int(min(MAX_EDGE_TESTS, WORK_FOR_EDGE_TESTS // measurement.observed.work())),
    )


@dataclass(frozen=True)
class GraphFound:
    """What Stages II and III leave.

    Attributes
    ----------
    graph : CPDAG
        Among all latents; those that drive no item stand alone.
    edge_tests : tuple of EdgeTest
    information_ratio : float
        Share of the latents' pairwise information that the items carry.
    n_rows : float
        Rows that the graph's score counted on.
    """

    graph: CPDAG
    edge_tests: tuple[EdgeTest, ...]
    information_ratio: float
    n_rows: float


def latent_graph(
    measurement: Measurement,
    names: tuple[str, ...],
    *,
    rule: ResampleRule = "expected",
    effective_size: str | float = "auto",
    seed: int = 0,
    score: Any = "bdeu",
    equivalent_sample_size: float = 1.0,
    search: str | Callable[..., Any] = "xges",
    knowledge: Knowledge | None = None,
) -> GraphFound:
    """Return the graph among the latents that drive items: Stages II and III in one call.

    Knowledge is about the latents as they were asked for; it is set aside when some of them turn
    out to drive no item.
    """
    adjacency = np.zeros((len(names), len(names)), dtype=np.int8)
    idle = measurement.idle()
    busy = np.setdiff1d(np.arange(len(names)), idle)
    if len(busy) == 0:
        return GraphFound(CPDAG(adjacency, names), (), 0.0, 0.0)
    part = measurement.restricted(busy) if len(idle) else measurement
    ratio = part.information_ratio()
    counts = count_latents(
        part.law,
        part.observed.data.n_samples,
        tuple(names[k] for k in busy),
        rule=rule,
        share=effective_share(effective_size, ratio),
        seed=seed,
    )
    calibrated = rule == "expected" and effective_size == "auto"
    graph, tests = find_graph(
        counts,
        score=score,
        equivalent_sample_size=equivalent_sample_size,
        search=search,
        knowledge=None if len(idle) else knowledge,
        measurement=part if calibrated else None,
    )
    adjacency[np.ix_(busy, busy)] = graph.adjacency
    return GraphFound(CPDAG(adjacency, names), tests, ratio, counts.total)
