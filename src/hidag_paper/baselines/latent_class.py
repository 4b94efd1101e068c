"""Latent class analysis with 2^K classes, which are then matched to joint states of K latents.

The classes are estimated by StepMix (``pip install hidag[baselines]``).
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
    check_families,
    normal_values,
    search_distribution,
)

Array = NDArray[np.float64]

#: Largest number of alternating iterations, and number of starts.
MAX_ALTERNATIONS, N_ROTATIONS = 50, 20

#: Relative tolerance of sums of squares.
SAME = 1e-9


@dataclass(frozen=True)
class ClassMatching:
    """Joint states assigned to classes.

    Attributes
    ----------
    states : ndarray of int, shape (C,)
        Indices of joint states of K binary latents, not necessarily distinct.
    q_matrix : ndarray of int8, shape (J, K)
    unexplained : float
        Share of the weighted variation of the class means that the states do not explain.
    """

    states: NDArray[np.int64]
    q_matrix: NDArray[np.int8]
    unexplained: float


def match_classes(
    means: Array, weights: Array, n_latents: int, rng: np.random.Generator
) -> ClassMatching:
    """Assign states of K binary latents to classes by least squares with additive effects.

    Parameters
    ----------
    means : ndarray, shape (C, J)
        Class means of items scaled to unit conditional variance.
    weights : ndarray, shape (C,)
        Expected number of rows of each class.
    n_latents : int
    rng : Generator
        For the random rotations of further starts.
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
        # Differences within rounding error do not count.
        if left < lowest * (1.0 - SAME):
            best, lowest = numbers, left
    assert best is not None
    total = float((weights[:, None] * centred**2).sum())
    q_matrix = _select_parents(states[best], means, weights)
    return ClassMatching(best, q_matrix, lowest / max(total, 1e-300))


def _padded(scores: Array, n_columns: int) -> Array:
    return np.hstack([scores, np.zeros((len(scores), n_columns - scores.shape[1]))])


def _alternate(
    numbers: NDArray[np.int64], states: Array, means: Array, weights: Array
) -> tuple[NDArray[np.int64], float]:
    """Alternate between states and effects; return the states and the residual sum of squares."""
    left = np.inf
    for _ in range(MAX_ALTERNATIONS):
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


def _residual_squares(chosen: Array, means: Array, weights: Array) -> Array:
    """Return the weighted residual sum of squares of each item, shape (J,)."""
    design = np.hstack([np.ones((len(chosen), 1)), chosen])
    gaps = means - design @ _effects(chosen, means, weights)
    return np.asarray((weights[:, None] * gaps**2).sum(axis=0))


def _select_parents(chosen: Array, means: Array, weights: Array) -> NDArray[np.int8]:
    """Return Q, shape (J, K): for each item the subset of latents with the lowest BIC.

    The variance of an item is estimated from the residuals of the model with all latents, and is at
    least one.
    """
    n_classes, n_latents = chosen.shape
    n_residual = max(n_classes - n_latents - 1, 1)
    noise = np.maximum(_residual_squares(chosen, means, weights) / n_residual, 1.0)
    penalty = 0.5 * np.log(weights.sum())
    subsets = StateSpace.binary(n_latents).states().astype(bool)
    values = np.stack(
        [
            0.5 * _residual_squares(chosen[:, subset], means, weights) / noise
            + penalty * subset.sum()
            for subset in subsets
        ]
    )
    return np.asarray(subsets[values.argmin(axis=0)], dtype=np.int8)


#: Starts of EM from k-means, and largest number of iterations.
N_STARTS, MAX_ITER = 4, 300
#: Tolerance of EM in log-likelihood per row.
TOLERANCE = 1e-5
#: 256 classes.
MAX_LATENTS = 8
#: Distance of class probabilities from 0 and 1, for finite log odds.
MARGIN = 0.02


def latent_class(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Estimate Q and the graph from 2^K classes matched to joint states."""
    if n_latents > MAX_LATENTS:
        raise SettingError(
            "too-large",
            "latent-class, which has 2^K classes, has at most {max_k} latents, got {k}",
            max_k=MAX_LATENTS,
            k=n_latents,
        )
    if len(values) < 2**n_latents:
        raise SettingError(
            "too-few-rows",
            "latent-class needs at least as many rows as classes, got {n} rows for 2^{k} classes",
            n=len(values),
            k=n_latents,
        )
    check_families(families, (*NORMAL_FAMILIES, "bernoulli"), "latent-class")
    normal = np.array([family in NORMAL_FAMILIES for family in families])
    table = normal_values(values, families)
    means, shares, n_iter = _fit_classes(table, normal, 2**n_latents, seed)
    weights = len(table) * shares
    matched = match_classes(means, weights, n_latents, np.random.default_rng(seed))
    law = np.bincount(matched.states, shares, minlength=2**n_latents)
    return BaselineResult(
        matched.q_matrix,
        search_distribution(law / law.sum(), n_latents, len(table)),
        {
            "n_iter": n_iter,
            "unexplained_by_states": matched.unexplained,
            "states_with_classes": len(np.unique(matched.states)),
        },
    )


def _fit_classes(
    table: Floats, normal: np.ndarray[Any, np.dtype[np.bool_]], n_classes: int, seed: int
) -> tuple[Floats, Floats, int]:
    """Return scaled class means, shape (C, J), class probabilities and the number of iterations."""
    StepMix = import_extra("stepmix.stepmix", "latent-class", "baselines").StepMix
    kinds = (("normal", "gaussian_diag", normal), ("binary", "binary", ~normal))
    blocks = [(name, kind, which) for name, kind, which in kinds if which.any()]
    model = StepMix(
        n_components=n_classes,
        measurement={
            name: {"model": kind, "n_columns": int(which.sum())} for name, kind, which in blocks
        },
        n_init=N_STARTS,
        init_params="kmeans",
        max_iter=MAX_ITER,
        abs_tol=TOLERANCE,
        random_state=seed % 2**32,
        progress_bar=0,
        verbose=0,
    )
    with warnings.catch_warnings():
        # Some of the starts do not converge; only the best is used.
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
            odds = np.clip(np.asarray(part["pis"]), MARGIN, 1.0 - MARGIN)
            overall = table[:, which].mean(axis=0)
            # The conditional variance on the logit scale is 1 / (p (1 - p)).
            means[:, which] = np.log(odds / (1.0 - odds)) * np.sqrt(overall * (1.0 - overall))
    return means, shares, int(model.n_iter_)


LATENT_CLASS = Baseline(
    "latent-class",
    "latent class analysis with 2^K classes, matched to states of K latents",
    latent_class,
)
