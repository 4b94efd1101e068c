"""Better optima for a given Q: some latents begun again, and the law begun again.

With a given Q most random starts end far below the best one, because some latents have gone wrong
and EM cannot mend them one step at a time. Those that have gone right are worth keeping. So only
the first starts are wholly new; each later one takes an end so far, gives some of its latents new
loadings, and takes its place if the likelihood is higher. A start that has three latents of seven
to find is likelier to find them than one that has seven. Some explanations differ in more latents
than can be begun again at once, so a few ends in different places are improved side by side.

The law has ends of its own: given the items its likelihood has a single top, but a state that has
lost its mass while items were still moving gets it back slowly or never. So the best ends are
fitted once more from the same items and a law in which every state is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loop import Estimate, Schedule, continued
from hidag.estimate.maximise import Basis
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters
from hidag.start.confirmatory import confirmatory_start
from hidag.start.crossing import different_places, exchanged
from hidag.start.points import spread_law

Array = NDArray[np.float64]
#: Runs EM: (number of the start, (items, law), schedule).
Run = Callable[[int, tuple[MeasurementParameters, Array], Schedule], Estimate]

#: Share of the starts that are wholly new: the first good end comes from these.
FRESH_SHARE = 0.25
#: Ends that are improved side by side.
MOST_HEADS = 3
#: Latents that a start begins again, at the least and at the most, as shares of all latents.
FEWEST_RENEWED, MOST_RENEWED = 0.25, 0.6


def fresh_starts(n_starts: int) -> int:
    """Return how many of the starts are wholly new."""
    return max(1, round(FRESH_SHARE * n_starts))


def starts_renewed(
    ends: Sequence[Estimate],
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    q_entries: NDArray[np.int8],
    generators: Sequence[np.random.Generator],
    run: Run,
    plan: Schedule,
) -> list[tuple[str, Estimate]]:
    """Return what became of the starts after the fresh ones: labels and ends.

    Parameters
    ----------
    ends : sequence of Estimate
        Of the fresh starts, which have the first generators.
    data, space, basis : WorkingData, StateSpace, Basis
    q_entries : ndarray of int8, shape (J, K)
        1 or 0 throughout.
    generators : sequence of Generator
        One for each start, the fresh ones included.
    run, plan : callable, Schedule
        What a start is run with.
    """
    places = different_places([e.parameters for e in ends], [e.objective for e in ends])
    heads = [ends[i] for i in places[:MOST_HEADS]]
    fewest = max(1, int(FEWEST_RENEWED * space.n_latents + 0.5))
    most = max(fewest, int(MOST_RENEWED * space.n_latents + 0.5))
    out = []
    for index in range(len(ends), len(generators)):
        rng, place = generators[index], index % len(heads)
        best = heads[place]
        fresh = confirmatory_start(data, space, q_entries, rng=rng)
        count = int(rng.integers(fewest, most + 1))
        latents = rng.choice(space.n_latents, size=count, replace=False)
        law = law_without(best.probabilities, latents, space)
        items = exchanged(best, fresh.parameters, latents, basis, law)
        end = run(index, (items, law), plan)
        out.append((f"given Q, {count} of {space.n_latents} latents begun again", end))
        if end.objective > best.objective:
            heads[place] = end
    return out


def best_with_law_begun_again(
    ends: Mapping[int, Estimate], space: StateSpace, run: Run, plan: Schedule
) -> tuple[int, Estimate]:
    """Return the best estimate, and its start, after beginning each end's law again.

    Parameters
    ----------
    ends : mapping from int to Estimate
        By number of the start, in different places.
    plan : Schedule
        Fine enough to tell ends apart that differ by a fraction of a unit of log-likelihood.
    """
    found = {}
    for index, end in ends.items():
        others = [run(index, (end.parameters, law), plan) for law in _laws_again(end, space)]
        further = run(index, (end.parameters, end.probabilities), plan)
        found[index] = continued(end, max([further, *others], key=lambda e: e.objective))
    best = max(found, key=lambda i: found[i].objective)
    return best, found[best]


def _laws_again(end: Estimate, space: StateSpace) -> Iterator[Array]:
    """Yield laws to begin with in place of an end's own, all states possible in each."""
    law = end.probabilities
    yield spread_law(law)
    cube = law.reshape(space.levels)
    axes = range(space.n_latents)
    margins = [cube.sum(axis=tuple(a for a in axes if a != k)) for k in axes]
    yield spread_law(reduce(np.multiply.outer, margins).ravel())


def law_without(law: Array, latents: NDArray[np.integer], space: StateSpace) -> Array:
    """Return the law in which some latents depend on nothing, their levels even, shape (S,)."""
    cube = law.reshape(space.levels)
    even = cube.mean(axis=tuple(int(k) for k in latents), keepdims=True)
    return spread_law(np.broadcast_to(even, cube.shape).ravel())
