"""Remedies in the model: selected levels, nuisance factors, dependent pairs of items.

    python benchmarks/remedies.py --replicates 20 --seed 1
    python benchmarks/remedies.py --cells traits/bernoulli --replicates 5

Cells: latents in a tree, four items of one latent each, N = 2000. "binary" and "3,2,3,2,3": latents
with these numbers of levels (is the truth found?); "traits": normal traits; "style": binary latents
and a response style of .8 on the link scale; "pairs": binary latents and three pairs of items with
a common factor of 1.5. Prints, per cell and setting, the mean number of wrong entries of Q, the
mean SHD of the graph, the share of tables whose levels are those of the truth (of traits: more than
two), and CPU seconds of a fit.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

from hidag import DCRL
from hidag.metrics import evaluate_graph
from hidag.simulation import random_law, random_q, random_truth, simulate, tree_dag
from hidag.structure.graphs import CPDAG

K, PER_LATENT, N = 5, 4, 2000
STYLE_SD, PAIR_SD = 0.8, 1.5
PAIRS = ((0, 1), (5, 7), (10, 16))
CELLS = {
    "binary/bernoulli": {"levels": "auto"},
    "binary/gaussian": {"levels": "auto"},
    "3,2,3,2,3/bernoulli": {"levels": "auto"},
    "3,2,3,2,3/gaussian": {"levels": "auto"},
    "traits/bernoulli": {"levels": "auto"},
    "traits/ordinal": {"levels": "auto"},
    "traits/gaussian": {"levels": "auto"},
    "style/bernoulli": {"nuisance": "style"},
    "style/ordinal": {"nuisance": "style"},
    "pairs/bernoulli": {"doublets": PAIRS},
}


def levels_of(kind: str) -> tuple[int, ...]:
    """Return the true numbers of levels; those of traits are not used."""
    return tuple(map(int, kind.split(","))) if "," in kind else (2,) * K


def draw_table(kind: str, family: str, seed: int):
    """Return responses (N, J), Q (J, K) and the true graph."""
    rng = np.random.default_rng(seed)
    dag = tree_dag(K)
    if kind in ("style", "pairs"):
        states = random_law(dag, rng=rng).sample(N, rng)
        q = random_q(PER_LATENT * K, K, pure_share=1.0, max_parents=1, rng=rng)
        slopes = q * rng.uniform(2.2, 3.2, (len(q), 1))
        predictor = (states - 0.5) @ slopes.T
        if kind == "style":
            predictor += STYLE_SD * rng.normal(size=(N, 1))
        for pair in PAIRS if kind == "pairs" else ():
            predictor[:, pair] += PAIR_SD * rng.normal(size=(N, 1))
        return respond(predictor, family, rng), q, dag
    if kind != "traits":
        law = random_law(dag, rng=rng, levels=levels_of(kind))
        q = random_q(PER_LATENT * K, K, pure_share=1.0, max_parents=1, rng=rng)
        truth = random_truth(law, q, family, rng=rng)
        return simulate(truth, N, rng=rng).X, q, dag
    q = np.kron(np.eye(K, dtype=int), np.ones((PER_LATENT, 1), dtype=int))
    return draw_traits(dag.parents, q, family, rng), q, dag


def draw_traits(parents, q: np.ndarray, family: str, rng: np.random.Generator) -> np.ndarray:
    """Return responses (N, J) to normal traits with standardised path coefficients of .5 to .75."""
    traits = rng.normal(size=(N, len(parents)))
    for k, causes in enumerate(parents):
        for a in causes:
            path = rng.uniform(0.5, 0.75) * rng.choice([-1.0, 1.0], p=[0.3, 0.7])
            traits[:, k] = path * traits[:, a] + np.sqrt(1.0 - path**2) * traits[:, k]
    slopes = q * rng.uniform(1.2, 2.2, q.shape)
    return respond(rng.uniform(-0.7, 0.7, len(q)) + traits @ slopes.T, family, rng)


def respond(predictor: np.ndarray, family: str, rng: np.random.Generator) -> np.ndarray:
    """Return responses with linear predictors (N, J)."""
    noisy = predictor + rng.logistic(size=predictor.shape)
    if family == "bernoulli":
        return (noisy > 0).astype(float)
    if family == "ordinal":
        return (noisy[:, :, None] > np.array([-2.5, -1.0, 0.5, 2.0])).sum(axis=2).astype(float)
    return 0.6 * predictor + rng.normal(size=predictor.shape)


def errors_of(model: DCRL, q: np.ndarray, dag) -> tuple[int, int, list[int]]:
    """Return wrong entries of Q, SHD of the graph, and the levels of the matched latents."""
    strength = np.abs(model.result_.strengths)
    strength = strength / np.maximum(np.linalg.norm(strength, axis=0), 1e-12)
    order = linear_sum_assignment(-(q / np.linalg.norm(q, axis=0)).T @ strength)[1]
    names = tuple(f"Z{k + 1}" for k in range(K))
    graph = CPDAG(model.graph_.adjacency[np.ix_(order, order)], names)
    wrong = int((model.q_matrix_[:, order] != q).sum())
    return wrong, evaluate_graph(graph, dag).shd, [model.terms_.levels[k] for k in order]


def run(cell: str, settings: dict, seed: int) -> tuple[float, ...]:
    """Return one table's errors, whether its levels are found, and CPU seconds."""
    kind, family = cell.split("/")
    x, q, dag = draw_table(kind, family, seed)
    begin = time.process_time()
    model = DCRL(K, family=family, random_state=seed, **settings).fit(x)
    seconds = time.process_time() - begin
    wrong, shd, levels = errors_of(model, q, dag)
    found = min(levels) > 2 if kind == "traits" else tuple(levels) == levels_of(kind)
    return wrong, shd, float(found), seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", default=",,".join(CELLS), help="separated by two commas")
    parser.add_argument("--plain", action="store_true", help="also fit with the default settings")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"K={K}, N={N}, {given.replicates} replicates, seed {given.seed}")
    print(f"{'cell':24} {'settings':28} wrong in Q    SHD  levels  CPU s", flush=True)
    seeds = np.random.SeedSequence(given.seed).generate_state(given.replicates)
    for cell in given.cells.split(",,"):
        for settings in ([{}] if given.plain else []) + [CELLS[cell]]:
            rows = np.array([run(cell, settings, int(seed)) for seed in seeds])
            mean = rows.mean(axis=0)
            text = ", ".join(f"{name}={value!r}" for name, value in settings.items()) or "default"
            print(
                f"{cell:24} {text:28} {mean[0]:10.2f} {mean[1]:6.2f} {mean[2]:7.2f} {mean[3]:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
