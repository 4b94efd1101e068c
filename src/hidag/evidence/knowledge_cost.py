"""Do the observed data speak against what was told about the graph beforehand?

The law over the graph that obeys is held against the law over the graph that the same search finds
when it is told nothing. Both are fitted to the observed data with the items held, so the difference
is the least that knowledge costs: items were fitted along with it, and free items could only gain.
Where latents are sampled, that likelihood is not at hand: both graphs are then held against the
expected counts of the latents, which stand for as many rows as the observed data are worth. These
lean towards a law that obeyed, so that it is the least of it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from hidag.discover import CPDAG, CountScore, Knowledge, SearchResult
from hidag.discover.rules import pairs_kept_apart
from hidag.evidence.likelihood_search import LikelihoodSearch
from hidag.evidence.observed import ObservedFit
from hidag.latent import LatentCounts, Parents

#: Log-likelihood beyond its price from which evidence is called very strong (twice it: 10).
VERY_STRONG = 5.0


@dataclass(frozen=True)
class KnowledgeCost:
    """What the data have against knowledge about the graph.

    Attributes
    ----------
    log_likelihood : float
        What the observed data's log-likelihood loses by it.
    saved : float
        What the fewer numbers of the law that obeys are worth in the same units: half log N each.
    pairs : tuple of (name, name, float)
        Pairs that were kept apart and alone cost more than they save, and how much log-likelihood;
        the dearest first. Empty also where pairs are too many to be asked one by one.
    counted : float or None
        Rows that expected counts of the latents stand for, where these were asked.
    """

    log_likelihood: float
    saved: float
    pairs: tuple[tuple[str, str, float], ...] = ()
    counted: float | None = None

    @property
    def strong(self) -> bool:
        """Whether the data speak strongly against it."""
        # What obeys may need more numbers than what need not: that is no word against it.
        return bool(self.log_likelihood - max(self.saved, 0.0) > VERY_STRONG)


def cost_of_knowledge(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    observed: ObservedFit,
    *,
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return what knowledge costs where the data speak strongly against it, or None.

    Prerequisites are taken for granted here: states that they rule out have no mass in any law.

    Parameters
    ----------
    graph : CPDAG
        It obeys.
    search : callable
        Repeats the search under other knowledge.
    knowledge : Knowledge
    observed : ObservedFit
    max_pairs : int
        Pairs that are asked one by one, at the most.
    """
    fits = LikelihoodSearch(observed)

    def weighed(parents: Parents) -> tuple[float, float]:
        found = fits.fitted(parents, observed.law)
        return found.log_likelihood, found.criterion

    return _strong_cost(graph, search, knowledge, weighed, max_pairs)


def cost_on_counts(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    counts: LatentCounts,
    *,
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return what :func:`cost_of_knowledge` does, by expected counts of the latents."""
    score, levels = CountScore(counts, "bic"), counts.levels
    price = 0.5 * math.log(counts.total)

    def weighed(parents: Parents) -> tuple[float, float]:
        criterion = sum(score.local(k, tuple(causes)) for k, causes in enumerate(parents))
        free = (
            (levels[k] - 1) * math.prod(levels[a] for a in causes)
            for k, causes in enumerate(parents)
        )
        return criterion + price * sum(free), criterion

    cost = _strong_cost(graph, search, knowledge, weighed, max_pairs)
    return None if cost is None else replace(cost, counted=counts.total)


def _strong_cost(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    weighed: Callable[[Parents], tuple[float, float]],
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return what knowledge costs by log-likelihoods of laws over graphs, less their price too."""
    obeying = weighed(graph.to_dag().parents)

    def cost(freer: Knowledge) -> KnowledgeCost:
        other = weighed(search(freer).dag.parents)
        loss = other[0] - obeying[0]
        return KnowledgeCost(loss, loss - (other[1] - obeying[1]))

    whole = cost(Knowledge(hierarchy=knowledge.hierarchy))
    if not whole.strong:
        return None
    names = graph.names
    told = knowledge.among(names)
    apart = pairs_kept_apart(told, names)
    alone = []
    for a, b in apart if len(apart) <= max_pairs else ():
        others = tuple(edge for edge in told.forbidden if set(edge) != {a, b})
        found = cost(replace(told, forbidden=others))
        if found.strong:
            alone.append((names[a], names[b], found.log_likelihood))
    return replace(whole, pairs=tuple(sorted(alone, key=lambda one: -one[2])))
