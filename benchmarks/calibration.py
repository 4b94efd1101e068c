"""Calibration of the edge probabilities of a fit.

    python benchmarks/calibration.py --replicates 5 --seed 3000
    python benchmarks/calibration.py --k 5 --n 1000 --ratios 0.35 --tables additive

Binary latents in a random graph with one parent on average, at most two; three binary items per
latent, two of them pure; slopes that give the information ratio. "paper" tables are those printed
in the paper, "additive" ones those of `random_law`. Latents are matched to the truth.

Prints for each cell the expected calibration error (ECE, ten bins) of the probabilities of arrows
and of adjacencies, in parentheses that of exact probabilities with as many pairs, by chance; the
arrows stated at the claim level of .8 and how many are right; adjacencies with a probability of at
least .9 and how many are right; the compelled arrows of the true class that are stated; and the CPU
time of the fit relative to one without probabilities (of the first --timed replicates). Pairs of
a table depend on each other, so that chance alone gives more than the number in parentheses. If
--n includes 500, the last lines are for independent latents with weak items and 500 rows:
adjacencies at the claim level.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product

import numpy as np

from hidag import DCRL, simulate
from hidag.em.design_data import WorkingData
from hidag.em.information import information_ratio
from hidag.latent import SaturatedLaw
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.metrics import match_latents
from hidag.simulation import Truth, random_dag, random_law, random_q
from hidag.simulation.designs import _text_tables
from hidag.structure import DAG

ROWS_FOR_RATIO = 2000
#: Slopes of items that are weak for independent latents.
WEAK_SLOPE = 1.3
#: Probability of an adjacency from which 95 % should be right.
SURE = 0.9
#: Random outcomes for the calibration error of exact probabilities.
DRAWS = 200


def draw_law(tables: str, k: int, rng: np.random.Generator) -> NetworkLaw:
    """Return a law on a random graph with at most two parents for a latent."""
    while True:
        dag = random_dag(k, 1.0, rng=rng)
        if dag.adjacency.sum(axis=0).max() <= 2:
            break
    if tables == "additive":
        return random_law(dag, rng=rng)
    return NetworkLaw(StateSpace.binary(k), dag.parents, tuple(_text_tables(dag.parents, rng)))


def make_truth(law: NetworkLaw, slope: float, rng: np.random.Generator) -> Truth:
    """Return a truth with three items for each latent."""
    k = law.space.n_latents
    q = random_q(3 * k, k, max_parents=2, rng=rng)
    sizes = slope * rng.uniform(0.8, 1.2, q.shape) / np.sqrt(q.sum(axis=1, keepdims=True))
    loadings = q * sizes
    families = ("bernoulli",) * len(q)
    return Truth(q, -loadings.sum(axis=1) / 2, loadings, np.ones(len(q)), families, law)


def draw_truth(tables: str, k: int, ratio: float, seed: np.random.SeedSequence) -> Truth:
    """Return a truth whose items have about this information ratio."""
    for_law, for_items, for_rows = seed.spawn(3)
    law = draw_law(tables, k, np.random.default_rng(for_law))
    low, high = 0.5, 8.0
    shown = SaturatedLaw(law.space, law.probabilities)
    for _ in range(12):
        slope = (low + high) / 2
        truth = make_truth(law, slope, np.random.default_rng(for_items))
        rows = np.array(simulate(truth, ROWS_FOR_RATIO, rng=np.random.default_rng(for_rows)).X)
        data = WorkingData.from_values(rows, truth.families)
        if information_ratio(truth.items, shown, data) < ratio:
            low = slope
        else:
            high = slope
    return truth


def expected_error(probabilities: np.ndarray, outcomes: np.ndarray) -> float:
    """Return the expected calibration error over ten bins of equal width."""
    bins = np.minimum((10 * probabilities).astype(int), 9)
    error = 0.0
    for one in np.unique(bins):
        own = bins == one
        error += abs(float((probabilities[own] - outcomes[own]).sum()))
    return error / len(probabilities)


def cpu_seconds(values: np.ndarray, k: int, uncertainty: str) -> tuple[float, DCRL]:
    """Return the CPU time of a fit, and the fit."""
    model = DCRL(k, family="bernoulli", random_state=0, uncertainty=uncertainty)
    begin = time.process_time()
    model.fit(values)
    return time.process_time() - begin, model


def one_table(
    truth: Truth, n: int, rng: np.random.Generator, uncertainty: str, *, timed: bool = True
) -> dict:
    """Return true and estimated edges of one table, and the times with and without them."""
    k = truth.law.space.n_latents
    values = np.array(simulate(truth, n, rng=rng).X)
    without = cpu_seconds(values, k, "none")[0] if timed else 0.0
    seconds, model = cpu_seconds(values, k, uncertainty)
    order = np.array(match_latents(model.result_, truth).permutation)
    # Of latents without items nothing is known: they count as unconnected.
    found = np.nan_to_num(model.edge_probabilities_)[np.ix_(order, order)]
    true = np.zeros((k, k))
    for effect, causes in enumerate(truth.law.parents):
        true[list(causes), effect] = 1.0
    cpdag = np.asarray(truth.cpdag.adjacency)
    pairs, apart = np.triu_indices(k, 1), ~np.eye(k, dtype=bool)
    arrows, level = found >= model.claim_level, model.claim_level
    joined = (found + found.T)[pairs]
    return {
        "arrows": (found[apart], true[apart]),
        "adjacencies": (joined, (true + true.T)[pairs]),
        "stated": (int(true[arrows].sum()), int(arrows.sum())),
        "sure": (int((true + true.T)[pairs][joined >= SURE].sum()), int((joined >= SURE).sum())),
        "compelled": (int(((cpdag > cpdag.T) & arrows).sum()), int((cpdag > cpdag.T).sum())),
        "edges": int((joined >= level).sum()),
        "seconds": (seconds * timed, without),
    }


def line(cell: str, tables: list[dict]) -> str:
    """Return one line of the table."""
    errors = []
    for kind in ("arrows", "adjacencies"):
        found, true = (np.concatenate([t[kind][part] for t in tables]) for part in (0, 1))
        draws = np.random.default_rng(0).random((DRAWS, len(found))) < found
        chance = np.mean([expected_error(found, drawn) for drawn in draws])
        errors.append(f"{expected_error(found, true):.3f} ({chance:.3f})")
    counts = [np.sum([t[kind] for t in tables], axis=0) for kind in ("stated", "sure", "compelled")]
    shares = [f"{right} of {number}" for right, number in counts]
    seconds, without = np.sum([t["seconds"] for t in tables], axis=0)
    ratio = f"{seconds / without:.2f}" if without else "-"
    numbers = " | ".join([*errors, *shares, ratio])
    return f"| {cell} | {len(tables)} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", default="5,8")
    parser.add_argument("--n", default="500,1000,4000")
    parser.add_argument("--ratios", default="0.15,0.35,0.6")
    parser.add_argument("--tables", default="paper,additive")
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--timed", type=int, default=10, help="replicates whose time is taken")
    parser.add_argument("--seed", type=int, default=3000)
    parser.add_argument("--uncertainty", default="quick", choices=["quick", "full"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ks = [int(k) for k in args.k.split(",")]
    # Compiled code is loaded before times are taken.
    one_table(draw_truth("additive", 3, 0.6, np.random.SeedSequence(0)), 500, 0, args.uncertainty)
    heads = "K | N | r | tables | replicates | ECE of arrows | ECE of adjacencies | stated arrows "
    heads += f"right | adjacencies at {SURE:g} right | compelled arrows stated | CPU ratio"
    print(f"seed {args.seed}, uncertainty {args.uncertainty}")
    print(f"| {heads} |\n|{'---|' * 11}")
    numbers = args.n.split(","), args.ratios.split(","), args.tables.split(",")
    everything = []
    for k, n, ratio, kind in product(ks, *numbers):
        found = []
        for replicate in range(args.replicates):
            seeds = (args.seed, replicate, k, int(n), round(100 * float(ratio)), len(kind))
            for_truth, for_rows = np.random.SeedSequence(seeds).spawn(2)
            truth = draw_truth(kind, k, float(ratio), for_truth)
            rng = np.random.default_rng(for_rows)
            timed = replicate < args.timed
            found.append(one_table(truth, int(n), rng, args.uncertainty, timed=timed))
        everything += found
        print(line(f"{k} | {n} | {ratio} | {kind}", found), flush=True)
    print(line("all | | | ", everything))
    for k in ks if "500" in numbers[0] else []:
        stated = []
        for replicate in range(args.replicates):
            rng = np.random.default_rng((args.seed, replicate, k))
            law = random_law(DAG(np.zeros((k, k), dtype=int)), rng=rng)
            truth = make_truth(law, WEAK_SLOPE, rng)
            stated.append(one_table(truth, 500, rng, args.uncertainty, timed=False)["edges"])
        print(f"{k} independent latents, 500 rows: {np.mean(stated):.2f} edges stated per table")


if __name__ == "__main__":
    main()
