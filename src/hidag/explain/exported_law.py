"""The fitted law as a network of tables, and how far that is from the law itself.

A network over the graph holds the fitted law only if the law factorises over the graph. A saturated
law, one probability for each joint state, mostly does not: what can be exported then is the nearest
law that does, and nobody could tell from its tables that it is another one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.discover import DAG
from hidag.explain.inference import N_DRAWS, law_over
from hidag.latent import NetworkLaw, SaturatedLaw
from hidag.result import FitResult

Array = NDArray[np.float64]

#: Up to so many joint states a distance is a sum over them, beyond it is a mean over draws.
MOST_LISTED = 1 << 20
#: Smaller distances are rounding.
NO_DISTANCE = 1e-8


def network_law(result: FitResult) -> NetworkLaw:
    """Return the fitted law over one member of the graph: the nearest one if that is another."""
    law = result.law
    if isinstance(law, NetworkLaw):
        own = DAG.from_parents(law.parents, result.latent_names)
        if result.graph.contains(own):
            return law
    return law_over(law, result.graph.to_dag())


def distance_to_network(result: FitResult, network: NetworkLaw) -> float:
    """Return by how much probabilities of events differ at the most: the total variation.

    A sum over joint states; beyond 2^20 of them a mean over 200,000 draws with a fixed seed.

    Parameters
    ----------
    result : FitResult
    network : NetworkLaw
        What :func:`network_law` gave.
    """
    law = result.law
    if law is network:
        return 0.0
    if isinstance(law, NetworkLaw) and law.space.n_states > MOST_LISTED:
        states = law.sample(N_DRAWS, np.random.default_rng(0))
        ratio = np.exp(_log_probabilities(network, states) - _log_probabilities(law, states))
        return float(np.maximum(1.0 - ratio, 0.0).mean())
    return float(np.maximum(law.probabilities - network.probabilities, 0.0).sum())


def note_on_law(result: FitResult, network: NetworkLaw) -> str | None:
    """Return in a sentence that a network is not the fitted law, and what helps; None if it is."""
    distance = distance_to_network(result, network)
    if distance < NO_DISTANCE:
        return None
    remedy = (
        "; fit with law='network' for a law that can be exported as it is"
        if isinstance(result.law, SaturatedLaw)
        else ""
    )
    return (
        "these tables are not the fitted law, which does not factorise over the graph, but the "
        "nearest one that does: probabilities of events differ from the fit's by up to "
        f"{distance:.2g}{remedy}"
    )


def _log_probabilities(law: NetworkLaw, states: NDArray[np.integer]) -> Array:
    """Return the log probability of joint states given by rows, shape (n,)."""
    out = np.zeros(len(states))
    with np.errstate(divide="ignore"):
        for k, (causes, table) in enumerate(zip(law.parents, law.tables, strict=True)):
            out += np.log(table[tuple(states[:, v] for v in (*causes, k))])
    return out
