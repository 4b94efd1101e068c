"""The built-in graph searches on the same calibrated counts: does any consistent search do?

    python benchmarks/searches.py                     # about two minutes
    python benchmarks/searches.py --tables 20 --seed 1

Each table is fitted once with a saturated law. Its expected counts at the effective sample size are
searched by every search, with BDeu and with BIC (the tests of PC are then tests by G^2). The last
block searches the true latents. Mean SHD of the latent graph (s.e.), and CPU milliseconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from hidag import DCRL, design, evaluate, simulate
from hidag.latent.counts import LatentCounts, expected_counts
from hidag.metrics import Parts, evaluate_graph
from hidag.structure import search_graph

SEARCHES = ("xges", "ges", "boss", "pc")
SCORES = ("bdeu", "bic")
MODELS = ("Chain-10", "Tree-10", "Model-7", "Model-8")


def run(model: str, family: str, n_rows: int, seed: int) -> dict[tuple[str, str, str], list[float]]:
    """Return SHD and CPU seconds by counts, score and search."""
    rngs = np.random.SeedSequence([seed, MODELS.index(model), len(family)]).spawn(2)
    truth = design(model, "Q1", family, design="research-code", rng=rngs[0])
    data = simulate(truth, n_rows, rng=rngs[1])
    fit = DCRL(
        truth.n_latents,
        family=list(truth.families),
        law="saturated",
        uncertainty="none",
        random_state=0,
    ).fit(data.X)
    rows = float(fit.result_.graph_rows)
    kinds = {
        "calibrated counts": expected_counts(fit.latent_law_, rows, truth.latent_names),
        "true latents": LatentCounts.from_rows(data.states, names=truth.latent_names),
    }
    out = {}
    for kind, counts in kinds.items():
        for score in SCORES:
            for search in SEARCHES:
                start = time.process_time()
                graph = search_graph(counts, score=score, search=search).graph
                seconds = time.process_time() - start
                if kind == "true latents":
                    shd = evaluate_graph(graph, truth.cpdag).shd
                else:
                    shd = evaluate(Parts(fit.q_matrix_, graph=graph), truth).shd_graph
                out[kind, score, search] = [float(shd), seconds]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=810002)
    args = parser.parse_args()
    run("Model-7", "gaussian", 300, 0)  # compiles
    for family in ("bernoulli", "gaussian"):
        found = [
            run(model, family, args.rows, args.seed + table)
            for model in MODELS
            for table in range(args.tables)
        ]
        print(f"{family}, N = {args.rows}, {len(found)} tables of {', '.join(MODELS)}", flush=True)
        for kind, score in dict.fromkeys((kind, score) for kind, score, _ in found[0]):
            cells = []
            for search in SEARCHES:
                values = np.array([one[kind, score, search] for one in found])
                error = values[:, 0].std(ddof=1) / np.sqrt(len(values))
                mean, cpu = values.mean(axis=0)
                cells.append(f"{search} {mean:.2f} ({error:.2f}) {1000 * cpu:.0f} ms")
            print(f"  {kind:18} {score:5} " + "   ".join(cells), flush=True)


if __name__ == "__main__":
    main()
