"""Draws of fits from the asymptotic distribution of the estimates, graph and Q fixed.

The covariance is the sandwich of pseudo-likelihood, ``H^-1 J H^-1``: H is the expected information
of the observed items with rows weighted, J the same with squared weights. Both average over
responses drawn from the model, with the missing cells of the table, pattern by pattern, so that no
data are needed. Without weights H equals J. With weights independent of the answers, the covariance
is that of as many unweighted rows as the effective sample size (Kish). Cells are assumed missing at
random. A bootstrap also includes the uncertainty of the graph and of Q.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from hidag.data.rows import MissingnessPatterns, canonical_order
from hidag.exceptions import Advice, HidagWarning, SettingError
from hidag.fitting.information_criteria import item_designs
from hidag.formatting import plural
from hidag.identifiability.information import ResponseModel
from hidag.inference.refit import is_storable
from hidag.information.free_parameters import law_blocks
from hidag.information.item_derivatives import (
    boundary_directions,
    broadcast_auxiliary,
    complement,
    information_in_rows,
)
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.measurement.families.base import Family, family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.results import AnyFit, FitResult, as_result, rank_items, reorder_items

Array = NDArray[np.float64]
#: The parameters of one row of a conditional table, log ratios: latent, row, first parameter.
_TableRow = tuple[int, tuple[int, ...], int]
#: A fit moved forward and backward along a direction, and by how much.
_Perturbation = tuple[FitResult, FitResult, float]

MAX_STATES = 1 << 10  # The information is computed over listed joint states, at most so many
MAX_PARAMETERS = 5000  # More parameters take more than a gigabyte and a minute
MIN_PROBABILITY = 1e-6  # Smallest probability of a drawn law, unless it is zero in the fit
USE_BOOTSTRAP = Advice("bootstrap-intervals", "pass the replicates of a bootstrap instead")
N_RESPONSES = 10_000  # Number of drawn responses to average over, fewer if there are many states
MAX_CELLS = 1 << 22
#: Minimum number of responses per parameter: fewer would leave parameters unidentified.
RESPONSES_PER_PARAMETER = 2
#: Responses are enumerated if there are at most so many over all patterns of missing cells.
MAX_ENUMERATED = 1 << 15
FLAT = 1e-7  # Directions with a smaller share of the largest eigenvalue are unidentified
ROUNDING = 1e-9  # Relative size of rounding errors in redundant directions of the law
N_STEPS = 8  # Number of random steps per gradient estimate
STEP = 1e-3  # Largest change of a parameter in a numerical derivative
#: Relative size of the identified components in directions at the bound ``FLAT``.
NEARLY_NONE = float(np.sqrt(FLAT))
CHANGE_ROUNDING = 1e-13  # Smaller changes, relative to the unit of a number, are rounding errors
#: The reason in tables why an effect has no interval.
NO_INTERVAL = "no interval: it depends on parameters that are not identified"


@dataclass(frozen=True)
class Perturbations:
    """A fit perturbed in ``n_unidentified`` unidentified directions, and in any direction."""

    n_unidentified: int
    unidentified: tuple[_Perturbation, ...]
    anywhere: tuple[_Perturbation, ...]

    def describe(self) -> str:
        """Return how many directions are unidentified and the usual causes, as text."""
        return (
            "the latent distribution or coefficients are not identified in "
            f"{plural(self.n_unidentified, 'direction')}, for instance because a latent has too "
            "few items or no row has the items of two latents"
        )

    def affect(self, numbers: Callable[[FitResult], Array], units: Array) -> NDArray[np.bool_]:
        """Return which numbers (..., E) in units (E,) depend on unidentified parameters."""

        def gradient_size(pairs: Sequence[_Perturbation]) -> Array:
            squares = []
            for forward, backward, length in pairs:
                change = numbers(forward) - numbers(backward)
                change = np.where(np.abs(change) > CHANGE_ROUNDING * units, change, 0.0)
                squares.append((change / (2.0 * length)) ** 2)
            return np.asarray(np.sqrt(np.mean(squares, axis=0)))

        inside, anywhere = gradient_size(self.unidentified), gradient_size(self.anywhere)
        return np.asarray(inside > NEARLY_NONE * anywhere)


def _perturb(moved: Callable[[Array], FitResult], spread: EstimateSpread) -> Perturbations | None:
    """Return perturbations of a fit, which ``moved`` maps from steps (P,); None if identified."""
    if not spread.n_unidentified:
        return None

    def along(step: Array) -> _Perturbation:
        length = STEP / float(np.abs(step).max())
        return moved(length * step), moved(-length * step), length

    both = spread.unidentified_steps, spread.any_steps
    return Perturbations(spread.n_unidentified, *(tuple(map(along, one.T)) for one in both))


class AsymptoticDraws(Iterator[FitResult]):
    """An iterator over fits drawn around another, with :class:`Perturbations` if not identified."""

    def __init__(self, draws: Iterator[FitResult], unidentified: Perturbations | None) -> None:
        self._draws = draws
        self.unidentified = unidentified

    def __next__(self) -> FitResult:
        return next(self._draws)


def draw_asymptotic(
    result: AnyFit, n_draws: int = 200, *, random_state: int = 0
) -> AsymptoticDraws:
    """Draw laws and coefficients around those of a fit, for :func:`hidag.causal.average_effects`.

    The draws account for missing cells and for the variation of survey weights, provided that
    neither depends on the answers; only ratios of weights matter (:func:`hidag.survey_weights`). If
    a part of the model is not identified, draws do not vary there, effects that depend on it get no
    interval, and a warning is issued.

    Parameters
    ----------
    result : FitResult or DCRL
    n_draws : int
    random_state : int

    Returns
    -------
    AsymptoticDraws
        An iterable of ``n_draws`` fits, to be passed as ``replicates``.

    Raises
    ------
    SettingError
        If there are too many joint states to list, an item is nominal, or the fit had missing cells
        or weights and its file does not store their pattern.
    """
    draws, obstacle = try_draw_asymptotic(as_result(result), n_draws, random_state=random_state)
    if draws is None:
        assert obstacle is not None
        raise obstacle
    if draws.unidentified is not None:
        warning = HidagWarning(
            "unidentified-directions",
            "{reason}; draws do not vary there, and average_effects reports no interval for "
            "effects that depend on them",
            reason=draws.unidentified.describe(),
        )
        warnings.warn(warning, stacklevel=2)
    return draws


def try_draw_asymptotic(
    result: FitResult, n_draws: int = 200, *, random_state: int = 0, advice: Advice = USE_BOOTSTRAP
) -> tuple[AsymptoticDraws | None, SettingError | None]:
    """Return the draws of :func:`draw_asymptotic`, or None and :func:`find_draws_obstacle`."""
    obstacle = find_draws_obstacle(result, advice=advice)
    if obstacle is not None:
        return None, obstacle
    law_design, rows = _law_design(result.law)
    # An order of items by contents: draws must not depend on that of the columns.
    patterns, ranks = observed_patterns(result), rank_items(result)
    seen, labels = patterns.seen.astype(np.float64), [str(rank) for rank in ranks]
    _, by_rows = canonical_order(seen, labels, patterns.counted)
    order = np.lexsort((np.argsort(by_rows), ranks))
    ordered = reorder_items(result, order)
    spread = estimate_spread(ordered, law_design, random_state)
    places = np.argsort(order)

    def moved(step: Array) -> FitResult:
        items, n_used = _move_items(ordered.parameters, spread.coefficient_maps, step)
        law = _move_law(result.law, rows, step[n_used:])
        return replace(result, parameters=items.reordered(items=places), law=law)

    rng = np.random.default_rng(random_state)
    size = spread.root.shape[1]
    steps = (spread.root @ rng.standard_normal(size) for _ in range(n_draws))
    return AsymptoticDraws(map(moved, steps), _perturb(moved, spread)), None


def find_draws_obstacle(
    result: FitResult, *, advice: Advice = USE_BOOTSTRAP
) -> SettingError | None:
    """Return why a fit has no draws, with ``advice`` if refits would give intervals; or None."""

    def error(code: str, reason: str, **params: Any) -> SettingError:
        # Without a stored law, refits give no effects either.
        usable = advice if is_storable(result.law) else None
        reason = f"intervals from the information {reason}"
        return SettingError(code, reason, advice=usable, **params)

    if result.nuisance:
        return error("nuisance-not-supported", "are not available for fits with nuisances")
    if result.law.space.n_states > MAX_STATES:
        number = result.law.space.n_states_text()
        reason = "need listed joint states, at most {limit}, but there are {number}"
        return error("too-many-states", reason, limit=MAX_STATES, number=number)
    if not result.responses.plain:
        return error("nominal-items", "are not available for nominal items")
    if result.seen_rows is None and (result.weighted or result.missing_share > 0):
        needed = "variation of the weights" if result.weighted else "pattern of missing cells"
        reason = "need the {needed}, which the result does not store"
        return error("pattern-not-stored", reason, needed=needed)
    size = count_score_columns(result, _law_design(result.law)[0])
    if size > MAX_PARAMETERS:
        reason = "are limited to {limit:,} parameters of items and law, but there are {number:,}"
        return error("too-many-parameters", reason, limit=MAX_PARAMETERS, number=size)
    return None


def _law_design(law: LatentLaw) -> tuple[Array, list[_TableRow]]:
    """Return the derivatives of log probabilities of states by the law's parameters, (S, P)."""
    if not isinstance(law, NetworkLaw):
        p = np.asarray(law.probabilities)
        return np.eye(len(p)) - p, [(-1, (), 0)]
    states = law.space.states()
    columns: list[Array] = []
    rows = []
    for k, (causes, table) in enumerate(zip(law.parents, law.tables, strict=True)):
        for row in np.ndindex(*table.shape[:-1]):
            there = (states[:, list(causes)] == np.array(row, dtype=np.int64)).all(axis=1)
            rows.append((k, row, len(columns)))
            levels = range(table.shape[-1])
            columns += [there * ((states[:, k] == v) - table[row][v]) for v in levels]
    return np.column_stack(columns), rows


def _move_items(
    parameters: MeasurementParameters, maps: tuple[Array, ...], step: Array
) -> tuple[MeasurementParameters, int]:
    """Return the items with free parameters moved, by ``maps`` to all, and the number used."""
    intercept, loadings = parameters.intercept.copy(), parameters.loadings.copy()
    dispersion, cutpoints = parameters.dispersion.copy(), parameters.cutpoints.copy()
    at = 0
    for j, name in enumerate(parameters.families):
        change = maps[j] @ step[at : at + maps[j].shape[1]]
        intercept[j] += change[0]
        loadings[j] += change[1:]
        at += maps[j].shape[1]
        family = family_named(name)
        if family.n_cutpoints:
            own = slice(family.n_cutpoints)
            moved = cutpoints[j, own] + step[at : at + family.n_cutpoints]
            cutpoints[j, own] = np.maximum.accumulate(np.maximum(moved, MIN_PROBABILITY))
            at += family.n_cutpoints
        elif family.has_dispersion:
            free = family.to_unbounded(dispersion[j : j + 1]) + step[at]
            dispersion[j] = family.from_unbounded(free)[0]
            at += 1
    bounded = parameters.within_bounds(dispersion)
    changed: dict[str, Any] = {"intercept": intercept, "loadings": loadings}
    return replace(parameters, dispersion=bounded, cutpoints=cutpoints, **changed), at


def _move_probabilities(p: Array, step: Array) -> Array:
    """Return probabilities moved to first order along log ratios, within their bounds."""
    # On the probability scale, because log ratios of rare levels have no useful variance.
    moved = p + p * (step - p @ step)
    moved = np.where(p > 0, np.maximum(moved, np.minimum(MIN_PROBABILITY, p)), 0.0)
    return np.asarray(moved / moved.sum())


def _move_law(law: LatentLaw, rows: list[_TableRow], step: Array) -> LatentLaw:
    if not isinstance(law, NetworkLaw):
        return SaturatedLaw(law.space, _move_probabilities(np.asarray(law.probabilities), step))
    tables = [np.array(table) for table in law.tables]
    for latent, row, begin in rows:
        own = tables[latent][row]
        tables[latent][row] = _move_probabilities(own, step[begin : begin + len(own)])
    return NetworkLaw(law.space, law.parents, tuple(tables))


@dataclass(frozen=True)
class EstimateSpread:
    """The asymptotic distribution of the estimates; free parameters of items first, then law."""

    root: Array  # (P, rank), root of the covariance
    coefficient_maps: tuple[Array, ...]  # (1 + T, P_j), from free coefficients to all
    n_unidentified: int  # directions of coefficients and law, which root excludes
    unidentified_steps: Array  # (P, R), random steps in these directions
    any_steps: Array  # (P, R), random steps in any direction


def estimate_spread(result: FitResult, law_design: Array, seed: int) -> EstimateSpread:
    """Return the asymptotic distribution of a fit without nominal items, states listed.

    ``law_design`` (S, L) are derivatives of log probabilities of states, possibly redundant.
    """
    parameters = result.parameters
    p = np.asarray(result.law.probabilities)
    p = p / p.sum()
    eta = parameters.predictors(result.law.space.states())
    designs, maps = item_designs(result)
    model = ResponseModel.create(
        eta, p, parameters.families, parameters.dispersion, parameters.cutpoints
    )
    least = RESPONSES_PER_PARAMETER * count_score_columns(result, law_design)
    n_responses = max(min(N_RESPONSES, MAX_CELLS // len(p)), least)
    rows, shares, squares = _draw_responses(result, model, n_responses, seed)
    with np.errstate(divide="ignore"):
        score = model.scores(rows, designs)
    n_items = score.shape[1] - (len(p) - 1)
    # The scores omit the most probable state; posterior minus prior sums to zero over states.
    of_law = score[:, n_items:]
    of_states = np.insert(of_law, int(np.argmax(p)), -of_law.sum(axis=1), axis=1)
    items, shapes = _item_basis(result, designs, model)
    of_items = score[:, :n_items] @ items
    law = _law_basis(law_design, p)
    of_all = np.hstack([of_items, _law_scores(of_states, law_design @ law, p, shares)])
    root = _covariance_root(of_all, shares, squares)
    # Effects do not depend on dispersions and cutpoints, and probabilities of outcomes with an
    # expected count below one half are not estimated.
    n_rows = float(observed_patterns(result).counted.sum())
    blocks = law_blocks(result.law, result.latent_names, n_rows, result.ruled_out)
    of_blocks = [_law_scores(of_states, block.scores(), p, shares) for block in blocks]
    slopes = np.delete(np.arange(items.shape[1]), shapes)
    known = np.hstack([of_items[:, slopes], *of_blocks])
    scale, values, vectors = _scaled_eigenvectors(known, shares)
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
    """Return scores (n, L) of the law's parameters, zero if they are rounding errors only."""
    score = of_states @ design
    size, complete = shares @ score**2, p @ design**2
    return np.where(size > ROUNDING**2 * complete, score, 0.0)


def count_score_columns(result: FitResult, law_design: Array) -> int:
    """Return the number of parameters of items and law (S, L), redundant ones included."""
    sizes = [*(one.shape[1] for one in item_designs(result)[1]), law_design.shape[1]]
    families = map(family_named, result.parameters.families)
    return int(sum(sizes)) + sum(map(_n_auxiliaries, families))


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
    rows, total = np.where(patterns.seen[pattern], rows, np.nan), patterns.counted.sum()
    counted, squares = patterns.counted / total, patterns.squares / total**2
    return rows, share * counted[pattern], share * squares[pattern]


def _item_basis(
    result: FitResult, designs: list[Array], model: ResponseModel
) -> tuple[Array, list[int]]:
    """Return a basis of the items' free parameters off the boundary, and its shape parameters."""
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
