"""A first look where items hardly show latents: the graph comes before items may move freely.

Elsewhere a saturated law is the bridge from a start to a law over a graph. Where items say little
it fits noise as dependence, items follow it, and the two hold each other up: even from the true
items and an even law Stage I ends far away. So coefficients find their sizes under independent
latents, each item with the latents that it starts with. A graph is learned with the items held, and
only then may loadings come and go.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hidag.estimate.law_rounds import FirstLook, look_under_network
from hidag.estimate.loop import Observer
from hidag.latent.factorise import factorised
from hidag.start.beginnings import on_own_support
from hidag.start.crossing import Problem
from hidag.start.points import StartPoint
from hidag.start.several import ROUGH_TOLERANCE

#: EM steps under independent latents, in which coefficients find their sizes.
STEPS_ALONE = 15
#: Rows that such looks are taken on, at the most.
ROWS_FOR_GRAPH = 10_000


def look_graph_first(point: StartPoint, problem: Problem, observer: Observer) -> FirstLook:
    """Return the estimate under the law over the graph that a start's items show when held.

    Parameters
    ----------
    point : StartPoint
    problem : Problem
    observer : callable
        Told of the steps.
    """
    some = problem.data.first_rows(ROWS_FOR_GRAPH)
    space, schedule = problem.space, problem.schedule
    alone = on_own_support(
        point.parameters,
        some,
        space,
        problem.basis,
        replace(schedule, max_iter=min(STEPS_ALONE, schedule.max_iter), tolerance=0.0),
        problem.n_threads,
        law_step=partial(factorised, parents=((),) * space.n_latents, space=space),
    )
    return look_under_network(
        alone,
        some,
        space,
        problem.basis,
        problem.allowed,
        problem.penalty,
        replace(schedule, tolerance=ROUGH_TOLERANCE * schedule.tolerance),
        problem.learn_parents,
        # The law has never been free: its counts show no dependence that it lacks.
        n_steps=1,
        n_threads=problem.n_threads,
        observer=observer,
    )
