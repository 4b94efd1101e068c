"""Latents with more than two levels: their numbers are given, their assignment is estimated.

python examples/levels.py
"""

from __future__ import annotations

import numpy as np

from hidag import DCRL, evaluate, simulate
from hidag.reporting import format_edges
from hidag.simulation import Truth, banded_q, dag_from_parents, random_law

FAMILIES = ("gaussian", "poisson", "bernoulli")
#: Intercept and what each level adds, by family.
COEFFICIENTS = {"gaussian": (0.0, 2.0), "poisson": (0.3, 0.8), "bernoulli": (-2.0, 2.5)}


def main() -> None:
    # Severity with three levels and age group with four cause a third latent, yes or no.
    law = random_law(dag_from_parents([(), (), (0, 1)]), levels=(3, 4, 2), rng=1)
    q = np.repeat(banded_q(n_latents=3, bandwidth=1), 2, axis=0)
    families = tuple(FAMILIES[j % 3] for j in range(len(q)))
    intercept = np.array([COEFFICIENTS[name][0] for name in families])
    step = np.array([COEFFICIENTS[name][1] for name in families])
    names = ("Severity", "Age group", "Relapse")
    # Loadings with one column per latent give each level the same step.
    truth = Truth(q, intercept, q * step[:, None], np.ones(len(q)), families, law, (), names)
    data = simulate(truth, 3000, rng=2)

    # Levels are given in any order: which latent has how many is found, and they come in this one.
    model = DCRL(3, levels=(4, 3, 2), family=families, random_state=0).fit(data.X)

    result = model.result_
    print("share of rows at each level")
    for name, m, shares in zip(
        result.latent_names, result.terms.levels, result.law.marginals(), strict=True
    ):
        print(f"  {name}  {shares[:m].round(2)}")
    print("what each step adds to the first three items that have one latent")
    print("  " + "  ".join(result.terms.names(result.latent_names)))
    pure = np.flatnonzero(result.q_matrix.sum(axis=1) == 1)[:3]
    print(result.loadings[pure].round(2))
    print("graph:", ", ".join(format_edges(model.graph_)) or "no edges")
    print("expected levels of the first three rows")
    print(result.posterior(data.X[:3]).round(2))
    print("and the probabilities of the first latent's levels")
    print(result.posterior_levels(data.X[:3])[0].round(2))
    # Only now is the truth looked at.
    print(evaluate(model, truth).summary())


if __name__ == "__main__":
    main()
