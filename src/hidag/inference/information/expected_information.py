"""Covariance of estimates from the expected information of a fit, without its data.

The asymptotic covariance is the sandwich of pseudo-likelihood, ``H^-1 J H^-1``: H is the expected
information of the observed items with rows weighted, J the same with squared weights. Both average
over responses drawn from the model, with the missing cells of the table, pattern by pattern.
Without weights H equals J. With weights independent of the answers, the covariance is that of as
many unweighted rows as the effective sample size (Kish). Cells are assumed missing at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from hidag.data.rows import MissingnessPatterns
from hidag.fitting.information_criteria import item_designs
from hidag.formatting import plural
from hidag.identifiability.information import ResponseModel
from hidag.inference.information.free_parameters import law_blocks
from hidag.inference.information.item_derivatives import (
    boundary_directions,
    broadcast_auxiliary,
    complement,
    information_in_rows,
)
from hidag.measurement.families.base import Family, family_named
from hidag.results import FitResult

Array = NDArray[np.float64]

#: Number of drawn responses to average over, fewer if there are many states.
N_RESPONSES = 10_000
MAX_CELLS = 1 << 22
#: Minimum number of responses per parameter: fewer would leave parameters unidentified.
RESPONSES_PER_PARAMETER = 2
#: Responses are enumerated if there are at most so many over all patterns of missing cells.
MAX_ENUMERATED = 1 << 15
#: Directions with a smaller share of the largest eigenvalue are unidentified.
FLAT = 1e-7
#: Relative size of rounding errors in redundant directions of the law.
ROUNDING = 1e-9
#: Number of random steps per gradient estimate.
N_STEPS = 8
#: Largest change of a parameter in a numerical derivative.
STEP = 1e-3
#: Relative size of the identified components in directions at the bound ``FLAT``.
NEARLY_NONE = float(np.sqrt(FLAT))
#: Smaller changes, relative to the unit of a number, are rounding errors.
CHANGE_ROUNDING = 1e-13

#: The reason in tables why an effect has no interval.
NO_INTERVAL = "no interval: it depends on parameters that are not identified"


@dataclass(frozen=True)
class EstimateSpread:
    """The asymptotic distribution of the estimates.

    Attributes
    ----------
    root : ndarray, shape (P, rank)
        Root of the covariance; free parameters of the items first, then those of the law.
    coefficient_maps : tuple of J arrays, shape (1 + T, P_j)
        From the free coefficients of an item to its intercept and loadings.
    n_unidentified : int
        Number of unidentified directions of coefficients and law, which ``root`` excludes.
    unidentified_steps, any_steps : ndarray, shape (P, R)
        Random steps in these directions and in any direction, in units of the information of one
        row. Empty if all parameters are identified.
    """

    root: Array
    coefficient_maps: tuple[Array, ...]
    n_unidentified: int
    unidentified_steps: Array
    any_steps: Array


def estimate_spread(result: FitResult, law_design: Array, seed: int) -> EstimateSpread:
    """Return the asymptotic distribution of a fit without nominal items, states listed.

    Coefficients on the boundary are fixed.

    Parameters
    ----------
    result : FitResult
    law_design : ndarray, shape (S, L)
        Derivatives of the log probabilities of states by the law's parameters, possibly redundant.
    seed : int
        Of the responses that are drawn if they cannot be enumerated.
    """
    parameters = result.parameters
    p = np.asarray(result.law.probabilities)
    p = p / p.sum()
    eta = parameters.predictors(result.law.space.states())
    designs, maps = item_designs(result)
    model = ResponseModel.create(
        eta, p, parameters.families, parameters.dispersion, parameters.cutpoints
    )
    n_responses = max(
        min(N_RESPONSES, MAX_CELLS // len(p)),
        RESPONSES_PER_PARAMETER * count_score_columns(result, law_design),
    )
    rows, shares, squares = _draw_responses(result, model, n_responses, seed)
    with np.errstate(divide="ignore"):
        score = model.scores(rows, designs)
    n_items = score.shape[1] - (len(p) - 1)
    # The scores omit the most probable state; posterior minus prior sums to zero over states.
    of_states = np.insert(
        score[:, n_items:], int(np.argmax(p)), -score[:, n_items:].sum(axis=1), axis=1
    )
    items, shapes = _item_basis(result, designs, model)
    of_items = score[:, :n_items] @ items
    law = _law_basis(law_design, p)
    root = _covariance_root(
        np.hstack([of_items, _law_scores(of_states, law_design @ law, p, shares)]), shares, squares
    )
    # Effects do not depend on dispersions and cutpoints, and probabilities of outcomes with an
    # expected count below one half are not estimated.
    n_rows = float(observed_patterns(result).counted.sum())
    blocks = law_blocks(result.law, result.latent_names, n_rows, result.ruled_out)
    of_blocks = [_law_scores(of_states, block.scores(), p, shares) for block in blocks]
    slopes = np.delete(np.arange(items.shape[1]), shapes)
    scale, values, vectors = _scaled_eigenvectors(
        np.hstack([of_items[:, slopes], *of_blocks]), shares
    )
    flat = vectors[:, values <= FLAT * values[-1]]
    begins = np.cumsum([0, *(len(block.probabilities) for block in blocks)])
    free = np.concatenate([at + block.free for at, block in zip(begins, blocks, strict=False)])
    steps = _random_steps(flat, np.random.default_rng(seed)) / scale[:, None]
    moved = np.zeros((len(items) + law_design.shape[1], steps.shape[1]))
    moved[: len(items)] = items[:, slopes] @ steps[: len(slopes)]
    moved[len(items) + free] = steps[len(slopes) :]
    inside, anywhere = np.hsplit(moved, 2)
    return EstimateSpread(block_diag(items, law) @ root, maps, flat.shape[1], inside, anywhere)


def _random_steps(flat: Array, rng: np.random.Generator) -> Array:
    """Return R random steps inside the span of directions (F, U), then R in any, (F, 2 R)."""
    if not flat.shape[1]:
        return np.zeros((len(flat), 0))
    inside = flat @ rng.standard_normal((flat.shape[1], N_STEPS))
    return np.hstack([inside, rng.standard_normal((len(flat), N_STEPS))])


def _law_scores(of_states: Array, design: Array, p: Array, shares: Array) -> Array:
    """Return scores (n, L) of the law's parameters, zero if they are rounding errors only.

    For a latent without items, posterior and prior are equal except for rounding.
    """
    score = of_states @ design
    size, complete = shares @ score**2, p @ design**2
    return np.where(size > ROUNDING**2 * complete, score, 0.0)


def count_score_columns(result: FitResult, law_design: Array) -> int:
    """Return the number of parameters of items and law (S, L), redundant ones included."""
    sizes = [*(one.shape[1] for one in item_designs(result)[1]), law_design.shape[1]]
    return int(sum(sizes)) + sum(
        _n_auxiliaries(family_named(n)) for n in result.parameters.families
    )


def _n_auxiliaries(family: Family) -> int:
    """Return the number of cutpoints or dispersions of an item."""
    return family.n_cutpoints or int(family.has_dispersion)


def _scaled_eigenvectors(score: Array, shares: Array) -> tuple[Array, Array, Array]:
    """Return the scale of each parameter (P,), and the eigenvalues and -vectors after scaling."""
    scale = np.sqrt(shares @ score**2)
    scale[scale == 0] = 1.0
    scaled = score / scale
    values, vectors = np.linalg.eigh(scaled.T @ (shares[:, None] * scaled))
    return scale, values, vectors


def _covariance_root(score: Array, shares: Array, squares: Array) -> Array:
    """Return a root of the sandwich covariance, shape (P, rank), from scores (n, P)."""
    scale, values, vectors = _scaled_eigenvectors(score, shares)
    good = values > FLAT * values[-1]
    rotated = (score / scale) @ vectors[:, good] / values[good]
    inner, axes = np.linalg.eigh(rotated.T @ (squares[:, None] * rotated))
    root = vectors[:, good] @ ((axes * np.sqrt(np.maximum(inner, 0.0))) @ axes.T)
    return np.asarray(root / scale[:, None])


def observed_patterns(result: FitResult) -> MissingnessPatterns:
    """Return the missingness patterns of a fit; complete rows if it stores none."""
    if result.seen_rows is not None:
        return result.seen_rows
    n_items = len(result.item_names)
    complete = np.packbits(np.ones((1, n_items), dtype=bool), axis=1)
    n_rows = np.array([result.n_counted])
    return MissingnessPatterns(complete, n_items, n_rows, n_rows)


def _draw_responses(
    result: FitResult, model: ResponseModel, n_responses: int, seed: int
) -> tuple[Array, Array, Array]:
    """Return responses (n, J), NaN in missing cells, and their weights in H and in J, (n,) each."""
    patterns = observed_patterns(result)
    n_patterns = len(patterns.seen)
    n_responses = max(n_responses, n_patterns)
    listed, probabilities, exact = model.response_patterns(n_responses, seed)
    if n_patterns == 1 or (exact and n_patterns * len(listed) <= MAX_ENUMERATED):
        pattern, place = np.divmod(np.arange(n_patterns * len(listed)), len(listed))
        rows, share = listed[place], probabilities[place]
    else:
        # Only a rare pattern may identify a parameter: half of the responses are distributed
        # equally over patterns, the other half in proportion to their rows.
        shares = 0.5 / n_patterns + 0.5 * patterns.counted / patterns.counted.sum()
        ends = np.floor(np.cumsum(shares) * n_responses + 0.5).astype(int)
        number = np.maximum(np.diff(ends, prepend=0), 1)
        pattern = np.repeat(np.arange(n_patterns), number)
        rows = model.sample(len(pattern), seed)
        share = 1.0 / number[pattern]
    rows = np.where(patterns.seen[pattern], rows, np.nan)
    total = patterns.counted.sum()
    return (
        rows,
        share * (patterns.counted / total)[pattern],
        share * (patterns.squares / total**2)[pattern],
    )


def _item_basis(
    result: FitResult, designs: list[Array], model: ResponseModel
) -> tuple[Array, list[int]]:
    """Return a basis of the items' free parameters without directions on the boundary.

    Also return its columns that are dispersions or cutpoints.
    """
    patterns = observed_patterns(result)
    n_rows = patterns.counted @ patterns.seen
    blocks: list[Array] = []
    shapes: list[int] = []
    n_columns = 0
    for j, name in enumerate(result.parameters.families):
        family, own = family_named(name), model.auxiliary[j]
        _, _, information = family.slopes(model.eta[j], broadcast_auxiliary(family, own))
        counts = n_rows[j] * model.probabilities
        rows = information_in_rows(family, own, information * counts, counts)
        boundary = boundary_directions(designs[j], rows)
        blocks.append(complement(boundary) if len(boundary) else np.eye(designs[j].shape[1]))
        n_columns += blocks[-1].shape[1]
        blocks.append(np.eye(_n_auxiliaries(family)))
        shapes += range(n_columns, n_columns + len(blocks[-1]))
        n_columns += len(blocks[-1])
    return np.asarray(block_diag(*blocks)), shapes


def _law_basis(design: Array, p: Array) -> Array:
    """Return a basis of the law's parameters (S, L) without redundant directions."""
    score = np.sqrt(p)[:, None] * design
    scale = np.sqrt((score**2).sum(axis=0))
    inside = scale > 0
    _, sizes, rotation = np.linalg.svd(score[:, inside] / scale[inside], full_matrices=False)
    out = np.zeros((design.shape[1], len(sizes)))
    out[inside] = rotation.T / scale[inside, None]
    return out[:, sizes > ROUNDING * sizes.max(initial=0.0)]


@dataclass(frozen=True)
class Perturbation:
    """A fit moved forward and backward along a direction by ``length`` units."""

    forward: FitResult
    backward: FitResult
    length: float


@dataclass(frozen=True)
class Perturbations:
    """A fit perturbed in ``n_unidentified`` unidentified directions, and in any direction."""

    n_unidentified: int
    unidentified: tuple[Perturbation, ...]
    anywhere: tuple[Perturbation, ...]

    def describe(self) -> str:
        """Return how many directions are unidentified and the usual causes, as text."""
        return (
            "the latent distribution or coefficients are not identified in "
            f"{plural(self.n_unidentified, 'direction')}, for instance because a latent has too "
            "few items or no row has the items of two latents"
        )

    def affect(self, numbers: Callable[[FitResult], Array], units: Array) -> NDArray[np.bool_]:
        """Return which numbers of a fit (..., E) depend on unidentified parameters.

        Parameters
        ----------
        numbers : callable
            From a fit to the numbers.
        units : ndarray, shape (E,)
            Sizes of the terms whose differences the numbers are.
        """
        inside, anywhere = (
            _gradient_size(one, numbers, units) for one in (self.unidentified, self.anywhere)
        )
        return np.asarray(inside > NEARLY_NONE * anywhere)


def perturb(moved: Callable[[Array], FitResult], spread: EstimateSpread) -> Perturbations | None:
    """Return the perturbations of a fit; None if all parameters are identified.

    ``moved`` maps a step (P,) to the fit moved by it.
    """
    if not spread.n_unidentified:
        return None

    def along(step: Array) -> Perturbation:
        length = STEP / float(np.abs(step).max())
        return Perturbation(moved(length * step), moved(-length * step), length)

    return Perturbations(
        spread.n_unidentified,
        tuple(along(step) for step in spread.unidentified_steps.T),
        tuple(along(step) for step in spread.any_steps.T),
    )


def _gradient_size(
    pairs: Sequence[Perturbation], numbers: Callable[[FitResult], Array], units: Array
) -> Array:
    """Return the root mean square of directional derivatives of numbers."""
    squares = []
    for one in pairs:
        change = numbers(one.forward) - numbers(one.backward)
        change = np.where(np.abs(change) > CHANGE_ROUNDING * units, change, 0.0)
        squares.append((change / (2.0 * one.length)) ** 2)
    return np.asarray(np.sqrt(np.mean(squares, axis=0)))
