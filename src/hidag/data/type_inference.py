"""The type of one item, guessed from its values; ambiguous values are not guessed.

The rules, in order, for the observed values of one item:

1. Only 0 and 1: bernoulli.
2. Whole numbers that are all days of the calendar, as 20210131: not guessed. Two other whole
   numbers (1 and 2, -1 and 1): a two-valued answer that has to be recoded.
3. Whole numbers of which the largest is 9, 99, 999 or 9999 and stands apart from the rest (twice
   the next one; among many values, also more frequent than it; beyond a gap above few grades), or
   the only negative one is -9, -99, -999 or -9999, or -1 beside 0 and 1: a code for missing
   answers, perhaps; not guessed.
4. Whole numbers from 0 up that repeat less than answers could, or that would be taken for counts
   or scores but are written with leading zeros: names of the rows, perhaps; not guessed.
5. Any fraction: gaussian, unless all values are positive, their skewness exceeds 2 and that of
   their logarithms is within 1: then gaussian and lognormal are both plausible; not guessed.
6. Whole numbers with a negative one: gaussian.
7. Whole numbers from 0 up with 20 different ones or more: gaussian if they look like scores, within
   100 (test scores, shares in percent, ages); not guessed if they reach beyond, are very skewed, or
   hardly alike, or if it is a near thing. See `hidag.data.type_inference`.
8. Other whole numbers from 0 up: poisson if they look like counts, else not guessed, because grades
   of an ordered scale and rounded measurements are written in the same way.

What looks like counts: counts whose mean depends on the latents are a mixture of Poisson laws,
``p_k = E[exp(-m) m^k] / k!``. Such a mixture cannot stop at a top value, nor have a variance below
its mean, as the grades of a scale usually do. So the best mixture of Poisson laws is fitted to the
column (Simar 1976, by EM on a grid of means) and compared with the observed frequencies by the
likelihood ratio. A column looks like counts if this test does not reject the mixture and the
column has enough distinct values for the test to notice a scale of grades: at least 6 from 0 up,
11 if it starts elsewhere, or just 0 to 4 if a single Poisson law fits. From 20 distinct values on,
this test is not made, because capped and heaped counts (days of a month) are still counts.

In simulations with 1000 rows, more than 98 % of Poisson columns with means from 1 to 10, plain or
mixed, were inferred, and at most 1 % of columns of 4 to 11 grades were taken for counts; with 200
rows, up to about 8 % of the columns of grades were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from hidag.data.column_checks import are_dates, dates_in_words, hardly_alike, seem_to_name_rows
from hidag.data.value_checks import (
    COUNT_DISTINCT,
    RATING_DISTINCT,
    code_beside_scale,
    describe_code,
    suspected_code,
)
from hidag.formatting import format_value
from hidag.measurement.families import ITEM_TYPES, default_family

# --- Scores, shares in percent and ages told from counts: whole numbers that fill a range

Array = NDArray[np.float64]
#: Chances of the values, shape (d, parts), from the means, shape (parts,), and the deviation.
Laws = Callable[[Array, float], Array]

MOST_ZEROS = 0.05
"""Counts often are 0; even scores that fill a scale of 20 steps are so in no larger share."""
_MOST_PARTS = 4
"""Two binary latents give four means; those of more lie so close that fewer describe them."""
_STEPS = 200
#: EM ends when a step gains less: BICs that differ by so little leave the question open anyway.
_GAIN = 0.01
_SMALLEST_LIKELIHOOD = 1e-200
#: Between a law that is nearly all at 0 and one that is Poisson in all but name.
_LOG_SIZES = (-5.0, 15.0)


def evidence_for_scores(values: Array) -> float:
    """Return by how much the BIC of scores is better than that of counts; below 0, it is worse.

    Parameters
    ----------
    values : ndarray of whole numbers from 0 up, shape (n,)
    """
    if np.mean(values == 0) > MOST_ZEROS:
        return -np.inf
    points, often = np.unique(values, return_counts=True)
    observed = often.astype(np.float64)
    return _best_count_law(points, observed) - _best_score_law(points, observed)


def _best_count_law(points: Array, observed: Array) -> float:
    """Return the smallest BIC of a law of counts.

    Parameters
    ----------
    points : ndarray, shape (d,)
        The different values, ascending.
    observed : ndarray, shape (d,)
        How often each comes up.
    """
    factorials = special.gammaln(points + 1)[:, None]

    def poisson(means: Array, spread: float) -> Array:
        means = np.maximum(means, _SMALLEST_LIKELIHOOD)
        return np.asarray(np.exp(points[:, None] * np.log(means) - means - factorials))

    tail = _bic(_negative_binomial(points, observed), observed, 2)
    return min(tail, _best_mixture(points, observed, poisson, n_shared=0))


def _best_score_law(points: Array, observed: Array) -> float:
    """Return the smallest BIC of a law of scores."""

    def normal(means: Array, spread: float) -> Array:
        # Rounding puts all between two halves on a number.
        below = special.ndtr((points[:, None] - 0.5 - means) / spread)
        return np.asarray(special.ndtr((points[:, None] + 0.5 - means) / spread) - below)

    # The ends of the range are taken from the column, too.
    filled = _bic(_stretched_beta(points, observed), observed, 4)
    return min(filled, _best_mixture(points, observed, normal, n_shared=1))


def _bic(law: Array, observed: Array, n_parameters: int) -> float:
    """Return the BIC of the chances of the values, shape (d,)."""
    log_likelihood = float(observed @ np.log(np.maximum(law, _SMALLEST_LIKELIHOOD)))
    return n_parameters * float(np.log(observed.sum())) - 2 * log_likelihood


def _moments(points: Array, observed: Array) -> tuple[float, float]:
    """Return mean and standard deviation."""
    mean = float(np.average(points, weights=observed))
    return mean, float(np.sqrt(np.average((points - mean) ** 2, weights=observed)))


def _best_mixture(points: Array, observed: Array, laws: Laws, *, n_shared: int) -> float:
    """Return the smallest BIC of mixtures of laws that have `n_shared` parameters in common."""
    best = np.inf
    for n_parts in range(1, _MOST_PARTS + 1):
        law = _mixture(points, observed, n_parts, laws)
        found = _bic(law, observed, 2 * n_parts - 1 + n_shared)
        if found > best:
            break
        best = found
    return best


def _mixture(points: Array, observed: Array, n_parts: int, laws: Laws) -> Array:
    """Return the chances of the values, shape (d,), under the best mixture of a few laws, by EM."""
    n_cells = observed.sum()
    # As many cells to each part at the beginning.
    places = (np.arange(n_parts) + 0.5) / n_parts
    means = points[np.searchsorted(np.cumsum(observed) / n_cells, places)]
    weights = np.full(n_parts, 1 / n_parts)
    spread = _moments(points, observed)[1] / n_parts**0.5
    law, last = np.empty(0), -np.inf
    for _ in range(_STEPS):
        parts = weights * laws(means, spread)
        law = np.maximum(parts.sum(axis=1), _SMALLEST_LIKELIHOOD)
        fit = float(observed @ np.log(law))
        if fit - last < _GAIN:
            break
        last = fit
        shares = parts * (observed / law)[:, None]
        totals = np.maximum(shares.sum(axis=0), _SMALLEST_LIKELIHOOD)
        means, weights = points @ shares / totals, totals / n_cells
        away = (points[:, None] - means) ** 2
        # A part on a single number would be narrower than rounding lets anything be.
        spread = max(float(np.sqrt((shares * away).sum() / n_cells)), 0.5)
    return law


def _negative_binomial(points: Array, observed: Array) -> Array:
    """Return the chances of the values under the best negative binomial law."""
    mean = _moments(points, observed)[0]
    factorials = special.gammaln(points + 1)

    def chances(log_size: float) -> Array:
        size = np.exp(log_size)
        ways = special.gammaln(points + size) - special.gammaln(size) - factorials
        powers = points * np.log(mean / (size + mean)) - size * np.log1p(mean / size)
        return np.asarray(np.exp(ways + powers))

    best = optimize.minimize_scalar(
        lambda log_size: _bic(chances(log_size), observed, 0), bounds=_LOG_SIZES, method="bounded"
    )
    return chances(float(best.x))


def _stretched_beta(points: Array, observed: Array) -> Array:
    """Return the chances of the values under the beta law of their moments, over their range."""
    width = points[-1] - points[0] + 1
    # In the middle of its step, a density is near the average over the step.
    places = (points - points[0] + 0.5) / width
    mean, deviation = _moments(places, observed)
    total = mean * (1 - mean) / deviation**2 - 1
    a, b = mean * total, (1 - mean) * total
    logs = (a - 1) * np.log(places) + (b - 1) * np.log1p(-places)
    return np.asarray(np.exp(logs - special.betaln(a, b)) / width)


# ---

#: Default families by kind of values.
BINARY, COUNT, GRADES = map(default_family, ("binary", "count", "grades"))
REAL, POSITIVE = map(default_family, ("real", "positive"))

RAW_SKEWNESS = 2.0
"""An exponential law has skewness 2; few items that are meant as normal are more skewed."""
LOG_SKEWNESS = 1.0
"""A logarithm that leaves less skewness than this has explained the long tail."""
SCALE_DISTINCT = 20
"""No scale of grades in use has as many steps; from here on the top value may be a cap."""
COUNT_START = 20.0
"""Whole numbers of which 99 % lie above this are as likely a rounded measurement."""
SCORE_TOP = 100.0
"""Test scores, shares in percent and ages end here; beyond, there are years and codes as well."""
SCORE_SKEWNESS = 1.0
"""A normal law is no description of what is more skewed than this, be it scores or counts."""
SURE_SCORES = 6.0
"""Difference of BICs from which on the evidence is called strong (Kass and Raftery 1995)."""
AS_SCORES = "spread as scores are, not as counts"
"""Sign of the reason for whole numbers that are taken for gaussian without a word of the user."""
MIXTURE_LEVEL = 1e-4
"""Level of the test of a mixture; low, because a table has many columns of counts to be tested."""
PLAIN_LEVEL = 0.01
"""Level of the test of a single Poisson law, for columns that hold just 0 to 4."""
PLAIN_ROWS = 200
"""Rows below which the test of a plain Poisson law would not notice a scale of grades."""
_GRID_SIZE = 60
#: Steps of EM between two looks at whether more of them could change the answer.
_STEPS_BETWEEN = 100
#: Enough for a million rows; columns that still hang in the balance are asked about.
_MOST_STEPS = 30_000
#: Chances below this count as this: their inverses would overflow.
_SMALLEST_CHANCE = 1e-200


@dataclass(frozen=True)
class Guess:
    """What one item seems to be.

    Attributes
    ----------
    family : str or None
        None if the values are ambiguous.
    reason : str
        Why, in words that follow the name of the item.
    suggestion : str
        The family to try first when the values are ambiguous; else the same as `family`.
    code : float or None
        What may stand for missing answers, where that is why the values are ambiguous.
    names_rows : bool
        Whether the column seems to name the rows, and to be no item.
    is_date : bool
        Whether all values are days of the calendar.
    """

    family: str | None
    reason: str
    suggestion: str
    code: float | None = None
    names_rows: bool = False
    is_date: bool = False


def infer_family(values: NDArray[np.float64], *, padded: bool = False) -> Guess:
    """Return the type that the observed values of one item show.

    Parameters
    ----------
    values : ndarray, shape (n,)
    padded : bool, default=False
        Whether some were written with leading zeros.
    """
    for name, kind in ITEM_TYPES.items():
        reason = kind.recognize(values)
        if reason is not None:
            return Guess(kind.name_from_values(values) or name, reason, name)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 1:
        # Refused when the values are checked; here it only has to stay out of the way.
        family = BINARY if np.isin(distinct, (0, 1)).all() else REAL
        return Guess(family, "holds one value only", family)
    whole = bool(np.all(distinct == np.floor(distinct)))
    if not whole:
        return _infer_real(values)
    if np.array_equal(distinct, (0, 1)):
        return Guess(BINARY, "holds only 0 and 1", BINARY)
    if are_dates(distinct):
        return Guess(None, f"holds {dates_in_words(distinct)}", REAL, is_date=True)
    if len(distinct) == 2:
        low, high = distinct
        return Guess(
            None,
            f"holds only {format_value(low)} and {format_value(high)}: recode it as 0 and 1 for a "
            "binary item, or take it as two categories",
            # What can be said without recoding; other families refuse such values.
            default_family("categories"),
        )
    code = suspected_code(values)
    if code is None:
        # So few values are not guessed anyway; what stands beside a scale is worth a word.
        code = code_beside_scale(values)
    if code is not None:
        suggestion = infer_family(values[values != code]).suggestion
        where = "{code} in {n} of {n_cells} cells, apart from the other values ({low} to {high})"
        found = where.format(**describe_code(values, code))
        return Guess(None, f"holds {found}", suggestion, code)
    if distinct[0] < 0:
        return Guess(REAL, f"holds whole numbers down to {format_value(distinct[0])}", REAL)
    if seem_to_name_rows(distinct, len(values)):
        return Guess(
            None,
            f"holds whole numbers from {distinct[0]:.0f} to {distinct[-1]:.0f} ({len(distinct)} "
            f"different in {len(values)} cells), which repeat less than answers do: names of the "
            "rows?",
            REAL,
            names_rows=True,
        )
    guess = _infer_counts(values, distinct, counts)
    if padded and guess.family is not None:
        return Guess(
            None,
            "holds whole numbers with leading zeros: names of the rows, or codes?",
            REAL,
            names_rows=True,
        )
    return guess


def _infer_real(values: NDArray[np.float64]) -> Guess:
    """Return gaussian, or a refusal when lognormal is as plausible."""
    if values.min() > 0:
        raw = _skewness(values)
        logged = _skewness(np.log(values))
        if raw > RAW_SKEWNESS and abs(logged) < LOG_SKEWNESS:
            return Guess(
                None,
                f"holds positive numbers with skewness {raw:.1f}, and {logged:z.1f} after taking "
                f"logarithms: {POSITIVE} (times, incomes) or {REAL}?",
                POSITIVE,
            )
    return Guess(REAL, "holds numbers with fractions", REAL)


def _infer_counts(
    values: NDArray[np.float64], distinct: NDArray[np.float64], counts: NDArray[np.int64]
) -> Guess:
    """Return poisson, or a refusal when grades or rounded measurements are as plausible."""
    low, top = distinct[0], distinct[-1]
    ends = f"{format_value(low)} to {format_value(top)}"
    span = f"holds whole numbers from {ends} ({len(distinct)} different)"
    step = int(np.gcd.reduce(distinct.astype(np.int64))) if top < 2**53 else 1
    if step > 1:
        return Guess(None, f"{span}, all multiples of {step}: {REAL}, or counts of {step}?", REAL)
    if len(distinct) >= SCALE_DISTINCT:
        scores = _infer_scores(values, span)
        if scores is not None:
            return scores
    # A low quantile, because a few zeros that stand for "not measured" would hide a measurement.
    if np.quantile(values, 0.01, method="lower") > COUNT_START:
        return Guess(None, f"{span}, hardly any near 0: {_kinds(values)}", REAL)
    # Grades that nobody gave would have to be named: then numbers are easier to begin with.
    graded = GRADES if top - low == len(distinct) - 1 else REAL
    # What is suggested must be among what is asked.
    measured = "a rounded measurement, " if graded == REAL else ""
    grades = f"{measured}grades of a scale or a count?"
    if len(distinct) < COUNT_DISTINCT:
        if low == 0 and len(distinct) == COUNT_DISTINCT - 1 and _fits_plain_poisson(values):
            return Guess(COUNT, f"{span}, as a Poisson law would", COUNT)
        return Guess(None, f"{span}: {grades}", graded)
    if low > 0 and len(distinct) < RATING_DISTINCT:
        return Guess(None, f"{span}: {grades}", graded)
    if len(distinct) < SCALE_DISTINCT and not _fits_poisson_mixture(values):
        return Guess(
            None,
            f"{span}, {counts[-1]} of {len(values)} at the top, not spread as counts are: {grades}",
            graded,
        )
    return Guess(COUNT, f"{span}, spread as counts are", COUNT)


def _infer_scores(values: NDArray[np.float64], span: str) -> Guess | None:
    """Return gaussian for scores, a refusal where they may be counts, None where they look so."""
    skewness = _skewness(values)
    # So long a tail is one of counts; and columns of them need not wait for the comparison of laws.
    if skewness > SCORE_SKEWNESS:
        return None
    evidence = evidence_for_scores(values)
    if evidence <= 0:
        return None
    sure = evidence > SURE_SCORES and abs(skewness) <= SCORE_SKEWNESS
    if sure and values.max() <= SCORE_TOP and not hardly_alike(values):
        return Guess(REAL, f"{span}, {AS_SCORES}", REAL)
    return Guess(None, f"{span}, spread as scores are: {_kinds(values)}", REAL)


def _kinds(values: NDArray[np.float64]) -> str:
    """Return what whole numbers may be if they are no grades, as a question."""
    if hardly_alike(values):
        return "a rounded measurement, a count or names of the rows?"
    return "a rounded measurement or a count?"


def _fits_plain_poisson(values: NDArray[np.float64]) -> bool:
    """Return whether a single Poisson law is likely to have made the values."""
    if len(values) < PLAIN_ROWS:
        return False
    return _passes_poisson_test(values, np.array([values.mean()]), PLAIN_LEVEL)


def _fits_poisson_mixture(values: NDArray[np.float64]) -> bool:
    """Return whether some mixture of Poisson laws may have made the values."""
    # Square roots spread the grid evenly in units of the standard deviation of a count.
    grid = np.linspace(0.05, np.sqrt(values.max()), _GRID_SIZE) ** 2
    # The mean itself, so that a plain Poisson law does not wait for EM to sharpen the grid.
    plain = _passes_poisson_test(values, np.array([values.mean()]), MIXTURE_LEVEL)
    return plain or _passes_poisson_test(values, grid, MIXTURE_LEVEL)


def _passes_poisson_test(
    values: NDArray[np.float64], means: NDArray[np.float64], level: float
) -> bool:
    """Return whether the best mixture of Poisson laws with these means passes at a level.

    The likelihood ratio against free frequencies, with as many degrees of freedom as the mean
    alone would leave; a mixture uses up more, so the test is on the careful side.

    EM comes close to the best mixture soon and then creeps, and what it has left to gain counts
    once for each row. Logarithms are concave, so that the largest weight that the next step would
    multiply bounds it: steps go on until a mixture passes, or none can.
    """
    # Counts may be large and few: a list of all numbers up to them may not fit into memory.
    points, often = np.unique(values, return_counts=True)
    observed = often.astype(np.float64)
    law = np.asarray(stats.poisson.pmf(points[:, None], means))
    weights = np.full(len(means), 1 / len(means))
    bound = float(stats.chi2.isf(level, max(1, len(points) - 2)))
    for step in range(_MOST_STEPS + 1):
        chances = _positive(law @ weights)
        growth = law.T @ (observed / chances) / len(values)
        if step % _STEPS_BETWEEN == 0:
            statistic = 2 * float(observed @ np.log(observed / (len(values) * chances)))
            if statistic < bound:
                return True
            if statistic - 2 * len(values) * (growth.max() - 1) >= bound:
                return False
        weights *= growth
    return False


def _positive(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return chances none of which is zero: far from all means they are beyond small numbers."""
    return np.maximum(chances, _SMALLEST_CHANCE)


def _skewness(values: NDArray[np.float64]) -> float:
    """Return the third standardised moment."""
    centred = values - values.mean()
    scale = np.sqrt(np.mean(centred**2))
    return 0.0 if scale == 0 else float(np.mean((centred / scale) ** 3))
