"""Items that need several skills at once: comparison of main effects, DINA and G-DINA.

python examples/interactions.py
"""

from __future__ import annotations

import numpy as np

from hidag import DCRL, simulate
from hidag.measurement import Terms
from hidag.reporting import list_interactions
from hidag.simulation import Truth, chain_dag, random_law

SKILLS = ("Read", "Add", "Divide")
Q = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 4 + [[1, 1, 0], [0, 1, 1], [1, 0, 1]] * 2)
#: The three pairs of skills: products of the skills' indicators.
PAIRS = (((0, 1), (1, 1)), ((0, 1), (2, 1)), ((1, 1), (2, 1)))


def conjunctive_items() -> Truth:
    """Return a test in which items with two skills are solved by those who have both (DINA)."""
    terms = Terms((2, 2, 2), PAIRS)
    alone = terms.involved.sum(axis=1) == 1
    pure = Q.sum(axis=1) == 1
    loadings = 3.5 * (terms.support(Q) & (alone == pure[:, None]))
    law = random_law(chain_dag(3), rng=1)
    n = len(Q)
    return Truth(
        Q,
        np.full(n, -1.7),
        loadings,
        np.ones(n),
        ("bernoulli",) * n,
        law,
        latent_names=SKILLS,
        terms=terms,
    )


def main() -> None:
    truth = conjunctive_items()
    X = simulate(truth, 3000, rng=2).X

    print("Q given: log-likelihood, coefficients of the items, BIC (smaller is better)")
    for effects in ("main", "dina", "all"):
        model = DCRL(3, effects=effects, q_matrix=Q, law="saturated", random_state=0).fit(X)
        n_free = int(np.count_nonzero(model.loadings_)) + len(Q)
        bic = -2 * model.log_likelihood_ + n_free * np.log(len(X))
        print(f"  {effects:5} {model.log_likelihood_:10.1f} {n_free:3} {bic:10.1f}")

    print("Q unknown, interactions of two skills selected by the penalised likelihood")
    model = DCRL(3, effects=2, latent_names=("A", "B", "C"), random_state=0).fit(X)
    for found in list_interactions(model.result_):
        print(f"  {found.item:4} {found.term:5} {found.coefficient:6.2f}")
    with_pairs = int((truth.loadings[:, 3:] != 0).any(axis=1).sum())
    print(f"items with a true interaction: {with_pairs}, the last ones")


if __name__ == "__main__":
    main()
