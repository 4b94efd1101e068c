"""How surely the numbers of a fit with a fixed Q are known: standard errors and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit, logsumexp
from scipy.stats import norm

from hidag.data.sample_weights import weighted_rows
from hidag.data.table import read_table
from hidag.estimator import DCRL
from hidag.exceptions import SettingError
from hidag.fitting.information_criteria import count_parameters
from hidag.formatting import plural
from hidag.inference.fitted_rows import need_weights
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.item_derivatives import STEP, auxiliary_of, moved, moves
from hidag.inference.information.parameter_covariance import Uncertainty, uncertainty_of
from hidag.inference.result_tables import Table
from hidag.measurement.families import item_type
from hidag.measurement.families.registry import family_named
from hidag.measurement.responses import category_label, nominal_item
from hidag.measurement.terms import Effects
from hidag.results import FitResult, as_result

# --- What each item's answers are in each pattern of its own latents, and how surely that is

Array = NDArray[np.float64]

COLUMNS = (
    "item",
    "latents",
    "pattern",
    "called",
    "share",
    "estimate",
    "standard_error",
    "lower",
    "upper",
)
NO_PATTERNS = Table(COLUMNS, ())
#: An item with more patterns of its latents than this has no rows: nobody would read them.
MOST_PATTERNS = 64
#: A pattern with a smaller share does not occur.
_NOBODY = 1e-12
#: Shares of a category's log odds that a predictor moves, below which it has no say in them.
_NO_SAY = 1e-3


def pattern_answers(free: FreeParameters, known: Uncertainty, quantile: float) -> Table:
    """Return a row for each pattern of each item's latents that may occur.

    Patterns in which an item answers alike by its very form are one row: a conjunctive item has
    two, with all of its latents and without. A nominal item has rows for each of its categories,
    called ``item=category``, with the category's probability.

    Parameters
    ----------
    free : FreeParameters
    known : Uncertainty
        Of the free parameters, in the user's units.
    quantile : float
        Standard errors to either side of an interval; it is made on the predictor's scale, for
        categories on that of log odds.
    """
    return Table.of(COLUMNS, _pattern_rows(free, known, quantile))


def _pattern_rows(
    free: FreeParameters, known: Uncertainty, quantile: float
) -> Iterator[tuple[Any, ...]]:
    result = free.result
    levels = result.law.space.levels
    predictors = np.array([c for c, one in enumerate(free.channels) if one.kind == "predictor"])
    for j, name in enumerate(result.item_names):
        latents = np.flatnonzero(result.q_matrix[j])
        if np.prod([levels[k] for k in latents]) > MOST_PATTERNS:
            continue
        channels = predictors[result.responses.item == j]
        table = free.table_of(int(channels[0]))
        states, shares = free.tables.states(table), free.tables.shares(table)
        design = np.hstack([free.designs[c] for c in channels])
        alike = np.unique(design, axis=0, return_inverse=True)[1].ravel()
        groups = []
        for group in dict.fromkeys(alike.tolist()):
            inside = alike == group
            share = float(shares[inside].sum())
            if share > _NOBODY:
                words = _patterns(states[inside & (shares > _NOBODY)][:, latents])
                groups.append((int(np.flatnonzero(inside)[0]), share, words))
        among = "*".join(result.latent_names[k] for k in latents)
        nominal = nominal_item(result.families[j])
        for place, category in enumerate((None,) if nominal is None else nominal.order):
            for at, share, words in groups:
                if category is None:
                    called = _called(free, j, states[at, latents], len(set(alike.tolist())))
                    numbers = _numbers(free, known, int(channels[0]), at, quantile)
                    yield (name, among, words, called, share, *numbers)
                else:
                    numbers = _category(free, known, channels, place, at, quantile)
                    answer = f"{name}={category_label(category, result.answer_words.get(name))}"
                    yield (answer, among, words, "", share, *numbers)


def _numbers(
    free: FreeParameters, known: Uncertainty, channel: int, state: int, quantile: float
) -> tuple[float, float, float, float]:
    """Return a response's mean in a state, its standard error and the ends of its interval."""
    parameters = free.result.parameters
    r = free.channels[channel].response
    family, own = family_named(parameters.families[r]), auxiliary_of(parameters, r)
    at = free.tables.states(free.table_of(channel))[[state]]
    eta = float(parameters.predictors(at)[r, 0])

    def mean(at: float, auxiliary: Array) -> float:
        return float(family.response_mean(np.array([[at]]), auxiliary[None])[0, 0])

    rise = (mean(eta + STEP, own) - mean(eta - STEP, own)) / (2 * STEP)
    slope = np.zeros(free.n_parameters)
    mine = free.of_channel(channel)
    slope[mine] = free.designs[channel][state]
    if rise != 0:
        # Auxiliaries have the channels after the predictor's, one parameter each.
        for place, move in enumerate(moves(family)):
            up, down = (mean(eta, moved(family, own, sign * STEP * move)) for sign in (1, -1))
            slope[free.of_channel(channel + 1 + place)] = (up - down) / (2 * STEP) / rise
    error = known.error(slope)
    if np.isnan(error):
        return mean(eta, own), error, error, error
    low, high = sorted(mean(eta + sign * quantile * error, own) for sign in (-1, 1))
    return mean(eta, own), abs(rise) * error, low, high


def _category(
    free: FreeParameters,
    known: Uncertainty,
    channels: NDArray[np.intp],
    place: int,
    state: int,
    quantile: float,
) -> tuple[float, float, float, float]:
    """Return the probability of a nominal item's category in a state, as :func:`_numbers`.

    Parameters
    ----------
    free, known, quantile
        As in :func:`pattern_answers`.
    channels : ndarray of int, shape (C - 1,)
        Of the item's predictors, in the order in which categories are asked about.
    place : int
        Of the category in that order; C - 1 for the last one, which needs no asking.
    state : int
    """
    responses = [free.channels[c].response for c in channels]
    at = free.tables.states(free.table_of(int(channels[0])))[[state]]
    eta = free.result.parameters.predictors(at)[responses, 0]
    # Logarithms, because one less a chance near one would be lost to rounding.
    none_before = np.concatenate([[0.0], np.cumsum(log_expit(-eta))])
    logs = none_before + np.concatenate([log_expit(eta), [0.0]])
    log_rest = float(logsumexp(np.delete(logs, place)))
    log_odds = float(logs[place]) - log_rest
    # By each predictor: a yes to an earlier category rules this one out.
    rise = np.where(np.arange(len(eta)) < place, -expit(eta), 0.0)
    if place < len(eta):
        rise[place] = expit(-eta[place])
    # An earlier category that nobody gives has no say, however little is known of its predictor.
    rise[np.abs(rise) < _NO_SAY * np.abs(rise).max()] = 0.0
    slope = np.zeros(free.n_parameters)
    for c, by in zip(channels, rise * np.exp(-log_rest), strict=True):
        mine = free.of_channel(c)
        slope[mine] = by * free.designs[c][state]
    error = known.error(slope)
    chance = float(np.exp(logs[place]))
    if np.isnan(error):
        return chance, error, error, error
    low, high = expit(log_odds + quantile * error * np.array([-1.0, 1.0]))
    return chance, chance * float(np.exp(log_rest)) * error, float(low), float(high)


def _patterns(levels: NDArray[np.integer]) -> str:
    """Return the patterns of a group, as in 00 01 10; items without a latent have none."""
    return " ".join(dict.fromkeys("".join(map(str, row)) for row in levels.tolist()))


def _called(free: FreeParameters, item: int, levels: NDArray[np.int64], n_groups: int) -> str:
    """Return what the answer is called in models of that name, or nothing."""
    effects = Effects.of(free.result.settings.get("effects", "main"))
    binary = item_type(free.result.families[item]).is_binary
    if not (effects.conjunctive and binary and n_groups == 2):
        return ""
    mastered = levels.any() if effects.reversed else levels.all()
    return "1 - slip" if mastered else "guess"


# ---

KINDS = ("louis", "sandwich", "scores")
#: Slopes below this share of the largest are rounding errors.
ROUNDING = 1e-12
#: Probabilities have intervals on the scale of log odds, dispersions on their free scale.
_COLUMNS = ("kind", "of", "term", "estimate", "standard_error", "lower", "upper")


@dataclass(frozen=True)
class StandardErrors:
    """Standard errors of a fit, its Q taken as known.

    Attributes
    ----------
    table : Table
        A row for each number: kind (coefficient, dispersion, cutpoint, probability, share), the
        item or latent it is of, the term, estimate, standard error, and the ends of the interval.
        Standard errors are NaN where the data say nothing: a coefficient along which the
        likelihood is flat or that ran to an edge, a probability at the edge.
    names : tuple of str, length P
        Of the parameters that move: those known in sum only are among them one by one, and the
        law's probabilities at the edge are not.
    covariance : ndarray, shape (P, P)
        Of the free parameters: coefficients in the items' units, dispersions on the scale on which
        they have no bounds, cutpoints, log ratios of the law. NaN for those not estimated.
    kind : str
    level : float
        Of the intervals.
    n_rows : float
        Rows used, or the sum of their weights.
    n_parameters : int
        Free numbers of the fit as its information criteria count them
        (:func:`hidag.fitting.information_criteria.count_parameters`), which need not be P.
    not_estimated : tuple of str
        Parameters along which the likelihood is flat, and coefficients that ran to an edge: see
        :mod:`hidag.inference.information.item_derivatives`.
    distance : float
        How far the fit is from the nearest maximum of the likelihood, in standard errors.
    known_in_sum : tuple of str
        Those of ``not_estimated`` that no table could tell apart: prerequisites rule out the states
        that would. Their sums are known, and probabilities of answers with them.
    patterns : Table
        What is expected of each item in each pattern of its latents that occurs: the probability of
        a yes or of a category, or the mean, with its share of people, standard error and interval.
        Coefficients of nominal items are about a category among those left; these are not. See
        :mod:`hidag.inference.standard_errors`.
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
        """Parameters that another table might tell something of, but this one does not."""
        return tuple(name for name in self.not_estimated if name not in self.known_in_sum)

    def summary(self, n_shown: int | None = 40) -> str:
        """Return the standard errors as text."""
        how = {
            "louis": "observed information",
            "sandwich": "sandwich of observed information and scores",
            "scores": "outer products of scores",
        }[self.kind]
        lines = [
            f"standard errors for this Q, by the {how}: {self.n_rows:,.6g} rows, "
            f"{plural(self.n_parameters, 'parameter')}, {self.level:.0%} intervals",
            *self.table.lines(n_shown),
        ]
        for names, words in (
            (self.flat, "the data say nothing of {}"),
            (self.known_in_sum, "prerequisites leave {} known in sum only"),
        ):
            if names:
                more = ", ..." if len(names) > 5 else ""
                said = words.format(plural(len(names), "parameter"))
                lines.append(f"{said}: {', '.join(names[:5])}{more}")
        if self.distance > 1.0:
            lines.append(
                f"the fit is {self.distance:.1f} standard errors from the maximum of these rows' "
                "likelihood; if these were fitted, fit with a smaller tol, or give "
                "the Q that was found as q_matrix"
            )
        return "\n".join(lines)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each number."""
        return self.table.to_dicts()


def standard_errors(
    result: FitResult | DCRL,
    X: Any,
    *,
    sample_weight: Any = None,
    kind: str = "louis",
    level: float = 0.9,
) -> StandardErrors:
    """Return standard errors of coefficients, dispersions, cutpoints and the law.

    Q is taken as known, whether it was given or estimated: what choosing it adds is for a
    bootstrap to say.

    Parameters
    ----------
    result : FitResult or DCRL
        Of a fit, or a fitted estimator. With more than 2^13 joint states its latents must hang
        together so little that sums over them fall into small ones.
    X : array or frame
        The table that was fitted.
    sample_weight : array, shape (N,), optional
        How many rows each row counts for, as in the fit. Weights that make up for unequal chances
        of being in the sample need ``kind="sandwich"``.
    kind : {"louis", "sandwich", "scores"}
        The inverse of the observed information (Louis's formula); that around the rows' squared
        scores, right also when the model is not and for weights; the inverse of the squared scores,
        which is the cheapest. "louis" and "scores" take weights as frequencies: a weight of 2 is
        two rows that were seen, and twice the weights make errors smaller by the root of 2. To
        "sandwich" it is one row that stands for two: twice the weights change nothing.
    level : float
        Of the intervals.
    """
    if kind not in KINDS:
        raise SettingError(f"kind must be 'louis', 'sandwich' or 'scores', got {kind!r}")
    if not 0 < level < 1:
        raise SettingError(f"level must be a number between 0 and 1, got {level!r}")
    result = as_result(result, "standard errors need")
    need_weights(result, sample_weight, "standard errors")
    counted, weights = weighted_rows(read_table(result.rows(X), min_rows=2), sample_weight)
    free = FreeParameters.of(result, counted.values, weights)
    known = uncertainty_of(free, kind)
    covariance, flat = known.covariance.copy(), known.flat
    covariance[flat] = covariance[:, flat] = np.nan
    names = free.names()
    quantile = float(norm.ppf(0.5 + 0.5 * level))
    return StandardErrors(
        table=Table.of(_COLUMNS, _rows(free, covariance, quantile)),
        names=names,
        covariance=covariance,
        kind=kind,
        level=level,
        n_rows=free.data.n_counted,
        n_parameters=count_parameters(result),
        not_estimated=tuple(name for name, out in zip(names, flat, strict=True) if out),
        distance=known.distance,
        known_in_sum=tuple(
            name
            for name, out, sums in zip(names, flat, free.known_in_sum(), strict=True)
            if out and sums
        ),
        patterns=pattern_answers(free, known, quantile),
    )


def _rows(free: FreeParameters, covariance: Array, quantile: float) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table: items first, then the law."""
    result = free.result
    names = result.response_names
    terms = ["intercept", *result.terms.names(result.latent_names)]
    for c, one in enumerate(free.channels):
        own = free.of_channel(c)
        block = covariance[np.ix_(own, own)]
        name = names[one.response]
        if one.kind == "predictor":
            turn = free.coefficient_maps[one.response]
            estimates = result.parameters.coefficients[one.response]
            for t in np.flatnonzero((turn != 0).any(axis=1)):
                error = _root(turn[t], block)
                ends = estimates[t] - quantile * error, estimates[t] + quantile * error
                yield ("coefficient", name, terms[t], estimates[t], error, *ends)
        elif one.kind == "cutpoint":
            value = result.parameters.cutpoints[one.response, one.place]
            error = float(np.sqrt(block[0, 0]))
            ends = value - quantile * error, value + quantile * error
            yield ("cutpoint", name, f"cutpoint {one.place + 2}", value, error, *ends)
        else:
            family = family_named(result.parameters.families[one.response])
            value = result.parameters.dispersion[one.response]
            middle, error = float(family.to_unbounded(value)), float(np.sqrt(block[0, 0]))
            slope = np.diff(family.from_unbounded(middle + np.array([-STEP, STEP])))[0] / (2 * STEP)
            low, high = family.from_unbounded(middle + quantile * error * np.array([-1.0, 1.0]))
            yield ("dispersion", name, family.dispersion_meaning, value, slope * error, low, high)
    yield from _law_rows(free, covariance, quantile)


def _law_rows(
    free: FreeParameters, covariance: Array, quantile: float
) -> Iterator[tuple[Any, ...]]:
    """Yield the probabilities of the law's tables and the shares of the latents' levels."""
    begin = free.n_of_items
    for block in free.blocks:
        own = np.arange(begin, begin + len(block.free))
        begin += len(own)
        slopes, known = block.slopes(), block.estimated
        inner = covariance[np.ix_(own, own)]
        for m, word in enumerate(block.words):
            error = _root(slopes[m], inner) if known[m] else np.nan
            term = f"{word} | {block.given}" if block.given else word
            p = float(block.probabilities[m])
            yield ("probability", block.subject, term, p, error, *_ends(p, error, quantile))
    law = np.arange(free.n_of_items, free.n_parameters)
    inner = covariance[np.ix_(law, law)]
    for k, name in enumerate(free.result.latent_names):
        table = int(free.tables.of_latent[k])
        states, shares = free.tables.states(table), free.tables.shares(table)
        for level in range(free.result.law.space.levels[k]):
            at = (states[:, k] == level).astype(np.float64)
            p, error = float(shares @ at), _root(_share_slopes(free, table, at), inner)
            yield ("share", name, str(level), p, error, *_ends(p, error, quantile))


def _share_slopes(free: FreeParameters, table: int, at: Array) -> Array:
    """Return derivatives of the probability of some states of a table by the law's parameters.

    The law's scores are derivatives of log p(state), and the probability is a sum of p(state): so
    these are sums of scores over the states ``at`` (S_t,) is one in.
    """
    together = {
        t: free.tables.together(table, at, t) for t in {block.table for block in free.blocks}
    }
    return np.concatenate([together[block.table] @ block.scores() for block in free.blocks])


def _root(slope: Array, covariance: Array) -> float:
    """Return the standard error of a linear combination; what does not enter may be unknown."""
    size = np.abs(slope)
    # What rounding leaves of a slope of nothing must not bring in what is unknown.
    used = np.flatnonzero(size > ROUNDING * size.max(initial=0.0))
    if not len(used):
        return float("nan")
    inner = covariance[np.ix_(used, used)]
    variance = float(slope[used] @ inner @ slope[used])
    # A rounding error below zero is zero; NaN stays what it is.
    return float("nan") if np.isnan(variance) else float(np.sqrt(max(variance, 0.0)))


def _ends(p: float, error: float, quantile: float) -> tuple[float, float]:
    """Return the interval of a probability, made on the scale of log odds."""
    if not 0 < p < 1 or np.isnan(error):
        return float("nan"), float("nan")
    spread = quantile * error / (p * (1 - p))
    middle = float(logit(p))
    low, high = expit(np.array([middle - spread, middle + spread]))
    return float(low), float(high)
