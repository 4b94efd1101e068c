"""SHD of graphs of skills with known prerequisites, from a search or a fit.

    python benchmarks/hierarchies.py --replicates 20 --seed 1
    python benchmarks/hierarchies.py --replicates 20 --seed 2 --cell line/seen/bic

Five latents, three of them in a known hierarchy (a line of three, or two skills with one
prerequisite), and three further random edges. Searches use the latents themselves; fits use five
items per latent with the Q-matrix given: steep ones (slope 3), flat ones (1.5) or faint ones
(0.8), whose graph is found by the observed-data likelihood. Latents have two levels, three for
lean tables. Prints the mean SHD, missing, extra and reversed edges; then the number of correct
graphs, and how often a network law was selected.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from itertools import permutations

import numpy as np

from hidag import DCRL, Knowledge
from hidag.latent import LatentCounts, NetworkLaw, StateSpace
from hidag.metrics import evaluate_graph
from hidag.simulation import Truth, simulate
from hidag.structure import CPDAG, DAG, discover
from hidag.structure.knowledge import orient_by_knowledge

K, ITEMS_EACH, FURTHER = 5, 5, 3
NAMES = tuple(f"Z{k + 1}" for k in range(K))
HIERARCHIES = {"line": ((0, 1), (1, 2)), "fork": ((0, 1), (0, 2))}
#: What a parent adds to the log-odds of a skill at the least and at the most.
EFFECTS = (0.8, 2.0)
#: By how much items' answers go with their latent, in log-odds.
SLOPES = {"steep": 3.0, "flat": 1.5, "faint": 0.8}
#: Levels of each latent, where they are not two: there tables may be lean.
LEVELS = {"seen/lean": 3}


def skills(
    steps: tuple[tuple[int, int], ...], n_levels: int, rng: np.random.Generator
) -> NetworkLaw:
    """Return a law over a random graph with the steps: no skill without its prerequisite."""
    space = StateSpace((n_levels,) * K)
    place = rng.permutation(K)
    while any(place[a] > place[b] for a, b in steps):
        place = rng.permutation(K)
    # The effect of a line's first skill on its last is not identified.
    known = {*steps, (0, 2)}
    open_pairs = [
        (a, b) for a, b in permutations(range(K), 2) if place[a] < place[b] and (a, b) not in known
    ]
    chosen = rng.choice(len(open_pairs), FURTHER, replace=False)
    edges = [*steps, *(open_pairs[i] for i in chosen)]
    parents = tuple(tuple(sorted(a for a, b in edges if b == k)) for k in range(K))
    tables = []
    for k, causes in enumerate(parents):
        before = [a for a, b in steps if b == k]
        free = [i for i, a in enumerate(causes) if a not in before]
        effects = rng.uniform(*EFFECTS, len(causes)) * rng.choice([-1, 1], len(causes))
        at = np.zeros((1, 0), dtype=int)
        if causes:
            at = StateSpace((n_levels,) * len(causes)).states()
        odds = rng.uniform(-0.3, 0.3) + (at[:, free] / (n_levels - 1) - 0.5) @ effects[free]
        allowed = at[:, [i for i in range(len(causes)) if i not in free]].all(axis=1)
        weights = np.exp(odds[:, None] * np.arange(n_levels))
        weights[~allowed, 1:] = 0.0
        shares = weights / weights.sum(axis=1, keepdims=True)
        tables.append(shares.reshape((n_levels,) * (len(causes) + 1)))
    return NetworkLaw(space, parents, tuple(tables))


def wanted(law: NetworkLaw, known: Knowledge) -> CPDAG:
    """Return the part of the law's graph that is identified given the hierarchy."""
    identified = orient_by_knowledge(
        DAG.from_parents(law.parents).to_cpdag().adjacency, known.constraints(NAMES)
    )
    return CPDAG(identified, NAMES)


def search(score: str) -> Callable[[NetworkLaw, Knowledge, int], tuple[CPDAG, bool]]:
    def found(law: NetworkLaw, known: Knowledge, seed: int) -> tuple[CPDAG, bool]:
        rows = law.sample(500, np.random.default_rng(seed))
        levels = law.space.levels
        counts = LatentCounts.from_rows(rows, levels=levels, names=NAMES)
        return discover(counts, knowledge=known, score=score), True

    return found


def fit(slope: float, n_rows: int) -> Callable[[NetworkLaw, Knowledge, int], tuple[CPDAG, bool]]:
    def found(law: NetworkLaw, known: Knowledge, seed: int) -> tuple[CPDAG, bool]:
        q = np.repeat(np.eye(K, dtype=int), ITEMS_EACH, axis=0)
        n_items = len(q)
        families = ("bernoulli",) * n_items
        items = np.full(n_items, -slope / 2), slope * q, np.ones(n_items)
        truth = Truth(q, *items, families, law, latent_names=NAMES)
        X = np.array(simulate(truth, n_rows, rng=np.random.default_rng(seed)).X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DCRL(
                K,
                family="bernoulli",
                q_matrix=q,
                latent_names=NAMES,
                knowledge=known,
                n_starts=1,
                random_state=0,
            ).fit(X)
        return model.graph_, isinstance(model.latent_law_, NetworkLaw)

    return found


CELLS = {
    "seen/bdeu": search("bdeu"),
    "seen/bic": search("bic"),
    "seen/lean": search("lean"),
    "steep": fit(SLOPES["steep"], 1000),
    "flat": fit(SLOPES["flat"], 3000),
    "faint": fit(SLOPES["faint"], 5000),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cell", action="append", help="hierarchy/what; all if not given")
    given = parser.parse_args()
    print("cell              SHD  missed  extra  turned  right  over a graph")
    for name, steps in HIERARCHIES.items():
        known = Knowledge(hierarchy=steps)
        for what, run in CELLS.items():
            cell = f"{name}/{what}"
            if given.cell and cell not in given.cell:
                continue
            rows = []
            for seed in np.random.SeedSequence(given.seed).generate_state(given.replicates):
                law = skills(steps, LEVELS.get(what, 2), np.random.default_rng(int(seed)))
                graph, restricted = run(law, known, int(seed))
                off = evaluate_graph(graph.adjacency, wanted(law, known).adjacency)
                counted = (off.shd, off.n_missing, off.n_extra, off.n_misdirected)
                rows.append((*counted, off.shd == 0, restricted))
            shown = np.array(rows, dtype=float)
            mean, total = shown.mean(axis=0), shown.sum(axis=0)
            print(
                f"{cell:14} {mean[0]:6.2f} {mean[1]:7.2f} {mean[2]:6.2f} {mean[3]:7.2f} "
                f"{int(total[4]):6} {int(total[5]):13}",
                flush=True,
            )


if __name__ == "__main__":
    main()
