"""How often the number of latents is found on the paper's designs.

    python benchmarks/number_of_latents.py --replicates 20 --seed 1
    python benchmarks/number_of_latents.py --models Model-7 --replicates 3 --fits near

Prints for each cell the share of tables in which each criterion finds the right number, and what
`n_latents="auto"` takes; then the shares by family with their standard errors. "auto" fits only
where parallel analysis and factor BIC disagree, so the default costs about a second a table. With
--fits near the extended BIC of fits around that number is compared as well, which takes minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict

import numpy as np

from hidag import DCRL, design, simulate
from hidag.auto_latents import JudgedFit, choose_number
from hidag.criteria import information_criteria
from hidag.select import select
from hidag.simulate.designs import GRAPHS
from hidag.start.factor_count import count_factors

CRITERIA = ("gap", "parallel", "factor BIC", "auto", "EBIC")


def found_numbers(model: str, q: str, family: str, n: int, version: str, seeds, fits: str) -> dict:
    """Return what each criterion says of one table, and how many fits "auto" took."""
    for_truth, for_rows, for_fit = seeds.spawn(3)
    truth = design(model, q, family, design=version, rng=for_truth)
    values = np.array(simulate(truth, n, rng=for_rows).X)
    seed = int(for_fit.generate_state(1)[0])
    families = list(truth.families)
    count = count_factors(values, families)
    n_fits = 0

    def fit_of(k: int, strength: float | None) -> JudgedFit:
        nonlocal n_fits
        n_fits += 1
        model = DCRL(k, family=families, penalty_strength=strength, random_state=seed)
        found = model.fit(values).result_
        return JudgedFit(information_criteria(found).ebic, found.settings["penalty_strength_used"])

    # The same function that the estimator calls; its one fit with the answer is not needed here.
    chosen = choose_number(count, fit_of).n_latents
    out = {
        "gap": count.by_gap,
        "parallel": count.by_parallel_analysis,
        "factor BIC": count.by_factor_bic,
        "auto": chosen,
        "fits": n_fits,
    }
    if fits != "none":
        found = select(values, family=families, fits=fits, folds=0, random_state=seed)
        out["EBIC"] = found.recommended
    return out


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
    parser.add_argument("--design", default="research-code", choices=["research-code", "text"])
    parser.add_argument("--fits", default="none", choices=["none", "near", "all"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    shown = CRITERIA if args.fits != "none" else CRITERIA[:-1]
    print(
        f"design {args.design}, N={args.n}, {args.replicates} replicates, seed {args.seed}; share "
        f"of tables with the right number\n{'cell':28s} "
        + " ".join(f"{name:>10s}" for name in shown)
        + "  fits of auto    CPU s  wrong answers of auto",
        flush=True,
    )
    totals: dict[str, list[dict]] = defaultdict(list)
    for family in args.families.split(","):
        for model in args.models.split(","):
            for q in args.q.split(","):
                right, begin, runs = len(GRAPHS[model]), time.process_time(), []
                for r in range(args.replicates):
                    key = (*f"{model} {q} {family}".encode(), r)
                    seeds = np.random.SeedSequence(args.seed, spawn_key=key)
                    runs.append(
                        found_numbers(model, q, family, args.n, args.design, seeds, args.fits)
                    )
                seconds = (time.process_time() - begin) / len(runs)
                wrong = sorted({run["auto"] for run in runs} - {right})
                print(
                    f"{f'{model} {q} {family}':28s} "
                    + " ".join(f"{np.mean([run[c] == right for run in runs]):10.2f}" for c in shown)
                    + f" {np.mean([run['fits'] for run in runs]):13.2f} {seconds:8.2f}  "
                    + ", ".join(map(str, wrong)),
                    flush=True,
                )
                totals[family] += [{c: run[c] == right for c in shown} for run in runs]
    for family, runs in totals.items():
        shares = [np.mean([run[c] for run in runs]) for c in shown]
        error = np.sqrt(shares[3] * (1 - shares[3]) / len(runs))
        print(
            f"{f'all {family} ({len(runs)})':28s} "
            + " ".join(f"{share:10.3f}" for share in shares)
            + f"   s.e. of auto {error:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
