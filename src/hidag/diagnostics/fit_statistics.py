"""Does it fit: criteria, absolute fit, pairs, items and predictive checks in one call."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.sample_weights import describe_rows, effective_sample_size
from hidag.diagnostics.item_fit import item_fit
from hidag.diagnostics.limited_information import LimitedInformation, limited_information
from hidag.diagnostics.moment_tests import LocalScores, ScoredColumns, column_names
from hidag.diagnostics.pair_residuals import pair_residuals
from hidag.diagnostics.predictive_checks import ALL_ITEMS, are_checks, predictive_checks
from hidag.fitting.information_criteria import (
    count_parameters,
    criteria_of,
    law_parameters,
    log_number_of_q,
)
from hidag.fitting.settings import checked_count, root_seed
from hidag.formatting import plural
from hidag.inference.fitted_rows import (
    can_sum_states,
    canonical_rows,
    observable_values,
    was_weighted,
    weighted_sample,
)
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.posterior_tables import too_many_states
from hidag.inference.information.row_scores import row_scores
from hidag.inference.result_tables import Table
from hidag.results import FitResult, as_result, reorder_items

if TYPE_CHECKING:
    from hidag.estimator import DCRL


# --- Likelihood, number of parameters and the criteria made of them; how surely rows are

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Criteria:
    """How likely the table is under the fit, and at what price.

    Attributes
    ----------
    log_likelihood : float
        Of the observed cells.
    n_parameters : int
        Free coefficients, dispersions, cutpoints and probabilities, as
        :func:`hidag.fitting.information_criteria.count_parameters` counts them.
    n_at_edge : int
        Those of the law's probabilities that less than half a row is expected in; they are among
        ``n_parameters``.
    aic, bic : float
    ebic : float
        BIC and twice the logarithm of the number of Q-matrices with as many entries; as BIC when Q
        was given.
    entropy : float
        One less the mean uncertainty of rows' joint states, as a share of the largest possible: 1
        where every row is placed without doubt. States that a hierarchy rules out are not possible.
    n_rows : int
    n_cells : int
        Observed.
    n_effective : float
        Rows that the log-likelihood counts for and BIC pays for: all, or as many as rows with
        weights are worth.
    """

    log_likelihood: float
    n_parameters: int
    n_at_edge: int
    aic: float
    bic: float
    ebic: float
    entropy: float
    n_rows: int
    n_cells: int
    n_effective: float


def criteria(free: FreeParameters, values: Array) -> Criteria:
    """Return the criteria of a fit on a table, shape (N, J), rows counted by ``free``'s weights."""
    result = free.result
    n_effective = free.data.n_counted
    log_likelihood = float(free.data.weighted(result.row_log_likelihood(values)).sum())
    n_parameters = count_parameters(result)
    n_of_law = free.n_parameters - free.n_of_items
    price = criteria_of(log_likelihood, n_parameters, log_number_of_q(result), n_effective)
    return Criteria(
        log_likelihood=log_likelihood,
        n_parameters=n_parameters,
        n_at_edge=law_parameters(result.law, result.ruled_out) - n_of_law,
        aic=price.aic,
        bic=price.bic,
        ebic=price.ebic,
        entropy=_entropy(free),
        n_rows=len(values),
        n_cells=int((~np.isnan(values)).sum()),
        n_effective=n_effective,
    )


def _entropy(free: FreeParameters) -> float:
    weights = free.data.row_weights
    total = sum(float(weights[block.rows] @ block.joint_entropy()) for block in free.row_blocks())
    return 1.0 - total / (free.data.n_counted * largest_doubt(free.result))


def largest_doubt(result: FitResult) -> float:
    """Return the entropy of joint states that are all alike, of those that may occur."""
    if result.ruled_out is not None:
        return float(np.log(np.count_nonzero(~result.ruled_out)))
    return float(np.log(result.law.space.levels).sum())


# ---

#: Chances below this are worth a look among so many comparisons that the smallest is corrected.
LEVEL = 0.05
_EMPTY = Table((), ())
WITHOUT_WEIGHTS = (
    "the fit counted rows by weights, but these statistics count every row once: likelihood and "
    "criteria are those of the rows as they are, and what is not fitted may be the weights' doing; "
    "give the same weights as sample_weight"
)
WITHOUT_WEIGHTS_AT_THE_FIT = (
    "these statistics count rows by weights, but the fit counted every row once: what is not "
    "fitted may be the weights' doing"
)


@dataclass(frozen=True)
class FitStatistics:
    """How well a fit describes a table.

    Attributes
    ----------
    criteria : Criteria or None
        Log-likelihood, number of parameters, AIC, BIC, EBIC and entropy.
    absolute : LimitedInformation or None
        M2, RMSEA2 and SRMSR of the categorical items.
    pairs : Table
        Residual correlation of each pair of items with its z score, NaN where there is no test.
    items : Table
        Observed and expected means of each item, root mean square distance over states, and a test
        against the other items.
    checks : Table
        Statistics of the table beside those of tables drawn from the fit.
    notes : tuple of str
        What is not there, and why.
    n_rows : int
        Rows that count.
    n_effective : float
        Equal rows that they are worth: all of them without weights, else Kish's number. Each
        statistic says its own, of the rows that it uses, beside its ``n_rows``.
    """

    criteria: Criteria | None
    absolute: LimitedInformation | None
    pairs: Table
    items: Table
    checks: Table
    notes: tuple[str, ...]
    n_rows: int
    n_effective: float

    def summary(self, n_shown: int = 8) -> str:
        """Return the statistics as text, the worst pairs, items and checks first."""
        lines = []
        if self.criteria is not None:
            c = self.criteria
            edge = f" ({c.n_at_edge} at the edge)" if c.n_at_edge else ""
            lines += [
                f"{describe_rows(c.n_rows, c.n_effective)}, {c.n_cells:,} observed cells, "
                f"{plural(c.n_parameters, 'parameter')}{edge}",
                f"log-likelihood {c.log_likelihood:,.2f}, AIC {c.aic:,.2f}, BIC {c.bic:,.2f}, EBIC "
                f"{c.ebic:,.2f}, entropy {c.entropy:.3f}",
            ]
        if self.absolute is not None:
            lines.append(self.absolute.summary())
        for title, table, label in (
            ("pairs of items", self.pairs, "residual correlation"),
            ("items", self.items, "test against the other items"),
            ("predictive checks", self.checks, "tables drawn from the fit"),
        ):
            if len(table):
                lines += ["", *_worst(title, table, label, n_shown)]
        lines += ["", *self.notes] if self.notes else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "n_rows": self.n_rows,
            "n_effective": self.n_effective,
            "criteria": None if self.criteria is None else asdict(self.criteria),
            "absolute": None if self.absolute is None else asdict(self.absolute),
            "pairs": self.pairs.to_dicts(),
            "items": self.items.to_dicts(),
            "checks": self.checks.to_dicts(),
            "notes": list(self.notes),
        }


def _worst(title: str, table: Table, label: str, n_shown: int) -> list[str]:
    """Return how many of a table's tests fail, with the worst ones."""
    chances = np.array(table.column("p_value"), dtype=np.float64)
    known = int((~np.isnan(chances)).sum())
    low = int((chances < LEVEL).sum())
    strict = LEVEL / max(known, 1)
    beyond = f"; {int((chances < strict).sum())} even after Bonferroni's correction"
    if np.nanmin(chances, initial=1.0) >= strict and are_checks(table):
        # Chances from so many draws cannot be that small.
        beyond = ""
    order = np.argsort(np.where(np.isnan(chances), np.inf, chances), kind="stable")
    ranked = Table(table.columns, tuple(table.rows[i] for i in order[:n_shown]))
    told = f"{low} of {known} have p < {LEVEL:g}, {where_true(table)}{beyond}"
    return [f"{title} ({label}): {told if known else 'none could be tested'}", *ranked.lines()]


def where_true(table: Table) -> str:
    """Return in words how many tests of a table have p < .05 when the model is true."""
    if are_checks(table):
        return "where a true model gives few or none, because most of this was fitted"
    expected = LEVEL * sum(not np.isnan(p) for p in table.column("p_value"))
    return "where chance alone gives " + (
        f"about {expected:.0f}" if expected >= 1.0 else "less than one"
    )


def untested_pairs(pairs: Table) -> str:
    """Return in a sentence how many pairs have no test, and why; nothing if all have one."""
    if not len(pairs):
        return ""
    untested = np.isnan(pairs.column("z"))
    apart = np.array(pairs.column("n_rows")) == 0
    reasons = {
        "no row has both": int((untested & apart).sum()),
        "both items depart from what the latents say in too few rows, or the parameters were "
        "fitted to little else than the pair": int((untested & ~apart).sum()),
    }
    told = [(words, number) for words, number in reasons.items() if number]
    if not told:
        return ""
    begin = f"{int(untested.sum()):,} of {len(pairs):,} pairs have no test: "
    if len(told) == 1:
        return begin + told[0][0]
    return begin + "; ".join(f"of {number:,} {words}" for words, number in told)


def fit_statistics(
    result: FitResult | DCRL,
    X: Any,
    *,
    sample_weight: Any = None,
    n_tables: int = 100,
    random_state: Any = 0,
) -> FitStatistics:
    """Return how well a fit describes a table.

    Beyond 2^13 joint states there is no M2. If the latents also hang together too closely for sums
    over them to fall into small ones, only the predictive checks are computed. The notes say so.

    Parameters
    ----------
    result : FitResult or DCRL
    X : array or frame
        The table that was fitted, or another one with the same items.
    sample_weight : array, shape (N,), optional
        Of a fit that had weights, the same. They are those of a survey, whole numbers too: only
        their ratios count, and rows are worth Kish's number of equal ones, not their sum. Rows that
        stand for several alike are to be repeated instead. Without them every row counts once,
        and after a fit with weights the notes say so.
    n_tables : int
        Tables drawn for the predictive checks.
    random_state : int, RandomState or None
        Of the draws.
    """
    fitted = as_result(result)
    values, weights = weighted_sample(observable_values(fitted, X), sample_weight)
    n_tables = checked_count("n_tables", n_tables)
    about_weights = []
    if was_weighted(fitted) and sample_weight is None:
        about_weights.append(WITHOUT_WEIGHTS)
    if weights is not None and not was_weighted(fitted):
        about_weights.append(WITHOUT_WEIGHTS_AT_THE_FIT)
    rows, places = canonical_rows(fitted, values, weights)
    items = np.argsort(places)
    found = _computed(
        reorder_items(fitted, items),
        values[np.ix_(rows, items)],
        None if weights is None else weights[rows],
        about_weights,
        n_tables,
        root_seed(random_state),
    )
    columns = {name: place for place, (name, _) in enumerate(column_names(fitted))}
    names = {name: place for place, name in enumerate((*fitted.item_names, ALL_ITEMS))}
    return replace(
        found,
        pairs=found.pairs.in_order(columns, n_names=2),
        items=found.items.in_order(columns),
        checks=found.checks.in_order(names),
    )


def _computed(
    result: FitResult,
    values: Array,
    weights: Array | None,
    about_weights: list[str],
    n_tables: int,
    seed: int,
) -> FitStatistics:
    """Return the statistics of rows and items in an order that depends on contents alone.

    Sums round as their terms come, so that no other order could give the same bits.
    """
    n_effective = float(len(values)) if weights is None else effective_sample_size(weights)
    checks = predictive_checks(result, values, weights, n_tables=n_tables, seed=seed)
    if not can_sum_states(result):
        note = str(too_many_states(result, "each of likelihood, M2, pairs and item fit"))
        notes = (f"{note}; the predictive checks need no such sum", *about_weights)
        return FitStatistics(None, None, _EMPTY, _EMPTY, checks, notes, len(values), n_effective)
    free = FreeParameters.of(result, values, weights)
    columns = ScoredColumns.of(free, values)
    explained = LocalScores.of(free, row_scores(free))
    absolute = limited_information(free, columns)
    pairs = pair_residuals(free, columns, explained)
    told = [absolute] if isinstance(absolute, str) else []
    told += [*filter(None, [untested_pairs(pairs)]), *about_weights]
    if np.isnan(values).any():
        complete = "" if isinstance(absolute, str) else ", M2 complete rows"
        told.append(
            f"pairs and items use the rows that observed them{complete}: right if cells are "
            "missing for reasons that have nothing to do with the answers"
        )
    return FitStatistics(
        criteria=criteria(free, values),
        absolute=None if isinstance(absolute, str) else absolute,
        pairs=pairs,
        items=item_fit(free, columns, explained),
        checks=checks,
        notes=tuple(told),
        n_rows=len(values),
        n_effective=n_effective,
    )
