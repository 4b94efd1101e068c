"""Speed and accuracy of the graph searches, as ratios in one run.

    python benchmarks/graph_search.py            # about a minute
    python benchmarks/graph_search.py --full     # more replicates and rows; several minutes

Other packages are compared if they are installed: pip install pybnesian causal-learn pandas
CPU seconds, minimum of three, after a warm-up call. All searches maximise BDeu with equivalent
sample size 1 on the same rows.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from hidag.latent import LatentCounts
from hidag.metrics import evaluate_graph
from hidag.structure import DAG, CountScore, graph_score, search_graph

#: A parent changes P(child = 1) by at least this much on average over the other parents.
LEAST_EFFECT = 0.25


def layered(rng: np.random.Generator) -> DAG:
    """Layers of 1, 2, 4 and 6 variables; everyone has two parents (one if there is one) above."""
    parents: list[list[int]] = [[]]
    above = [0]
    for size in (2, 4, 6):
        layer = list(range(len(parents), len(parents) + size))
        for _ in layer:
            parents.append(rng.choice(above, min(2, len(above)), replace=False).tolist())
        above = layer
    return DAG.from_parents(parents)


def random_graph(rng: np.random.Generator, n: int, degree: float) -> DAG:
    order = rng.permutation(n)
    adjacency = np.zeros((n, n), dtype=int)
    adjacency[np.ix_(order, order)] = np.triu(rng.random((n, n)) < degree / (n - 1), 1)
    return DAG(adjacency)


def table(n_parents: int, rng: np.random.Generator) -> np.ndarray:
    """P(child = 1) for each configuration of the parents, redrawn until each parent matters."""
    at = np.arange(2**n_parents)
    for _ in range(10_000):
        p = rng.uniform(0.05, 0.95, len(at))
        if all(np.abs(p - p[at ^ (1 << b)]).mean() >= LEAST_EFFECT for b in range(n_parents)):
            return p
    return p  # many parents: no table has such effects


def sample(dag: DAG, n: int, rng: np.random.Generator) -> np.ndarray:
    rows = np.zeros((n, dag.n_variables), dtype=np.uint8)
    for k in dag.order():
        code = np.zeros(n, dtype=int)
        for a in dag.parents[k]:
            code = 2 * code + rows[:, a]
        rows[:, k] = rng.random(n) < table(len(dag.parents[k]), rng)[code]
    return rows


def cpu(call: Callable[[], Any], repeats: int = 3) -> float:
    out = np.inf
    for _ in range(repeats):
        start = time.process_time()
        call()
        out = min(out, time.process_time() - start)
    return float(out)


def installed(package: str) -> Any | None:
    try:
        return importlib.import_module(package)
    except ImportError:
        print(f"  ({package} is not installed; pip install pybnesian causal-learn pandas)")
        return None


def hill_climbing(pybnesian: Any, frame: Any) -> Any:
    return pybnesian.GreedyHillClimbing().estimate(
        pybnesian.ArcOperatorSet(),
        pybnesian.BDe(frame, iss=1.0),
        pybnesian.DiscreteBN(list(frame.columns)),
    )


def speed(label: str, dag: DAG, n: int, *, with_causal_learn: bool) -> None:
    rng = np.random.default_rng([dag.n_variables, n])
    rows = sample(dag, n, rng)
    counts = LatentCounts.from_rows(rows, levels=(2,) * rows.shape[1])
    search_graph(counts, search="xges")
    ges = cpu(lambda: search_graph(counts, search="ges"))
    xges = cpu(lambda: search_graph(counts, search="xges"))
    print(f"{label}, N={n}: GES {ges:.4f} s, XGES-style {xges:.4f} s = {xges / ges:.1f} x GES")
    pybnesian = installed("pybnesian")
    if pybnesian is not None:
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame(
            {f"V{k}": pandas.Categorical(rows[:, k].astype(str)) for k in range(rows.shape[1])}
        )
        theirs = cpu(lambda: hill_climbing(pybnesian, frame))
        print(f"  pybnesian hill climbing {theirs:.4f} s = {theirs / ges:.1f} x GES")
    if with_causal_learn and installed("causallearn") is not None:
        search = importlib.import_module("causallearn.search.ScoreBased.GES").ges
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = cpu(lambda: search(rows.astype(int), "local_score_BDeu"), repeats=1)
        print(f"  causal-learn GES {theirs:.1f} s = {theirs / ges:.0f} x GES")


def accuracy(
    label: str, make: Callable[[np.random.Generator], DAG], sizes: list[int], replicates: int
) -> None:
    for n in sizes:
        far: dict[str, list[int]] = {"ges": [], "xges": []}
        below = dict.fromkeys(far, 0)
        seconds = dict.fromkeys(far, 0.0)
        for replicate in range(replicates):
            rng = np.random.default_rng([replicate, n])
            dag = make(rng)
            counts = LatentCounts.from_rows(sample(dag, n, rng), levels=(2,) * dag.n_variables)
            truth = dag.to_cpdag()
            of_truth = graph_score(CountScore(counts), dag.parents)
            for search in far:
                start = time.process_time()
                found = search_graph(counts, search=search)
                seconds[search] += time.process_time() - start
                far[search].append(evaluate_graph(found.graph, truth).shd)
                below[search] += found.score < of_truth - 1e-6
        print(
            f"{label}, N={n}: "
            + "; ".join(
                f"{search} SHD {np.mean(far[search]):.1f} "
                f"({np.mean(np.array(far[search]) == 0):.0%} exact, "
                f"{below[search]} of {replicates} below the truth's score, "
                f"{seconds[search] / replicates:.3f} s)"
                for search in far
            )
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="more rows and variables")
    full = parser.parse_args().full
    search_graph(np.random.default_rng(0).integers(0, 2, (50, 4)))
    print("Speed")
    rng = np.random.default_rng(1)
    speed("random 20", random_graph(rng, 20, 2.5), 5000, with_causal_learn=True)
    speed("random 100", random_graph(rng, 100, 2.5), 5000, with_causal_learn=False)
    if full:
        speed("random 100", random_graph(rng, 100, 2.5), 50000, with_causal_learn=False)
        speed("random 300", random_graph(rng, 300, 2.5), 5000, with_causal_learn=False)
    print("Accuracy")
    accuracy("layered 13", layered, [1000, 5000, 50000], 30)
    accuracy("random 30, degree 3", lambda rng: random_graph(rng, 30, 3.0), [5000, 50000], 30)


if __name__ == "__main__":
    main()
