"""Errors of the graph by the effective sample size of its score, the paper's open question.

    python benchmarks/effective_size.py --cells Chain-10,Model-7 --replicates 20

For each cell one Stage I per kind of latent law; then Stages II and III with counts that stand for
N, N/2, N/4 and r N rows (r is the information ratio), and with ``effective_size="auto"``: r N /
a^2 rows, and weak edges tested on the observed data. Prints the mean SHD of the latent graph and
the mean of r.
"""

from __future__ import annotations

import argparse

import numpy as np

from hidag import design, simulate
from hidag.em.em import Schedule
from hidag.fitting.settings import GraphSettings
from hidag.fitting.stages import learn_graph
from hidag.measurement import default_penalty
from hidag.metrics import Parts, evaluate
from hidag.strategy.estimation import StageOneSettings, estimate_measurement

LINK = {"research-code": {"poisson": "poisson-identity"}, "text": {}}
LAWS = ("saturated", "network")
SIZES = ("N", "N/2", "N/4", "r N", "auto")


def distances(truth, X, family: str, law: str, seed: int) -> tuple[dict[str, float], float]:
    n_samples, n_items = X.shape
    penalty = default_penalty("tlp", n_samples, truth.n_latents)
    settings = StageOneSettings(truth.law.space.levels, penalty, Schedule(), law=law, seed=seed)
    measured = estimate_measurement(X, (family,) * n_items, settings)
    ratio = measured.information_ratio()
    out = {}
    for name, size in zip(SIZES, ("all", 0.5, 0.25, max(ratio, 1e-3), "auto"), strict=True):
        found = learn_graph(measured, truth.latent_names, GraphSettings(effective_size=size))
        items = measured.parameters
        parts = Parts(items.q_matrix, items.intercept, items.loadings, found.law, found.graph)
        out[name] = evaluate(parts, truth).shd_graph
    return out, ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="Chain-10,Tree-10,Model-7,Model-8")
    parser.add_argument("--q", default="Q1,Q2")
    parser.add_argument("--families", default="bernoulli,poisson")
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--design", default="research-code", choices=sorted(LINK))
    args = parser.parse_args()
    print(
        f"SHD of the latent graph (standard error), {args.design} design, N={args.n}, "
        f"{args.replicates} replicates, seed {args.seed}"
    )
    print("| cell | law | " + " | ".join(SIZES) + " | r |\n|---|---|" + "---|" * (len(SIZES) + 1))
    totals: dict[str, list[list[float]]] = {law: [] for law in LAWS}
    for model in args.cells.split(","):
        for q in args.q.split(","):
            for family in args.families.split(","):
                link = LINK[args.design].get(family, family)
                rows: dict[str, list[list[float]]] = {law: [] for law in LAWS}
                ratios: dict[str, list[float]] = {law: [] for law in LAWS}
                for replicate in range(args.replicates):
                    address = (args.seed, args.n, replicate, *f"{model}{q}{family}".encode())
                    rng = np.random.default_rng(address)
                    truth = design(model, q, family, design=args.design, rng=rng)
                    X = np.array(simulate(truth, args.n, rng=rng).X)
                    for law in LAWS:
                        found, ratio = distances(truth, X, link, law, replicate)
                        rows[law].append([found[size] for size in SIZES])
                        ratios[law].append(ratio)
                for law in LAWS:
                    mean = np.mean(rows[law], axis=0)
                    error = np.std(rows[law], axis=0, ddof=1) / np.sqrt(args.replicates)
                    totals[law].append(mean.tolist())
                    cells = " | ".join(
                        f"{m:.2f} ({e:.2f})" for m, e in zip(mean, error, strict=True)
                    )
                    print(
                        f"| {model} {q} {family} | {law} | {cells} | {np.mean(ratios[law]):.2f} |",
                        flush=True,
                    )
    for law in LAWS:
        mean = np.mean(totals[law], axis=0)
        print(f"| all | {law} | " + " | ".join(f"{m:.2f}" for m in mean) + " | |")


if __name__ == "__main__":
    main()
