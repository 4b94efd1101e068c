"""Stage I for many latents by stochastic approximation EM under a network law.

The order of the steps matters. Loadings are first estimated on the start's support. The law then
gets more edges than it needs, because dependence that the law lacks would be explained by false
loadings. Support selection and graph search alternate until the support stays the same. Edges that
the items do not support are removed last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import Schedule
from hidag.em.m_step import allowed_coefficients, coefficient_scales
from hidag.initialization.initializers import independent_law, network_start
from hidag.latent.counts import LatentCounts
from hidag.latent.laws import NetworkLaw, Parents
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY, Penalty
from hidag.network_em.em import law_from_draws, run_network_em, run_network_saem
from hidag.network_em.gibbs import NetworkModel, NetworkSampler
from hidag.network_em.support import adapt_network_penalty, score_loadings, select_loadings
from hidag.strategy.moves.split_moves import Agreement, CorrelationCheck
from hidag.structure.graph_search import search_graph
from hidag.structure.knowledge import Knowledge

Array = NDArray[np.float64]


def pair_shares(draws: NDArray[np.uint8], weights: Array | None = None) -> Array:
    """Return the share of each latent pair's joint information that the items carry, (K, K).

    For ``s = (z_a - mu_a)(z_b - mu_b)`` that is ``Var(E[s | x]) / Var(s)``. The average of s over
    the first half of the draws and that over the second err independently, so their covariance is
    ``Var(E[s | x])`` without the draws' own noise.

    Parameters
    ----------
    draws : ndarray of uint8, shape (R, N, K)
        At least two draws of the same rows, several sweeps apart.
    weights : ndarray, shape (N,), or None
        Weights of rows.
    """
    n_draws, n_rows, n_latents = draws.shape
    half = n_draws // 2
    counts = np.ones(n_rows) if weights is None else weights
    n_counted = float(counts.sum())
    mean = np.average(draws.mean(axis=0), axis=0, weights=weights)
    left, right = np.triu_indices(n_latents, 1)
    out = np.ones((n_latents, n_latents))
    if len(left) == 0:
        return out
    total = np.zeros((2, len(left)))
    cross, squares = np.zeros(len(left)), np.zeros(len(left))
    config = CONFIG.saem_network
    step = int(np.clip(config.block_cells // len(left), *config.block_rows))
    for start in range(0, n_rows, step):
        parts = np.zeros((2, len(range(start, min(start + step, n_rows))), len(left)))
        for r in range(n_draws):
            centred = draws[r, start : start + step] - mean
            product = centred[:, left] * centred[:, right]
            parts[int(r >= half)] += product
            squares += counts[start : start + step] @ product**2 / n_draws
        parts[0] /= half
        parts[1] /= n_draws - half
        total += np.einsum("i,rip->rp", counts[start : start + step], parts)
        cross += counts[start : start + step] @ (parts[0] * parts[1])
    both = total.mean(axis=0) / n_counted
    explained = cross / n_counted - total[0] * total[1] / n_counted**2
    variance = squares / n_counted - both**2
    share = np.where(variance > 1e-12, explained / np.maximum(variance, 1e-12), 1.0)
    out[left, right] = out[right, left] = np.clip(share, 0.0, 1.0)
    return out


def sampled_information_ratio(draws: NDArray[np.uint8], weights: Array | None = None) -> float:
    """Return the mean share over pairs of latents (1 for a single latent)."""
    shares = pair_shares(draws, weights)
    pairs = np.triu_indices(len(shares), 1)
    return float(shares[pairs].mean()) if len(pairs[0]) else 1.0


#: From draws of the latents (n, K) and an effective number of rows to each latent's parents.
ParentsOfDraws = Callable[[NDArray[np.uint8], float], Parents]
#: Called with (iteration, max_iter) after every step.
SamplingProgress = Callable[[int, int], None]


class SamplingRun:
    """Current parameters, law and states of a run, which its methods update."""

    def __init__(
        self,
        sampler: NetworkSampler,
        parameters: MeasurementParameters,
        schedule: Schedule,
        progress: SamplingProgress | None,
        penalty: Penalty,
    ) -> None:
        self.sampler = sampler
        self.parameters = parameters
        self.levels = parameters.terms.levels
        self.law = independent_law(self.levels)
        self.schedule = schedule
        self.progress = progress
        self.penalty = penalty
        self.support_converged = False
        self.moves: list[Array] = []
        self.ratio = 1.0
        self.n_iter = 0

    def _report_step(self) -> None:
        self.n_iter += 1
        if self.progress is not None:
            self.progress(self.n_iter, max(self.schedule.max_iter, self.n_iter))

    def steps(self, n_steps: int, burn_in: int) -> bool:
        """Run SAEM steps; return whether they converged."""
        found = run_network_saem(
            self.parameters,
            self.law,
            self.sampler,
            replace(self.schedule, max_iter=n_steps, burn_in=burn_in),
            observer=self._report_step,
        )
        self.parameters, self.law = found.parameters, found.law
        self.moves.append(found.changes)
        return found.converged

    def to_maximum(self) -> bool:
        """Run EM over a junction tree if its treewidth allows; return whether it converged."""
        found = run_network_em(
            self.parameters, self.law, self.sampler.data, observer=self._report_step
        )
        if found is None:
            return False
        self.parameters, self.law = found.parameters, found.law
        self.moves.append(found.changes)
        return found.converged

    def continue_from(self, before: SamplingRun) -> None:
        """Add the steps of an earlier run to this one's."""
        self.n_iter += before.n_iter
        self.moves = [*before.moves, *self.moves]

    def draws(self, n_draws: int, n_sweeps: int | None = None) -> NDArray[np.uint8]:
        """Return draws under the current parameters and law, shape (n_draws, N, K)."""
        model = NetworkModel.of(self.parameters, self.law)
        sweeps = CONFIG.saem_network.draw_sweeps if n_sweeps is None else n_sweeps
        return self.sampler.retain(model, n_draws=n_draws, n_sweeps=sweeps)

    def graph_draws(self) -> NDArray[np.uint8]:
        """Return draws for a graph search, and store the information ratio."""
        room = max(2, CONFIG.saem_network.most_graph_rows // self.sampler.data.n_samples)
        wanted = np.clip(
            np.ceil(1.0 / max(self.ratio, CONFIG.information.min_ratio)),
            CONFIG.saem_network.fewest_graph_draws,
            CONFIG.saem_network.most_graph_draws,
        )
        draws = self.draws(min(int(wanted), room))
        self.ratio = sampled_information_ratio(draws[[0, -1]], self.sampler.data.weights)
        return draws

    def add_edges(self, learn_parents: ParentsOfDraws, n_graphs: int) -> None:
        """Add edges to the law until the graph stays the same.

        Dependence that the law lacks appears in the draws with a share r of its strength. An
        effective number of N / r rows compensates; superfluous edges do no harm here.
        """
        n_counted = self.sampler.data.n_counted
        for _ in range(n_graphs):
            draws = self.graph_draws()
            larger = 1.0 / max(self.ratio, CONFIG.information.min_ratio)
            n_rows = n_counted * min(larger, CONFIG.saem_network.max_row_multiple)
            parents = learn_parents(draws.reshape(-1, draws.shape[-1]), n_rows)
            same = parents == self.law.parents
            self.law = law_from_draws(
                parents, draws, self.levels, weights=self.sampler.data.weights
            )
            self.steps(CONFIG.saem_network.between, CONFIG.saem_network.between // 2)
            if same:
                break

    def remove_edges(self, learn_parents: ParentsOfDraws) -> NDArray[np.uint8]:
        """Remove edges without support from the law; return the draws they were judged by.

        The draws were made before the last removal, under a law with no fewer edges.
        """
        for last in (False, True):
            draws = self.graph_draws()
            n_rows = rows_for_graph(self.sampler.data.n_counted, self.ratio)
            parents = learn_parents(draws.reshape(-1, draws.shape[-1]), n_rows)
            self.law = law_from_draws(
                parents, draws, self.levels, weights=self.sampler.data.weights
            )
            if not last:
                self.steps(CONFIG.saem_network.between, CONFIG.saem_network.between // 2)
        return draws


def rows_for_graph(n_samples: float, ratio: float) -> float:
    """Return the effective number of rows of draws when a graph is learned from them.

    A pair of latents has a share ``ratio`` of the information of observed latents, each of the two
    its square root. Most edges depend on three latents, a child and two parents: three roots.
    """
    return max(n_samples * float(ratio**1.5), 1.0)


@dataclass(frozen=True)
class SampledStageOne:
    """The estimate of Stage I by sampling."""

    parameters: MeasurementParameters  # On the working scale.
    law: NetworkLaw
    # Draws of the latents given the data, under a law with no fewer edges than ``law``, for the
    # graph search with an effective number of ``rows_for_graph`` rows, shape (R, N, K).
    draws: NDArray[np.uint8]
    information_ratio: float  # Share of the latents' pairwise information that the items carry.
    penalty: Penalty  # With the strength that was used.
    n_iter: int
    converged: bool  # Whether the support and the coefficients converged.
    # Largest change of a coefficient in each step, in units of its item's scale, shape (n_iter,).
    trace: Array


@dataclass(frozen=True)
class SamplingTask:
    """A fit with sampled latents."""

    data: WorkingData
    levels: tuple[int, ...]  # Length K.
    # 1 (loads), 0 (does not load), -1 (to be estimated). Without -1 there is no penalty, shape (J,
    # K).
    q_entries: NDArray[np.int8]
    penalty: Penalty
    # ``n_sweeps``, ``decay`` and ``max_iter`` are used; at least 40 steps follow the last support
    # selection.
    schedule: Schedule
    # Structure learning from draws of the latents, shape (n, K), and an effective sample size.
    learn_parents: ParentsOfDraws
    # The same for the last graph; ``learn_parents`` by default.
    final_parents: ParentsOfDraws | None = None
    seed: int = 0
    adapt: bool = True  # Whether the penalty's strength is estimated from the data.
    n_threads: int = 1
    progress: SamplingProgress | None = None  # Called with (iteration, max_iter).


def estimate_by_sampling(
    task: SamplingTask, begin: MeasurementParameters | None = None, *, to_maximum: bool = True
) -> SampledStageOne:
    """Return the estimate of Stage I for any number of latents; no joint states are enumerated.

    Parameters
    ----------
    begin : MeasurementParameters or None
        Starting point on the working scale; the spectral start by default.
    to_maximum : bool
        Whether EM over a junction tree finishes the fit where that is cheap.
    """
    data, levels, q_entries = task.data, task.levels, task.q_entries
    penalty, schedule, learn_parents = task.penalty, task.schedule, task.learn_parents
    n_threads, progress, adapt, seed = task.n_threads, task.progress, task.adapt, task.seed
    final_parents = task.final_parents
    if (q_entries >= 0).all():
        penalty = NO_SPARSITY
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    parameters = network_start(data, q_entries, levels) if begin is None else begin
    allowed, scale = allowed_coefficients(q_entries, parameters.terms), coefficient_scales(data)

    def estimate(begin: MeasurementParameters) -> SamplingRun:
        states = independent_law(levels).sample(data.n_samples, rng)
        sampler = NetworkSampler(data, states, int(rng.integers(1 << 62)), n_threads=n_threads)
        run = SamplingRun(sampler, begin, schedule, progress, penalty)
        run.draws(1, CONFIG.saem_network.first_sweeps)
        run.steps(CONFIG.saem_network.warm_up, CONFIG.saem_network.warm_up // 2)
        run.add_edges(learn_parents, CONFIG.saem_network.first_graphs)
        run.support_converged = penalty.name is None
        for _ in range(0 if run.support_converged else CONFIG.saem_network.most_choices):
            draws = run.draws(CONFIG.saem_network.n_draws)
            scores = score_loadings(run.parameters, draws, data, allowed, n_threads=n_threads)
            if adapt:
                run.penalty = adapt_network_penalty(
                    scores, parameters.terms.n_terms, data.n_counted, run.penalty
                )
            chosen = select_loadings(run.parameters, scores, allowed, run.penalty, scale)
            run.support_converged = np.array_equal(chosen.support, run.parameters.support)
            if run.support_converged:
                break
            run.parameters = chosen
            run.steps(CONFIG.saem_network.between, CONFIG.saem_network.between // 2)
            run.add_edges(learn_parents, CONFIG.saem_network.later_graphs)
        return run

    run = estimate(parameters)
    if begin is None:
        run = _try_splits(run, estimate, allowed)
    draws = run.remove_edges(learn_parents if final_parents is None else final_parents)
    last = max(CONFIG.saem_network.fewest_last, schedule.max_iter - run.n_iter)
    converged = run.steps(last, min(schedule.burn_in, last // 2))
    if to_maximum:
        converged |= run.to_maximum()
    return SampledStageOne(
        run.parameters,
        run.law,
        draws,
        run.ratio,
        run.penalty,
        run.n_iter,
        converged and run.support_converged,
        np.concatenate(run.moves),
    )


def _try_splits(
    run: SamplingRun,
    estimate: Callable[[MeasurementParameters], SamplingRun],
    allowed: NDArray[np.uint8],
) -> SamplingRun:
    """Return the run after the split moves that improve the support criterion."""
    if max(run.levels) > 2 or run.penalty.name is None:
        return run
    check = CorrelationCheck(run.sampler.data)

    def agreement(one: SamplingRun) -> Agreement:
        return check.agreement(
            one.parameters, one.draws(CONFIG.saem_network.draws_compared), allowed
        )

    now = agreement(run)
    for _ in range(CONFIG.saem_network.most_splits):
        for point in now.start_points:
            other = estimate(point)
            then = agreement(other)
            if then.criterion < now.criterion:
                other.continue_from(run)
                run, now = other, then
                break
        else:
            break
    return run


def parents_of_draws(
    search: str,
    levels: tuple[int, ...],
    weights: Array | None = None,
    knowledge: Knowledge | None = None,
) -> ParentsOfDraws:
    """Return the structure learning step from draws of the latents.

    ``knowledge`` refers to latents by number.
    """

    def learn(states: NDArray[np.uint8], n_rows: float) -> Parents:
        names = tuple(f"{k}" for k in range(states.shape[1]))
        counts = scale_counts(states, n_rows, names, levels, weights)
        most = CONFIG.structural_em.max_parents
        if knowledge is not None:
            most = max(most, int(knowledge.required_adjacency(names).sum(axis=0).max()))
        # Scores of tables with ordered levels need an order, which draws do not have.
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


def scale_counts(
    states: NDArray[np.uint8],
    n_rows: float,
    names: tuple[str, ...],
    levels: tuple[int, ...],
    weights: Array | None,
) -> LatentCounts:
    """Return weighted draws of the latents as counts that stand for ``n_rows`` rows."""
    if weights is None:
        counts = LatentCounts.from_rows(states, levels=levels, names=names)
    else:
        often = np.tile(weights, len(states) // len(weights))
        counts = LatentCounts(states, often, levels, names)
    return replace(counts, weights=counts.weights * (n_rows / counts.total))
