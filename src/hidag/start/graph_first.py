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

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.law_rounds import FirstLook, LearnParents, look_under_network
from hidag.estimate.loop import Observer, Schedule
from hidag.estimate.maximise import Basis
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.latent.factorise import factorised
from hidag.measurement import Penalty
from hidag.start.beginnings import on_own_support
from hidag.start.points import StartPoint
from hidag.start.several import ROUGH_TOLERANCE

#: EM steps under independent latents, in which coefficients find their sizes.
STEPS_ALONE = 15
#: Rows that such looks are taken on, at the most.
ROWS_FOR_GRAPH = 10_000


def look_graph_first(
    point: StartPoint,
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    schedule: Schedule,
    learn_parents: LearnParents,
    *,
    n_threads: int = 1,
    observer: Observer | None = None,
) -> FirstLook:
    """Return the estimate under the law over the graph that a start's items show when held.

    Parameters
    ----------
    point : StartPoint
    data, space, basis, allowed, penalty, schedule, learn_parents
        As in ``estimate_under_graph``.
    """
    some = data.first_rows(ROWS_FOR_GRAPH)
    apart = ((),) * space.n_latents
    alone = on_own_support(
        point.parameters,
        some,
        space,
        basis,
        replace(schedule, max_iter=min(STEPS_ALONE, schedule.max_iter), tolerance=0.0),
        n_threads,
        law_step=partial(factorised, parents=apart, space=space),
    )
    return look_under_network(
        alone,
        some,
        space,
        basis,
        allowed,
        penalty,
        replace(schedule, tolerance=ROUGH_TOLERANCE * schedule.tolerance),
        learn_parents,
        # The law has never been free: its counts show no dependence that it lacks.
        n_steps=1,
        n_threads=n_threads,
        observer=observer,
    )
