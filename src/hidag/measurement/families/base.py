"""What a response family offers: densities linear in a few statistics of the response.

Every family writes

    log f(x | eta, aux) = sum_d T_d(x) theta_d(eta, aux) - A(eta, aux) + base(x, aux)

with one or more columns ``T_d``. The E-step then needs only tables of ``theta_d`` and ``A`` over
latent states, and the M-step only sums of the columns.

A family with one column takes and returns arrays like ``eta``; with several, ``T`` and ``theta``
have a leading axis of length D. ``aux`` is what an item has besides its predictor: one number (its
dispersion), or for ordered grades the cutpoints along a last axis; it broadcasts against ``eta``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.formatting import format_value

# --- A search along one line, for many items at once, that never goes down

Array = NDArray[np.float64]

#: Distance of the differences that stand for derivatives.
DIFFERENCE = 1e-3
#: No step is longer, whatever the curvature says.
LONGEST_STEP = 1.5
MAX_HALVINGS = 8


def climb(
    objective: Callable[[Array], Array], start: Array, lower: float, upper: float, n_steps: int = 2
) -> Array:
    """Return points, shape (n,), at which no objective is lower than at the start.

    Newton steps with differences for derivatives; a step that does not gain is halved.

    Parameters
    ----------
    objective : callable
        Points (n,) to values (n,), item by item.
    start : ndarray, shape (n,)
    lower, upper : float
        Points stay between.
    n_steps : int
    """
    here = np.clip(start, lower, upper)
    value = objective(here)
    for _ in range(n_steps):
        ahead, behind = objective(here + DIFFERENCE), objective(here - DIFFERENCE)
        slope = (ahead - behind) / (2.0 * DIFFERENCE)
        bend = (ahead - 2.0 * value + behind) / DIFFERENCE**2
        # Where the objective is not concave, uphill is all that is known.
        newton = -slope / np.where(bend < 0.0, bend, -1.0)
        step = np.where(bend < 0.0, newton, LONGEST_STEP * np.sign(slope))
        step = np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        waiting = np.ones(len(here), dtype=bool)
        for _ in range(MAX_HALVINGS):
            trial = np.where(waiting, np.clip(here + step, lower, upper), here)
            there = objective(trial)
            gains = waiting & (there > value)
            here = np.where(gains, trial, here)
            value = np.where(gains, there, value)
            waiting &= ~gains
            # A step of no length has nothing to gain.
            waiting &= np.abs(step) > 1e-9
            if not waiting.any():
                break
            step *= 0.5
    return here


# --- The logarithm of 1 + exp, which families with a logistic part take by the million


def softplus(x: Array) -> Array:
    """Return ``log(1 + exp(x))`` to full precision for any x.

    numpy's ``logaddexp`` goes number by number; these few passes use the processor's vectors and
    are ten times faster.
    """
    out = np.array(x, dtype=np.float64)
    np.abs(out, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out += np.maximum(x, 0.0)
    return np.asarray(out)


# ---

#: What is wrong with the values of an item, and what would help; None if nothing is.
Finding = tuple[str, str] | None


class Family(ABC):
    """A response family with its link; arrays broadcast, the last axis of eta runs over states."""

    #: The name; families that need a number have it in brackets, as ``binomial(20)``.
    name: str
    #: Other words for the family, as they occur in a types.csv.
    aliases: tuple[str, ...] = ()
    #: What the brackets hold; None for families that have none.
    number_means: str | None = None
    example_number: str = ""
    #: The values that it takes, and what it is to somebody who brings a table.
    need: str = "numbers"
    meaning: str
    #: Number of columns, D.
    n_columns: int = 1
    #: Whether an item has a dispersion, and what it is.
    has_dispersion: bool = False
    dispersion_means: str = ""
    #: Whether it is the variance of what the predictor is the mean of: loadings over its root can
    #: be compared among items.
    dispersion_is_variance: bool = False
    dispersion_bounds: tuple[float, float] = (0.0, np.inf)
    #: What items with the smallest dispersion are, if they still have noise of their own.
    least_case: str = ""
    #: How many cutpoints an item has besides its intercept.
    n_cutpoints: int = 0
    #: Neighbouring cutpoints this close are as close as they may be.
    closed_gap: float = 0.0
    #: Whether the density is Gaussian after ``to_working``: such items are standardised.
    is_location_scale: bool = False
    #: Below this predictor theta is a multiple of eta (``-inf``: nowhere); sums then simplify.
    canonical_below: float = -np.inf
    #: Smallest admissible linear predictor (``-inf`` when every real number will do).
    lowest_predictor: float = -np.inf

    @classmethod
    def from_brackets(cls, text: str) -> Family:
        """Return the family with what its name has in brackets; ValueError if it cannot be read."""
        return cls.with_number(float(text))

    @classmethod
    def with_number(cls, number: float) -> Family:
        """Return the family with the number that its name has in brackets."""
        raise NotImplementedError

    @classmethod
    def name_from_values(cls, x: Array) -> str | None:
        """Return the name, brackets and all, that the values (n,) of an item show, or None."""
        return None

    def finding(self, x: Array) -> Finding:
        """Return what is wrong with observed values (n,) of one item and what would help.

        Each value by itself: a single row has to be as good for prediction as a table.
        """
        return None

    def column_finding(self, x: Array) -> Finding:
        """Return what a column (n,) of right values lacks that fitting needs, and what helps."""
        return None

    def column_doubt(self, x: Array) -> Finding:
        """Return what a column (n,) that can be fitted is not likely to mean, and what helps."""
        return None

    def values(self) -> Array | None:
        """Return all values that a response can take, ascending; None where they have no end."""
        return None

    def as_taken(self, x: Array) -> Array:
        """Return responses as the density takes them, with nothing that it does not look at."""
        return x

    def to_working(self, x: Array) -> Array:
        """Return the columns ``T(x)`` of responses on the user's scale."""
        return x

    def from_working(self, columns: Array) -> Array:
        """Return responses on the user's scale; the inverse of ``to_working``."""
        return columns

    @abstractmethod
    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta`` and ``A`` at the predictor."""

    @abstractmethod
    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``theta'``, ``A'`` and the Fisher information of one response about ``eta``."""

    @abstractmethod
    def base(self, x: Array, aux: Array) -> Array:
        """Return the part of the log density, on the user's scale, that has no predictor."""

    @abstractmethod
    def response_mean(self, eta: Array, aux: Array) -> Array:
        """Return the mean on the user's scale."""

    @abstractmethod
    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        """Return draws on the user's scale."""

    @abstractmethod
    def null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return predictors and auxiliaries of items that no latent matters to, roughly.

        Parameters
        ----------
        mean, variance : ndarray, shape (n,), or (D, n) with several columns
            Of the columns.
        """

    @abstractmethod
    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return the size of a typical coefficient, (n,), given what ``null`` is given."""

    #: Whether responses have a size, so that an item may say as much as one likes of its latents.
    may_be_quiet: bool = False

    def noise_share(self, mean: Array) -> Array | None:
        """Return the noise that one response leaves in the predictor, (n,), given the means.

        A variance, in squares of ``coefficient_scale``; None where means do not tell it.
        """
        return None

    def first_look(self, columns: Array) -> Array:
        """Return one number per response in which latents act about linearly, without a fit."""
        return columns

    def look_effects(self, changes: Array, spread: float, scale: float, mean: Array) -> Array:
        """Return changes of one item's predictor that changes of its first look mean.

        Parameters
        ----------
        changes : ndarray
            In standard deviations of the look.
        spread : float
            The standard deviation of the look.
        scale : float
            The size of a typical coefficient, in units of which the answer is.
        mean : ndarray, shape (), or (D,)
            Of the columns.
        """
        return changes * (spread / scale)

    # What follows is about families with a dispersion or cutpoints.

    def summary(self, x: Array, counts: Array | None = None) -> Array:
        """Return all that sums of ``base`` need to know of an item's responses (n,).

        Here: distinct values and how often they occur, shape (2, m). ``counts``, shape (n,), says
        how often each response counts; None means once.
        """
        values, place = np.unique(x, return_inverse=True)
        often = np.bincount(place, counts, minlength=len(values))
        return np.asarray(np.stack([values, often]), dtype=np.float64)

    def base_totals(self, summaries: Sequence[Array], aux: Array) -> Array:
        """Return the sum of ``base`` over the responses of each item, shape (n,)."""
        # All items at once: one by one, hundreds of items with a few values each cost more in
        # calls than in arithmetic.
        sizes = np.array([summary.shape[1] for summary in summaries])
        values, counts = np.concatenate(summaries, axis=1)
        each = counts * self.base(values, np.repeat(aux, sizes))
        # Items that nobody answered have no values, and a sum of zero.
        item = np.repeat(np.arange(len(sizes)), sizes)
        return np.asarray(np.bincount(item, weights=each, minlength=len(sizes)), dtype=np.float64)

    def to_free(self, dispersion: Array) -> Array:
        """Return dispersions on a scale without bounds, for the search."""
        return np.log(dispersion)

    def from_free(self, free: Array) -> Array:
        """Return dispersions from that scale."""
        return np.exp(free)

    def update_auxiliary(
        self,
        aux: Array,
        eta: Array,
        sums: Array,
        counts: Array,
        summaries: Sequence[Array],
        mass: Array,
    ) -> tuple[Array, Array]:
        """Return auxiliaries with an expected log-likelihood at least as high, and a shift.

        Here: a safeguarded search for the dispersion; no shift.

        Parameters
        ----------
        aux : ndarray, shape (n,), or (n, C) for cutpoints
        eta, counts : ndarray, shape (n, S)
            Predictors, and (expected) rows in each state.
        sums : ndarray, shape (n, S), or (D, n, S)
            Sums of the columns by state.
        summaries : sequence of ndarray, length n
            What ``summary`` returned.
        mass : ndarray, shape (n,)
            Rows that the counts hold for each row in the summaries: a little more than one where
            a start or a sampler spreads some mass over all states.

        Returns
        -------
        aux : ndarray
        shift : ndarray, shape (n,)
            To be added to the intercepts.
        """

        def objective(free: Array) -> Array:
            return self.expected(self.from_free(free), eta, sums, counts, summaries, mass)

        bounds = self.to_free(np.array(self.dispersion_bounds))
        start = self.to_free(np.clip(aux, *self.dispersion_bounds))
        found = self.from_free(climb(objective, start, float(bounds[0]), float(bounds[1])))
        return np.clip(found, *self.dispersion_bounds), np.zeros(len(aux))

    def expected(
        self,
        aux: Array,
        eta: Array,
        sums: Array,
        counts: Array,
        summaries: Sequence[Array],
        mass: Array,
    ) -> Array:
        """Return each item's expected complete-data log-likelihood, shape (n,)."""
        value = self.expected_without_base(aux, eta, sums, counts)
        return np.asarray(value + mass * self.base_totals(summaries, aux))

    def expected_without_base(self, aux: Array, eta: Array, sums: Array, counts: Array) -> Array:
        """Return the part of ``expected`` that predictors have a say in, shape (n,)."""
        theta, partition = self.natural(eta, aux[:, None])
        pattern = "js,js->j" if self.n_columns == 1 else "djs,djs->j"
        value = np.einsum(pattern, sums, theta) - np.einsum("js,js->j", counts, partition)
        return np.asarray(value)


class MeanFamily(Family):
    """A family with one column whose mean is a function of the predictor alone."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Return the mean of the column."""

    @abstractmethod
    def predictor(self, mean: Array) -> Array:
        """Return the predictor of a mean; the inverse of ``mean``."""

    @abstractmethod
    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return means moved into the range of the responses, at distance ``epsilon``."""

    def response_mean(self, eta: Array, aux: Array) -> Array:
        """Return the mean: there is one scale only."""
        return self.mean(eta)

    #: Means are kept this far inside the range of the responses when a start is made of them.
    start_distance: float = 1e-4

    def null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return the predictors of the items' means; dispersions, if any, from the variances."""
        inside = self.clip_mean(mean, self.start_distance)
        return self.predictor(inside), self.null_dispersion(inside, variance)

    def null_dispersion(self, mean: Array, variance: Array) -> Array:
        """Return dispersions of items that no latent matters to: one, for families without."""
        return np.ones_like(mean)


# --- What is wrong with the values of an item, in words that several families share


def found_elsewhere(x: Array, other: NDArray[np.bool_]) -> str:
    """Return which of the values (n,) are not what they should be, in words that follow "has".

    Parameters
    ----------
    x : ndarray, shape (n,)
    other : ndarray of bool, shape (n,)
        At least one.
    """
    odd = x[other]
    cells = f"in {len(odd)} of {len(x)} cells"
    if (odd == odd[0]).all():
        return f"{format_value(odd[0])} {cells}"
    return f"something else {cells}, such as {format_value(odd[0])}"


def find_counts(x: Array) -> Finding:
    """Return what keeps values (n,) from being counts."""
    if len(x) and x.min() < 0:
        return f"minimum {x.min():g}", "use family='gaussian' for real-valued items"
    fractions = x != np.floor(x)
    if fractions.any():
        return (
            f"{x[fractions][0]:g} in {np.count_nonzero(fractions)} of {len(x)} cells"
            if np.count_nonzero(fractions) == 1
            else f"fractions such as {x[fractions][0]:g}",
            "use family='gaussian' or family='lognormal' for real-valued items",
        )
    return None


def find_positive(x: Array) -> Finding:
    """Return what keeps values (n,) from being positive numbers."""
    low = x <= 0
    if not low.any():
        return None
    return (
        f"minimum {x.min():g} and {np.count_nonzero(low)} of {len(x)} cells at or below 0",
        "use family='gaussian', or NaN where 0 stands for a missing time",
    )


def find_grades(x: Array, lowest: int, n_grades: int) -> Finding:
    """Return what keeps values (n,) from being ``n_grades`` whole numbers from ``lowest`` up."""
    top = lowest + n_grades - 1
    other = (x < lowest) | (x > top) | (x != np.floor(x))
    if not other.any():
        return None
    if (x == np.floor(x)).all():
        low, high = min(int(x.min()), lowest), max(int(x.max()), top)
        return (
            f"values from {format_value(x.min())} to {format_value(x.max())}",
            f"write 'ordinal({low}..{high})' if these are all grades, or recode the item",
        )
    return (
        found_elsewhere(x, other),
        "recode the item as whole numbers",
    )
