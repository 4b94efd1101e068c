"""Latents with different numbers of levels: does the search reach the fit with the true Q?

A chain of latents with levels (3, 2, 3, 2, 3), the paper's Q1 and coefficients, or with levels
(2, 4, 2, 3) and random coefficients; N = 4000. Prints, per cell, the mean SHD of Q and graph, the
mean SHD of the graph when Q is given, tables in which each latent has its number of levels, the
largest loss of log-likelihood and of half BIC against the fit with the true Q, and CPU seconds of a
fit. A fit with the true Q may have a false edge, which raises its likelihood: half BIC counts it.

    python benchmarks/unequal_levels.py --replicates 20 --seed 1
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from hidag import DCRL, design, evaluate
from hidag.fitting.information_criteria import information_criteria
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
    as_true = [levels[k] if k >= 0 else 0 for k in found.permutation] == list(levels)
    bic = [information_criteria(one.result_).bic for one in (model, given)]
    shds = found.shd_q, found.shd_graph, known.shd_graph
    return *shds, as_true, loss, 0.5 * (bic[0] - bic[1]), seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patterns", default="0,1", help="0 is 3-2-3-2-3, 1 is 2-4-2-3")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--each", action="store_true", help="Print every table.")
    options = parser.parse_args()
    print(f"N={N}, {options.replicates} replicates, seed {options.seed}")
    print(f"{'cell':24s} SHD Q  graph  Q given  levels  largest loss  half BIC  CPU s", flush=True)
    for levels in (LEVELS[int(i)] for i in options.patterns.split(",")):
        for family in options.families.split(","):
            rows = []
            for replicate in range(options.replicates):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows.append(run(levels, family, options.seed + replicate))
                if options.each:
                    print("   ", replicate, np.round(rows[-1], 2), flush=True)
            table = np.array(rows)
            q, graph, known, levels_right, *_, seconds = table.mean(axis=0)
            name = "-".join(map(str, levels)) + " " + family
            loss, bic = table[:, 4:6].max(axis=0)
            print(
                f"{name:24s} {q:5.2f}  {graph:5.2f}  {known:7.2f}  {levels_right:6.2f}"
                f"  {loss:12.2f}  {bic:8.2f}  {seconds:5.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
