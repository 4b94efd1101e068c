"""Maxima with a given Q: fits from several seeds against the best of 20 starts of a plain EM.

    python benchmarks/maximum.py
    python benchmarks/maximum.py --tables "few items" --models gdina --seeds 10
    python benchmarks/maximum.py --data folder_with_responses_and_q
    python benchmarks/maximum.py --tables "" --mixed all --models main,gdina

Prints for each model and table the best log-likelihood of plain EM (an independent program with
random starts, tests/strategy/plain_em.py), the worst and the best fit over the seeds relative to
it, and processor seconds of one fit and of the 20 starts. A fit that ends more than 0.05 below is
marked. Tables of --data have responses.csv and q.csv, items in the columns and rows. Tables of
--mixed have other families, missing cells and weights (tests/strategy/plain_families.py).
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from hidag import DCRL

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "strategy"))

from plain_em import Table, best_plain_em, draw_table
from plain_families import MixedTable, PlainEM, draw_mixed

TABLES = {
    "usual": {"seed": 11},
    "usual 13": {"seed": 13},
    "few items": {"seed": 1, "n_rows": 200, "n_items": 7, "levels": (2,) * 3},
    "too few items": {"seed": 2, "n_rows": 300, "n_items": 8},
    "weak items": {"seed": 3, "n_rows": 1000, "n_items": 20, "low": 0.35, "high": 0.65},
    "many rows": {"seed": 4, "n_rows": 2000, "n_items": 20, "levels": (2,) * 5},
    "three levels": {"seed": 5, "n_rows": 800, "n_items": 12, "levels": (3, 3)},
    "mixed levels": {"seed": 6, "n_rows": 500, "n_items": 10, "levels": (3, 2, 2)},
    "latent classes": {"seed": 7, "n_rows": 500, "n_items": 12, "levels": (4,)},
}
MIX = ("gaussian", "bernoulli", "poisson", "ordinal(4)", "categorical(3)")
MIXED_TABLES = {
    "gaussian": {"seed": 1, "families": ("gaussian",)},
    "gaussian few": {
        "seed": 2,
        "families": ("gaussian",),
        "n_items": 8,
        "n_rows": 300,
        "levels": (2,) * 4,
    },
    "gaussian 3": {"seed": 3, "families": ("gaussian",), "levels": (3, 3)},
    "poisson": {"seed": 5, "families": ("poisson",), "levels": (2,) * 4, "n_items": 12},
    "ordinal": {"seed": 6, "families": ("ordinal(4)",)},
    "ordinal 3 2": {"seed": 7, "families": ("ordinal(5)",), "levels": (3, 2)},
    "nominal": {"seed": 8, "families": ("categorical(3)",)},
    "probit": {"seed": 9, "families": ("bernoulli-probit",), "n_items": 12},
    "cloglog": {"seed": 10, "families": ("bernoulli-cloglog",), "n_items": 12},
    "binomial": {"seed": 11, "families": ("binomial(6)",)},
    "mixed": {"seed": 12, "families": MIX, "n_items": 12},
    "mixed missing": {"seed": 13, "families": MIX, "n_items": 12, "missing": 0.2},
    "mixed weights": {"seed": 14, "families": MIX, "n_items": 12, "weighted": True},
    "mixed levels": {"seed": 15, "families": MIX, "n_items": 12, "levels": (3, 2, 2)},
    "neg. binomial": {"seed": 16, "families": ("negative-binomial",)},
    "zero-inflated": {"seed": 17, "families": ("zero-inflated-poisson",)},
    "gamma": {"seed": 18, "families": ("gamma",)},
    "beta": {"seed": 19, "families": ("beta",)},
    "binary missing": {
        "seed": 20,
        "families": ("bernoulli",),
        "n_items": 14,
        "missing": 0.25,
        "levels": (2,) * 4,
    },
    "binary weights": {
        "seed": 21,
        "families": ("bernoulli",),
        "n_items": 14,
        "weighted": True,
        "levels": (2,) * 4,
    },
    "lognormal": {"seed": 22, "families": ("lognormal",)},
}
MODELS = ("dina", "dino", "acdm", "2", "gdina")
#: Largest distance below the best plain EM.
MARGIN = 0.05


def read_table(folder: Path) -> Table:
    """Return a stored table of binary latents."""
    with (folder / "q.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    q = np.array([[int(float(v)) for v in row[1:]] for row in rows])
    with (folder / "responses.csv").open() as file:
        names, *answers = list(csv.reader(file))
    columns = [names.index(row[0]) for row in rows]
    values = np.array([[float(row[c]) for c in columns] for row in answers])
    return Table(values, q, (2,) * q.shape[1])


def best_plain(table: Table | MixedTable, model: str, n_starts: int) -> float:
    """Return the best log-likelihood of plain EM."""
    if isinstance(table, Table):
        return float(best_plain_em(table, model, n_starts))
    shape = table.X, table.q, table.levels, model, table.families, table.weights
    return float(PlainEM(*shape).best(n_starts))


def report(name: str, table: Table | MixedTable, model: str, options: argparse.Namespace) -> bool:
    """Print one line; return whether every seed reached the maximum."""
    effects: str | int = int(model) if model.isdigit() else model
    begin = time.process_time()
    best = best_plain(table, model, options.starts)
    middle = time.process_time()
    levels = table.levels[0] if len(set(table.levels)) == 1 else table.levels
    families, weights = "bernoulli", None
    if isinstance(table, MixedTable):
        named = [name.replace("categorical(3)", "nominal") for name in table.families]
        families, weights = named, table.weights
    found = []
    for seed in range(options.seeds):
        fit = DCRL(
            len(table.levels),
            q_matrix=table.q,
            levels=levels,
            effects=effects,
            family=families,
            law="saturated",
            random_state=seed,
        )
        found.append(float(fit.fit(table.X, sample_weight=weights).log_likelihood_))
    cost = (time.process_time() - middle) / options.seeds
    passed = min(found) > best - MARGIN
    print(
        f"{name:15} {model:6} {best:11.2f} {min(found) - best:8.3f} {max(found) - best:8.3f} "
        f"{cost:7.2f} {middle - begin:8.2f} {'' if passed else '  below'}",
        flush=True,
    )
    return passed


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", help="names of simulated tables, separated by commas")
    parser.add_argument("--mixed", default="", help='names of tables of other families, or "all"')
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--data", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    chosen = list(TABLES) if options.tables is None else options.tables.split(",")
    tables: dict[str, Table | MixedTable] = {
        name: draw_table(**TABLES[name]) for name in chosen if name
    }
    mixed = list(MIXED_TABLES) if options.mixed == "all" else options.mixed.split(",")
    tables |= {name: draw_mixed(**MIXED_TABLES[name]) for name in mixed if name}
    tables |= {folder.name: read_table(folder) for folder in options.data}
    print("table           model    plain EM    worst     best  CPU fit CPU plain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        passed = [
            report(name, table, model, options)
            for name, table in tables.items()
            for model in options.models.split(",")
        ]
    print(f"{sum(passed)} of {len(passed)} at the maximum from every seed")


if __name__ == "__main__":
    main()
