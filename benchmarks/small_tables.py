"""Number of latents and Q in small tables.

    python benchmarks/small_tables.py --replicates 20 --seed 1
    python benchmarks/small_tables.py --kinds traits --replicates 5 --no-numbers
    python benchmarks/small_tables.py --families bernoulli --no-entries

Tables have a few hundred rows of 9 to 15 items of 2 to 4 latents. Kinds: "strong" (every loading
is large), "spread" (sizes from weak to strong), "traits" (strong, but the latent variables are
normally distributed and have no levels: the model is wrong).

Prints for each cell the share of tables in which the number is right: by parallel analysis, by
factor BIC, by the best EBIC and the best BIC of fits, and by `hidag.select`, from fits that each
have their estimated penalty ("own") and at a common strength ("select"). Then, with the right
number, the number of wrong entries of Q by penalty strength: as estimated, and log(N)/2 plus a
constant.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict

import numpy as np

from hidag import DCRL, evaluate, select, simulate
from hidag.model_selection.comparison import Comparison
from hidag.simulation import Truth, random_law, random_q, tree_dag

CELLS = ((2, 9, 200), (3, 9, 300), (3, 12, 500), (4, 12, 300), (4, 15, 500))
KINDS = ("strong", "spread", "traits")
#: Correlation of two traits, and the share of a loading per standard deviation of a trait.
TRAIT_CORRELATION, TRAIT_SHARE = 0.4, 0.5
NUMBERS = ("parallel", "factor BIC", "EBIC", "BIC", "own", "select")
STRENGTHS = ("learned", "+0", "+log(K)/2", "+1", "+2")


def draw_truth(kind: str, k: int, n_items: int, family: str, rng: np.random.Generator) -> Truth:
    """Return latents in a tree, two thirds of the items pure, slopes that differ."""
    q = random_q(n_items, k, max_parents=2, rng=rng)
    if kind == "spread":
        sizes = np.exp(rng.uniform(np.log(0.5), np.log(3.0), q.shape))
        sizes *= 1.3 if family == "bernoulli" else 1.0
    else:
        low, high = (1.5, 3.5) if family == "bernoulli" else (1.2, 3.0)
        sizes = rng.uniform(low, high, (n_items, 1)) * rng.uniform(0.7, 1.3, q.shape)
        sizes = sizes / np.sqrt(q.sum(axis=1, keepdims=True))
    loadings = q * sizes
    law = random_law(tree_dag(k), rng=rng)
    return Truth(q, -loadings.sum(axis=1) / 2, loadings, np.ones(n_items), (family,) * n_items, law)


def draw_values(kind: str, truth: Truth, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return responses, shape (N, J)."""
    if kind != "traits":
        return np.array(simulate(truth, n, rng=rng).X)
    k = truth.q_matrix.shape[1]
    between = np.full((k, k), TRAIT_CORRELATION) + (1.0 - TRAIT_CORRELATION) * np.eye(k)
    traits = rng.multivariate_normal(np.zeros(k), between, size=n)
    predictor = TRAIT_SHARE * traits @ truth.loadings.T
    if truth.families[0] == "bernoulli":
        return (rng.random(predictor.shape) < 1.0 / (1.0 + np.exp(-predictor))).astype(float)
    return predictor + rng.normal(size=predictor.shape)


def one_table(
    kind: str, cell: tuple[int, int, int], family: str, seeds, numbers: bool, entries: bool
) -> dict:
    """Return what each criterion says, less the truth, and wrong entries of Q by strength."""
    k, n_items, n = cell
    for_table, for_fit = seeds.spawn(2)
    rng = np.random.default_rng(for_table)
    truth = draw_truth(kind, k, n_items, family, rng)
    values = draw_values(kind, truth, n, rng)
    seed = int(for_fit.generate_state(1)[0])
    out: dict = {}
    if numbers:
        found = select(values, family=family, folds=0, random_state=seed)
        learned = {
            one.n_latents: [one]
            for one in found.candidates
            if not (one.at_common_strength or one.from_neighbour)
        }
        out = {
            "parallel": found.count.by_parallel_analysis - k,
            "factor BIC": found.count.by_factor_bic - k,
            "EBIC": found.votes["EBIC"] - k,
            "BIC": found.votes["BIC"] - k,
            "own": Comparison(found.count.span[1], learned).selected - k,
            "select": found.recommended - k,
        }
    least = 0.5 * np.log(n)
    more = (None, 0.0, 0.5 * np.log(k), 1.0, 2.0)
    for name, plus in zip(STRENGTHS, more, strict=True) if entries else ():
        strength = None if plus is None else least + plus
        model = DCRL(k, family=family, penalty_strength=strength, random_state=seed).fit(values)
        out[name] = evaluate(model.result_, truth).shd_q
    return out


def shares(runs: list[dict], name: str) -> str:
    """Return the share of right numbers, and how many were too low and too high."""
    off = np.array([run[name] for run in runs])
    return f"{np.mean(off == 0):.2f} (-{(off < 0).sum()} +{(off > 0).sum()})"


def line(title: str, runs: list[dict], seconds: float | None = None) -> str:
    """Return one line of the table."""
    cells = [f"{shares(runs, name):>15s}" for name in NUMBERS if name in runs[0]]
    strengths = [name for name in STRENGTHS if name in runs[0]]
    cells += [f"{np.mean([run[name] for run in runs]):10.2f}" for name in strengths]
    return f"{title:30s}" + "".join(cells) + ("" if seconds is None else f"{seconds:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="strong,spread,traits")
    parser.add_argument("--families", default="gaussian,bernoulli")
    parser.add_argument(
        "--numbers", action=argparse.BooleanOptionalAction, default=True, help="compare numbers"
    )
    parser.add_argument(
        "--entries",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare entries of Q",
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = [f"{name:>15s}" for name in NUMBERS if args.numbers]
    heads += [f"{name:>10s}" for name in STRENGTHS if args.entries]
    print(f"{args.replicates} replicates, seed {args.seed}; right numbers, then wrong entries of Q")
    print(f"{'K, J, N':30s}" + "".join(heads) + "   CPU s", flush=True)
    totals: dict[str, list[dict]] = defaultdict(list)
    for kind in args.kinds.split(","):
        for family in args.families.split(","):
            for cell in CELLS:
                title = f"{kind} {family} {cell[0]}, {cell[1]}, {cell[2]}"
                begin, runs = time.process_time(), []
                for r in range(args.replicates):
                    key = (*title.encode(), r)
                    seeds = np.random.SeedSequence(args.seed, spawn_key=key)
                    runs.append(one_table(kind, cell, family, seeds, args.numbers, args.entries))
                seconds = (time.process_time() - begin) / len(runs)
                print(line(title, runs, seconds), flush=True)
                totals[f"{kind} {family}"] += runs
    for title, runs in totals.items():
        print(line(f"all {title} ({len(runs)})", runs), flush=True)


if __name__ == "__main__":
    main()
