"""Parameters, law and states on the sampled road: steps, draws, and graphs learned from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loop import Schedule
from hidag.estimate.network_exact import run_exact_steps
from hidag.estimate.network_gibbs import NetworkSampler
from hidag.estimate.network_layout import FamilyLayout, ItemLayout
from hidag.estimate.network_loop import law_of_draws, run_steps
from hidag.estimate.network_structure import sampled_information_ratio
from hidag.latent import Parents
from hidag.measurement import MeasurementParameters, Penalty
from hidag.start.network_start import independent_law

Array = NDArray[np.float64]
#: From draws of the latents (n, K) and the number of rows they count for to each latent's parents.
ParentsOfDraws = Callable[[NDArray[np.uint8], float], Parents]
#: Told (iteration, most iterations) after every step.
SamplingProgress = Callable[[int, int], None]

#: Sweeps between two draws: neighbouring ones are to err in their own ways.
DRAW_SWEEPS = 2
#: Draws that a graph is learned from, and the most rows that they may have together. The less
#: items say, the more a single draw is noise.
FEWEST_GRAPH_DRAWS, MOST_GRAPH_DRAWS, MOST_GRAPH_ROWS = 4, 16, 320_000
#: Steps after each new graph or support.
BETWEEN = 10
#: At most this many times the table's rows may stand behind a graph that is to be too thick.
THICKEST = 16.0


class Road:
    """Parameters, law and states on their way; every method takes them further."""

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
        self.settled = False
        self.moves: list[Array] = []
        self.ratio = 1.0
        self.n_iter = 0

    def _tick(self) -> None:
        self.n_iter += 1
        if self.progress is not None:
            self.progress(self.n_iter, max(self.schedule.max_iter, self.n_iter))

    def steps(self, n_steps: int, burn_in: int) -> bool:
        """Take SAEM steps; return whether they converged."""
        found = run_steps(
            self.parameters,
            self.law,
            self.sampler,
            n_steps=n_steps,
            burn_in=burn_in,
            decay=self.schedule.decay,
            n_sweeps=self.schedule.n_sweeps,
            observer=self._tick,
        )
        self.parameters, self.law = found.parameters, found.law
        self.moves.append(found.moves)
        return found.converged

    def to_maximum(self) -> bool:
        """Take steps of EM, where latents hang together little; return whether they converged."""
        found = run_exact_steps(self.parameters, self.law, self.sampler.data, observer=self._tick)
        if found is None:
            return False
        self.parameters, self.law = found.parameters, found.law
        self.moves.append(found.moves)
        return found.converged

    def continue_from(self, before: Road) -> None:
        """Count the steps that led here."""
        self.n_iter += before.n_iter
        self.moves = [*before.moves, *self.moves]

    def draws(self, n_draws: int, n_sweeps: int = DRAW_SWEEPS) -> NDArray[np.uint8]:
        """Return draws under the current parameters and law, shape (n_draws, N, K)."""
        return self.sampler.retain(
            self.parameters,
            self.law,
            ItemLayout.of(self.parameters),
            FamilyLayout.of_law(self.law),
            n_draws=n_draws,
            n_sweeps=n_sweeps,
        )

    def graph_draws(self) -> NDArray[np.uint8]:
        """Return as many draws as a graph is learned from, and note the information ratio."""
        room = max(2, MOST_GRAPH_ROWS // self.sampler.data.n_samples)
        wanted = np.clip(np.ceil(1.0 / max(self.ratio, 1e-6)), FEWEST_GRAPH_DRAWS, MOST_GRAPH_DRAWS)
        draws = self.draws(min(int(wanted), room))
        self.ratio = sampled_information_ratio(draws[[0, -1]], self.sampler.data.weights)
        return draws

    def thicken(self, learn_parents: ParentsOfDraws, n_graphs: int) -> None:
        """Give the law room for what the draws may be hiding, until it asks for no more.

        An edge that the law lacks shows in the draws with a share r of its strength. Counting them
        for N / r rows makes up for that; an edge too many does no harm here.
        """
        n_counted = self.sampler.data.n_counted
        for _ in range(n_graphs):
            draws = self.graph_draws()
            n_rows = n_counted * min(1.0 / max(self.ratio, 1e-6), THICKEST)
            parents = learn_parents(draws.reshape(-1, draws.shape[-1]), n_rows)
            same = parents == self.law.parents
            self.law = law_of_draws(parents, draws, self.levels, weights=self.sampler.data.weights)
            self.steps(BETWEEN, BETWEEN // 2)
            if same:
                break

    def thin(self, learn_parents: ParentsOfDraws) -> NDArray[np.uint8]:
        """Leave the law the edges that the items bear out; return the draws that showed them.

        The draws were made before the last thinning: they show edges that the law lost in it.
        """
        for last in (False, True):
            draws = self.graph_draws()
            n_rows = rows_for_graph(self.sampler.data.n_counted, self.ratio)
            parents = learn_parents(draws.reshape(-1, draws.shape[-1]), n_rows)
            self.law = law_of_draws(parents, draws, self.levels, weights=self.sampler.data.weights)
            if not last:
                self.steps(BETWEEN, BETWEEN // 2)
        return draws


def rows_for_graph(n_samples: float, ratio: float) -> float:
    """Return how many rows draws of the latents count for when a graph is learned from them.

    A pair of latents is seen with a share ``ratio`` of the information that seen latents would
    carry, each of the two with its root. What decides about most edges is a latent, a parent and
    another parent: three roots.
    """
    return max(n_samples * float(ratio**1.5), 1.0)
