"""Standard errors and intervals of a fit given its Q."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit, logsumexp
from scipy.stats import norm

from hidag.config import CONFIG
from hidag.data.rows import select_weighted_rows
from hidag.data.table import read_table
from hidag.exceptions import Choices, invalid_setting
from hidag.fitting.information_criteria import count_parameters
from hidag.formatting import first_names, plural
from hidag.inference.fitted_rows import require_weights
from hidag.inference.intervals import LEVEL, check_level
from hidag.inference.result_tables import Table
from hidag.information.free_parameters import FreeParameters
from hidag.information.item_derivatives import (
    auxiliary_directions,
    response_auxiliary,
    shift_auxiliary,
)
from hidag.information.observed_information import Uncertainty, estimate_uncertainty
from hidag.measurement.families import item_type
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import category_label, nominal_item
from hidag.results import AnyFit, as_result
from hidag.views import View

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Row = tuple[Any, ...]
Numbers = tuple[float, float, float, float]

#: Kinds of standard errors, and how the summary names them.
KINDS = {
    "louis": "observed information",
    "sandwich": "sandwich of observed information and scores",
    "scores": "outer products of scores",
}
_INTERVAL = ("estimate", "standard_error", "lower", "upper")
COLUMNS = ("kind", "of", "term", *_INTERVAL)
PATTERN_COLUMNS = ("item", "latents", "pattern", "called", "share", *_INTERVAL)
NO_PATTERNS = Table(PATTERN_COLUMNS, ())
#: Items with more patterns of their latents are omitted from the table of patterns.
MAX_PATTERNS = 64
_IMPOSSIBLE = 1e-12  # Patterns with a smaller probability are impossible
#: Predictors with a smaller share of the derivative of a category's log odds are ignored.
_NEGLIGIBLE = 1e-3
ROUNDING = 1e-12  # Slopes below this share of the largest are rounding errors
_NAN = float("nan")


def _pattern_rows(free: FreeParameters, known: Uncertainty, quantile: float) -> Iterator[Row]:
    """Yield a row for each pattern of an item's latents with its own distribution, by category."""
    result = free.result
    levels = result.law.space.levels
    predictors = np.array([c for c, one in enumerate(free.channels) if one.kind == "predictor"])
    for j, name in enumerate(result.item_names):
        latents = np.flatnonzero(result.q_matrix[j])
        if np.prod([levels[k] for k in latents]) > MAX_PATTERNS:
            continue
        channels = predictors[result.responses.item == j]
        table = free.table_of(int(channels[0]))
        states, shares = free.tables.states(table), free.tables.shares(table)
        design = np.hstack([free.designs[c] for c in channels])
        group_of = np.unique(design, axis=0, return_inverse=True)[1].ravel()
        groups = []
        for group in dict.fromkeys(group_of.tolist()):
            inside = group_of == group
            share = float(shares[inside].sum())
            if share > _IMPOSSIBLE:
                rows = states[inside & (shares > _IMPOSSIBLE)][:, latents]
                patterns = dict.fromkeys("".join(map(str, row)) for row in rows.tolist())
                groups.append((int(np.flatnonzero(inside)[0]), share, " ".join(patterns)))
        among = "*".join(result.latent_names[k] for k in latents)
        nominal = nominal_item(result.families[j])
        for place, category in enumerate((None,) if nominal is None else nominal.order):
            for at, share, words in groups:
                if category is None:
                    role = _role(free, j, states[at, latents], len(set(group_of.tolist())))
                    numbers = _mean(free, known, int(channels[0]), at, quantile)
                    yield (name, among, words, role, share, *numbers)
                else:
                    numbers = _category(free, known, channels, place, at, quantile)
                    answer = f"{name}={category_label(category, result.answer_words.get(name))}"
                    yield (answer, among, words, "", share, *numbers)


def _mean(
    free: FreeParameters, known: Uncertainty, channel: int, state: int, quantile: float
) -> Numbers:
    """Return the mean of a response in a state, its standard error and its interval."""
    parameters = free.result.parameters
    r = free.channels[channel].response
    family, own = family_named(parameters.families[r]), response_auxiliary(parameters, r)
    at = free.tables.states(free.table_of(channel))[[state]]
    eta = float(parameters.predictors(at)[r, 0])

    def mean(at: float, auxiliary: Array) -> float:
        return float(family.response_mean(np.array([[at]]), auxiliary[None])[0, 0])

    step = CONFIG.derivatives.step
    rise = (mean(eta + step, own) - mean(eta - step, own)) / (2 * step)
    slope = np.zeros(free.n_parameters)
    slope[free.of_channel(channel)] = free.designs[channel][state]
    if rise != 0:
        # The channels after the predictor are the auxiliaries, with one parameter each.
        for place, direction in enumerate(auxiliary_directions(family)):
            shifts = (step * direction, -step * direction)
            up, down = (mean(eta, shift_auxiliary(family, own, by)) for by in shifts)
            slope[free.of_channel(channel + 1 + place)] = (up - down) / (2 * step) / rise
    error = known.error(slope)
    if np.isnan(error):
        return mean(eta, own), error, error, error
    low, high = sorted(mean(eta + sign * quantile * error, own) for sign in (-1, 1))
    return mean(eta, own), abs(rise) * error, low, high


def _category(
    free: FreeParameters,
    known: Uncertainty,
    channels: Indices,
    place: int,
    at: int,
    quantile: float,
) -> Numbers:
    """Return the probability of the category at ``place`` of a nominal item, as :func:`_mean`."""
    responses = [free.channels[c].response for c in channels]
    states = free.tables.states(free.table_of(int(channels[0])))[[at]]
    eta = free.result.parameters.predictors(states)[responses, 0]
    # On the log scale, because 1 - p would lose precision for p near 1.
    none_before = np.concatenate([[0.0], np.cumsum(log_expit(-eta))])
    logs = none_before + np.concatenate([log_expit(eta), [0.0]])
    log_rest = float(logsumexp(np.delete(logs, place)))
    log_odds = float(logs[place]) - log_rest
    # Derivatives by the predictors: an earlier category excludes this one.
    rise = np.where(np.arange(len(eta)) < place, -expit(eta), 0.0)
    if place < len(eta):
        rise[place] = expit(-eta[place])
    # The predictor of an earlier category without answers is not estimated, and does not matter.
    rise[np.abs(rise) < _NEGLIGIBLE * np.abs(rise).max()] = 0.0
    slope = np.zeros(free.n_parameters)
    for c, by in zip(channels, rise * np.exp(-log_rest), strict=True):
        slope[free.of_channel(c)] = by * free.designs[c][at]
    error = known.error(slope)
    p = float(np.exp(logs[place]))
    if np.isnan(error):
        return p, error, error, error
    low, high = expit(log_odds + quantile * error * np.array([-1.0, 1.0]))
    return p, p * float(np.exp(log_rest)) * error, float(low), float(high)


def _role(free: FreeParameters, item: int, levels: NDArray[np.int64], n_groups: int) -> str:
    """Return the name of the probability in DINA and DINO models, or an empty string."""
    effects, binary = free.result.effects, item_type(free.result.families[item]).is_binary
    if not (effects.conjunctive and binary and n_groups == 2):
        return ""
    return "1 - slip" if (levels.any() if effects.reversed else levels.all()) else "guess"


@dataclass(frozen=True, repr=False)
class StandardErrors(
    View,
    title="{0.n_parameters} parameters, {0.kind}, {0.n_rows:.6g} rows",
    frames={"table": "table", "patterns": "patterns"},
):
    """Standard errors of a fit given its Q.

    Attributes
    ----------
    table : Table
        A row for each number: kind (coefficient, dispersion, cutpoint, probability, share), the
        item or latent, the term, estimate, standard error and interval. The standard error is NaN
        if the likelihood is flat along a coefficient, or the estimate is on the boundary.
    names : tuple of str, of the P free parameters, without probabilities on the boundary
    covariance : array (P, P)
        Of the free parameters: coefficients in the units of the items, dispersions on their
        unbounded scale, cutpoints, log ratios of the law. NaN if not estimated.
    kind : str
    level : float
    n_rows : float, number of rows used, or the sum of their weights
    n_parameters : int, number of parameters in information criteria, which may differ from P
    not_estimated : tuple of str, parameters in flat directions or on the boundary
    distance : float
        Distance of the fit from the nearest maximum of the likelihood, in standard errors.
    known_in_sum : tuple of str
        Those of ``not_estimated`` of which no table can identify more than sums, because
        prerequisites rule out states. Probabilities of answers are identified.
    patterns : Table
        The expected answer to each item in each pattern of its latents (probability of a success or
        of a category, or mean), with the share of the pattern, standard error and interval.
    """

    table: Table
    names: tuple[str, ...]
    covariance: Array
    kind: str
    level: float
    n_rows: float
    n_parameters: int
    not_estimated: tuple[str, ...]
    distance: float
    known_in_sum: tuple[str, ...] = ()
    patterns: Table = NO_PATTERNS

    @property
    def flat(self) -> tuple[str, ...]:
        """Parameters that are not estimated from this table, but may be from another."""
        return tuple(name for name in self.not_estimated if name not in self.known_in_sum)

    def summary(self, n_shown: int | None = 40) -> str:
        """Return the standard errors as text, at most ``n_shown`` rows of the table."""
        lines = [
            f"standard errors given Q, by the {KINDS[self.kind]}: {self.n_rows:,.6g} rows, "
            f"{plural(self.n_parameters, 'parameter')}, {self.level:.0%} intervals",
            *self.table.lines(n_shown),
        ]
        for names, reason in (
            (self.flat, "not locally identified or on the boundary"),
            (self.known_in_sum, "identified in sums only, because of prerequisites"),
        ):
            if names:
                number = plural(len(names), "parameter")
                lines.append(f"{number} without a standard error ({reason}): {first_names(names)}")
        if self.distance > 1.0:
            lines.append(
                f"the fit is {self.distance:.1f} standard errors from the maximum of the "
                "likelihood of these rows; if these are the rows that were fitted, fit with a "
                "smaller tol, or with the estimated Q as q_matrix"
            )
        return "\n".join(lines)


def standard_errors(
    result: AnyFit,
    X: Any,
    *,
    sample_weight: Any = None,
    kind: str = "louis",
    level: float = LEVEL,
) -> StandardErrors:
    """Return standard errors of coefficients, dispersions, cutpoints and the law, with Q as known.

    A bootstrap includes the uncertainty of the estimation of Q.

    Parameters
    ----------
    result : FitResult or DCRL
        With more than 2^13 joint states the model must have a small treewidth.
    X : array or frame
        The table that was fitted.
    sample_weight : array, shape (N,), optional
        As in the fit. Weights for unequal sampling probabilities need ``kind="sandwich"``.
    kind : {"louis", "sandwich", "scores"}
        The inverse of the observed information (Louis's formula); the sandwich with the outer
        products of the rows' scores, valid for misspecified models and survey weights; or the
        inverse of the outer products, which is the fastest. "louis" and "scores" treat weights as
        frequencies: twice the weights divide standard errors by the square root of 2. In "sandwich"
        a row of weight 2 is one row that represents two: twice the weights change nothing.
    level : float
        Of the intervals.

    Returns
    -------
    StandardErrors
        Estimates, standard errors and intervals of P parameters; ``to_rows`` lists them.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> found = hidag.standard_errors(model, skills.X)
    >>> found.table.columns
    ('kind', 'of', 'term', 'estimate', 'standard_error', 'lower', 'upper')
    """
    if kind not in KINDS:
        raise invalid_setting("kind", Choices(tuple(KINDS)), kind)
    check_level(level)
    result = as_result(result, "standard errors need")
    require_weights(result, sample_weight, "standard errors")
    rows, weights = select_weighted_rows(read_table(result.rows(X), min_rows=2), sample_weight)
    free = FreeParameters.of(result, rows.values, weights)
    known = estimate_uncertainty(free, kind)
    covariance, absent = known.covariance.copy(), known.not_estimated
    covariance[absent] = covariance[:, absent] = np.nan
    names = free.names()
    quantile = float(norm.ppf(0.5 + 0.5 * level))
    return StandardErrors(
        table=Table.of(COLUMNS, _rows(free, covariance, quantile)),
        names=names,
        covariance=covariance,
        kind=kind,
        level=level,
        n_rows=free.data.n_counted,
        n_parameters=count_parameters(result),
        not_estimated=tuple(names[p] for p in np.flatnonzero(absent)),
        distance=known.distance,
        known_in_sum=tuple(names[p] for p in np.flatnonzero(absent & free.known_in_sum())),
        patterns=Table.of(PATTERN_COLUMNS, _pattern_rows(free, known, quantile)),
    ).like(X)


def _rows(free: FreeParameters, covariance: Array, quantile: float) -> Iterator[Row]:
    """Yield the rows of the table: items first, then the law."""
    result = free.result
    terms = ["intercept", *result.terms.names(result.latent_names)]
    ends = quantile * np.array([-1.0, 1.0])
    for c, one in enumerate(free.channels):
        own = free.of_channel(c)
        block = covariance[np.ix_(own, own)]
        name = result.response_names[one.response]
        if one.kind == "predictor":
            coefficients = free.coefficient_maps[one.response]
            estimates = result.parameters.coefficients[one.response]
            for t in np.flatnonzero((coefficients != 0).any(axis=1)):
                error = _linear_error(coefficients[t], block)
                yield ("coefficient", name, terms[t], estimates[t], error,
                       *(estimates[t] + ends * error))  # fmt: skip
            continue
        error = float(np.sqrt(block[0, 0]))
        if one.kind == "cutpoint":
            value = result.parameters.cutpoints[one.response, one.place]
            yield ("cutpoint", name, f"cutpoint {one.place + 2}", value, error,
                   *(value + ends * error))  # fmt: skip
        else:
            family = family_named(result.parameters.families[one.response])
            value = result.parameters.dispersion[one.response]
            middle = float(family.to_unbounded(value))
            step = CONFIG.derivatives.step
            below, above = family.from_unbounded(middle + np.array([-step, step]))
            slope = (above - below) / (2 * step)
            low, high = family.from_unbounded(middle + ends * error)
            yield ("dispersion", name, family.dispersion_meaning, value, slope * error, low, high)
    yield from _law_rows(free, covariance, quantile)


def _law_rows(free: FreeParameters, covariance: Array, quantile: float) -> Iterator[Row]:
    """Yield the probabilities of the conditional tables and the shares of the latents' levels."""
    begin = free.n_of_items
    for block in free.blocks:
        own = np.arange(begin, begin + len(block.free))
        begin += len(own)
        slopes, estimated = block.slopes(), block.estimated
        inner = covariance[np.ix_(own, own)]
        for m, word in enumerate(block.words):
            error = _linear_error(slopes[m], inner) if estimated[m] else _NAN
            term = f"{word} | {block.given}" if block.given else word
            p = float(block.probabilities[m])
            yield ("probability", block.subject, term, p, error, *_logit_ends(p, error, quantile))
    law = np.arange(free.n_of_items, free.n_parameters)
    inner = covariance[np.ix_(law, law)]
    for k, name in enumerate(free.result.latent_names):
        table = int(free.tables.of_latent[k])
        states, shares = free.tables.states(table), free.tables.shares(table)
        for level in range(free.result.law.space.levels[k]):
            at = (states[:, k] == level).astype(np.float64)
            # The derivative of a sum of p(state) is the same sum of p(state) times scores.
            tables = {block.table for block in free.blocks}
            sums = {t: free.tables.joint_sums(table, at, t) for t in tables}
            slope = np.concatenate([sums[block.table] @ block.scores() for block in free.blocks])
            p, error = float(shares @ at), _linear_error(slope, inner)
            yield ("share", name, str(level), p, error, *_logit_ends(p, error, quantile))


def _linear_error(slope: Array, covariance: Array) -> float:
    """Return the standard error of a linear combination; NaN if a parameter in it has none."""
    size = np.abs(slope)
    # A slope that is zero up to rounding must not bring in NaN.
    used = np.flatnonzero(size > ROUNDING * size.max(initial=0.0))
    if not len(used):
        return _NAN
    variance = float(slope[used] @ covariance[np.ix_(used, used)] @ slope[used])
    return _NAN if np.isnan(variance) else float(np.sqrt(max(variance, 0.0)))


def _logit_ends(p: float, error: float, quantile: float) -> tuple[float, float]:
    """Return the interval of a probability, computed on the scale of log odds."""
    if not 0 < p < 1 or np.isnan(error):
        return _NAN, _NAN
    spread = quantile * error / (p * (1 - p))
    low, high = expit(float(logit(p)) + np.array([-spread, spread]))
    return float(low), float(high)
