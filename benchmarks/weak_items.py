"""Weak items: the default fit and one started at the truth, and their criteria.

    python benchmarks/weak_items.py --models Chain-10,Tree-10 --n 3000,7000 --replicates 5 --seed 1

Binary items of the paper's text design. Prints SHD (edges among latents and entries of Q; the
entries of Q in brackets) of the default fit and of Stage I started at the truth, and the
difference of their criteria (approximate marginal likelihood: docs/specification.md). Where ours
is higher, no better search for the optimum would have found the truth: the last lines give the
number of these tables and their SHD. The row "all" has the means over all tables.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from hidag import DCRL, evaluate, simulate
from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_e_step
from hidag.em.em import Estimate, Schedule
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.measurement import MeasurementParameters, Terms, default_penalty
from hidag.metrics import Parts
from hidag.simulation import design
from hidag.strategy.moves.optima import criterion_of
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import parents_by_search
from hidag_paper.studies import truth_started

#: Criteria that differ by less are level: fits end with a tolerance.
LEVEL = 1.0


def criterion(found: Parts, X: np.ndarray) -> float:
    """Return the criterion by which optima of Stage I are compared, for binary items."""
    n_items, n_latents = found.loadings.shape
    families = ("bernoulli",) * n_items
    space, law = found.law.space, np.asarray(found.law.probabilities)
    terms = Terms.main(space.levels)
    items = MeasurementParameters(families, found.intercept, found.loadings, np.ones(n_items))
    data, basis = WorkingData.from_values(X, families), Basis.over(space, terms)
    statistics, value = run_e_step(items, law, data, np.ascontiguousarray(basis.features))
    estimate = Estimate(items, law, value, value, 0, True, np.zeros((0, 2)), statistics)
    unknown = np.full((n_items, n_latents), -1, dtype=np.int8)
    allowed = allowed_coefficients(unknown, terms)
    penalty = default_penalty("tlp", len(X), n_latents)
    problem = SearchProblem(
        data,
        space,
        basis,
        allowed,
        penalty,
        Schedule(),
        terms=terms,
        q_entries=unknown,
        learn_parents=parents_by_search(space),
    )
    return criterion_of(estimate, found.law.parents, problem)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="Chain-10,Tree-10")
    parser.add_argument("--n", default="3000,7000")
    parser.add_argument("--q", default="Q1")
    parser.add_argument("--replicates", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    heads = "SHD ours (Q) | truth-started (Q) | ratio | criterion ours higher by | CPU s"
    print(f"| design | N | {heads} |")
    print("|---|---|---|---|---|---|---|")
    tables = []
    for place, model in enumerate(args.models.split(",")):
        for n in map(int, args.n.split(",")):
            rows = []
            for replicate in range(args.replicates):
                rng = np.random.default_rng((args.seed, place, n, replicate))
                truth = design(model, args.q, "bernoulli", design="text", rng=rng)
                X = simulate(truth, n, rng=rng).X
                fit = DCRL(
                    truth.n_latents, family="bernoulli", law="network", random_state=replicate
                )
                begin = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fit.fit(X)
                    seconds = time.process_time() - begin
                    known = truth_started(truth, X)
                ours = Parts.of(fit)
                lead = criterion(ours, X) - criterion(known, X)
                found = [evaluate(one, truth) for one in (ours, known)]
                errors = [(one.shd, one.shd_q) for one in found]
                rows.append([*errors[0], *errors[1], lead, seconds])
            tables += rows
            shd, shd_q, best, best_q, _, seconds = np.mean(rows, axis=0)
            leads = " ".join(f"{row[4]:+.0f}" for row in rows)
            print(
                f"| {model} {args.q} | {n} | {shd:.2f} ({shd_q:.2f}) | {best:.2f} ({best_q:.2f}) "
                f"| {shd / best:.2f} | {leads} | {seconds:.1f} |",
                flush=True,
            )
    shd, shd_q, best, best_q, _, seconds = np.mean(tables, axis=0)
    print(
        f"| all | | {shd:.2f} ({shd_q:.2f}) | {best:.2f} ({best_q:.2f}) | {shd / best:.2f} "
        f"| | {seconds:.1f} |"
    )
    level = np.array([row for row in tables if row[4] >= -LEVEL])
    print(f"\nours not below the truth-started fit's criterion by {LEVEL:g}: ", end="")
    print(f"{len(level)} of {len(tables)} tables")
    if len(level):
        ours, best = level[:, 0].mean(), level[:, 2].mean()
        print(f"there: SHD {ours:.2f} against {best:.2f}, ratio {ours / best:.2f}")


if __name__ == "__main__":
    main()
