"""Weak items and many rows: whether Q and graph become exact, as in theory.

    python benchmarks/many_rows.py
    python benchmarks/many_rows.py --n 100000,1000000,5000000 --seeds 10

Tables of one design of the paper's text (Tree-5, Q1, Bernoulli; information ratio about .05), Q
unknown. Prints for each number of rows: how many fits have the true graph, and the true graph and
Q; mean SHD; the distance of the log-likelihood from that of the fit with the true Q, mean and
worst; CPU seconds, and those of the fit with the true Q. With --whole each table is also fitted as
distinct rows with weights; "equal" counts the tables in which both fits have the same Q, graph and
log-likelihood (relative 1e-6).
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from hidag import DCRL, design, evaluate, simulate


def fit(X: np.ndarray, weights: np.ndarray | None, **settings) -> tuple[DCRL, float]:
    """Return a fit and its CPU seconds."""
    begin = time.process_time()
    model = DCRL(5, family="bernoulli", random_state=0, **settings).fit(X, sample_weight=weights)
    return model, time.process_time() - begin


def same(one: DCRL, other: DCRL) -> bool:
    close = np.isclose(one.log_likelihood_, other.log_likelihood_, rtol=1e-6)
    graphs = np.array_equal(one.graph_.adjacency, other.graph_.adjacency)
    return bool(close and graphs and np.array_equal(one.q_matrix_, other.q_matrix_))


def main() -> None:
    """Print a line for each number of rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", default="100000,1000000", help="numbers of rows")
    parser.add_argument("--seeds", type=int, default=3, help="tables of each size")
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.add_argument("--whole", action="store_true", help="fit all rows, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    truth = design("Tree-5", "Q1", "bernoulli", design="text", rng=1)
    print("rows      tables  graph  both    SHD  below true Q: mean   worst  CPU s  true Q  equal")
    for n in map(int, options.n.split(",")):
        rows = []
        for seed in range(options.seeds):
            X = simulate(truth, n, rng=np.random.default_rng((options.seed, n, seed))).X
            patterns, counts = np.unique(X.astype(np.uint8), axis=0, return_counts=True)
            patterns, weights = patterns.astype(float), counts.astype(float)
            model, seconds = fit(patterns, weights)
            given, own = fit(patterns, weights, q_matrix=truth.q_matrix)
            whole = same(fit(X, None)[0], model) if options.whole else np.nan
            del X
            found = evaluate(model, truth)
            graph = found.shd - found.shd_q
            gap = given.log_likelihood_ - model.log_likelihood_
            rows.append((graph == 0, found.shd == 0, found.shd, gap, seconds, own, whole))
        graph, both, shd, gap, seconds, own, whole = np.array(rows, dtype=float).T
        print(
            f"{n:<10d}{len(rows):6d} {graph.sum():6.0f} {both.sum():5.0f} {shd.mean():6.2f} "
            f"{gap.mean():19.2f} {gap.max():7.2f} {seconds.mean():6.1f} "
            f"{own.mean():7.1f} {whole.sum():6.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
