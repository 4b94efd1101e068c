"""Recovery of graph and Q on any part of the paper's designs.

    python benchmarks/recovery.py --models Chain-10,Model-7 --q Q1,Q2 --families gaussian,poisson \\
        --n 3000 --replicates 20 --seed 1

Prints one row per cell: composite SHD of the fit with its Monte Carlo standard error, the
published mean, the same Stage I started at the truth, and a graph search on the true latents.
`hidag study` runs whole tables, stores the rows and resumes; this script also takes settings of
the estimator.
"""

from __future__ import annotations

import argparse
from math import isnan
from pathlib import Path

from hidag_paper.studies import Plan, cell_grid, read_published, run_plan, summarise
from hidag_paper.studies.summary import PAPER_TABLES


def shown(value: float) -> str:
    return "-" if isnan(value) else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default="Chain-10,Tree-10,Model-7,Model-8")
    parser.add_argument("--q", default="Q1,Q2")
    parser.add_argument("--families", default="gaussian,poisson,bernoulli")
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--design", default="research-code", choices=["research-code", "text"])
    parser.add_argument("--starts", default="auto")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--published", type=Path, default=PAPER_TABLES)
    args = parser.parse_args()
    # The published numbers were obtained with the research code's design and with no other.
    known = read_published(args.published) if args.design == "research-code" else {}
    estimator = {
        "n_starts": args.starts if args.starts == "auto" else int(args.starts),
        "method": args.method,
        "tol": args.tol,
    }
    print(
        f"design {args.design}, N={args.n}, {args.replicates} replicates, seed {args.seed}\n"
        f"{'cell':28s} {'SHD (s.e.)':>12s}  graph      Q  published  truth-started  true latents   "
        "CPU s",
        flush=True,
    )
    cells = cell_grid(args.models.split(","), args.q.split(","), args.families.split(","), [args.n])
    for cell in cells:
        # Runs have the addresses of Table 2, so that its rows and these are the same.
        plan = Plan("table2", (cell,), args.replicates, args.design, args.seed, estimator)
        rows = [row for run in run_plan(plan, workers=args.workers) for row in run]
        (found,) = summarise(rows, None, known)
        print(
            f"{cell.name:28s} {shown(found.shd.mean):>5s} ({shown(found.shd.error)})  "
            f"{shown(found.shd_graph.mean):>5s}  {shown(found.shd_q.mean):>5s}  "
            f"{shown(found.published):>9s}  {shown(found.truth_started.mean):>13s}  "
            f"{shown(found.true_latents.mean):>12s}  {shown(found.cpu_seconds):>6s}",
            flush=True,
        )
        for reason in found.reasons:
            print(f"  {found.n_failed} of {found.n_done} fits failed: {reason}", flush=True)


if __name__ == "__main__":
    main()
