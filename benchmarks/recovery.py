"""How well graphs are recovered on the paper's designs.

    python benchmarks/recovery.py --models Chain-10,Model-7 --q Q1,Q2 --families gaussian,poisson \\
        --n 3000 --replicates 20 --seed 1 --published PATH/TO/paper-tables

Prints one row per cell: composite SHD of the default fit with its Monte-Carlo standard error, the
published mean (when the folder with the paper's tables is given), the same Stage I started at the
truth, and a graph search on the true latents.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from hidag import DCRL, design, simulate
from hidag.discover import discover
from hidag.estimate.loop import Schedule, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.working import WorkingData
from hidag.evaluate import Parts, evaluate, evaluate_graph
from hidag.latent import SaturatedLaw, StateSpace, expected_counts
from hidag.measurement import MeasurementParameters, default_penalty

#: The research code's counts have an identity link; the text's, taken at its word, a log link.
LINK = {"research-code": {"poisson": "poisson-identity"}, "text": {}}


def published(folder: str | None) -> dict[tuple[str, str, str, str], float]:
    out: dict[tuple[str, str, str, str], float] = {}
    if folder is None:
        return out
    for name in ("study1_shd.csv", "study2_shd.csv"):
        with (Path(folder) / name).open() as stream:
            for row in csv.DictReader(stream):
                if row["method"] == "dcrl" and row["f_n"] == "N":
                    key = (row["model"], row["q"], row["family"], row["n"])
                    out[key] = float(row["mean_shd"])
    return out


def truth_started(truth, X) -> Parts:
    """The same penalised EM, begun at the truth: the yardstick for optimisation, not a method."""
    families = truth.families
    data = WorkingData.from_values(np.array(X), families)
    space = StateSpace.binary(truth.n_latents)
    dispersion = np.where(np.isnan(truth.dispersion), 1.0, truth.dispersion)
    start = MeasurementParameters(families, truth.intercept, truth.loadings, dispersion)
    found = run_em(
        data.to_working(start),
        truth.law.probabilities,
        data,
        Basis.of(space.states().astype(float)),
        np.ones((truth.n_items, truth.n_latents + 1), dtype=np.uint8),
        default_penalty("tlp", len(X), truth.n_latents),
        Schedule(),
    )
    user = data.to_user(found.parameters)
    law = SaturatedLaw(space, found.probabilities)
    from hidag.estimate.posterior import information_ratio

    rows = information_ratio(found.parameters, law, data) * len(X)
    graph = discover(expected_counts(law, rows, truth.latent_names))
    return Parts(user.q_matrix, user.intercept, user.loadings, law, graph)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="Chain-10,Tree-10,Model-7,Model-8")
    parser.add_argument("--q", default="Q1,Q2")
    parser.add_argument("--families", default="gaussian,poisson,bernoulli")
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--design", default="research-code", choices=sorted(LINK))
    parser.add_argument("--starts", default="auto")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--published")
    args = parser.parse_args()
    known = published(args.published)
    print(
        f"design {args.design}, N={args.n}, {args.replicates} replicates, seed {args.seed}\n"
        "model     Q  family     SHD (s.e.)   graph    Q   published  truth-started  "
        "true latents  CPU s"
    )
    for model in args.models.split(","):
        for q in args.q.split(","):
            for family in args.families.split(","):
                rows = []
                for replicate in range(args.replicates):
                    # A run is an address: its seed depends on nothing else.
                    address = (args.seed, args.n, replicate, *f"{model}{q}{family}".encode())
                    rng = np.random.default_rng(address)
                    truth = design(model, q, family, design=args.design, rng=rng)
                    data = simulate(truth, args.n, rng=rng)
                    begin = time.process_time()
                    fitted = DCRL(
                        truth.n_latents,
                        family=LINK[args.design].get(family, family),
                        n_starts=args.starts if args.starts == "auto" else int(args.starts),
                        method=args.method,
                        tol=args.tol,
                        random_state=replicate,
                    ).fit(data.X)
                    seconds = time.process_time() - begin
                    ours = evaluate(fitted, truth)
                    rows.append(
                        (
                            ours.shd,
                            ours.shd_graph,
                            ours.shd_q,
                            evaluate(truth_started(truth, data.X), truth).shd,
                            evaluate_graph(discover(data.states), truth.cpdag).shd,
                            seconds,
                        )
                    )
                mean = np.mean(rows, axis=0)
                error = np.std([r[0] for r in rows], ddof=1) / np.sqrt(len(rows))
                paper = known.get((model, q, family, str(args.n)))
                shown = "-" if paper is None or args.design == "text" else f"{paper:.2f}"
                print(
                    f"{model:9s} {q} {family:9s} {mean[0]:5.2f} ({error:.2f})  {mean[1]:5.2f} "
                    f"{mean[2]:5.2f}  {shown:>9s}  {mean[3]:13.2f}  {mean[4]:12.2f} {mean[5]:6.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
