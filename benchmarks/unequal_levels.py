"""Latents with different numbers of levels: does the search reach the fit with the true Q?

A chain of latents with levels (3, 2, 3, 2, 3), the paper's Q1 and coefficients, or with levels
(2, 4, 2, 3) and random coefficients; N = 4000. Prints, per cell, the mean SHD of Q and graph, the
mean SHD of the graph when Q is given, the largest loss of log-likelihood against the fit with the
true Q, and CPU seconds of a fit.

    python benchmarks/unequal_levels.py --replicates 20 --seed 1
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from hidag import DCRL, design, evaluate
from hidag.simulation import banded_q, chain_dag, random_law, random_truth, simulate

LEVELS = ((3, 2, 3, 2, 3), (2, 4, 2, 3))
FAMILIES = ("gaussian", "poisson", "bernoulli")
N = 4000


def make_table(levels: tuple[int, ...], family: str, seed: int):
    rng = np.random.default_rng([seed, len(levels)])
    if len(levels) == 5:
        kind = "research-code" if family == "bernoulli" else "text"
        truth = design("Chain-5", "Q1", family, design=kind, levels=levels, rng=rng)
    else:
        law = random_law(chain_dag(len(levels)), levels=levels, rng=rng)
        truth = random_truth(law, banded_q(len(levels), 1), family, rng=rng)
    return truth, simulate(truth, N, rng=rng).X


def run(levels: tuple[int, ...], family: str, seed: int) -> tuple[float, ...]:
    truth, x = make_table(levels, family, seed)
    settings = {"levels": levels, "family": family, "random_state": seed}
    given = DCRL(len(levels), q_matrix=truth.q_matrix, **settings).fit(x)
    begin = time.process_time()
    model = DCRL(len(levels), **settings).fit(x)
    seconds = time.process_time() - begin
    found, known = evaluate(model, truth), evaluate(given, truth)
    loss = given.log_likelihood_ - model.log_likelihood_
    return found.shd_q, found.shd_graph, known.shd_graph, loss, seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--each", action="store_true", help="Print every table.")
    options = parser.parse_args()
    print(f"N={N}, {options.replicates} replicates, seed {options.seed}")
    print(f"{'cell':28s} SHD Q  graph  graph, Q given  largest loss  CPU s", flush=True)
    for levels in LEVELS:
        for family in options.families.split(","):
            rows = []
            for replicate in range(options.replicates):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows.append(run(levels, family, options.seed + replicate))
                if options.each:
                    print("   ", replicate, np.round(rows[-1], 2), flush=True)
            table = np.array(rows)
            q, graph, known, _, seconds = table.mean(axis=0)
            name = "-".join(map(str, levels)) + " " + family
            worst = table[:, 3].max()
            print(
                f"{name:28s} {q:5.2f}  {graph:5.2f}  {known:14.2f}  {worst:12.2f}  {seconds:5.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
