"""How surely the numbers of a fit with a fixed Q are known: standard errors and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from hidag.criteria import count_parameters
from hidag.errors import SettingError
from hidag.estimator import DCRL
from hidag.explain.covariances import uncertainty_of
from hidag.explain.free_parameters import FreeParameters
from hidag.explain.item_channels import STEP
from hidag.explain.pattern_answers import NO_PATTERNS, pattern_answers
from hidag.explain.rows import need_weights, result_of
from hidag.explain.tables import Table
from hidag.measurement import family_named
from hidag.observations import read_table
from hidag.result import FitResult
from hidag.row_weights import weighted_rows
from hidag.shown_text import counted as with_noun

Array = NDArray[np.float64]

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
        (:func:`hidag.criteria.count_parameters`), which need not be P.
    not_estimated : tuple of str
        Parameters along which the likelihood is flat, and coefficients that ran to an edge: see
        :mod:`hidag.explain.item_edges`.
    distance : float
        How far the fit is from the nearest maximum of the likelihood, in standard errors.
    known_in_sum : tuple of str
        Those of ``not_estimated`` that no table could tell apart: prerequisites rule out the states
        that would. Their sums are known, and probabilities of answers with them.
    patterns : Table
        What is expected of each item in each pattern of its latents that occurs: the probability of
        a yes or of a category, or the mean, with its share of people, standard error and interval.
        Coefficients of nominal items are about a category among those left; these are not. See
        :mod:`hidag.explain.pattern_answers`.
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
            f"{with_noun(self.n_parameters, 'parameter')}, {self.level:.0%} intervals",
            *self.table.lines(n_shown),
        ]
        for names, words in (
            (self.flat, "the data say nothing of {}"),
            (self.known_in_sum, "prerequisites leave {} known in sum only"),
        ):
            if names:
                more = ", ..." if len(names) > 5 else ""
                said = words.format(with_noun(len(names), "parameter"))
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
    result = result_of(result, "standard errors need")
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
            middle, error = float(family.to_free(value)), float(np.sqrt(block[0, 0]))
            slope = np.diff(family.from_free(middle + np.array([-STEP, STEP])))[0] / (2 * STEP)
            low, high = family.from_free(middle + quantile * error * np.array([-1.0, 1.0]))
            yield ("dispersion", name, family.dispersion_means, value, slope * error, low, high)
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
