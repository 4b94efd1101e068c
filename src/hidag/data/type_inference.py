"""Infer the family of an item from its values, or report that they are ambiguous.

The rules, and the tests of counts against scales and scores, are in docs/specification.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from hidag.data import value_checks
from hidag.formatting import format_value
from hidag.measurement.families import ITEM_TYPES, default_family

Array = NDArray[np.float64]
#: Probabilities of the values, shape (d, parts), from the means (parts,) and standard deviation.
Components = Callable[[Array, float], Array]

#: Default families by kind of values.
BINARY, COUNT, GRADES = map(default_family, ("binary", "count", "grades"))
REAL, POSITIVE = map(default_family, ("real", "positive"))

RAW_SKEWNESS = 2.0
"""An exponential distribution has skewness 2; few items with a normal model are more skewed."""
LOG_SKEWNESS = 1.0  # If the logarithms have less skewness than this, they explain the long tail.
SCALE_DISTINCT = 20  # No scale in use has as many grades; from here on the maximum may be a cap.
#: Whole numbers above the first, but for the second share, are as likely a rounded measurement; a
#: few zeros may mean "not measured".
COUNT_START, COUNT_START_SHARE = 20.0, 0.01
SCORE_MAX = 100.0
"""Test scores, percentages and ages end here; larger numbers can be years and codes."""
SCORE_SKEWNESS = 1.0
"""A normal distribution does not describe more skewed values, be they scores or counts."""
STRONG_EVIDENCE = 6.0  # Difference of BICs that is called strong evidence (Kass and Raftery 1995).
AS_SCORES = "distributed like scores, not like counts"
"""Part of the reason for whole numbers that are inferred to be gaussian."""
MIXTURE_LEVEL = 1e-4
"""Level of the test of a mixture; low, because a table has many columns of counts."""
POISSON_LEVEL = 0.01
"""Level of the test of a single Poisson distribution, for columns that hold just 0 to 4."""
POISSON_ROWS = 200
"""Rows below which the test of a single Poisson distribution has no power against grades."""
MAX_ZEROS = 0.05
"""Share of zeros above which values are counts; scores on a scale of 20 steps have fewer."""
FRACTIONS = 0.05  # Up to this share of fractions, a column of few whole numbers has errors.
_GRID_SIZE = 60
#: EM iterations between two bounds on the final statistic, and at most.
_CHECK_EVERY, _MAX_ITER = 100, 30_000
_TINY = 1e-200  # Smaller probabilities are replaced by this: their inverses would overflow.
#: Components of a mixture: two binary latents have four means, and more are hardly distinguishable.
_MAX_COMPONENTS = 4
#: EM for scores ends after so many iterations or when the log-likelihood gains less.
_SCORE_ITER, _SCORE_GAIN = 200, 0.01
#: Log of the negative binomial size, from nearly all zeros to nearly Poisson.
_LOG_SIZES = (-5.0, 15.0)


@dataclass(frozen=True)
class Guess:
    """The inferred family of an item, None if it is ambiguous, and the family to try first.

    The reason completes a sentence that begins with the item's name.
    """

    family: str | None
    reason: str
    suggestion: str
    code: float | None = None
    is_row_id: bool = False
    is_date: bool = False


def infer_family(values: Array, *, padded: bool = False) -> Guess:
    """Return the family of the observed values (n,) of one item, perhaps with leading zeros."""
    for name, kind in ITEM_TYPES.items():
        reason = kind.recognize(values)
        if reason is not None:
            return Guess(kind.name_from_values(values) or name, reason, name)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 1:  # `check_values` raises an error about it.
        family = BINARY if np.isin(distinct, (0, 1)).all() else REAL
        return Guess(family, "holds only one value", family)
    whole = values == np.floor(values)
    if not whole.all():
        grades = np.unique(values[whole])
        few = np.count_nonzero(~whole) <= FRACTIONS * len(values)
        if few and 2 <= len(grades) < value_checks.RATING_DISTINCT <= len(values):
            n_odd, odd = np.count_nonzero(~whole), format_value(values[~whole][0])
            span = ", ".join(map(format_value, grades[:3])) + (", ..." if len(grades) > 3 else "")
            found = f"{n_odd} of {len(values)} cells with fractions such as {odd}"
            reason = f"holds {span}, and {found}: correct these, or is it {REAL}?"
            return Guess(None, reason, REAL)
        return _infer_real(values)
    if np.array_equal(distinct, (0, 1)):
        return Guess(BINARY, "holds only 0 and 1", BINARY)
    if value_checks.are_dates(distinct):
        return Guess(None, f"holds {value_checks.describe_dates(distinct)}", REAL, is_date=True)
    if len(distinct) == 2:
        low, high = map(format_value, distinct)
        recode = "recode it as 0 and 1 for a binary item, or use two categories"
        # The only family that admits the values as they are.
        return Guess(None, f"holds only {low} and {high}: {recode}", default_family("categories"))
    code = value_checks.find_code(values) or value_checks.find_code_beside_scale(values)
    if code is not None:
        suggestion = infer_family(values[values != code]).suggestion
        where = "{code} in {n} of {n_cells} cells, apart from the other values ({low} to {high})"
        found = where.format(**value_checks.describe_code(values, code))
        return Guess(None, f"holds {found}", suggestion, code)
    if distinct[0] < 0:
        return Guess(REAL, f"holds whole numbers down to {format_value(distinct[0])}", REAL)
    if value_checks.looks_like_row_ids(distinct, len(values)):
        numbers = f"from {distinct[0]:.0f} to {distinct[-1]:.0f} ({len(distinct)} different in"
        reason = f"holds whole numbers {numbers} {len(values)} cells), which repeat less often "
        reason += "than responses do: row identifiers?"
        return Guess(None, reason, REAL, is_row_id=True)
    guess = _infer_counts(values, distinct, counts)
    if padded and guess.family is not None:
        reason = "holds whole numbers with leading zeros: row identifiers or codes?"
        return Guess(None, reason, REAL, is_row_id=True)
    return guess


def _infer_real(values: Array) -> Guess:
    """Return the real-valued family, or that the positive one is plausible as well."""
    if values.min() > 0:
        raw, logged = _skewness(values), _skewness(np.log(values))
        if raw > RAW_SKEWNESS and abs(logged) < LOG_SKEWNESS:
            reason = f"holds positive numbers with skewness {raw:.1f}, and {logged:z.1f} after "
            reason += f"taking logarithms: {POSITIVE} (times, incomes) or {REAL}?"
            return Guess(None, reason, POSITIVE)
    return Guess(REAL, "holds numbers with fractions", REAL)


def _infer_counts(values: Array, distinct: Array, counts: NDArray[np.int64]) -> Guess:
    """Return the count family, or that grades or rounded measurements are plausible as well."""
    low, top = distinct[0], distinct[-1]
    ends = f"{format_value(low)} to {format_value(top)}"
    span = f"holds whole numbers from {ends} ({len(distinct)} different)"
    step = int(np.gcd.reduce(distinct.astype(np.int64))) if top < 2**53 else 1
    if step > 1:
        return Guess(None, f"{span}, all multiples of {step}: {REAL}, or counts of {step}?", REAL)
    scores = _infer_scores(values, span) if len(distinct) >= SCALE_DISTINCT else None
    if scores is not None:
        return scores
    if np.quantile(values, COUNT_START_SHARE, method="lower") > COUNT_START:
        return Guess(None, f"{span}, few near 0: {_measurement_or_count(values)}", REAL)
    # Grades that do not occur would have to be declared, so that numbers are the simpler start.
    suggestion = GRADES if top - low == len(distinct) - 1 else REAL
    measured = "a rounded measurement, " if suggestion == REAL else ""
    question = f"{measured}grades of a scale or a count?"
    short = (
        low == 0
        and len(distinct) == value_checks.COUNT_DISTINCT - 1
        and len(values) >= POISSON_ROWS
    )
    if short and _passes_poisson_test(values, np.array([values.mean()]), POISSON_LEVEL):
        return Guess(COUNT, f"{span}, consistent with a Poisson distribution", COUNT)
    if len(distinct) < (value_checks.COUNT_DISTINCT if low == 0 else value_checks.RATING_DISTINCT):
        return Guess(None, f"{span}: {question}", suggestion)
    if len(distinct) < SCALE_DISTINCT and not _fits_poisson_mixture(values):
        at_top = f"{counts[-1]} of {len(values)} at the maximum"
        reason = f"{span}, {at_top}, not distributed like counts: {question}"
        return Guess(None, reason, suggestion)
    return Guess(COUNT, f"{span}, distributed like counts", COUNT)


def _infer_scores(values: Array, span: str) -> Guess | None:
    """Return the real-valued family for scores, or that they may be counts; None for counts."""
    skewness = _skewness(values)
    # So long a tail belongs to counts, without a comparison of models.
    evidence = 0.0 if skewness > SCORE_SKEWNESS else evidence_for_scores(values)
    if evidence <= 0:
        return None
    strong = evidence > STRONG_EVIDENCE and abs(skewness) <= SCORE_SKEWNESS
    if strong and values.max() <= SCORE_MAX and not value_checks.rarely_repeat(values):
        return Guess(REAL, f"{span}, {AS_SCORES}", REAL)
    return Guess(None, f"{span}, distributed like scores: {_measurement_or_count(values)}", REAL)


def _measurement_or_count(values: Array) -> str:
    if value_checks.rarely_repeat(values):
        return "a rounded measurement, a count or row identifiers?"
    return "a rounded measurement or a count?"


def _skewness(values: Array) -> float:
    """Return the third standardised moment."""
    centred = values - values.mean()
    scale = np.sqrt(np.mean(centred**2))
    return 0.0 if scale == 0 else float(np.mean((centred / scale) ** 3))


# Likelihood-ratio tests of Poisson distributions.


def _fits_poisson_mixture(values: Array) -> bool:
    """Return whether a mixture of Poisson distributions fits."""
    # Square roots make the grid even in units of the standard deviation of a count.
    grid = np.linspace(0.05, np.sqrt(values.max()), _GRID_SIZE) ** 2
    # The mean alone first, because EM on the grid is slow for a single Poisson distribution.
    single = _passes_poisson_test(values, np.array([values.mean()]), MIXTURE_LEVEL)
    return single or _passes_poisson_test(values, grid, MIXTURE_LEVEL)


def _passes_poisson_test(values: Array, means: Array, level: float) -> bool:
    """Return whether the best mixture of Poisson distributions with these means is not rejected.

    As many degrees of freedom as one estimated mean leaves: conservative. The log-likelihood is
    concave in the weights, so that the largest gradient bounds the remaining gain of slow EM.
    """
    # Counts may be large and few: an array of all numbers up to them may not fit into memory.
    points, often = np.unique(values, return_counts=True)
    observed = often.astype(np.float64)
    components = np.asarray(stats.poisson.pmf(points[:, None], means))
    weights = np.full(len(means), 1 / len(means))
    bound = float(stats.chi2.isf(level, max(1, len(points) - 2)))
    for step in range(_MAX_ITER + 1):
        probabilities = np.maximum(components @ weights, _TINY)
        growth = components.T @ (observed / probabilities) / len(values)
        if step % _CHECK_EVERY == 0:
            statistic = 2 * float(observed @ np.log(observed / (len(values) * probabilities)))
            if statistic < bound:
                return True
            if statistic - 2 * len(values) * (growth.max() - 1) >= bound:
                return False
        weights *= growth
    return False


# Scores against counts. In the functions below, ``points`` (d,) are the distinct values, ascending,
# and ``observed`` (d,) their frequencies.


def evidence_for_scores(values: Array) -> float:
    """Return the BIC of counts minus that of scores: positive if values (n,) look like scores."""
    if np.mean(values == 0) > MAX_ZEROS:
        return -np.inf
    points, often = np.unique(values, return_counts=True)
    observed = often.astype(np.float64)
    factorials = special.gammaln(points + 1)[:, None]

    def poisson(means: Array, deviation: float) -> Array:
        means = np.maximum(means, _TINY)
        return np.asarray(np.exp(points[:, None] * np.log(means) - means - factorials))

    def rounded_normal(means: Array, deviation: float) -> Array:
        below = special.ndtr((points[:, None] - 0.5 - means) / deviation)
        return np.asarray(special.ndtr((points[:, None] + 0.5 - means) / deviation) - below)

    counts = min(
        _bic(_negative_binomial(points, observed), observed, 2),
        _best_mixture(points, observed, poisson, 0),
    )
    scores = min(
        # The ends of the range are estimated, too.
        _bic(_stretched_beta(points, observed), observed, 4),
        _best_mixture(points, observed, rounded_normal, 1),
    )
    return counts - scores


def _bic(probabilities: Array, observed: Array, n_parameters: int) -> float:
    log_likelihood = float(observed @ np.log(np.maximum(probabilities, _TINY)))
    return n_parameters * float(np.log(observed.sum())) - 2 * log_likelihood


def _moments(points: Array, observed: Array) -> tuple[float, float]:
    """Return mean and standard deviation."""
    mean = float(np.average(points, weights=observed))
    return mean, float(np.sqrt(np.average((points - mean) ** 2, weights=observed)))


def _best_mixture(points: Array, observed: Array, components: Components, n_shared: int) -> float:
    """Return the smallest BIC of mixtures whose components share `n_shared` parameters."""
    best = np.inf
    for n_components in range(1, _MAX_COMPONENTS + 1):
        probabilities = _fit_mixture(points, observed, n_components, components)
        bic = _bic(probabilities, observed, 2 * n_components - 1 + n_shared)
        if bic > best:
            break
        best = bic
    return best


def _fit_mixture(points: Array, observed: Array, n_parts: int, components: Components) -> Array:
    """Return the probabilities of the values, shape (d,), under a mixture fitted by EM."""
    n_cells = observed.sum()
    # Start from quantiles, with as many cells for each component.
    quantiles = (np.arange(n_parts) + 0.5) / n_parts
    means = points[np.searchsorted(np.cumsum(observed) / n_cells, quantiles)]
    weights = np.full(n_parts, 1 / n_parts)
    deviation = _moments(points, observed)[1] / n_parts**0.5
    probabilities, last = np.empty(0), -np.inf
    for _ in range(_SCORE_ITER):
        joint = weights * components(means, deviation)
        probabilities = np.maximum(joint.sum(axis=1), _TINY)
        log_likelihood = float(observed @ np.log(probabilities))
        if log_likelihood - last < _SCORE_GAIN:
            break
        last = log_likelihood
        shares = joint * (observed / probabilities)[:, None]
        totals = np.maximum(shares.sum(axis=0), _TINY)
        means, weights = points @ shares / totals, totals / n_cells
        squares = (points[:, None] - means) ** 2
        # Rounding limits how narrow a component can be.
        deviation = max(float(np.sqrt((shares * squares).sum() / n_cells)), 0.5)
    return probabilities


def _negative_binomial(points: Array, observed: Array) -> Array:
    """Return the probabilities of the values under the best negative binomial distribution."""
    mean = _moments(points, observed)[0]

    def probabilities(log_size: float) -> Array:
        size = np.exp(log_size)
        return np.asarray(stats.nbinom.pmf(points, size, size / (size + mean)))

    def bic(log_size: float) -> float:
        return _bic(probabilities(log_size), observed, 0)

    best = optimize.minimize_scalar(bic, bounds=_LOG_SIZES, method="bounded")
    return probabilities(float(best.x))


def _stretched_beta(points: Array, observed: Array) -> Array:
    """Return the probabilities of the values under a beta distribution over their range."""
    width = points[-1] - points[0] + 1
    # The density in the middle of a step is near its average over the step.
    middles = (points - points[0] + 0.5) / width
    mean, deviation = _moments(middles, observed)
    total = mean * (1 - mean) / deviation**2 - 1
    return np.asarray(stats.beta.pdf(middles, mean * total, (1 - mean) * total) / width)
