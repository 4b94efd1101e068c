"""Time, memory and accuracy of fits with many latents.

    python benchmarks/large.py --k 50 --family gaussian
    python benchmarks/large.py --k 100 --family bernoulli --replicates 2 --seed 1

A random graph with one parent per latent on average, a random Q over J = 3K items, the research
code's coefficients; K=50 has N=20,000 rows and K=100 has N=50,000 unless --n is given. Each fit
runs in its own process, so that its peak memory is its own. The last column is the information
ratio.

    python benchmarks/large.py --chain --k 20 --n 300 --family bernoulli --replicates 10

uses a chain of strongly dependent neighbours instead, with four pure items per latent: with few
rows the start merges neighbours.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from hidag import DCRL, evaluate, simulate
from hidag.simulation import chain_dag, make_truth, random_dag, random_law, random_q

DEFAULT_ROWS = {50: 20_000, 100: 50_000}
AVERAGE_PARENTS = 1.0
#: Of the chain: effects on the next latent (probabilities of about .22 and .78), items of each.
CLOSE, OWN_ITEMS = (2.5, 2.5), 4
HEADINGS = (
    "run",
    "CPU min",
    "wall min",
    "peak MiB",
    "before",
    "F1 Q",
    "F1 skel.",
    "SHD",
    "graph",
    "Q",
    "r",
)


def peak_mib() -> float:
    """Return the most memory this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def one_fit(
    k: int, n: int, family: str, seed: int, replicate: int, jobs: int, chain: bool
) -> list[float] | str:
    """Return the numbers of a fit, or why there are none."""
    address = (k, n, *family.encode(), replicate)
    for_data, for_fit = np.random.SeedSequence(seed, spawn_key=address).spawn(2)
    rng = np.random.default_rng(for_data)
    if chain:
        law = random_law(chain_dag(k), rng=rng, effects=CLOSE)
        q = np.repeat(np.eye(k, dtype=int), OWN_ITEMS, axis=0)
        truth = make_truth(law, q, family)
    else:
        law = random_law(random_dag(k, AVERAGE_PARENTS, rng=rng), rng=rng)
        truth = make_truth(law, random_q(3 * k, k, rng=rng), family)
    X = simulate(truth, n, rng=rng).X
    before = peak_mib()
    cpu, wall = time.process_time(), time.perf_counter()
    model = DCRL(
        k,
        family=list(truth.families),
        random_state=int(for_fit.generate_state(1)[0]),
        n_jobs=jobs,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = peak_mib()
    found = evaluate(model, truth)
    return [
        cpu / 60,
        wall / 60,
        peak,
        before,
        found.q_f1,
        found.skeleton_f1,
        found.shd,
        found.shd_graph,
        found.shd_q,
        model.result_.information_ratio,
    ]


def print_line(name: str, values: list[float]) -> None:
    cpu, wall, peak, before, f1_q, f1_graph, shd, graph, q, ratio = values
    print(
        f"{name:>4s} {cpu:9.2f} {wall:9.2f} {peak:9.0f} {before:9.0f} {f1_q:9.4f} {f1_graph:9.4f} "
        f"{shd:9.1f} {graph:9.1f} {q:9.1f} {ratio:9.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--k", type=int, default=50, help="latents")
    parser.add_argument("--family", default="gaussian", help="gaussian, bernoulli or another")
    parser.add_argument("--n", type=int, help="rows; 20,000 for K=50 and 50,000 for K=100")
    parser.add_argument("--replicates", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="threads of the fit")
    parser.add_argument("--chain", action="store_true", help="a chain of close neighbours")
    args = parser.parse_args()
    n = args.n or DEFAULT_ROWS.get(args.k, 400 * args.k)
    n_items = (OWN_ITEMS if args.chain else 3) * args.k
    print(
        f"K={args.k}, J={n_items}, N={n}, {args.family}, seed {args.seed}; 'before' is the peak of "
        "memory after the table was drawn and before the fit"
    )
    print(f"{HEADINGS[0]:>4s} " + " ".join(f"{heading:>9s}" for heading in HEADINGS[1:]))
    rows = []
    for replicate in range(args.replicates):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            order = (args.k, n, args.family, args.seed, replicate, args.jobs, args.chain)
            found = pool.submit(one_fit, *order).result()
        if isinstance(found, str):
            print(f"{replicate + 1:4d} failed: {found}", flush=True)
            continue
        rows.append(found)
        print_line(str(replicate + 1), found)
    if len(rows) > 1:
        print_line("mean", np.mean(rows, axis=0).tolist())


if __name__ == "__main__":
    main()
