"""Newton steps of items whose predictors have a floor, along it where it is in the way.

A step that ends below the floor cannot be cured by shortening it: an item that is on the floor in
one latent state and would go lower there would not move in any other state either. Such a state is
held on the floor instead, and the quadratic model is maximised over what is left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Maximises quadratic models: (items, coefficients, gradients, curvatures) to coefficients.
Propose = Callable[[NDArray[np.intp], Array, Array, Array], Array]

#: Times that states may be held or let go in one step.
MAX_ROUNDS = 6
#: Held states end above the floor by this share of it: rounding does not take them below.
ROOM = 1e-6
#: Stiffness of held states, in units of an item's largest curvature.
STIFFNESS = 1e6


def kept_above(
    floor: float,
    design: Array,
    beta: Array,
    gradient: Array,
    curvature: Array,
    propose: Propose,
    may_vanish: NDArray[np.bool_],
) -> Array:
    """Return coefficients that maximise quadratic models with no predictor below the floor.

    Parameters
    ----------
    floor : float
    design : ndarray, shape (S, P)
        A one and the terms' values in each state.
    beta, gradient, curvature : ndarray, shapes (J, P), (J, P), (J, P, P)
        Where the models are expanded, and what they are.
    propose : callable
        Maximises them without regard to the floor.
    may_vanish : ndarray of bool, shape (J, P)
        Coefficients that are zero unless they pay for themselves. What stiffness leaves of one that
        the floor holds at zero is no effect.
    """
    everyone = np.arange(len(beta))
    out = propose(everyone, beta, gradient, curvature)
    eta = out @ design.T
    low = np.flatnonzero(eta.min(axis=1) < floor)
    held, anchor = eta[low] < floor, eta[low].argmin(axis=1)
    target = floor + ROOM * abs(floor)
    for _ in range(MAX_ROUNDS):
        if len(low) == 0:
            return out
        model = (beta[low], gradient[low], curvature[low])
        found, push = _held_step(low, model, design, held, anchor, target, propose, may_vanish[low])
        out[low] = found
        eta = found @ design.T
        below = eta < floor
        # A state that is held although it would rise is let go.
        loose = held & (push < 0)
        held = (held & ~loose) | below
        unsettled = (below | loose).any(axis=1) & held.any(axis=1)
        low, held, anchor = low[unsettled], held[unsettled], anchor[unsettled]
        still = held[np.arange(len(low)), anchor]
        lowest = np.where(held, eta[unsettled], np.inf).argmin(axis=1)
        anchor = np.where(still, anchor, lowest)
    reached = (out @ design.T).min(axis=1)
    out[:, 0] += np.where(reached < floor, target - reached, 0.0)
    return out


def _held_step(
    items: NDArray[np.intp],
    model: tuple[Array, Array, Array],
    design: Array,
    held: NDArray[np.bool_],
    anchor: NDArray[np.intp],
    target: float,
    propose: Propose,
    may_vanish: NDArray[np.bool_],
) -> tuple[Array, Array]:
    """Return coefficients with states held at the target, and how hard each pushes down, (n, S).

    The intercept is what the anchor's predictor leaves to it, so that coefficients are sought one
    by one as ever. Further states are held by stiffness.
    """
    beta, gradient, curvature = model
    places = np.arange(len(beta))
    normal = design[anchor]
    shift = target - (beta * normal).sum(axis=1)
    begun = beta.copy()
    begun[:, 0] += shift
    others = held.copy()
    others[places, anchor] = False
    stiffness = STIFFNESS * np.einsum("jaa->ja", curvature).max(axis=1, keepdims=True)
    pull = np.where(others, stiffness * (target - begun @ design.T), 0.0)
    slope = gradient - curvature[:, :, 0] * shift[:, None] + pull @ design
    stiff = np.einsum("js,sa,sb->jab", others * stiffness, design, design, optimize=True)
    bent = curvature + stiff
    slope = slope - normal * slope[:, :1]
    cross = normal[:, :, None] * bent[:, :1, :]
    bent = (
        bent
        - cross
        - np.swapaxes(cross, 1, 2)
        + normal[:, :, None] * normal[:, None, :] * bent[:, :1, :1]
    )
    slope[:, 0], bent[:, 0, :], bent[:, :, 0] = 0.0, 0.0, 0.0
    found = propose(items, begun, slope, bent)
    found[may_vanish & (np.abs(found) < target)] = 0.0
    found[:, 0] = target - (normal[:, 1:] * found[:, 1:]).sum(axis=1)
    eta = found @ design.T
    push = np.where(others, stiffness * (target - eta), 0.0)
    left = gradient[:, 0] - np.einsum("ja,ja->j", curvature[:, 0, :], found - beta)
    # States with the anchor's own predictor share its fate.
    at_anchor = held & (np.abs(eta - target) <= 1e-12)
    at_anchor[places, anchor] = True
    return found, np.where(at_anchor, (-left - push.sum(axis=1))[:, None], push)
