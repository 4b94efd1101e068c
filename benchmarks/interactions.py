"""Interactions: how often they are found where there are some, and where there are none.

Three latents in a chain or with a collider, eight items, half of them binary and half continuous,
four with two latents. Prints for effects "main", "auto" and "all" the share of tables with an
interaction, SHD of the graph, wrong entries of Q and CPU seconds of a fit; with truths without
interactions the first is the rate of false interactions, otherwise the power. The last column is
the ratio of CPU seconds to those of main effects.

    python benchmarks/interactions.py --replicates 50 --n 1000 --seed 1
    python benchmarks/interactions.py --replicates 3 --n 10000 --given-q
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from hidag import DCRL, evaluate, simulate
from hidag.simulation import dag_from_parents, random_law, random_truth

PARENTS = {"chain": ((), (0,), (1,)), "collider": ((), (), (0, 1))}
Q = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
)
FAMILIES = ("bernoulli", "gaussian") * 4


def run(graph: str, effects: str, n: int, seed: int, asked: str, given_q: bool) -> list[float]:
    """Return whether a fit has an interaction, SHD, wrong entries of Q, and CPU seconds."""
    rng = np.random.default_rng(seed)
    law = random_law(dag_from_parents(PARENTS[graph]), rng=rng)
    truth = random_truth(law, Q, FAMILIES, effects=effects, rng=rng)
    values = simulate(truth, n, rng=rng).X
    given = {"q_matrix": Q} if given_q else {}
    begin = time.process_time()
    model = DCRL(3, effects=asked, family=list(FAMILIES), random_state=seed, **given).fit(values)
    seconds = time.process_time() - begin
    found = evaluate(model, truth)
    products = model.loadings_[:, model.terms_.n_main :]
    return [float(products.any()), found.shd_graph, found.shd_q, seconds]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--truths", default="main,all", help="effects of the truths")
    parser.add_argument("--fits", default="main,auto,all", help="effects of the fits, main first")
    parser.add_argument("--graphs", default="chain,collider")
    parser.add_argument("--given-q", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = np.random.SeedSequence(given.seed).generate_state(given.replicates)
    print("graph     truth  fit    interactions    SHD  wrong in Q   CPU s  ratio")
    for graph in given.graphs.split(","):
        for truth in given.truths.split(","):
            first = 0.0
            for asked in given.fits.split(","):
                rows = [
                    run(graph, truth, given.n, int(seed), asked, given.given_q) for seed in seeds
                ]
                mean = np.mean(rows, axis=0)
                first = first or mean[3]
                print(
                    f"{graph:9} {truth:6} {asked:6} {mean[0]:12.3f} {mean[1]:6.2f} {mean[2]:11.2f} "
                    f"{mean[3]:7.2f} {mean[3] / first:6.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
