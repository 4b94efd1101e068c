"""Do tests of fit keep their level? Rejection rates when the model that is fitted is the true one.

    python benchmarks/goodness.py --replicates 40

Tables are those of `benchmarks/standard_errors.py`: three latents in a chain, fifteen items, Q
given; besides, yes/no items that hardly ever depart from what their latents say (`sharp`), every
other item so (`half-sharp`), four grades so (`sharp-grades`), and eight items only, so that
parameters are fitted to little else than some of the pairs (`eight`). Printed are the mean of M2
over its degrees of freedom and the shares of tests with p < .05: M2, residual correlations of
pairs, item fit, person fit (a share of rows), predictive checks; for pairs also the share that has
a test, the standard deviation of z and the number in a thousand with p < .0001; the share of tables
of which the report would say that the model does not fit (doubted); then the estimated accuracy and
consistency of placements beside what a second table and the true states show.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from standard_errors import LAW, Q, truth_of

from hidag import DCRL, classify, fit_statistics, person_fit, simulate
from hidag.report.misfit import misfits
from hidag.simulate import Truth

EIGHT_ITEMS = np.array(
    [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]],
    dtype=np.int8,
)
#: An item with this effect of its latents departs from them in one row of fifty.
SHARP, USUAL = 8.0, 2.6
VERY_SMALL = 1e-4


def model_of(name: str) -> Truth:
    """Return a true model by name: one of coverage's, or one that is hard on tests of fit."""
    q = EIGHT_ITEMS if name == "eight" else Q
    total = {
        "sharp": np.full(len(q), SHARP),
        "half-sharp": np.where(np.arange(len(q)) % 2, SHARP, USUAL),
        "sharp-grades": np.full(len(q), SHARP),
        "eight": np.full(len(q), USUAL),
    }.get(name)
    if total is None:
        return truth_of(name)
    loadings = q * (total / q.sum(axis=1))[:, None]
    families, cutpoints = ("bernoulli",) * len(q), None
    if name == "sharp-grades":
        families, cutpoints = ("ordinal(4)",) * len(q), np.tile([1.0, 2.5], (len(q), 1))
    return Truth(q, -total / 2, loadings, np.ones(len(q)), families, LAW, cutpoints=cutpoints)


def share_below(chances: list[float], bound: float) -> float:
    """Return the share of tests with a chance below the bound, among those that could be made."""
    known = np.array(chances)[~np.isnan(chances)]
    return float(np.mean(known < bound)) if len(known) else float("nan")


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
        name: share_below(table.column("p_value"), 0.05)
        for name, table in (
            ("pairs", found.pairs),
            ("items", found.items),
            ("checks", found.checks),
            ("persons", person_fit(result, X, random_state=seed).table),
        )
    }
    z = np.array(found.pairs.column("z"))
    out["tested"] = float(np.mean(~np.isnan(z)))
    if out["tested"] > 0:
        out["SD of z"] = float(np.sqrt(np.nanmean(z**2)))
        out["p < .0001"] = 1000.0 * share_below(found.pairs.column("p_value"), VERY_SMALL)
    out["doubted"] = float(bool(misfits(found)))
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
    "M2 / df", "M2", "pairs", "tested", "SD of z", "p < .0001", "items", "persons",
    "checks", "doubted", "accuracy told", "accuracy", "consistency told", "consistency",
)  # fmt: skip


FAMILIES = "bernoulli,gaussian,poisson,mixed,sharp,half-sharp,sharp-grades,eight"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=FAMILIES)
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
        truth = model_of(name)
        tables = [
            one_table(truth, args.n, args.missing, args.seed * 100_000 + replicate)
            for replicate in range(args.replicates)
        ]
        cells = []
        for column in COLUMNS:
            values = np.array([table[column] for table in tables if column in table])
            values = values[~np.isnan(values)]
            if len(values):
                error = values.std() / np.sqrt(len(values))
                cells.append(f"{values.mean():.3f} ({error:.3f})")
            else:
                cells.append("")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
