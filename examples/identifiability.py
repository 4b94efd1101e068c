"""Two different models with the same distribution of the data, and the certificate that warns.

    python examples/identifiability.py

Four binary latents, twelve yes/no items with all interactions. Every latent has plenty of items,
but every item of the third latent is also an item of the first. The levels of the third latent can
then be exchanged where the first one is 0: main effects and interactions change, the distribution
of the data does not.
"""

from __future__ import annotations

import numpy as np

from hidag import check_identifiability
from hidag.latent import StateSpace

BLOCK = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
Q = np.vstack([BLOCK, BLOCK, BLOCK])
STATES = StateSpace.binary(4).states()


def one_model(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return predictors, shape (12, 16), and a law, shape (16,), that meet the assumptions."""
    eta = np.empty((12, 16))
    for j in range(12):
        if j % 4 == 2:
            first, third, both = rng.uniform(0.2, 1.0, size=3)
            z1, z3 = STATES[:, 0], STATES[:, 2]
            eta[j] = -1.0 + first * z1 + third * z3 + both * z1 * z3
        else:
            eta[j] = -1.0 + rng.uniform(1.0, 2.0) * STATES[:, j % 4]
    return eta, rng.dirichlet(np.full(16, 5.0))


def exchange(eta: np.ndarray, law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the model with the third latent's levels exchanged where the first latent is 0."""
    moved = STATES.copy()
    moved[:, 2] = np.where(moved[:, 0] == 0, 1 - moved[:, 2], moved[:, 2])
    there = StateSpace.binary(4).number(moved)
    return eta[:, there], law[there]


def distribution(eta: np.ndarray, law: np.ndarray) -> np.ndarray:
    """Return the probability of each of the 2^12 tables of answers that one row can have."""
    chance = 1.0 / (1.0 + np.exp(-eta))
    answers = (np.arange(2**12)[:, None] >> np.arange(12)) & 1
    by_state = np.where(answers[:, :, None] == 1, chance, 1.0 - chance).prod(axis=1)
    return by_state @ law


def coefficients(predictor: np.ndarray) -> np.ndarray:
    """Return intercept, effects of the first and third latent, and their interaction."""
    at = dict(zip(map(tuple, STATES[:, [0, 2]].tolist()), predictor, strict=True))
    none, first, third, both = at[0, 0], at[1, 0], at[0, 1], at[1, 1]
    return np.array([none, first - none, third - none, both - first - third + none])


def main() -> None:
    eta, law = one_model(np.random.default_rng(1))
    other_eta, other_law = exchange(eta, law)
    print("item_2: intercept, effects of latent_0 and latent_2, their interaction")
    print("  one model:  ", coefficients(eta[2]).round(3))
    print("  the other:  ", coefficients(other_eta[2]).round(3))
    gap = np.abs(distribution(eta, law) - distribution(other_eta, other_law)).max()
    print(f"Largest difference between the two distributions of 12 answers: {gap:.1e}")
    print()
    print(check_identifiability(Q, effects="all", families="bernoulli"))


if __name__ == "__main__":
    main()
