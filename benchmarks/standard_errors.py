"""Coverage of intervals from standard errors, by simulation.

    python benchmarks/standard_errors.py --replicates 100

Tables come from three latents in a chain, each with four pure items, and three items of two
latents; Q is given, and a model is fitted with the defaults. Prints the coverage for each kind of
parameter with its Monte Carlo standard error over tables.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from hidag import DCRL, simulate
from hidag.inference import standard_errors
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulation import Truth

Q = np.vstack([np.repeat(np.eye(3, dtype=np.int8), 4, axis=0), 1 - np.eye(3, dtype=np.int8)])
LAW = NetworkLaw(
    StateSpace.binary(3),
    ((), (0,), (1,)),
    (
        np.array([0.45, 0.55]),
        np.array([[0.75, 0.25], [0.3, 0.7]]),
        np.array([[0.7, 0.3], [0.2, 0.8]]),
    ),
)
FAMILIES = {
    "bernoulli": ("bernoulli",),
    "gaussian": ("gaussian",),
    "poisson": ("poisson",),
    "mixed": ("bernoulli", "gaussian", "poisson", "ordinal(4)", "gamma"),
}
#: Effect of an item's latents together, on the scale of its predictor.
TOTAL = {"bernoulli": 2.8, "gaussian": 2.0, "poisson": 1.2, "ordinal(4)": 2.5, "gamma": 1.2}


def truth_of(name: str) -> Truth:
    families = tuple(FAMILIES[name][j % len(FAMILIES[name])] for j in range(len(Q)))
    total = np.array([TOTAL[family] for family in families])
    loadings = Q * (total / Q.sum(axis=1))[:, None]
    intercept = np.where(np.isin(families, ("bernoulli", "ordinal(4)")), -0.5 * total, 0.3)
    cutpoints = None
    if "ordinal(4)" in families:
        cutpoints = np.where(np.array(families)[:, None] == "ordinal(4)", [1.0, 2.0], np.nan)
    return Truth(Q, intercept, loadings, np.full(len(Q), 0.8), families, LAW, cutpoints=cutpoints)


def true_numbers(truth: Truth) -> dict[tuple[str, str, str], float]:
    """Return the truth by kind, name and term, as the table of standard errors names them."""
    out = {}
    for j, item in enumerate(truth.item_names):
        out["coefficient", item, "intercept"] = truth.intercept[j]
        for k, latent in enumerate(truth.latent_names):
            out["coefficient", item, latent] = truth.loadings[j, k]
        out["dispersion", item, ""] = truth.dispersion[j]
        for c, value in enumerate(truth.cutpoints[j]):
            out["cutpoint", item, f"cutpoint {c + 2}"] = value
    probabilities, states = truth.law.probabilities, truth.law.space.states()
    for state, p in zip(states, probabilities, strict=True):
        out["probability", "profile", "".join(map(str, state))] = p
    for k, latent in enumerate(truth.latent_names):
        for level in (0, 1):
            out["share", latent, str(level)] = probabilities[states[:, k] == level].sum()
    return out


def covered(truth: Truth, n_rows: int, kind: str, seed: int) -> dict[str, list[bool]]:
    """Return which intervals of one table hold the truth, by kind of number."""
    X = np.array(simulate(truth, n_rows, rng=seed).X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DCRL(
            3, q_matrix=truth.q_matrix, family=list(truth.families), law="saturated",
            latent_names=truth.latent_names, random_state=seed,
        ).fit(X)  # fmt: skip
    found = standard_errors(model.result_, X, kind=kind)
    known = true_numbers(truth)
    items = dict(zip(model.result_.item_names, truth.item_names, strict=True))
    out: dict[str, list[bool]] = {}
    for row in found.to_rows():
        term = "" if row["kind"] == "dispersion" else row["term"]
        value = known[row["kind"], items.get(row["of"], row["of"]), term]
        if not np.isnan(row["standard_error"]):
            out.setdefault(row["kind"], []).append(row["lower"] <= value <= row["upper"])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default="bernoulli,gaussian,poisson,mixed")
    parser.add_argument("--kinds", default="louis,sandwich")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        f"coverage of 90 % intervals (Monte-Carlo standard error), N={args.n}, "
        f"{args.replicates} tables, seed {args.seed}"
    )
    print("| items | kind | coefficient | dispersion | cutpoint | probability | share | all |")
    print("|---|---|---|---|---|---|---|---|")
    for name in args.families.split(","):
        for kind in args.kinds.split(","):
            shares: dict[str, list[float]] = {}
            for replicate in range(args.replicates):
                found = covered(truth_of(name), args.n, kind, args.seed * 100_000 + replicate)
                for number, hits in found.items():
                    shares.setdefault(number, []).append(float(np.mean(hits)))
                everything = [hit for hits in found.values() for hit in hits]
                shares.setdefault("all", []).append(float(np.mean(everything)))
            cells = []
            for number in ("coefficient", "dispersion", "cutpoint", "probability", "share", "all"):
                values = np.array(shares.get(number, []))
                cells.append(
                    f"{values.mean():.3f} ({values.std() / np.sqrt(len(values)):.3f})"
                    if len(values)
                    else ""
                )
            print(f"| {name} | {kind} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
