"""Fit statistics and standard errors with more joint states than are enumerated.

    python benchmarks/many_latents.py --latents 16 --replicates 10

Tables of a chain of latents with three items each, Q given, which is the true model. Latents are
sampled; statistics after the fit use a junction tree. Prints the shares of pairs and items with p
< .05 and of pairs with p < .0001 in a thousand; the coverage of 90 % intervals of coefficients by
kind of standard error; the distance of fits from the maximum, in standard errors; and the time of
statistics and standard errors relative to that of the fit.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from hidag import DCRL, fit_statistics, simulate, standard_errors
from hidag.simulation import chain_dag, make_truth, random_law

VERY_SMALL = 1e-4


def one_table(family: str, args, seeds) -> dict[str, float]:
    """Return what is printed of one table."""
    for_law, for_rows, for_fit = seeds.spawn(3)
    law = random_law(chain_dag(args.latents), rng=for_law)
    q = np.vstack([np.eye(args.latents, dtype=int)] * 3)
    truth = make_truth(law, q, family)
    values = np.array(simulate(truth, args.n, rng=for_rows).X)
    seed = int(for_fit.generate_state(1)[0])
    begin = time.perf_counter()
    model = DCRL(args.latents, q_matrix=q, family=family, random_state=seed).fit(values)
    fitted = time.perf_counter()
    found = fit_statistics(model.result_, values, n_tables=20)
    examined = time.perf_counter()
    pairs, items = (
        np.array(table.column("p_value"), dtype=float) for table in (found.pairs, found.items)
    )
    out = {
        "pairs": np.mean(pairs < 0.05),
        "in 1000": 1000 * np.mean(pairs < VERY_SMALL),
        "items": np.mean(items < 0.05),
        "statistics": (examined - fitted) / (fitted - begin),
    }
    for kind in args.kinds.split(","):
        started = time.perf_counter()
        errors = standard_errors(model, values, kind=kind)
        out[f"{kind} takes"] = (time.perf_counter() - started) / (fitted - begin)
        right = np.column_stack([truth.intercept, truth.loadings.sum(axis=1)]).ravel()
        rows = [row for row in errors.to_rows() if row["kind"] == "coefficient"]
        low, high = (np.array([row[end] for row in rows]) for end in ("lower", "upper"))
        out[f"{kind} covers"] = np.mean(((low <= right) & (right <= high))[~np.isnan(low)])
        out["distance"] = errors.distance
    return out


def main() -> None:
    """Print a line for each family."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--families", default="bernoulli,gaussian,poisson")
    parser.add_argument("--latents", type=int, default=16)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--kinds", default="louis,scores")
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for place, family in enumerate(args.families.split(",")):
        runs = [
            one_table(family, args, np.random.SeedSequence(args.seed, spawn_key=(place, r)))
            for r in range(args.replicates)
        ]
        if place == 0:
            print(f"{args.latents} latents, N={args.n}, {args.replicates} replicates\n" + " " * 12
                  + " ".join(f"{name:>13s}" for name in runs[0]))  # fmt: skip
        means = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
        print(f"{family:12s}" + " ".join(f"{value:13.3f}" for value in means.values()), flush=True)


if __name__ == "__main__":
    main()
