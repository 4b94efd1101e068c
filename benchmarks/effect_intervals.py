"""Coverage of 90 % intervals of average effects, by simulation.

Data come from a collider and a chain of latents with binary items; Q and the graph are given, as
the intervals from the information assume. Prints a line per design.

    python benchmarks/effect_intervals.py --replicates 60 --rows booklets
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from hidag import DCRL, Knowledge
from hidag.causal import average_effects
from hidag.causal.probability_queries import intervene
from hidag.inference import draw_asymptotic
from hidag.simulation import dag_from_parents, make_truth, random_law, simulate

DESIGNS = {"collider": [(), (), (0, 1), (2,)], "chain": [(), (0,), (1,), (2,)]}
N_ROWS = 1000


def true_effects(truth) -> np.ndarray:
    """Return what setting each latent adds to latents and item means, listing all states."""
    states = truth.law.space.states()
    values = np.hstack([states, truth.means(states)])
    rows = []
    for k in range(truth.n_latents):
        ends = [intervene(truth.law, {k: v}).probabilities @ values for v in (0, 1)]
        rows.append(ends[1] - ends[0])
        rows[-1][k] = np.nan
    return np.array(rows)


def rows_of(
    table: np.ndarray, kind: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the table with the cells and weights that rows of a kind have.

    In booklets two tenths of the rows have the items of all latents, four those of the first two
    and four those of the others. Weights make about a third of the rows.
    """
    rows = np.array(table, dtype=float)
    if kind == "booklets":
        part = rng.choice(3, size=len(rows), p=[0.4, 0.4, 0.2])
        first = np.arange(rows.shape[1]) % 4 < 2
        rows[np.ix_(part == 0, ~first)] = np.nan
        rows[np.ix_(part == 1, first)] = np.nan
    return rows, rng.exponential(size=len(rows)) ** 1.5 if kind == "weights" else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=60)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", choices=["whole", "booklets", "weights"], default="whole")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for place, (name, parents) in enumerate(DESIGNS.items()):
        dag = dag_from_parents(parents)
        q = np.vstack([np.eye(4, dtype=int)] * 4)
        truth = make_truth(random_law(dag, rng=options.seed), q, "bernoulli")
        wanted = true_effects(truth)
        # All directions but those of the graph are ruled out.
        other = np.argwhere(dag.adjacency == 0).tolist()
        known = Knowledge(required=dag.edges, forbidden=[(i, j) for i, j in other if i != j])
        zero = np.abs(wanted) < 1e-12
        hits = []
        for replicate in range(options.replicates):
            seed = np.random.SeedSequence(options.seed, spawn_key=(place, replicate))
            rng = np.random.default_rng(seed)
            rows, weights = rows_of(simulate(truth, N_ROWS, rng=rng).X, options.rows, rng)
            model = DCRL(
                4,
                family="bernoulli",
                q_matrix=q,
                law="network",
                knowledge=known,
                n_starts=1,
                random_state=replicate,
            )
            fit = model.fit(rows, sample_weight=weights).result_
            draws = draw_asymptotic(fit, options.draws, random_state=replicate)
            found = average_effects(fit, replicates=draws, fix_graph=True, level=0.9)
            hits.append((found.lower <= wanted) & (wanted <= found.upper))
        inside = np.array(hits)
        shares = [inside[:, part & ~zero].mean() for part in _parts(wanted)]
        print(
            f"{name:9s} n={N_ROWS} {options.rows} {options.replicates} tables: 90 % intervals hold "
            f"{shares[0]:.1%} of effects on latents, {shares[1]:.1%} of effects on items"
        )


def _parts(wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = ~np.isnan(wanted)
    latents = known & (np.arange(wanted.shape[1]) < len(wanted))
    return latents, known & ~latents


if __name__ == "__main__":
    main()
