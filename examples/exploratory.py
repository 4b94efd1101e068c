"""An exploratory fit: mixed items, a few missing cells, Q unknown.

python examples/exploratory.py
"""

from __future__ import annotations

from hidag import DCRL, evaluate, simulate
from hidag.reporting import format_edges
from hidag.simulation import banded_q, dag_from_parents, make_truth, random_law


def main() -> None:
    # Two causes of a third latent, which causes a fourth: all directions are identified.
    law = random_law(dag_from_parents([(), (), (0, 1), (2,)]), effects=(1.6, 2.4), rng=3)
    q = banded_q(n_latents=4, bandwidth=1)
    families = ["bernoulli"] * 4 + ["gaussian"] * 4 + ["poisson"] * 4
    truth = make_truth(law, q, families)
    data = simulate(truth, 4000, rng=5, missing=0.05)

    model = DCRL(n_latents=4, family=families, random_state=0).fit(data.X)

    print("Q, one row per item")
    print(model.q_matrix_)
    print("graph:", ", ".join(format_edges(model.graph_)) or "no edges")
    print("information ratio of the items:", end=" ")
    print(f"{model.result_.information_ratio:.2f}")
    print("P(latent = 1) for the first three rows")
    print(model.predict_proba(data.X[:3]).round(2))
    # The truth is used only for the evaluation.
    print(evaluate(model, truth).summary())


if __name__ == "__main__":
    main()
