"""Do tests of fit keep their level? Rejection rates when the model that is fitted is the true one.

    python benchmarks/goodness.py --replicates 40

Tables are those of `benchmarks/standard_errors.py`: three latents in a chain, fifteen items, Q
given. Printed are the mean of M2 over its degrees of freedom and the shares of tests with p < .05:
M2, residual correlations of pairs, item fit, person fit (a share of rows), predictive checks; then
the estimated accuracy and consistency of placements beside what a second table and the true states
show.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from standard_errors import truth_of

from hidag import DCRL, classify, fit_statistics, person_fit, simulate
from hidag.simulate import Truth


def one_table(truth: Truth, n_rows: int, missing: float, seed: int) -> dict[str, float]:
    """Return what the tests say of one table, and placements of it and of a second one."""
    drawn = simulate(truth, n_rows, rng=seed)
    rng = np.random.default_rng((seed, 1))
    X = np.array(drawn.X)
    X[rng.random(X.shape) < missing] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = DCRL(
            3, q_matrix=truth.q_matrix, family=list(truth.families), random_state=seed
        ).fit(X).result_  # fmt: skip
    found = fit_statistics(result, X, n_tables=40, random_state=seed)
    out = {
        name: float(np.nanmean(np.array(table.column("p_value")) < 0.05))
        for name, table in (
            ("pairs", found.pairs),
            ("items", found.items),
            ("checks", found.checks),
            ("persons", person_fit(result, X, random_state=seed).table),
        )
    }
    if found.absolute is not None:
        out["M2 / df"] = found.absolute.m2 / found.absolute.degrees
        out["M2"] = float(found.absolute.p_value < 0.05)
    placed = classify(result, X)
    second = classify(result, result.sample_items(drawn.states, rng))
    told = placed.quality.to_dicts()
    out["accuracy told"] = float(np.mean([row["accuracy"] for row in told[:-1]]))
    out["accuracy"] = float(np.mean(placed.levels == drawn.states))
    out["consistency told"] = float(np.mean([row["consistency"] for row in told[:-1]]))
    out["consistency"] = float(np.mean(placed.levels == second.levels))
    return out


COLUMNS = (
    "M2 / df", "M2", "pairs", "items", "persons", "checks", "accuracy told", "accuracy",
    "consistency told", "consistency",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default="bernoulli,gaussian,poisson,mixed")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        f"tests of true models (Monte-Carlo standard error), N={args.n}, missing {args.missing:g}, "
        f"{args.replicates} tables, seed {args.seed}"
    )
    print("| items | " + " | ".join(COLUMNS) + " |\n|---|" + "---|" * len(COLUMNS))
    for name in args.families.split(","):
        truth = truth_of(name)
        tables = [
            one_table(truth, args.n, args.missing, args.seed * 100_000 + replicate)
            for replicate in range(args.replicates)
        ]
        cells = []
        for column in COLUMNS:
            values = np.array([table[column] for table in tables if column in table])
            if len(values):
                error = values.std() / np.sqrt(len(values))
                cells.append(f"{values.mean():.3f} ({error:.3f})")
            else:
                cells.append("")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
