"""Simulate: the paper's designs, other shapes, and data drawn from them."""

from hidag.callable_room import make_callable
from hidag.simulate.designs import design, design_law, make_truth
from hidag.simulate.items import banded_q, random_q, spread_slopes
from hidag.simulate.networks import chain_dag, dag_from_parents, random_dag, random_law, tree_dag
from hidag.simulate.rich import rich_truth
from hidag.simulate.sample import simulate
from hidag.simulate.seesaw import SeesawImages, simulate_seesaw
from hidag.simulate.seesaw_scene import SeesawGeometry
from hidag.simulate.truth import Simulation, Truth

__all__ = [
    "SeesawGeometry",
    "SeesawImages",
    "Simulation",
    "Truth",
    "banded_q",
    "chain_dag",
    "dag_from_parents",
    "design",
    "design_law",
    "make_truth",
    "random_dag",
    "random_law",
    "random_q",
    "rich_truth",
    "simulate",
    "simulate_seesaw",
    "spread_slopes",
    "tree_dag",
]

make_callable(__name__)
