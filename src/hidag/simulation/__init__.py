"""Simulation designs, the paper's and others, and data drawn from them."""

from hidag.simulation.designs import (
    banded_q,
    chain_dag,
    dag_from_parents,
    design,
    design_law,
    make_truth,
    random_dag,
    random_law,
    random_q,
    random_truth,
    spread_slopes,
    tree_dag,
)
from hidag.simulation.truth import Simulation, Truth, simulate

__all__ = [
    "Simulation", "Truth", "banded_q", "chain_dag", "dag_from_parents", "design", "design_law",
    "make_truth", "random_dag", "random_law", "random_q", "random_truth", "simulate",
    "spread_slopes", "tree_dag",
]  # fmt: skip
