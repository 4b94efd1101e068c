"""Stage I by sampling on tables of many latents: seconds, memory, Q and skeleton against the truth.

python benchmarks/many_latents.py                    # K = 50, both families, seed 1
python benchmarks/many_latents.py 100 50000 bernoulli 2
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from hidag.discover import DAG, search_graph
from hidag.estimate.loop import Schedule
from hidag.estimate.working import WorkingData
from hidag.evaluate import Parts, evaluate
from hidag.latent import LatentCounts
from hidag.measurement import default_penalty
from hidag.simulate import make_truth, random_dag, random_law, random_q, simulate
from hidag.start.by_sampling import estimate_by_sampling


def learner(search: str):
    """Return what learns parents from draws that count for a given number of rows."""

    def learn(states, n_rows):
        counts = LatentCounts.from_rows(states, levels=(2,) * states.shape[1])
        weights = counts.weights * (n_rows / counts.total)
        scaled = LatentCounts(counts.states, weights, counts.levels, counts.names)
        return search_graph(scaled, search=search, max_parents=6).graph.to_dag().parents

    return learn


def measure(n_latents: int, n_samples: int, family: str, seed: int) -> str:
    rng = np.random.default_rng(seed)
    law = random_law(random_dag(n_latents, 1.25, rng=rng), rng=rng)
    truth = make_truth(law, random_q(3 * n_latents, n_latents, rng=rng), family, rng=rng)
    data = WorkingData.from_values(simulate(truth, n_samples, rng=rng).X, truth.families)
    begun = time.process_time()
    found = estimate_by_sampling(
        data,
        n_latents,
        np.full((data.n_items, n_latents), -1, dtype=np.int8),
        default_penalty("tlp", n_samples, n_latents),
        Schedule(),
        learn_parents=learner("ges"),
        final_parents=learner("xges"),
        seed=seed,
    )
    seconds = time.process_time() - begun
    user = data.to_user(found.parameters)
    adjacency = np.zeros((n_latents, n_latents), dtype=np.int8)
    for child, causes in enumerate(found.law.parents):
        adjacency[list(causes), child] = 1
    graph = DAG(adjacency).to_cpdag().adjacency
    held = evaluate(Parts(user.q_matrix, user.intercept, user.loadings, graph=graph), truth)
    gibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{family:10s} K={n_latents:<4d} N={n_samples:<6d} seed {seed}: {seconds:6.1f} s, "
        f"{gibibytes:.2f} GiB, F1 of Q {held.q_f1:.3f}, of the skeleton {held.skeleton_f1:.3f}, "
        f"information ratio {found.information_ratio:.2f}, {found.n_iter} steps"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(measure(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
    else:
        for name in ("gaussian", "bernoulli"):
            print(measure(50, 20_000, name, 1), flush=True)
