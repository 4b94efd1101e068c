"""How far estimates err, from the fit alone: what its model says of the rows that it was fitted to.

Estimates err like a normal law. Its covariance is that of pseudo-likelihood, ``H^-1 J H^-1``: H is
the information of the rows' observed items, a row counted by its weight, and J the same with
squared weights. Both are averages over answers that the model would give, with the cells missing
that were missing in the table, pattern by pattern. Without weights H and J are one. With weights
that have nothing to do with the answers the estimates err as those of so many equal rows as Kish's
number says. What was missing is taken to have nothing to do with the answers either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from hidag.data.missingness_patterns import SeenRows
from hidag.fitting.information_criteria import item_designs
from hidag.identifiability.information import ResponseModel
from hidag.inference.information.free_parameters import law_blocks
from hidag.inference.information.item_derivatives import at_edge, complement, told_in_rows
from hidag.measurement.families.base import Family
from hidag.measurement.families.registry import family_named
from hidag.results import FitResult

Array = NDArray[np.float64]

#: Answers that the information is averaged over; fewer where states are many.
N_ANSWERS = 10_000
MOST_CELLS = 1 << 22
#: But twice the number of parameters at least: as many answers as parameters tell of none surely.
ANSWERS_FOR_ONE = 2
#: Answers that may be listed for all patterns of missing cells together.
MOST_LISTED = 1 << 15
#: Directions with less than this share of the largest scaled information are not told.
FLAT = 1e-7
#: What is left of a direction in which parameters of the law cancel out.
ROUNDING = 1e-9
#: Steps in directions at random; one would do, several make their sizes sure.
N_STEPS = 8


@dataclass(frozen=True)
class Spread:
    """How the estimates of a fit err around what they estimate.

    Attributes
    ----------
    root : ndarray, shape (P, rank)
        A root of their covariance; the items' free parameters come first, then the law's.
    coefficient_maps : tuple of J arrays
        From an item's free coefficients to its intercept and loadings, shape (1 + T, P_j).
    n_untold : int
        Directions in which the rows tell nothing of coefficients and law; the estimates do not err
        there, as far as ``root`` says.
    untold_steps, any_steps : ndarray, shape (P, R)
        Steps at random in these directions and in any direction, in units of what one row tells of
        a parameter. No steps where everything is told.
    """

    root: Array
    coefficient_maps: tuple[Array, ...]
    n_untold: int
    untold_steps: Array
    any_steps: Array


def spread_of_estimates(result: FitResult, law_design: Array, seed: int) -> Spread:
    """Return how the estimates of a fit with plain items and listed states err.

    Coefficients that ran to an edge stay there.

    Parameters
    ----------
    result : FitResult
    law_design : ndarray, shape (S, L)
        Derivative of each state's log probability by the law's parameters; these may cancel out.
    seed : int
        Of answers that are drawn where they cannot be listed.
    """
    parameters = result.parameters
    states = result.law.space.states()
    p = np.asarray(result.law.probabilities)
    p = p / p.sum()
    eta = parameters.predictors(states)
    designs, maps = item_designs(result)
    model = ResponseModel.create(
        eta, p, parameters.families, parameters.dispersion, parameters.cutpoints
    )
    n_answers = max(
        min(N_ANSWERS, MOST_CELLS // len(p)), ANSWERS_FOR_ONE * n_parameters(result, law_design)
    )
    rows, shares, squares = _answers(result, model, n_answers, seed)
    with np.errstate(divide="ignore"):
        score = model.scores(rows, designs)
    n_items = score.shape[1] - (len(p) - 1)
    # The most probable state is left out there; posterior less prior sums to zero over states.
    of_states = np.insert(
        score[:, n_items:], int(np.argmax(p)), -score[:, n_items:].sum(axis=1), axis=1
    )
    items, shapes = _movable_items(result, designs, model)
    of_items = score[:, :n_items] @ items
    law = _movable_law(law_design, p)
    root = _root(np.hstack([of_items, _above_rounding(of_states, law_design @ law, p, shares)]),
                 shares, squares)  # fmt: skip
    # Dispersions and cutpoints that nothing tells of are none of the effects' business, and of
    # shares that less than half a row is in nothing can be told.
    n_rows = float(rows_seen(result).counted.sum())
    blocks = law_blocks(result.law, result.latent_names, n_rows, result.ruled_out)
    of_blocks = [_above_rounding(of_states, block.scores(), p, shares) for block in blocks]
    slopes = np.delete(np.arange(items.shape[1]), shapes)
    scale, values, vectors = _axes(np.hstack([of_items[:, slopes], *of_blocks]), shares)
    flat = vectors[:, values <= FLAT * values[-1]]
    begins = np.cumsum([0, *(len(block.probabilities) for block in blocks)])
    free = np.concatenate([at + block.free for at, block in zip(begins, blocks, strict=False)])
    steps = _steps_at_random(flat, np.random.default_rng(seed)) / scale[:, None]
    moved = np.zeros((len(items) + law_design.shape[1], steps.shape[1]))
    moved[: len(items)] = items[:, slopes] @ steps[: len(slopes)]
    moved[len(items) + free] = steps[len(slopes) :]
    untold, anywhere = np.hsplit(moved, 2)
    return Spread(block_diag(items, law) @ root, maps, flat.shape[1], untold, anywhere)


def _steps_at_random(flat: Array, rng: np.random.Generator) -> Array:
    """Return steps inside directions (F, U), then as many in any direction, shape (F, 2 R)."""
    if not flat.shape[1]:
        return np.zeros((len(flat), 0))
    inside = flat @ rng.standard_normal((flat.shape[1], N_STEPS))
    return np.hstack([inside, rng.standard_normal((len(flat), N_STEPS))])


def _above_rounding(of_states: Array, design: Array, p: Array, shares: Array) -> Array:
    """Return answers' scores (n, L) of parameters of the law, zero where they are rounding alone.

    Of a latent without items posterior and prior are the same but for that.
    """
    score = of_states @ design
    size, complete = shares @ score**2, p @ design**2
    return np.where(size > ROUNDING**2 * complete, score, 0.0)


def n_parameters(result: FitResult, law_design: Array) -> int:
    """Return how many parameters items and law (S, L) have, those that cancel out included."""
    sizes = [*(one.shape[1] for one in item_designs(result)[1]), law_design.shape[1]]
    return int(sum(sizes)) + sum(_n_shapes(family_named(n)) for n in result.parameters.families)


def _n_shapes(family: Family) -> int:
    """Return how many cutpoints or dispersions an item of a family has."""
    return family.n_cutpoints or int(family.has_dispersion)


def _axes(score: Array, shares: Array) -> tuple[Array, Array, Array]:
    """Return parameters' sizes (P,), the values of their scaled information, and its axes."""
    scale = np.sqrt(shares @ score**2)
    scale[scale == 0] = 1.0
    scaled = score / scale
    values, vectors = np.linalg.eigh(scaled.T @ (shares[:, None] * scaled))
    return scale, values, vectors


def _root(score: Array, shares: Array, squares: Array) -> Array:
    """Return a root of the covariance, shape (P, rank), from answers' scores, shape (n, P)."""
    scale, values, vectors = _axes(score, shares)
    kept = values > FLAT * values[-1]
    turned = (score / scale) @ vectors[:, kept] / values[kept]
    inner, axes = np.linalg.eigh(turned.T @ (squares[:, None] * turned))
    root = vectors[:, kept] @ ((axes * np.sqrt(np.maximum(inner, 0.0))) @ axes.T)
    return np.asarray(root / scale[:, None])


def rows_seen(result: FitResult) -> SeenRows:
    """Return the patterns of a fit's rows; of a fit that kept none, all cells in every row."""
    if result.seen_rows is not None:
        return result.seen_rows
    n_items = len(result.item_names)
    whole = np.packbits(np.ones((1, n_items), dtype=bool), axis=1)
    counted = np.array([result.n_counted])
    return SeenRows(whole, n_items, counted, counted)


def _answers(
    result: FitResult, model: ResponseModel, n_answers: int, seed: int
) -> tuple[Array, Array, Array]:
    """Return answers (n, J), NaN where cells are missing, and what each stands for, (n,) twice.

    That is a share of the rows, by the weights of its pattern's rows, and the squares of such
    shares.
    """
    told = rows_seen(result)
    seen, n_patterns = told.seen, len(told.seen)
    n_answers = max(n_answers, n_patterns)
    listed, chances, exact = model.response_patterns(n_answers, seed)
    if n_patterns == 1 or (exact and n_patterns * len(listed) <= MOST_LISTED):
        pattern, place = np.divmod(np.arange(n_patterns * len(listed)), len(listed))
        rows, share = listed[place], chances[place]
    else:
        # Rare patterns may be the only ones to tell of something: half of the answers are for all
        # alike, the other half as many as rows have them.
        shares = 0.5 / n_patterns + 0.5 * told.counted / told.counted.sum()
        ends = np.floor(np.cumsum(shares) * n_answers + 0.5).astype(int)
        number = np.maximum(np.diff(ends, prepend=0), 1)
        pattern = np.repeat(np.arange(n_patterns), number)
        rows = model.sample(len(pattern), seed)
        share = 1.0 / number[pattern]
    rows = np.where(seen[pattern], rows, np.nan)
    total = told.counted.sum()
    return rows, share * (told.counted / total)[pattern], share * (told.squares / total**2)[pattern]


def _movable_items(
    result: FitResult, designs: list[Array], model: ResponseModel
) -> tuple[Array, list[int]]:
    """Return a basis of the items' free parameters without what ran to an edge.

    And which of its columns are dispersions and cutpoints.
    """
    told = rows_seen(result)
    n_rows = told.counted @ told.seen
    blocks: list[Array] = []
    shapes: list[int] = []
    n_columns = 0
    for j, name in enumerate(result.parameters.families):
        family, own = family_named(name), model.auxiliary[j]
        _, _, information = family.slopes(model.eta[j], own[None] if family.n_cutpoints else own)
        counts = n_rows[j] * model.probabilities
        edge = at_edge(designs[j], told_in_rows(family, own, information * counts, counts))
        blocks.append(complement(edge) if len(edge) else np.eye(designs[j].shape[1]))
        n_columns += blocks[-1].shape[1]
        blocks.append(np.eye(_n_shapes(family)))
        shapes += range(n_columns, n_columns + len(blocks[-1]))
        n_columns += len(blocks[-1])
    return np.asarray(block_diag(*blocks)), shapes


def _movable_law(design: Array, p: Array) -> Array:
    """Return a basis of the law's parameters (S, L) in which none cancel out."""
    score = np.sqrt(p)[:, None] * design
    scale = np.sqrt((score**2).sum(axis=0))
    inside = scale > 0
    _, sizes, turned = np.linalg.svd(score[:, inside] / scale[inside], full_matrices=False)
    out = np.zeros((design.shape[1], len(sizes)))
    out[inside] = turned.T / scale[inside, None]
    return out[:, sizes > ROUNDING * sizes.max(initial=0.0)]


# --- Which numbers rows tell, where they tell nothing of some directions of a model's

#: Parameters are moved by so much, at the most: little enough for a difference to be a derivative.
STEP = 1e-3
#: Directions at the bound of what is told have so much in them of those that are told well.
NEARLY_NONE = float(np.sqrt(FLAT))
#: Changes below this share of a number's unit are rounding.
CHANGE_ROUNDING = 1e-13

#: Why an effect has no interval, for tables.
NO_INTERVAL = "no interval: the rows tell nothing of something that it depends on"


@dataclass(frozen=True)
class Nudge:
    """A fit moved forth and back along one direction, and how far, in units of the direction."""

    forth: FitResult
    back: FitResult
    length: float


@dataclass(frozen=True)
class Nudges:
    """A fit moved in directions that rows tell nothing of, ``n_untold`` of them, and in any."""

    n_untold: int
    untold: tuple[Nudge, ...]
    anywhere: tuple[Nudge, ...]

    def in_words(self) -> str:
        """Return that rows do not tell everything, and where that happens."""
        return (
            f"the rows tell nothing of the law or of coefficients in {self.n_untold} "
            f"{'direction' if self.n_untold == 1 else 'directions'}, as where a latent has too few "
            "items or no row has the items of two latents"
        )

    def decide(self, numbers: Callable[[FitResult], Array], units: Array) -> NDArray[np.bool_]:
        """Return which numbers of a fit (..., E) depend on what the rows do not tell.

        Parameters
        ----------
        numbers : callable
            From a fit to the numbers.
        units : ndarray, shape (E,)
            How large what they are differences of can be.
        """
        hidden, all_in_all = (
            _gradient(one, numbers, units) for one in (self.untold, self.anywhere)
        )
        return np.asarray(hidden > NEARLY_NONE * all_in_all)


def nudges(
    moved: Callable[[Array], FitResult], n_untold: int, untold: Array, anywhere: Array
) -> Nudges | None:
    """Return a fit moved along steps (P, R) both ways; None where everything is told.

    Parameters
    ----------
    moved : callable
        From a step (P,) to the fit moved by it.
    n_untold : int
    untold, anywhere : ndarray, shape (P, R)
    """
    if not n_untold:
        return None

    def along(step: Array) -> Nudge:
        length = STEP / float(np.abs(step).max())
        return Nudge(moved(length * step), moved(-length * step), length)

    return Nudges(
        n_untold, *(tuple(along(step) for step in steps.T) for steps in (untold, anywhere))
    )


def _gradient(pairs: Sequence[Nudge], numbers: Callable[[FitResult], Array], units: Array) -> Array:
    """Return how large numbers' gradients are in directions that steps are drawn from."""
    squares = []
    for one in pairs:
        change = numbers(one.forth) - numbers(one.back)
        change = np.where(np.abs(change) > CHANGE_ROUNDING * units, change, 0.0)
        squares.append((change / (2.0 * one.length)) ** 2)
    return np.asarray(np.sqrt(np.mean(squares, axis=0)))
