"""Optima of an unknown Q: how far fits of one table from several seeds are from the best of them.

    python benchmarks/optima.py --real ecpe/responses.csv:3,4,5 --seeds 5
    python benchmarks/optima.py --tables weak,dependent --seeds 5

Prints for each table the best half BIC (log-likelihood minus half log N per parameter), the gap to
it over the seeds (mean and largest), the same gap of the log-likelihood to that fit's, entries of Q
that differ from that fit's after matching latents (mean), and CPU seconds of a fit. Tables are
those of `constants.py`. The seeds are those of the estimator; the table stays the same.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from constants import SETS

from hidag import DCRL, evaluate
from hidag.fitting.information_criteria import information_criteria
from hidag.simulation import simulate


def tables(options: argparse.Namespace) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield names, responses and settings."""
    for cell in (one for name in filter(None, options.tables.split(",")) for one in SETS[name]):
        rng = np.random.default_rng((options.seed, *cell.name.encode()))
        truth = cell.draw(rng)
        settings = {"n_latents": truth.n_latents, "family": truth.families} | dict(cell.settings)
        if not settings.pop("given", False):
            yield cell.name, simulate(truth, cell.n_rows, rng=rng).X, settings
    for path, _, numbers in (given.rpartition(":") for given in options.real):
        table = pd.read_csv(path)
        for number in map(int, numbers.split(",")):
            yield f"{Path(path).parent.name}, {number}", table, {"n_latents": number}


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", default="", help=", ".join(SETS))
    parser.add_argument("--real", action="append", default=[], metavar="FILE:K,K")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of simulated tables")
    options = parser.parse_args()
    print(f"{'table':44s} best half BIC   gap  (max)   logL  (max)  Q differs  CPU s", flush=True)
    for name, x, settings in tables(options):
        begin, fits = time.process_time(), []
        for seed in range(options.seeds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fits.append(DCRL(**settings, random_state=seed).fit(x))
        seconds = (time.process_time() - begin) / len(fits)
        values = np.array([0.5 * information_criteria(one.result_).bic for one in fits])
        best = fits[int(values.argmin())]
        gaps = values - values.min()
        lost = np.array([best.log_likelihood_ - one.log_likelihood_ for one in fits])
        others = np.mean([evaluate(one, best).shd_q for one in fits])
        print(
            f"{name[:44]:44s} {values.min():13.2f} {gaps.mean():6.2f} {gaps.max():6.2f} "
            f"{lost.mean():6.2f} {lost.max():6.2f} {others:9.1f} {seconds:7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
