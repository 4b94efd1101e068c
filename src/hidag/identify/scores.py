"""Scores of answers: how their log probability changes with every parameter of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.measurement import Family, family_named

Array = NDArray[np.float64]

#: All answers are listed up to this many; beyond, answers are drawn.
LISTED_ANSWERS = 1 << 14
#: Step of numerical derivatives by dispersions and cutpoints; the error is about its square.
_STEP = 1e-5


def auxiliaries(
    families: Sequence[str], dispersion: Array | None, cutpoints: Array | None
) -> list[Array]:
    """Return what each item has besides its predictor: a dispersion, shape (), or cutpoints."""
    out = []
    for j, name in enumerate(families):
        family = family_named(name)
        if family.n_cutpoints:
            even = np.arange(1.0, 1.0 + family.n_cutpoints)
            own = even if cutpoints is None else cutpoints[j, : family.n_cutpoints]
        elif dispersion is None:
            own = np.asarray(1.0 if family.dispersion_bounds[1] > 1.0 else 0.5)
        else:
            own = np.asarray(dispersion[j])
        out.append(np.asarray(own, dtype=np.float64))
    return out


def answers(
    eta: Array,
    probabilities: Array,
    families: Sequence[str],
    auxiliary: list[Array],
    n_draws: int,
    random_state: int,
) -> tuple[Array, Array, bool]:
    """Return answers, shape (n, J), their weights, and whether these are all there are."""
    n_items = len(eta)
    binary = {"bernoulli", "bernoulli-probit", "bernoulli-cloglog"}
    if set(families) <= binary and 2**n_items <= LISTED_ANSWERS:
        rows = ((np.arange(2**n_items)[:, None] >> np.arange(n_items)) & 1).astype(np.float64)
        weights = np.exp(_log_joint(rows, eta, probabilities, families, auxiliary)).sum(axis=1)
        return rows, weights, True
    rows = drawn_answers(eta, probabilities, families, auxiliary, n_draws, random_state)
    return rows, np.full(n_draws, 1.0 / n_draws), False


def drawn_answers(
    eta: Array,
    probabilities: Array,
    families: Sequence[str],
    auxiliary: list[Array],
    n_draws: int,
    random_state: int,
) -> Array:
    """Return answers drawn from the model, shape (n_draws, J)."""
    rng = np.random.default_rng(random_state)
    states = rng.choice(eta.shape[1], size=n_draws, p=probabilities / probabilities.sum())
    drawn = []
    for j, name in enumerate(families):
        family = family_named(name)
        own = np.broadcast_to(auxiliary[j], (n_draws, *auxiliary[j].shape))
        drawn.append(family.sample(eta[j, states], own, rng))
    return np.column_stack(drawn)


def _log_joint(
    rows: Array, eta: Array, probabilities: Array, families: Sequence[str], auxiliary: list[Array]
) -> Array:
    """Return the logarithm of each answer's joint probability with each state, shape (n, S)."""
    with np.errstate(divide="ignore"):
        total = np.log(np.asarray(probabilities, dtype=np.float64))[None, :]
    for j, name in enumerate(families):
        total = total + _log_density(family_named(name), rows[:, j], eta[j], auxiliary[j])
    return np.asarray(total)


def _log_density(family: Family, x: Array, eta: Array, auxiliary: Array) -> Array:
    """Return log f of one item, shape (n, S); zero where there is no answer."""
    own = _shaped(family, auxiliary)
    theta, partition = family.natural(eta, own)
    seen = ~np.isnan(x)
    out = np.zeros((len(x), len(eta)))
    x = x[seen]
    out[seen] = _weighted(family, x, theta) - partition + family.base(x, own)[:, None]
    return out


def _weighted(family: Family, x: Array, factors: Array) -> Array:
    """Return the columns of responses (n,) times factors over states, summed, shape (n, S)."""
    columns = family.to_working(x)
    if family.n_columns == 1:
        columns, factors = columns[None], factors[None]
    return np.asarray(np.einsum("dn,ds->ns", columns, factors))


def _shaped(family: Family, auxiliary: Array) -> Array:
    """Return an item's auxiliaries as its family takes them beside an axis of states."""
    return auxiliary[None] if family.n_cutpoints else auxiliary


def scores(
    rows: Array,
    eta: Array,
    designs: Sequence[Array],
    probabilities: Array,
    families: Sequence[str],
    auxiliary: list[Array],
) -> Array:
    """Return the derivative of each answer's log probability by each parameter, shape (n, P).

    An answer (J,) may have NaN for items that were not answered.
    """
    joint = _log_joint(rows, eta, probabilities, families, auxiliary)
    posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    parts = []
    for j, name in enumerate(families):
        family, x = family_named(name), rows[:, j]
        slope, mean, _ = family.slopes(eta[j], _shaped(family, auxiliary[j]))
        by_state = np.zeros_like(posterior)
        seen = ~np.isnan(x)
        by_state[seen] = _weighted(family, x[seen], slope) - mean
        parts.append((posterior * by_state) @ np.asarray(designs[j], dtype=np.float64))
        for up, down in _nudged(family, auxiliary[j]):
            change = _log_density(family, x, eta[j], up) - _log_density(family, x, eta[j], down)
            parts.append((posterior * change).sum(axis=1, keepdims=True) / (2 * _STEP))
    law = posterior - probabilities
    parts.append(np.delete(law, int(np.argmax(probabilities)), axis=1))
    return np.hstack(parts)


def _nudged(family: Family, auxiliary: Array) -> Iterator[tuple[Array, Array]]:
    """Yield an item's auxiliaries moved a step up and down, one after the other."""
    if family.n_cutpoints:
        for step in _STEP * np.eye(family.n_cutpoints):
            yield auxiliary + step, auxiliary - step
    elif family.has_dispersion:
        free = family.to_free(auxiliary)
        yield family.from_free(free + _STEP), family.from_free(free - _STEP)
