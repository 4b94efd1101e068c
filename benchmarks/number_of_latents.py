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
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict

import numpy as np

from hidag import DCRL, design, simulate
from hidag.config import CONFIG
from hidag.fitting.information_criteria import InformationCriteria, information_criteria
from hidag.fitting.number_of_latents import ComparedFit, InitialValues, choose_number, count_shared
from hidag.fitting.penalty_strength import bic_at
from hidag.initialization.factor_count import count_factors
from hidag.model_selection import select
from hidag.simulation.designs import GRAPHS
from hidag_paper.studies import truth_started_fit

CRITERIA = ("gap", "parallel", "factor BIC", "auto")
OF_FITS = ("select", "BIC", "EBIC")
#: Graphs of the paper's two studies that n_latents="auto" is a matter of minutes for: all but
#: Model-13.
ALL_MODELS = ("Chain-5", "Tree-5", "Model-5", "Chain-10", "Tree-10", "Model-7", "Model-8")
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

    def fit_of(k: int, strength: float | None, start: InitialValues | None = None) -> ComparedFit:
        nonlocal n_fits
        n_fits += start is None
        model = DCRL(k, family=families, penalty_strength=strength, random_state=seed)
        model._start_from(start)
        judged.append(ComparedFit.of(model.fit(values).result_))
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


def right_at_prices(judged: list[ComparedFit], right: int) -> np.ndarray:
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
            shared = count_shared(q)
            return bic_at(
                ComparedFit(one.bic, 0.0, one.n_parameters, aic=one.aic, n_shared=shared), ratio
            )
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
    parser.add_argument("--families", default="gaussian,poisson,bernoulli")
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
