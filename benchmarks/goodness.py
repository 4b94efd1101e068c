"""Level of the tests of fit: rejection rates when the fitted model is the true one.

    python benchmarks/goodness.py --replicates 40

Tables are those of `benchmarks/standard_errors.py`: three latents in a chain, fifteen items, Q
given; also near-deterministic yes/no items (`sharp`), every other item so (`half-sharp`), four
grades so (`sharp-grades`), and eight items only, so that parameters are fitted to little more than
some of the pairs (`eight`). Prints the mean of M2 over its degrees of freedom and the shares of
tests with p < .05: M2, residual correlations of pairs, item fit, person fit (a share of rows),
predictive checks; for pairs also the share that has a test, the standard deviation of z and the
number in a thousand with p < .0001; the share of tables that the report would call a misfit; then
the estimated accuracy and consistency of classification next to the actual ones.

    python benchmarks/goodness.py --weights none,random,latent,answers --replicates 200

Rows can have weights that the model is fitted with. `random` ones are independent of the answers;
with `latent` rows of one level of the first latent, with `answers` those of the upper thirds by
the sum of all answers, are sampled more often, and weights correct for that. `n_effective` is the
mean of M2's, or the effective sample size where there is no M2. With `--tied 0.2` the model is
wrong: in that share of the rows the second item repeats the first one's answer, and `tied pair` is
the share of tables in which that pair has p < .05.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product

import numpy as np
from standard_errors import LAW, Q, truth_of

from hidag import DCRL, classify, fit_statistics, person_fit, simulate
from hidag.reporting.panels import find_misfits
from hidag.simulation import Truth

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


#: How much more often some rows come into the table than others; random weights vary as a gamma
#: variable of this shape.
MORE_OFTEN, SHAPE = 4.0, 2.0
DESIGNS = ("none", "random", "latent", "answers")


def sampled(
    truth: Truth, n_rows: int, design: str, tied: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return answers (N, J), true states (N, K) and weights (N,) or None of a sampled table."""
    rng = np.random.default_rng((seed, 2))
    # Twice as many as are needed if every row is of the rarest kind.
    times = int(2 * MORE_OFTEN) if design in ("latent", "answers") else 1
    drawn = simulate(truth, times * n_rows, rng=seed)
    X, states = np.array(drawn.X), drawn.states
    repeated = rng.random(len(X)) < tied
    X[repeated, 1] = X[repeated, 0]
    if design == "none":
        return X, states, None
    if design == "random":
        return X, states, rng.gamma(SHAPE, 1.0 / SHAPE, n_rows)
    if design == "latent":
        often = np.where(states[:, 0] > 0, MORE_OFTEN, 1.0)
    else:
        total = ((X - X.mean(axis=0)) / X.std(axis=0)).sum(axis=1)
        thirds = np.searchsorted(np.quantile(total, [1 / 3, 2 / 3]), total)
        often = np.array([1.0, np.sqrt(MORE_OFTEN), MORE_OFTEN])[thirds]
    kept = np.flatnonzero(rng.random(len(X)) < often / MORE_OFTEN)[:n_rows]
    return X[kept], states[kept], often[kept].mean() / often[kept]


def share_below(chances: list[float], bound: float) -> float:
    """Return the share of tests with a chance below the bound, among those that could be made."""
    known = np.array(chances)[~np.isnan(chances)]
    return float(np.mean(known < bound)) if len(known) else float("nan")


def one_table(
    truth: Truth, n_rows: int, missing: float, design: str, tied: float, seed: int
) -> dict[str, float]:
    """Return what the tests say of one table, and placements of it and of a second one."""
    X, states, weights = sampled(truth, n_rows, design, tied, seed)
    rng = np.random.default_rng((seed, 1))
    X[rng.random(X.shape) < missing] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = DCRL(
            3, q_matrix=truth.q_matrix, family=list(truth.families), random_state=seed
        ).fit(X, sample_weight=weights).result_  # fmt: skip
    found = fit_statistics(result, X, sample_weight=weights, n_tables=40, random_state=seed)
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
    out["n_effective"] = found.n_effective
    out["tested"] = float(np.mean(~np.isnan(z)))
    if out["tested"] > 0:
        out["SD of z"] = float(np.sqrt(np.nanmean(z**2)))
        out["p < .0001"] = 1000.0 * share_below(found.pairs.column("p_value"), VERY_SMALL)
    if tied:
        (first,) = (
            row
            for row in found.pairs.to_dicts()
            if (row["first"], row["second"]) == result.item_names[:2]
        )
        out["tied pair"] = float(first["p_value"] < 0.05)
    out["misfit"] = float(bool(find_misfits(found)))
    if found.absolute is not None:
        out["M2 / df"] = found.absolute.m2 / found.absolute.degrees
        out["M2"] = float(found.absolute.p_value < 0.05)
        out["n_effective"] = found.absolute.n_effective
    placed = classify(result, X)
    second = classify(result, result.sample_items(states, rng))
    quality = placed.quality.to_dicts()
    out["estimated accuracy"] = float(np.mean([row["accuracy"] for row in quality[:-1]]))
    out["accuracy"] = float(np.mean(placed.levels == states))
    out["estimated consistency"] = float(np.mean([row["consistency"] for row in quality[:-1]]))
    out["consistency"] = float(np.mean(placed.levels == second.levels))
    return out


COLUMNS = (
    "n_effective", "M2 / df", "M2", "tied pair", "pairs", "tested", "SD of z", "p < .0001",
    "items", "persons", "checks", "misfit", "estimated accuracy", "accuracy",
    "estimated consistency", "consistency",
)  # fmt: skip


FAMILIES = "bernoulli,gaussian,poisson,mixed,sharp,half-sharp,sharp-grades,eight"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=FAMILIES)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--weights", default="none", help=f"some of {','.join(DESIGNS)}")
    parser.add_argument("--tied", type=float, default=0.0)
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        f"tests of {'wrong' if args.tied else 'true'} models (Monte-Carlo standard error), "
        f"N={args.n}, missing {args.missing:g}, tied {args.tied:g}, {args.replicates} tables, seed "
        f"{args.seed}"
    )
    print("| items | weights | " + " | ".join(COLUMNS) + " |\n|---|---|" + "---|" * len(COLUMNS))
    for name, design in product(args.families.split(","), args.weights.split(",")):
        truth = model_of(name)
        tables = [
            one_table(
                truth, args.n, args.missing, design, args.tied, args.seed * 100_000 + replicate
            )
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
        print(f"| {name} | {design} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
