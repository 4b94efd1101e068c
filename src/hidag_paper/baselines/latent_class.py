"""Latent class analysis with a class for every joint state, and states for the classes afterwards.

The classes come from StepMix (``pip install hidag[baselines]``).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import SettingError, import_extra
from hidag.initialization.rotations import geomin, varimax
from hidag.latent.state_space import StateSpace
from hidag_paper.baselines.baseline import (
    NORMAL_FAMILIES,
    Baseline,
    BaselineResult,
    Floats,
    graph_of_law,
    normal_values,
    refuse_other_families,
)

# --- From latent classes to joint states of binary latents: whose means add up like effects?

Array = NDArray[np.float64]

#: Rounds of giving states and effects, at the most, from each of how many beginnings.
ROUNDS, N_ROTATIONS = 50, 20

#: Sums of squares that differ by a smaller share are the same.
SAME = 1e-9


@dataclass(frozen=True)
class Matched:
    """States for classes.

    Attributes
    ----------
    states : ndarray of int, shape (C,)
        Numbers of joint states of K binary latents; several classes may have the same.
    q_matrix : ndarray of int8, shape (J, K)
    unexplained : float
        Share of the weighted variation of the classes' means that states leave over.
    """

    states: NDArray[np.int64]
    q_matrix: NDArray[np.int8]
    unexplained: float


def match_classes(
    means: Array, weights: Array, n_latents: int, rng: np.random.Generator
) -> Matched:
    """Return the states of K binary latents that explain the classes' means best.

    Parameters
    ----------
    means : ndarray, shape (C, J)
        On a scale on which a row of a class has variance one around them.
    weights : ndarray, shape (C,)
        How many rows each class stands for.
    n_latents : int
    rng : Generator
        Turns the factors of the means, for further beginnings.
    """
    space = StateSpace.binary(n_latents)
    states = space.states().astype(np.float64)
    centred = means - np.average(means, axis=0, weights=weights)
    root = np.sqrt(weights)[:, None]
    _, _, right = np.linalg.svd(root * centred, full_matrices=False)
    plain = right[:n_latents].T
    best, lowest = None, np.inf
    for turn in range(N_ROTATIONS):
        basis = plain
        if turn:
            basis = plain @ np.linalg.qr(rng.standard_normal((plain.shape[1],) * 2))[0]
        loadings = geomin(basis, varimax(basis))
        given = _padded(centred @ loadings @ np.linalg.pinv(loadings.T @ loadings), n_latents) > 0
        numbers = space.number(given.astype(np.int64))
        numbers, left = _alternate(numbers, states, means, weights)
        # The same states under other names are no better for a rounding error.
        if left < lowest * (1.0 - SAME):
            best, lowest = numbers, left
    assert best is not None
    total = float((weights[:, None] * centred**2).sum())
    q_matrix = _needed(states[best], means, weights)
    return Matched(best, q_matrix, lowest / max(total, 1e-300))


def _padded(scores: Array, n_columns: int) -> Array:
    return np.hstack([scores, np.zeros((len(scores), n_columns - scores.shape[1]))])


def _alternate(
    numbers: NDArray[np.int64], states: Array, means: Array, weights: Array
) -> tuple[NDArray[np.int64], float]:
    """Return the classes' states after states and effects have settled, and what is left over."""
    left = np.inf
    for _ in range(ROUNDS):
        effects = _effects(states[numbers], means, weights)
        expected = np.hstack([np.ones((len(states), 1)), states]) @ effects
        far = ((means[:, None] - expected) ** 2).sum(axis=2)
        numbers = far.argmin(axis=1)
        value = float((weights * far.min(axis=1)).sum())
        if value >= left:
            break
        left = value
    return numbers, left


def _effects(chosen: Array, means: Array, weights: Array) -> Array:
    """Return intercepts and effects by weighted least squares, shape (1 + columns, J)."""
    root = np.sqrt(weights)[:, None]
    design = np.hstack([np.ones((len(chosen), 1)), chosen])
    return np.asarray(np.linalg.lstsq(root * design, root * means, rcond=None)[0])


def _left_over(chosen: Array, means: Array, weights: Array) -> Array:
    """Return each item's weighted sum of squares that the chosen latents leave over, (J,)."""
    design = np.hstack([np.ones((len(chosen), 1)), chosen])
    gaps = means - design @ _effects(chosen, means, weights)
    return np.asarray((weights[:, None] * gaps**2).sum(axis=0))


def _needed(chosen: Array, means: Array, weights: Array) -> NDArray[np.int8]:
    """Return Q (J, K): for each item the latents with the best information criterion.

    Means that classes have beyond what states explain count as noise: an item's squares are
    divided by what all latents leave over for each spare class, if that is more than one.
    """
    n_classes, n_latents = chosen.shape
    spare = max(n_classes - n_latents - 1, 1)
    noise = np.maximum(_left_over(chosen, means, weights) / spare, 1.0)
    price = 0.5 * np.log(weights.sum())
    subsets = StateSpace.binary(n_latents).states().astype(bool)
    values = np.stack(
        [
            0.5 * _left_over(chosen[:, subset], means, weights) / noise + price * subset.sum()
            for subset in subsets
        ]
    )
    return np.asarray(subsets[values.argmin(axis=0)], dtype=np.int8)


# ---

#: Beginnings of EM, from k-means, and its steps at the most.
BEGINNINGS, STEPS = 4, 300
#: EM ends when a step gains less log-likelihood for each row.
LEAST_GAIN = 1e-5
#: So many latents have 256 classes.
MOST_LATENTS = 8
#: Probabilities of a class are kept this far from 0 and 1 on the scale of the link.
EDGE = 0.02


def latent_class(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Return Q and the graph from 2^K classes whose means were matched to joint states."""
    if n_latents > MOST_LATENTS:
        raise SettingError(
            f"latent-class has a class for each of the 2^K joint states: at most {MOST_LATENTS} "
            f"latents, got {n_latents}"
        )
    if len(values) < 2**n_latents:
        raise SettingError(
            f"latent-class needs at least as many rows as classes, got {len(values)} rows for "
            f"2^{n_latents}"
        )
    refuse_other_families(families, (*NORMAL_FAMILIES, "bernoulli"), "latent-class")
    normal = np.array([family in NORMAL_FAMILIES for family in families])
    table = normal_values(values, families)
    means, shares, n_iter = _classes(table, normal, 2**n_latents, seed)
    weights = len(table) * shares
    matched = match_classes(means, weights, n_latents, np.random.default_rng(seed))
    law = np.bincount(matched.states, shares, minlength=2**n_latents)
    return BaselineResult(
        matched.q_matrix,
        graph_of_law(law / law.sum(), n_latents, len(table)),
        {
            "n_iter": n_iter,
            "unexplained_by_states": matched.unexplained,
            "states_with_classes": len(np.unique(matched.states)),
        },
    )


def _classes(
    table: Floats, normal: np.ndarray[Any, np.dtype[np.bool_]], n_classes: int, seed: int
) -> tuple[Floats, Floats, int]:
    """Return the classes' means on an additive scale with unit noise (C, J), shares and steps."""
    StepMix = import_extra("stepmix.stepmix", "latent-class", "baselines").StepMix
    kinds = (("normal", "gaussian_diag", normal), ("binary", "binary", ~normal))
    blocks = [(name, kind, which) for name, kind, which in kinds if which.any()]
    model = StepMix(
        n_components=n_classes,
        measurement={
            name: {"model": kind, "n_columns": int(which.sum())} for name, kind, which in blocks
        },
        n_init=BEGINNINGS,
        init_params="kmeans",
        max_iter=STEPS,
        abs_tol=LEAST_GAIN,
        random_state=seed % 2**32,
        progress_bar=0,
        verbose=0,
    )
    with warnings.catch_warnings():
        # Of several beginnings some do not settle; the best one is what counts.
        warnings.simplefilter("ignore")
        model.fit(np.hstack([table[:, which] for _, _, which in blocks]))
    found = model.get_parameters()
    shares = np.asarray(found["weights"], dtype=np.float64)
    means = np.empty((n_classes, table.shape[1]))
    for name, _, which in blocks:
        part = found["measurement"][name]
        if name == "normal":
            within = shares @ np.asarray(part["covariances"])
            means[:, which] = np.asarray(part["means"]) / np.sqrt(within)
        else:
            odds = np.clip(np.asarray(part["pis"]), EDGE, 1.0 - EDGE)
            overall = table[:, which].mean(axis=0)
            # On the scale of the link a row's noise has variance 1 / (p (1 - p)).
            means[:, which] = np.log(odds / (1.0 - odds)) * np.sqrt(overall * (1.0 - overall))
    return means, shares, int(model.n_iter_)


LATENT_CLASS = Baseline(
    "latent-class",
    "latent class analysis with 2^K classes, matched to states of K latents",
    latent_class,
)
