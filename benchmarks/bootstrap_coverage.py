"""Coverage of 90 % bootstrap intervals over simulated tables.

    python benchmarks/bootstrap_coverage.py --tables 40 --resamples 99 --jobs 2 --folder DIR

Tables come from three latents, two of them causes of the third, and eleven items. With ``--items
weak`` items are noisier and the second latent of an item has a weak effect, so that an estimated Q
often misses it. Latents of the truth are matched to the fit. For each family, with Q given and
estimated, prints the coverage and its Monte Carlo standard error over tables for

- nonzero slopes, by size, and zero slopes (of an estimated Q);
- intercepts and variances;
- proportions of the latents' upper levels, and probabilities of joint states;
- nonzero average effects on latents and items: with the true graph fixed, and with each refit's own
  graph, where unidentified directions give ranges.

Refits start at the fit (``--start full`` searches other optima too, as `hidag.bootstrap` does by
default; with a given Q that takes ten times as long). With ``--folder`` each finished table is
stored: an interrupted run resumes, and after parts (``--first``, ``--cells``) one more call over
all of them prints their table without a fit.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config

from hidag import DCRL, BootstrapResult, bootstrap
from hidag.causal import average_effects
from hidag.causal.probability_queries import intervene
from hidag.exceptions import HidagWarning
from hidag.inference.intervals import percentile_interval
from hidag.metrics import Parts, match_latents
from hidag.results import FitResult
from hidag.simulation import Truth, dag_from_parents, make_truth, random_law, simulate
from hidag.structure import DAG

K = 3
Q = np.vstack([np.eye(K, dtype=int)] * 3 + [[[1, 1, 0]], [[0, 1, 1]]])
PARENTS = ((), (), (0, 1))
LEVEL = 0.9
FAMILIES = ("gaussian", "bernoulli")
CELLS = tuple(f"{family}-{q}" for family in FAMILIES for q in ("given", "estimated"))
#: Ratio of the slopes of an item's two latents, and variance of a gaussian item.
ITEMS = {"strong": (1.0, 1.0), "weak": (3.0, 4.0)}
#: Slopes below this are called weak; only weak items have such.
WEAK = 1.0
KINDS = (
    "slopes", "weak slopes", "absent slopes", "intercepts", "variances", "shares", "joint law",
    "effects on latents", "effects on items", "own graph, latents", "own graph, items",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What is simulated; a table is its plan and its number."""

    cell: str
    items: str
    n_rows: int
    n_resamples: int
    start: str
    seed: int

    @property
    def family(self) -> str:
        return self.cell.split("-")[0]

    @property
    def given(self) -> bool:
        return self.cell.endswith("-given")

    def truth(self, number: int) -> tuple[Truth, np.random.Generator]:
        """Return a table's truth and the generator of its rows: the same for Q given or not."""
        key = FAMILIES.index(self.family), number
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
        ratio, variance = ITEMS[self.items]
        law = random_law(dag_from_parents(PARENTS), rng=rng)
        truth = make_truth(law, Q, self.family, slope_ratio=ratio, dispersion=variance, rng=rng)
        return truth, rng


def measured(plan: Plan, number: int, folder: Path | None) -> dict:
    """Return for each kind of number how many intervals of a table hold the truth, of how many."""
    words = [plan.cell, plan.items, plan.n_rows, plan.n_resamples, plan.start, plan.seed, number]
    path = None if folder is None else folder / ("-".join(map(str, words)) + ".json")
    if path is not None and path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    truth, rng = plan.truth(number)
    X = simulate(truth, plan.n_rows, rng=rng).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HidagWarning)
        model = DCRL(
            K, family=plan.family, q_matrix=Q if plan.given else None, random_state=number
        ).fit(X)
        found = bootstrap(
            model, X, n_resamples=plan.n_resamples, start=plan.start, random_state=number
        )
    matching = match_latents(truth, model.result_)
    true = Parts.of(truth).relabelled(matching.permutation, matching.flips)
    order = np.array(matching.permutation)
    dag = DAG(truth.dag.adjacency[np.ix_(order, order)])
    holds: dict[str, list[int]] = {kind: [0, 0] for kind in KINDS}
    for kind, low, high, aim in intervals(model.result_, found, truth, true, dag):
        # Where truth and refits are the same number, rounding should not decide.
        inside = (low <= aim + 1e-9) & (aim <= high + 1e-9)
        holds[kind] = [int(inside.sum()), int(inside.size)]
    out = {
        "plan": asdict(plan),
        "number": number,
        "q_right": bool((model.q_matrix_ == true.q_matrix).all()),
        "same_latents": float(found.same_latents.mean()),
        "holds": holds,
    }
    if path is not None:
        path.write_text(json.dumps(out), encoding="utf-8")
    return out


def intervals(
    fit: FitResult, found: BootstrapResult, truth: Truth, true: Parts, dag: DAG
) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield kind, ends and truth of the intervals of one table, in the fit's names."""
    there = true.q_matrix == 1
    weak = np.abs(true.loadings) < WEAK
    slopes = {"slopes": there & ~weak, "weak slopes": there & weak}
    if not found.q_given:
        slopes["absent slopes"] = ~there
    for kind, where in slopes.items():
        yield kind, *_ends(found.loadings[:, where]), true.loadings[where]
    yield "intercepts", *_ends(found.intercept), true.intercept
    if truth.families[0] == "gaussian":
        yield "variances", *_ends(found.dispersion), truth.dispersion
    yield "shares", *_ends(found.margins[:, :, 1]), true.law.marginals()[:, 1]
    yield "joint law", *_ends(found.joint), true.law.probabilities
    aim = true_effects(truth, true)
    for graph, names in (
        (dag, ("effects on latents", "effects on items")),
        (None, ("own graph, latents", "own graph, items")),
    ):
        effects = average_effects(fit, graph=graph, replicates=found, level=LEVEL)
        known = ~np.isnan(effects.low) & (np.abs(aim) > 1e-9)
        for kind, part in zip(names, (np.s_[:, :K], np.s_[:, K:]), strict=True):
            where = known[part]
            ends = effects.lower[part][where], effects.upper[part][where]
            yield kind, *ends, aim[part][where]


def _ends(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return percentile_interval(values, LEVEL)


def true_effects(truth: Truth, true: Parts) -> np.ndarray:
    """Return what setting each of the fit's latents truly adds, shape (K, K + J)."""
    states = true.law.space.states()
    eta = states @ true.loadings.T + true.intercept
    means = eta if truth.families[0] == "gaussian" else 1.0 / (1.0 + np.exp(-eta))
    values = np.hstack([states, means])
    ends = [
        [intervene(true.law, {k: level}).probabilities @ values for level in (0, 1)]
        for k in range(K)
    ]
    return np.array([high - low for low, high in ends])


def share_with_error(runs: list[dict], kind: str) -> str:
    """Return the share of intervals that hold, with its standard error over tables, as text."""
    hits, counts = np.array([run["holds"][kind] for run in runs], dtype=float).T
    if not counts.sum():
        return "-"
    share = hits.sum() / counts.sum()
    if np.count_nonzero(counts) < 2:
        return f"{share:.3f}"
    # Intervals of one table go together, so tables are what varies independently.
    error = np.sqrt(((hits - share * counts) ** 2).sum() * len(runs) / (len(runs) - 1))
    return f"{share:.3f} ({error / counts.sum():.3f})"


def main() -> None:
    """Print a table of coverage, a row for each kind of number and a column for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first table")
    parser.add_argument("--resamples", type=int, default=99)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--items", choices=tuple(ITEMS), default="strong")
    parser.add_argument("--start", choices=("fitted", "full"), default="fitted")
    parser.add_argument("--cells", default=",".join(CELLS), help="of " + ", ".join(CELLS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.folder is not None:
        asked.folder.mkdir(parents=True, exist_ok=True)
    plans = [
        Plan(cell, asked.items, asked.rows, asked.resamples, asked.start, asked.seed)
        for cell in asked.cells.split(",")
    ]
    numbers = range(asked.first, asked.first + asked.tables)
    jobs = [(plan, number) for number in numbers for plan in plans]
    with parallel_config(backend="loky", inner_max_num_threads=1):
        runs = Parallel(n_jobs=asked.jobs)(delayed(measured)(*job, asked.folder) for job in jobs)
    by_cell = {plan.cell: [r for r in runs if r["plan"]["cell"] == plan.cell] for plan in plans}
    for cell, group in list(by_cell.items()):
        right = [run for run in group if run["q_right"]]
        if cell.endswith("-estimated") and 1 < len(right) < len(group):
            by_cell[f"{cell}, Q right"] = right
    print(
        f"share of {LEVEL:.0%} intervals that hold the truth (Monte-Carlo standard error), "
        f"{asked.rows} rows, {asked.items} items, {asked.resamples} resamples, refits from "
        f"{asked.start!r} starts, seed {asked.seed}"
    )
    print("| kind | " + " | ".join(by_cell) + " |")
    print("|---" * (len(by_cell) + 1) + "|")
    print("| tables | " + " | ".join(str(len(group)) for group in by_cell.values()) + " |")
    for name, key in (("with the true Q", "q_right"), ("refits, same latents", "same_latents")):
        shares = [f"{np.mean([run[key] for run in group]):.2f}" for group in by_cell.values()]
        print(f"| {name} | " + " | ".join(shares) + " |")
    for kind in KINDS:
        shares = [share_with_error(group, kind) for group in by_cell.values()]
        if any(share != "-" for share in shares):
            print(f"| {kind} | " + " | ".join(shares) + " |", flush=True)


if __name__ == "__main__":
    main()
