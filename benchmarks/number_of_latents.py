"""Share of tables in which the number of latents is found, on the paper's designs.

    python benchmarks/number_of_latents.py --replicates 20 --seed 1
    python benchmarks/number_of_latents.py --models Model-7 --replicates 3 --fits near

Prints for each cell the share of tables in which each criterion, and `n_latents="auto"`, find the
right number; then the shares by family with their standard errors. "auto" fits only where parallel
analysis and factor BIC disagree, so the default takes about a second per table with informative
items. With --fits near, the recommendation of `hidag.select` and the criteria of its fits are
compared as well, which takes minutes.

    python benchmarks/number_of_latents.py --design both --models all --families bernoulli

runs all of the paper's graphs, including those of its comparison study (five latents), as the text
prints the designs and as its research code drew them, and prints the shares of both together.

    python benchmarks/number_of_latents.py --design text --families bernoulli --yardstick

prints in how many tables a fit that starts at the truth, with the right number, has a better
criterion than the best of our fits with one to three latents fewer, and than our fit with the
right number. Criteria are BIC, EBIC and that of the rule, BIC at r N rows. Without the first, no
search by that criterion can find the number; without the second, our fit is as good.

    python benchmarks/number_of_latents.py --design text --families bernoulli --hindsight

adds the result of a cost per parameter chosen afterwards, with the right numbers known: in how
many tables "auto"'s own fits, with or without one from the truth, have the right number at the
best cost for all tables, and in how many at some cost, chosen for each table.

    python benchmarks/number_of_latents.py --grid --replicates 4 --seed 1
    python benchmarks/number_of_latents.py --grid --families categorical --sizes 5000 --numbers 0,3

prints the share of right answers of "auto" for all families by the true number of latents,
including 0 (independent items), and by N: random graphs, three items per latent and at least six, a
third of them with up to three latents.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
from scipy.special import expit

from hidag import DCRL, design, select, simulate
from hidag.config import CONFIG
from hidag.data.item_types import resolve_families
from hidag.data.table import read_table
from hidag.fitting.information_criteria import InformationCriteria, information_criteria
from hidag.fitting.stages import InitialValues
from hidag.model_selection.automatic_number import choose_number
from hidag.model_selection.candidates import Candidate, count_shared, independent_criteria
from hidag.model_selection.comparison import bic_at
from hidag.model_selection.factor_count import count_factors, count_table_factors
from hidag.simulation import banded_q, random_dag, random_law
from hidag.simulation.designs import GRAPHS
from hidag_paper.studies import truth_started_fit

CRITERIA = ("gap", "parallel", "factor BIC", "auto")
OF_FITS = ("select", "BIC", "EBIC")
#: Graphs of the paper's two studies that n_latents="auto" is a matter of minutes for: all but
#: Model-13.
ALL_MODELS = ("Chain-5", "Tree-5", "Model-5", "Chain-10", "Tree-10", "Model-7", "Model-8")
#: Families of the paper's designs; all families of the grid.
ALL_FAMILIES = "gaussian,poisson,bernoulli"
#: How many latents fewer than the truth has are fitted for the yardstick.
FEWER = (1, 2, 3)
#: Criteria that are compared with those of a fit from the truth; "rule" is BIC at r N rows, with r
#: of our fit with the right number.
YARDSTICKS = ("bic", "ebic", "rule")
#: Prices of a parameter that are looked at afterwards: from AIC's to beyond log N.
PRICES = np.arange(2.0, 9.0, 0.1)


def drawn(model: str, q: str, family: str, n: int, version: str, seeds):
    """Return a truth, a table of it, shape (N, J), and the seed of fits."""
    for_truth, for_rows, for_fit = seeds.spawn(3)
    truth = design(model, q, family, design=version, rng=for_truth)
    values = np.array(simulate(truth, n, rng=for_rows).X)
    return truth, values, int(for_fit.generate_state(1)[0])


def found_numbers(truth, values: np.ndarray, seed: int, fits: str, hindsight: bool = False) -> dict:
    """Return what each criterion says of one table, and how many fits "auto" took.

    With ``hindsight``, also at which of ``PRICES`` the right number has the best fit.
    """
    families = list(truth.families)
    count = count_factors(values, families)
    n_fits, judged = 0, []

    def fit_of(k: int, strength: float | None, start: InitialValues | None = None) -> Candidate:
        nonlocal n_fits
        if k == 0:
            return Candidate(0, 0.0, independent_criteria(values, tuple(families)))
        n_fits += start is None
        model = DCRL(k, family=families, penalty_strength=strength, random_state=seed)
        model._start_from(start)
        judged.append(Candidate.of(model.fit(values).result_))
        return judged[-1]

    # The same function that the estimator calls; its one fit with the answer is not needed here.
    chosen = choose_number(count, fit_of, values).n_latents
    out = {
        "gap": count.by_gap,
        "parallel": count.by_parallel_analysis,
        "factor BIC": count.by_factor_bic,
        "auto": chosen,
        "fits": n_fits,
    }
    if fits != "none":
        found = select(values, family=families, fits=fits, folds=0, random_state=seed)
        out |= {"select": found.recommended} | {c: found.votes[c] for c in OF_FITS[1:]}
    if hindsight:
        # Where nothing was fitted the answer did not depend on a price.
        right = truth.n_latents
        alone = np.full(len(PRICES), chosen == right)
        out["prices, ours"] = right_at_prices(judged, right) if judged else alone
        fit_of(right, None, (truth.items, np.asarray(truth.law.probabilities)))
        out["prices, truth"] = right_at_prices(judged, right) if len(judged) > 1 else alone
    return out


def right_at_prices(judged: list[Candidate], right: int) -> np.ndarray:
    """Return at which of ``PRICES`` the best of some fits has the right number of latents."""
    charged = np.array(
        [one.aic + (PRICES - 2.0) * one.n_parameters + PRICES * one.n_shared for one in judged]
    )
    active = np.array([one.n_active for one in judged])
    return active[np.argmin(charged, axis=0)] == right


def print_hindsight(runs: list[dict]) -> None:
    """Print in how many tables a price that is chosen afterwards finds the right number."""
    for whose, fits in (("ours", "our fits"), ("truth", "our fits and one from the truth")):
        table = np.array([run[f"prices, {whose}"] for run in runs])
        best = int(np.argmax(table.sum(axis=0)))
        print(
            f"  {fits}: {table[:, best].sum()} of {len(runs)} at a price of {PRICES[best]:.1f}, "
            f"the best for all; {table.any(axis=1).sum()} at some price, another for each table",
            flush=True,
        )


def held_against_truth(truth, values: np.ndarray, seed: int) -> dict[str, float]:
    """Return by how much the truth-started fit is ahead, by criterion and by whose fits."""
    right = truth.n_latents
    from_truth = truth_started_fit(truth, values)
    best = from_truth.criteria, from_truth.parts.q_matrix
    ours, ratio = {}, 1.0
    for fewer in (0, *FEWER):
        model = DCRL(right - fewer, family=list(truth.families), random_state=seed)
        found = model.fit(values).result_
        ours[fewer] = information_criteria(found), found.q_matrix
        if fewer == 0 and found.information_ratio < CONFIG.information.low_ratio:
            ratio = found.information_ratio

    def criterion(name: str, fit: tuple[InformationCriteria, np.ndarray]) -> float:
        one, q = fit
        if name == "rule":
            numbers = {"bic": one.bic, "aic": one.aic, "n_parameters": one.n_parameters}
            return bic_at(SimpleNamespace(**numbers, n_shared=count_shared(q)), ratio)
        return getattr(one, name)

    out = {}
    for name in YARDSTICKS:
        value = {fewer: criterion(name, one) for fewer, one in ours.items()}
        out[f"{name} fewer"] = min(value[f] for f in FEWER) - criterion(name, best)
        out[f"{name} same"] = value[0] - criterion(name, best)
    return out


def print_yardstick(args, cells) -> None:
    """Print in how many tables the truth-started fit is better, and the median by how much."""
    names = [f"{name} {whose}" for whose in ("fewer", "same") for name in YARDSTICKS]
    print(
        f"design {args.design}, N={args.n}, {args.replicates} replicates, seed {args.seed}; tables "
        "in which the fit from the truth is better\nthan our best with 1 to 3 latents fewer, and "
        "than ours with as many; in brackets the median difference\n"
        f"{'cell':28s} "
        + " ".join(f"{f'{name.split()[0].upper()}, {name.split()[1]}':>18s}" for name in names),
        flush=True,
    )
    everything: list[dict[str, float]] = []

    def line(title: str, runs: list[dict[str, float]]) -> str:
        cells = []
        for name in names:
            ahead = np.array([run[name] for run in runs])
            cells.append(f"{(ahead > 0).sum()} of {len(runs)} ({np.median(ahead):+.1f})")
        return f"{title:28s} " + " ".join(f"{cell:>18s}" for cell in cells)

    for title, tables in cells:
        runs = [held_against_truth(*table) for table in tables]
        print(line(title, runs), flush=True)
        everything += runs
    print(line(f"all ({len(everything)})", everything), flush=True)


#: Families of the grid: step of the predictor per latent, and draws given centred predictors.
GRID = {
    "bernoulli": (2.0, lambda eta, rng: rng.random(eta.shape) < expit(eta)),
    "ordinal": (
        2.0,
        lambda eta, rng: np.digitize(eta + rng.logistic(size=eta.shape), (-1.5, 0, 1.5)),
    ),
    "binomial(5)": (1.2, lambda eta, rng: rng.binomial(5, expit(eta))),
    "poisson": (0.8, lambda eta, rng: rng.poisson(3.0 * np.exp(eta))),
    "negative-binomial": (
        0.8,
        lambda eta, rng: rng.poisson(3.0 * np.exp(eta) * rng.gamma(4.0, 0.25, eta.shape)),
    ),
    "zero-inflated-poisson": (
        0.8,
        lambda eta, rng: rng.poisson(3.0 * np.exp(eta)) * (rng.random(eta.shape) < 0.8),
    ),
    "gaussian": (1.5, lambda eta, rng: eta + rng.normal(size=eta.shape)),
    "lognormal": (1.5, lambda eta, rng: np.exp(eta + rng.normal(size=eta.shape))),
    "gamma": (0.8, lambda eta, rng: rng.gamma(3.0, np.exp(eta) / 3.0)),
    "beta": (
        1.2,
        lambda eta, rng: np.clip(rng.beta(8.0 * expit(eta), 8.0 * expit(-eta)), 1e-9, 1.0 - 1e-9),
    ),
    "categorical": (2.0, None),
}
#: Smallest number of items of the grid.
GRID_ITEMS = 6


def grid_table(family: str, k: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a table (N, J) of one family with k latents; with k = 0 its items are independent."""
    latents = max(k, 1)
    law = random_law(random_dag(latents, min(1.0, (latents - 1) / 2), rng=rng), rng=rng)
    q = banded_q(latents, 1)
    if len(q) < GRID_ITEMS:
        q = np.vstack([q, np.eye(latents, dtype=np.int8)[np.arange(GRID_ITEMS - len(q)) % latents]])
    states = law.sample(n, rng) - 0.5
    step, draw = GRID[family]
    loadings = q * rng.uniform(0.7 * step, 1.3 * step, q.shape)
    if draw is not None:
        table = np.asarray(draw(states @ loadings.T, rng), dtype=np.float64)
    else:
        # Three categories; each latent moves the log odds in a direction of its own.
        angle = rng.uniform(0.0, 2.0 * np.pi, (*q.shape, 1)) + np.arange(3) * 2.0 * np.pi / 3.0
        logits = np.einsum("nk,jkc->njc", states, loadings[..., None] * np.cos(angle) * 1.2)
        table = np.argmax(logits + rng.gumbel(size=logits.shape), axis=2).astype(np.float64)
    if k == 0:
        table = np.column_stack([rng.permutation(column) for column in table.T])
    return table


def grid_answer(family: str, values: np.ndarray, seed: int) -> int:
    """Return the number that "auto" selects for a table."""
    families = [family] * values.shape[1]
    table = read_table(values)
    count = count_table_factors(table, families)

    def fit_of(k: int, strength: float | None, start: InitialValues | None = None) -> Candidate:
        if k == 0:
            named = resolve_families(table, families).families
            return Candidate(0, 0.0, independent_criteria(values, named))
        model = DCRL(k, family=families, penalty_strength=strength, random_state=seed)
        return Candidate.of(model._start_from(start).fit(values).result_)

    return choose_number(count, fit_of, values).n_latents


def print_grid(args) -> None:
    """Print the share of right answers by family, true number and N."""
    numbers = [int(k) for k in args.numbers.split(",")]
    sizes = [int(n) for n in args.sizes.split(",")]
    families = list(GRID) if args.families == ALL_FAMILIES else args.families.split(",")
    print(
        f"{args.replicates} replicates, seed {args.seed}, N = {args.sizes}; share of tables with "
        "the right number\n"
        + f"{'family':24s}"
        + "".join(f"{f'K={k}':>7s}" for k in numbers)
        + "    all    CPU s  wrong answers (true number: answers)",
        flush=True,
    )
    right: dict[tuple[str, int, int], list[bool]] = {}
    for family in families:
        wrong: dict[int, list[int]] = defaultdict(list)
        begin = time.process_time()
        for k in numbers:
            for n in sizes:
                for r in range(args.replicates):
                    key = (*family.encode(), k, n, r)
                    rng = np.random.default_rng(np.random.SeedSequence(args.seed, spawn_key=key))
                    found = grid_answer(family, grid_table(family, k, n, rng), r)
                    right.setdefault((family, k, n), []).append(found == k)
                    if found != k:
                        wrong[k].append(found)
        seconds = (time.process_time() - begin) / (len(numbers) * len(sizes) * args.replicates)
        shares = [share_of(right, family=family, k=k) for k in numbers]
        print(
            f"{family:24s}"
            + "".join(f"{share:7.2f}" for share in shares)
            + f"{share_of(right, family=family):7.3f}{seconds:9.2f}  "
            + "; ".join(f"{k}: {','.join(map(str, sorted(ws)))}" for k, ws in wrong.items()),
            flush=True,
        )
    for n in sizes:
        shares = [share_of(right, k=k, n=n) for k in numbers]
        line = "".join(f"{share:7.2f}" for share in shares)
        print(f"{f'all, N={n}':24s}{line}{share_of(right, n=n):7.3f}", flush=True)
    shares = [share_of(right, k=k) for k in numbers]
    print(f"{'all':24s}" + "".join(f"{s:7.2f}" for s in shares) + f"{share_of(right):7.3f}")


def share_of(right, family=None, k=None, n=None) -> float:
    """Return the share of right answers in the cells with some properties."""
    wanted = (family, k, n)
    chosen = [
        value
        for cell, values in right.items()
        for value in values
        if all(w is None or w == c for w, c in zip(wanted, cell, strict=True))
    ]
    return float(np.mean(chosen))


def cell_tables(args, family: str, model: str, q: str, version: str):
    """Yield the tables of a cell, each with its truth and the seed of fits."""
    for r in range(args.replicates):
        key = (*f"{model} {q} {family}".encode(), r)
        seeds = np.random.SeedSequence(args.seed, spawn_key=key)
        yield drawn(model, q, family, args.n, version, seeds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default="Chain-10,Tree-10,Model-7,Model-8")
    parser.add_argument("--q", default="Q1,Q2")
    parser.add_argument("--families", default=ALL_FAMILIES)
    parser.add_argument("--grid", action="store_true", help="all families, numbers and sizes")
    parser.add_argument("--numbers", default="0,1,2,3,5,7", help="true numbers of the grid")
    parser.add_argument("--sizes", default="500,1500,5000", help="numbers of rows of the grid")
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--design", default="research-code", choices=["research-code", "text", "both"]
    )
    parser.add_argument("--fits", default="none", choices=["none", "near", "all"])
    parser.add_argument(
        "--yardstick", action="store_true", help="hold our fits against one from the truth instead"
    )
    parser.add_argument(
        "--hindsight", action="store_true", help="look for the best price of a parameter afterwards"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.grid:
        print_grid(args)
        return
    models = ALL_MODELS if args.models == "all" else args.models.split(",")
    designs = ("research-code", "text") if args.design == "both" else (args.design,)
    cells = [
        (version, family, model, q)
        for version in designs
        for family in args.families.split(",")
        for model in models
        for q in args.q.split(",")
    ]
    if args.yardstick:
        tables = [(f"{m} {q} {f}", cell_tables(args, f, m, q, v)) for v, f, m, q in cells]
        print_yardstick(args, tables)
        return
    shown = CRITERIA + (OF_FITS if args.fits != "none" else ())
    print(
        f"design {args.design}, N={args.n}, {args.replicates} replicates, seed {args.seed}; share "
        f"of tables with the right number\n{'cell':36s} "
        + " ".join(f"{name:>10s}" for name in shown)
        + "  fits of auto    CPU s  wrong answers of auto",
        flush=True,
    )
    totals: dict[str, list[dict]] = defaultdict(list)
    for version, family, model, q in cells:
        right, begin = len(GRAPHS[model]), time.process_time()
        runs = [
            found_numbers(*table, args.fits, args.hindsight)
            for table in cell_tables(args, family, model, q, version)
        ]
        seconds = (time.process_time() - begin) / len(runs)
        wrong = sorted({run["auto"] for run in runs} - {right})
        title = f"{model} {q} {family}" + f", {version}" * (len(designs) > 1)
        print(
            f"{title:36s} "
            + " ".join(f"{np.mean([run[c] == right for run in runs]):10.2f}" for c in shown)
            + f" {np.mean([run['fits'] for run in runs]):13.2f} {seconds:8.2f}  "
            + ", ".join(map(str, wrong)),
            flush=True,
        )
        judged = [run | {c: run[c] == right for c in shown} for run in runs]
        if len(designs) > 1:
            totals[f"{version}, {family}"] += judged
        totals[family] += judged
    for family, runs in totals.items():
        shares = [np.mean([run[c] for run in runs]) for c in shown]
        error = np.sqrt(shares[3] * (1 - shares[3]) / len(runs))
        print(
            f"{f'all {family} ({len(runs)})':36s} "
            + " ".join(f"{share:10.3f}" for share in shares)
            + f"   s.e. of auto {error:.3f}",
            flush=True,
        )
        if args.hindsight:
            print_hindsight(runs)


if __name__ == "__main__":
    main()
