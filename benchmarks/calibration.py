"""Calibration of the edge probabilities of a fit.

    python benchmarks/calibration.py --replicates 5 --seed 3000
    python benchmarks/calibration.py --k 5 --n 1000 --ratios 0.35 --tables additive

Binary latents in a random graph with one parent on average, at most two; three binary items per
latent, two of them pure; slopes that give the information ratio. "paper" tables are those printed
in the paper, "additive" ones those of `random_law`. Latents are matched to the truth.

Prints for each cell the expected calibration error (ECE, ten bins) of the probabilities of arrows
and of adjacencies, the arrows stated at the claim level of .8 and how many are right, adjacencies
with a probability of at least .9 and how many are right, the share of compelled arrows of the true
class that are stated, and the CPU time of the fit relative to one without probabilities. The last
line is for independent latents with weak items, 500 rows: edges stated per table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product

import numpy as np

from hidag import DCRL, evaluate, simulate
from hidag.em.design_data import WorkingData
from hidag.em.information import information_ratio
from hidag.latent import SaturatedLaw
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.simulation import Truth, random_dag, random_law, random_q
from hidag.simulation.designs import _text_tables

ROWS_FOR_RATIO = 2000
#: Slopes of items that are weak for independent latents.
WEAK_SLOPE = 1.3


def draw_law(tables: str, k: int, rng: np.random.Generator) -> NetworkLaw:
    """Return a law on a random graph with at most two parents for a latent."""
    while True:
        dag = random_dag(k, 1.0, rng=rng)
        if dag.adjacency.sum(axis=0).max() <= 2:
            break
    if tables == "additive":
        return random_law(dag, rng=rng)
    return NetworkLaw(StateSpace.binary(k), dag.parents, tuple(_text_tables(dag.parents, rng)))


def make_truth(law: NetworkLaw, slope: float, rng: np.random.Generator) -> Truth:
    """Return a truth with three items for each latent."""
    k = law.space.n_latents
    q = random_q(3 * k, k, max_parents=2, rng=rng)
    sizes = slope * rng.uniform(0.8, 1.2, q.shape) / np.sqrt(q.sum(axis=1, keepdims=True))
    loadings = q * sizes
    families = ("bernoulli",) * len(q)
    return Truth(q, -loadings.sum(axis=1) / 2, loadings, np.ones(len(q)), families, law)


def draw_truth(tables: str, k: int, ratio: float, seed: np.random.SeedSequence) -> Truth:
    """Return a truth whose items have about this information ratio."""
    for_law, for_items, for_rows = seed.spawn(3)
    law = draw_law(tables, k, np.random.default_rng(for_law))
    low, high = 0.5, 8.0
    shown = SaturatedLaw(law.space, law.probabilities)
    for _ in range(12):
        slope = (low + high) / 2
        truth = make_truth(law, slope, np.random.default_rng(for_items))
        rows = np.array(simulate(truth, ROWS_FOR_RATIO, rng=np.random.default_rng(for_rows)).X)
        data = WorkingData.from_values(rows, truth.families)
        if information_ratio(truth.items, shown, data) < ratio:
            low = slope
        else:
            high = slope
    return truth
