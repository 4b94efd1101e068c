"""Why Model-5 is hard: the marginal effect of Z3 on Z4 cancels in the paper's tables.

    python benchmarks/model_5.py              # about a minute

With the mid-points of the paper's ranges P(Z4 = 1) is .225 (no parent), .375 (one), .795 (the
other) and .625 (both): averaged over Z5, Z3 changes it by -.01. `faithful` keeps everything but the
table of Z4: .225, .375, .475 and .625, in which every parent matters. Mean SHD of the latent
graph: searches on the true latents, ours and GES with the research code's prior, and the estimator
with default settings.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from hidag import DCRL, design, evaluate, simulate
from hidag.latent import NetworkLaw
from hidag.metrics import evaluate_graph
from hidag.simulation import Truth
from hidag.structure import discover
from hidag_paper.baselines.research_code import ges_with_prior

#: Z4, whose parents are Z3 and Z5.
CHILD = 3
FAITHFUL = ((0.225, 0.475), (0.375, 0.625))


def marginal_effects(truth: Truth) -> tuple[float, float]:
    """Return the change of P(Z4 = 1) by either parent, averaged over the other."""
    p = truth.law.tables[CHILD][..., 1]
    return float((p[1] - p[0]).mean()), float((p[:, 1] - p[:, 0]).mean())


def with_faithful_table(truth: Truth) -> Truth:
    """Return the truth with another table of Z4."""
    one = np.array(FAITHFUL)
    tables = [np.asarray(t) for t in truth.law.tables]
    tables[CHILD] = np.stack([1.0 - one, one], axis=-1)
    return replace(truth, law=NetworkLaw(truth.law.space, truth.law.parents, tuple(tables)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--seed", type=int, default=810003)
    args = parser.parse_args()
    for kind in ("paper", "faithful"):
        for n_rows in (1000, 5000, 10000):
            searched, prior, ours, effects = [], [], [], []
            for table in range(args.tables):
                rngs = np.random.SeedSequence([args.seed, table, n_rows]).spawn(2)
                truth = design("Model-5", "Q1", "gaussian", design="research-code", rng=rngs[0])
                truth = truth if kind == "paper" else with_faithful_table(truth)
                data = simulate(truth, n_rows, rng=rngs[1])
                searched.append(evaluate_graph(discover(data.states), truth.cpdag).shd)
                found = discover(data.states, search=ges_with_prior)
                prior.append(evaluate_graph(found, truth.cpdag).shd)
                model = DCRL(5, family="gaussian", uncertainty="none", random_state=0)
                ours.append(evaluate(model.fit(data.X), truth).shd)
                effects.append(marginal_effects(truth))
            numbers = [f"{np.mean(v):.2f} ({np.std(v, ddof=1) / len(v) ** 0.5:.2f})"
                       for v in (searched, prior, ours)]  # fmt: skip
            z3, z5 = np.mean(effects, axis=0)
            print(
                f"{kind:9} N = {n_rows:<6} effect of Z3 {z3:+.3f}, of Z5 {z5:+.3f}; "
                f"true latents {numbers[0]}, with prior {numbers[1]}, ours {numbers[2]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
