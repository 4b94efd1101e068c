"""How often 90 % intervals of the bootstrap hold the truth, over simulated tables.

    python benchmarks/bootstrap_coverage.py [--tables 20] [--resamples 60] [--rows 400]

Items' slopes and intercepts and the latents' shares, with Q given and with Q estimated (there
slopes that are truly there). Refits begin at the fit, so that other optima play no part: what is
judged is the width of the intervals. Few resamples make percentile intervals too narrow.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from hidag import DCRL, bootstrap
from hidag.errors import HidagWarning
from hidag.evaluate import Parts, match_latents
from hidag.simulate import chain_dag, make_truth, random_law, simulate

K = 3
Q = np.vstack([np.eye(K, dtype=int)] * 3 + [[[1, 1, 0]], [[0, 1, 1]]])


def covered(family: str, given: bool, seed: int, n_rows: int, n_resamples: int) -> dict[str, list]:
    """Return for each kind of number whether its interval holds the truth."""
    rng = np.random.default_rng([seed, given, len(family)])
    truth = make_truth(random_law(chain_dag(K), rng=rng), Q, family, rng=rng)
    X = simulate(truth, n_rows, rng=rng).X
    model = DCRL(K, family=family, q_matrix=Q if given else None, random_state=seed).fit(X)
    found = bootstrap(model, X, n_resamples=n_resamples, start="fitted", random_state=seed)
    matching = match_latents(truth, model)
    true = Parts.of(truth).relabelled(matching.permutation, matching.flips)
    out: dict[str, list] = {"slopes": [], "intercepts": [], "shares": []}
    for name, values, aim in (
        ("slopes", found.loadings, true.loadings),
        ("intercepts", found.intercept, true.intercept),
        ("shares", found.margins[:, :, 1], true.law.marginals()[:, 1]),
    ):
        low, high = np.percentile(values, [5, 95], axis=0)
        there = true.q_matrix == 1 if name == "slopes" else np.ones(aim.shape, bool)
        out[name] = list(((low <= aim) & (aim <= high))[there])
    return out


def main() -> None:
    """Print the coverage of each kind of number."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--resamples", type=int, default=60)
    parser.add_argument("--rows", type=int, default=400)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", HidagWarning)
    print(f"coverage of 90 % intervals, {asked.tables} tables of {asked.rows} rows")
    for family in ("gaussian", "bernoulli"):
        for given in (True, False):
            runs = [
                covered(family, given, seed, asked.rows, asked.resamples)
                for seed in range(asked.tables)
            ]
            shares = {n: np.mean(np.concatenate([r[n] for r in runs])) for n in runs[0]}
            said = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
            print(f"{family:10} Q {'given' if given else 'estimated':10} {said}", flush=True)


if __name__ == "__main__":
    main()
