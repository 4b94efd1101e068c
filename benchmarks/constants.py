"""What tuning constants do: the same tables fitted with the default and with other values.

    python benchmarks/constants.py em
    python benchmarks/constants.py --constants em.gain_window=5,20 optima.most_ends=1
    python benchmarks/constants.py --tables weak,paper --replicates 10 --jobs 4 \\
        --variant "no moves: optima.most_ends=1, optima.largest_share_against=0"
    python benchmarks/constants.py --ablation --tables ablation --replicates 2

Each numeric constant of the stages (`hidag.config`) is halved and doubled; for a share above one
half it is the distance from 1. Values of a tuple are separated by "/". A variant changes several
constants together, for instance to remove moves of the search; --ablation removes each move of the
search in turn. Prints, relative to the default: the
mean change of log-likelihood and of the criterion (it less half of BIC's cost of the parameters);
how many tables end more than 0.5 units of the criterion lower and higher; mean changes of SHD (Q
and latent graph together) and of wrong entries of Q; the ratio of CPU seconds. A line ends in
"same" if all estimates are identical, so that the constant affects at most the cost; the ratios of
such lines also show how much CPU seconds vary by chance.

Tables (--tables, default "quick"): "weak", the paper's text design with Bernoulli items; "paper",
cells of its research code; "given", a given Q with main effects, DINA and G-DINA; "levels", three
levels; "many", 16 latents, which are sampled; "select", an unknown number of latents. "quick" has a
small table of each kind, "ablation" a table of each kind that a move of the search is for. Real
tables are added by --real, with a number of latents each (their rows have no truth, so no SHD):

    python benchmarks/constants.py --ablation --tables none --real DIR/responses.csv:3,4,5
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from hidag import DCRL, design, evaluate, simulate
from hidag.config import CONFIG, override
from hidag.exceptions import HidagError, SettingError
from hidag.fitting.information_criteria import information_criteria
from hidag.simulation import (
    Truth,
    banded_q,
    chain_dag,
    make_truth,
    random_dag,
    random_law,
    random_q,
    random_truth,
)

#: Criteria that differ by less are the same: fits end with a tolerance.
LEVEL = 0.5
Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A kind of table: how its truth is drawn, its number of rows, and the settings of the fit."""

    name: str
    draw: Callable[[np.random.Generator], Truth]
    n_rows: int
    settings: Mapping[str, Any]

    def fit(self, seed: int, changes: Changes) -> Fit | str:
        """Return the fit of a table, or why there is none: some values are impossible."""
        rng = np.random.default_rng((seed, *self.name.encode()))
        truth = self.draw(rng)
        X = simulate(truth, self.n_rows, rng=rng).X
        settings = {"n_latents": truth.n_latents, "family": truth.families} | dict(self.settings)
        if settings.pop("given", False):
            settings["q_matrix"] = truth.q_matrix
        begin = time.process_time()
        with warnings.catch_warnings(), override(changes):
            warnings.simplefilter("ignore")
            try:
                model = DCRL(**settings, random_state=seed).fit(X)
            except (HidagError, ValueError, ArithmeticError, IndexError) as error:
                return f"{type(error).__name__}: {error}"
        seconds = time.process_time() - begin
        found, criteria = evaluate(model, truth), information_criteria(model.result_)
        likelihood = float(model.log_likelihood_)
        return Fit(likelihood, -0.5 * criteria.bic, found.shd, found.shd_q, seconds)


@dataclass(frozen=True)
class RealTable:
    """A table of responses in a file, and the number of latents of the fit."""

    path: str
    n_latents: int

    @property
    def name(self) -> str:
        return f"{self.path}, {self.n_latents} latents"

    def fit(self, seed: int, changes: Changes) -> Fit | str:
        """Return the fit; the seed is that of the estimator."""
        table = pd.read_csv(self.path)
        begin = time.process_time()
        with warnings.catch_warnings(), override(changes):
            warnings.simplefilter("ignore")
            model = DCRL(self.n_latents, random_state=seed).fit(table)
        seconds = time.process_time() - begin
        criterion = -0.5 * information_criteria(model.result_).bic
        return Fit(float(model.log_likelihood_), criterion, np.nan, np.nan, seconds)


@dataclass(frozen=True)
class Fit:
    """Numbers of a fit that are compared."""

    log_likelihood: float
    criterion: float
    shd: float
    wrong_in_q: float
    seconds: float


def paper(name: str, family: str, n_rows: int, kind: str = "research-code", **settings) -> Cell:
    """Return a cell of the paper, with the name MODEL QMATRIX."""
    model, q = name.split()

    def draw(rng: np.random.Generator) -> Truth:
        return design(model, q, family, design=kind, rng=rng)

    return Cell(f"{name} {family} {kind} {n_rows}", draw, n_rows, settings)


def weak(n_latents: int, n_rows: int) -> Cell:
    """Return a short chain with the weak Bernoulli items of the text."""

    def draw(rng: np.random.Generator) -> Truth:
        law = random_law(chain_dag(n_latents), rng=rng)
        return make_truth(law, banded_q(n_latents, 1), "bernoulli", coefficients="text")

    return Cell(f"weak chain of {n_latents}, {n_rows}", draw, n_rows, {})


def given(effects: str, n_latents: int, n_rows: int) -> Cell:
    """Return binary items with a given Q."""

    def draw(rng: np.random.Generator) -> Truth:
        law = random_law(random_dag(n_latents, 0.5, rng=rng), rng=rng)
        q = random_q(5 * n_latents, n_latents, pure_share=0.5, max_parents=2, rng=rng)
        true = "all" if effects == "gdina" else effects
        return random_truth(law, q, "bernoulli", effects=true, rng=rng)

    settings = {"given": True, "effects": effects}
    return Cell(f"given Q, {effects}, {n_rows}", draw, n_rows, settings)


def few_pure(family: str, n_rows: int) -> Cell:
    """Return items of which most have two or three of five latents."""

    def draw(rng: np.random.Generator) -> Truth:
        law = random_law(random_dag(5, 0.4, rng=rng), rng=rng)
        q = random_q(20, 5, pure_share=0.25, max_parents=3, rng=rng)
        return random_truth(law, q, family, rng=rng)

    return Cell(f"few pure items, {family}, {n_rows}", draw, n_rows, {})


def dependent(family: str, n_latents: int, n_rows: int) -> Cell:
    """Return strongly dependent latents, which a start may find as one."""

    def draw(rng: np.random.Generator) -> Truth:
        dag = random_dag(n_latents, 1.0, rng=rng)
        law = random_law(dag, effects=(2.5, 3.5), rng=rng)
        q = random_q(4 * n_latents, n_latents, pure_share=0.5, max_parents=2, rng=rng)
        return random_truth(law, q, family, rng=rng)

    return Cell(f"dependent latents, {n_latents} {family}, {n_rows}", draw, n_rows, {})


def sparse_law(n_latents: int, n_rows: int) -> Cell:
    """Return weak items of latents of which few are adjacent, so that false edges may be found."""

    def draw(rng: np.random.Generator) -> Truth:
        law = random_law(random_dag(n_latents, 0.1, rng=rng), rng=rng)
        q = random_q(5 * n_latents, n_latents, pure_share=0.4, max_parents=2, rng=rng)
        return random_truth(law, q, "bernoulli", rng=rng)

    return Cell(f"few edges, {n_latents}, {n_rows}", draw, n_rows, {})


def unequal(family: str, n_rows: int) -> Cell:
    """Return the paper's chain of three latents with unequal numbers of levels."""
    asked = (3, 2, 3)

    def draw(rng: np.random.Generator) -> Truth:
        law = random_law(chain_dag(3), levels=asked, rng=rng)
        return make_truth(law, banded_q(3, 1), family)

    return Cell(f"levels 3-2-3, {family}, {n_rows}", draw, n_rows, {"levels": asked})


def levels(n_latents: int, n_rows: int) -> Cell:
    """Return binary items of latents with three levels."""

    def draw(rng: np.random.Generator) -> Truth:
        dag = random_dag(n_latents, 0.5, rng=rng)
        law = random_law(dag, levels=(3,) * n_latents, rng=rng)
        q = random_q(5 * n_latents, n_latents, pure_share=0.6, max_parents=2, rng=rng)
        return random_truth(law, q, "bernoulli", rng=rng)

    return Cell(f"three levels, {n_rows}", draw, n_rows, {"levels": 3})


def many(n_rows: int) -> Cell:
    """Return Gaussian items of more latents than are enumerated by default."""

    def draw(rng: np.random.Generator) -> Truth:
        law = random_law(chain_dag(16), rng=rng)
        return make_truth(law, np.vstack([np.eye(16, dtype=int)] * 3), "gaussian")

    return Cell(f"16 latents, {n_rows}", draw, n_rows, {})


def close_chain(family: str, n_rows: int) -> Cell:
    """Return pure items of a chain of 20 strongly dependent latents, which are sampled."""

    def draw(rng: np.random.Generator) -> Truth:
        law = random_law(chain_dag(20), effects=(2.5, 2.5), rng=rng)
        q = np.tile(np.eye(20, dtype=int), (4, 1))
        return make_truth(law, q, family, coefficients="research-code")

    return Cell(f"close chain of 20, {family}, {n_rows}", draw, n_rows, {})


SETS: dict[str, tuple[Cell, ...]] = {
    "none": (),
    "weak": tuple(paper(f"{m} Q1", "bernoulli", 3000, "text") for m in ("Chain-5", "Tree-10")),
    "paper": tuple(
        paper(name, family, 3000)
        for name in ("Chain-10 Q1", "Model-7 Q2")
        for family in ("bernoulli", "gaussian", "poisson")
    ),
    "given": tuple(given(effects, 5, 1000) for effects in ("main", "dina", "gdina")),
    "levels": (levels(4, 3000),),
    "many": (many(2000), close_chain("bernoulli", 300), close_chain("poisson", 1000)),
    "select": tuple(
        paper(f"{m} Q1", "bernoulli", 2000, n_latents="auto") for m in ("Chain-5", "Model-7")
    ),
    "ablation": (
        paper("Chain-5 Q1", "bernoulli", 3000, "text"),
        paper("Tree-10 Q2", "bernoulli", 3000),
        paper("Model-7 Q2", "poisson", 3000),
        few_pure("bernoulli", 3000),
        few_pure("gaussian", 1000),
        levels(3, 2000),
        unequal("gaussian", 2000),
        *(given(effects, 5, 500) for effects in ("main", "gdina")),
    ),
    "dependent": (
        dependent("bernoulli", 5, 1000),
        dependent("bernoulli", 5, 5000),
        dependent("gaussian", 5, 1000),
        dependent("poisson", 6, 2000),
        dependent("bernoulli", 8, 3000),
        sparse_law(5, 1000),
        sparse_law(8, 3000),
        paper("Model-13 Q1", "bernoulli", 3000),
    ),
    "quick": (
        weak(3, 300),
        *(paper("Chain-5 Q2", family, 500) for family in ("bernoulli", "gaussian", "poisson")),
        given("gdina", 3, 300),
        levels(2, 500),
        many(300),
        paper("Chain-5 Q1", "bernoulli", 500, n_latents="auto"),
    ),
}


#: The moves of the search, and what removes each of them.
ABLATION = (
    "one start: exploratory.starts_on_disagreement=1",
    "one end, no monotone loadings: optima.most_ends=1",
    "no unpenalised steps: unpenalised_steps.most_moves=0",
    "no splits of sampled latents: saem_network.most_splits=0",
    "no monotone loadings: optima.largest_share_against=0",
    "no level moves: levels.max_rounds=0, levels.max_points=1",
    "one round of structural EM: structural_em.max_rounds=1",
    "no edge tests: graph_stage.max_edge_tests=0",
    "no restarts of items: confirmatory.restarts_without_gain=0",
)


def alternatives(value: Any) -> list[Any]:
    """Return half and double of a number; nothing for other values, such as tuples."""
    if isinstance(value, int):
        return [v for v in (max(1, round(value / 2)), 2 * value) if v != value]
    if not isinstance(value, float):
        return []
    if 0.5 < value < 1.0:
        return [1.0 - (1.0 - value) / 2.0, 1.0 - (1.0 - value) * 2.0]
    return [value / 2.0, value * 2.0]


def parse(text: str) -> tuple[str, list[Any]]:
    """Return the constant and the values of "STAGE.CONSTANT=VALUE,VALUE"."""
    name, _, values = text.strip().partition("=")
    with override({name: None}):  # Raises if there is no such constant.
        pass
    stage, _, constant = name.partition(".")
    default = getattr(getattr(CONFIG, stage), constant)

    def number(given: str, like: Any) -> Any:
        return int(float(given)) if isinstance(like, int) else float(given)

    if isinstance(default, tuple):
        return name, [tuple(number(v, default[0]) for v in values.split("/"))]
    return name, [number(v, default) for v in values.split(",")]


def shown(value: Any) -> str:
    return "/".join(map(shown, value)) if isinstance(value, tuple) else f"{value:g}"


def variants(options: argparse.Namespace) -> dict[str, Changes]:
    """Return the changes of all settings by label."""
    out: dict[str, Changes] = {}
    found = [
        (f"{stage}.{one.name}", alternatives(getattr(getattr(CONFIG, stage), one.name)))
        for stage in options.stages
        for one in fields(getattr(CONFIG, stage))
    ]
    for name, values in [*found, *map(parse, options.constants)]:
        out |= {f"{name}={shown(value)}": {name: value} for value in values}
    for text in (*(ABLATION if options.ablation else ()), *options.variant):
        label, _, changes = text.partition(":")
        out[label] = {name: values[0] for name, values in map(parse, changes.split(","))}
    return out


def fits_of(cell: Cell | RealTable, seed: int, settings: list[Changes]) -> list[Fit | str]:
    """Return the fits of one table, the default first; a fit before them compiles the kernels."""
    if isinstance(failed := cell.fit(seed, {}), str):
        raise RuntimeError(f"{cell.name}, seed {seed}, with the default: {failed}")
    found = [cell.fit(seed, changes) for changes in ({}, *settings)]
    print(f"  {cell.name}, seed {seed}: {len(found)} fits", file=sys.stderr, flush=True)
    return found


def report(label: str, defaults: list[Fit], changed: list[Fit | str]) -> None:
    """Print one line: a setting relative to the default."""
    pairs = [(a, b) for a, b in zip(defaults, changed, strict=True) if isinstance(b, Fit)]
    failures = [one for one in changed if isinstance(one, str)]
    line = f"{label:46s}"
    if pairs:
        names = ("log_likelihood", "criterion", "shd", "wrong_in_q")
        change = {n: np.array([getattr(b, n) - getattr(a, n) for a, b in pairs]) for n in names}
        gain = change["criterion"]
        ratio = sum(b.seconds for _, b in pairs) / sum(a.seconds for a, _ in pairs)
        line += (
            f"{change['log_likelihood'].mean():8.2f} {gain.mean():9.2f} "
            f"{int((gain < -LEVEL).sum()):5d} {int((gain > LEVEL).sum()):6d} "
            f"{change['shd'].mean():6.2f} {change['wrong_in_q'].mean():6.2f} {ratio:6.2f}"
        )
        line += "  same" * all(not np.nan_to_num(values).any() for values in change.values())
    line += f"  {len(failures)} failed: {failures[0]}" if failures else ""
    print(line, flush=True)


def main() -> None:
    """Read the options, fit the tables and print a line for each setting."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="all constants of a stage")
    parser.add_argument("--constants", nargs="+", default=[], metavar="STAGE.CONSTANT=VALUES")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME: CHANGES")
    parser.add_argument("--ablation", action="store_true", help="without each move in turn")
    parser.add_argument("--tables", default="quick", help=f"{', '.join(SETS)}; or several")
    parser.add_argument("--real", action="append", default=[], metavar="FILE:K,K", help="a table")
    parser.add_argument("--replicates", type=int, default=1, help="tables of each kind")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first table of each kind")
    parser.add_argument("--jobs", type=int, default=1, help="tables that are fitted at once")
    options = parser.parse_args()
    for name, known in (("stages", vars(CONFIG)), ("tables", SETS)):
        given = options.stages if name == "stages" else options.tables.split(",")
        if unknown := [one for one in given if one not in known]:
            parser.error(f"unknown {name} {', '.join(unknown)}; there are {', '.join(known)}")
    try:
        settings = variants(options)
    except SettingError as error:
        parser.error(str(error))
    cells: list[Cell | RealTable] = [
        cell for name in options.tables.split(",") for cell in SETS[name]
    ]
    for path, _, numbers in (given.rpartition(":") for given in options.real):
        cells += [RealTable(path, int(number)) for number in numbers.split(",")]
    seeds = range(options.seed, options.seed + options.replicates)
    tasks = [(cell, seed) for seed in seeds for cell in cells]
    done = Parallel(n_jobs=options.jobs)(
        delayed(fits_of)(cell, seed, list(settings.values())) for cell, seed in tasks
    )
    defaults, *changed = zip(*done, strict=True)
    means = {one.name: np.mean([getattr(fit, one.name) for fit in defaults]) for one in fields(Fit)}
    print(
        f"{len(tasks)} tables ({options.tables}), seeds from {options.seed}; default: SHD "
        f"{means['shd']:.2f}, wrong in Q {means['wrong_in_q']:.2f}, {means['seconds']:.2f} CPU s\n"
        f"{'change against the default':46s}    logL criterion lower higher    SHD      Q    CPU"
    )
    for label, fits in zip(settings, changed, strict=True):
        report(label, list(defaults), list(fits))


if __name__ == "__main__":
    main()
