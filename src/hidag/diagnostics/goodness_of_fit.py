"""Goodness of fit: information criteria, M2, residual pairs, item fit and predictive checks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.rows import describe_rows, effective_sample_size
from hidag.diagnostics.item_fit import compute_item_fit
from hidag.diagnostics.limited_information import LimitedInformation, compute_limited_information
from hidag.diagnostics.moment_tests import LocalScores, ScoredColumns, column_names
from hidag.diagnostics.pair_residuals import compute_pair_residuals
from hidag.diagnostics.predictive_checks import ALL_ITEMS, are_checks, run_predictive_checks
from hidag.exceptions import PYTHON_STYLE, Advice, Message, Setting, Style
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

Array = NDArray[np.float64]

#: Significance level of the tests in summaries.
LEVEL = 0.05
_EMPTY = Table((), ())
WEIGHTS_MISSING = Message(
    "weights-missing",
    "the fit used sample weights but these statistics do not: likelihood and criteria are those of "
    "unweighted rows, and misfit may come from the weights",
    advice=Advice(
        "repeat-weights",
        "give the same weights as {setting}",
        {"setting": Setting("sample_weight")},
    ),
)
WEIGHTS_NEW = Message(
    "weights-not-in-fit",
    "these statistics use sample weights but the fit did not: misfit may come from the weights",
)


@dataclass(frozen=True)
class Criteria:
    """Log-likelihood of a table and the information criteria of the fit.

    Attributes
    ----------
    log_likelihood : float
        Of the observed cells.
    n_parameters : int
        Free coefficients, dispersions, cutpoints and probabilities
        (:func:`hidag.fitting.information_criteria.count_parameters`).
    n_at_edge : int
        Probabilities of the law among them with an expected count below half a row.
    aic, bic : float
    ebic : float
        BIC plus twice the logarithm of the number of Q-matrices with as many entries; equal to BIC
        for a given Q.
    entropy : float
        One minus the mean posterior entropy of the joint state relative to its maximum: 1 if all
        rows are classified with certainty. States that a hierarchy rules out do not count.
    n_rows : int
    n_cells : int
        Observed cells.
    n_effective : float
        Number of rows, or the effective sample size of weighted rows, which BIC uses.
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


def compute_criteria(free: FreeParameters, values: Array) -> Criteria:
    """Return the criteria of a fit on a table (N, J), rows weighted by ``free``'s weights."""
    result, weights = free.result, free.data.row_weights
    n_effective = free.data.n_counted
    log_likelihood = float(free.data.weighted(result.row_log_likelihood(values)).sum())
    n_parameters = count_parameters(result)
    n_of_law = free.n_parameters - free.n_of_items
    found = criteria_of(log_likelihood, n_parameters, log_number_of_q(result), n_effective)
    uncertainty = sum(
        float(weights[block.rows] @ block.joint_entropy()) for block in free.row_blocks()
    )
    return Criteria(
        log_likelihood=log_likelihood,
        n_parameters=n_parameters,
        n_at_edge=law_parameters(result.law, result.ruled_out) - n_of_law,
        aic=found.aic,
        bic=found.bic,
        ebic=found.ebic,
        entropy=1.0 - uncertainty / (n_effective * max_state_entropy(result)),
        n_rows=len(values),
        n_cells=int((~np.isnan(values)).sum()),
        n_effective=n_effective,
    )


def max_state_entropy(result: FitResult) -> float:
    """Return the entropy of the uniform distribution over the joint states that may occur."""
    if result.ruled_out is not None:
        return float(np.log(np.count_nonzero(~result.ruled_out)))
    return float(np.log(result.law.space.levels).sum())


@dataclass(frozen=True)
class FitStatistics:
    """Goodness of fit of a model on a table.

    Attributes
    ----------
    criteria : Criteria or None
        Log-likelihood, number of parameters, AIC, BIC, EBIC and entropy.
    absolute : LimitedInformation or None
        M2, RMSEA2 and SRMSR of the categorical items.
    pairs : Table
        Residual correlation of each pair of items with its z score; NaN without a test.
    items : Table
        Observed and expected mean of each item, RMSD over states, and a test against the other
        items.
    checks : Table
        Statistics of the table and of tables drawn from the fit.
    notes : tuple of Message
        Missing statistics with reasons, and cautions.
    n_rows : int
    n_effective : float
        Number of rows, or Kish's effective sample size of weighted rows. Tables have that of the
        rows that each statistic uses.
    """

    criteria: Criteria | None
    absolute: LimitedInformation | None
    pairs: Table
    items: Table
    checks: Table
    notes: tuple[Message, ...]
    n_rows: int
    n_effective: float

    def summary(self, max_shown: int = 8, *, style: Style = PYTHON_STYLE) -> str:
        """Return the statistics as text, the worst pairs, items and checks first."""
        lines = []
        if self.criteria is not None:
            c = self.criteria
            edge = f" ({c.n_at_edge} on the boundary)" if c.n_at_edge else ""
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
                lines += ["", *_worst_lines(title, table, label, max_shown)]
        lines += ["", *(note.render(style) for note in self.notes)] if self.notes else []
        return "\n".join(lines)

    def to_dict(self, *, style: Style = PYTHON_STYLE) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "n_rows": self.n_rows,
            "n_effective": self.n_effective,
            "criteria": None if self.criteria is None else asdict(self.criteria),
            "absolute": None if self.absolute is None else asdict(self.absolute),
            "pairs": self.pairs.to_dicts(),
            "items": self.items.to_dicts(),
            "checks": self.checks.to_dicts(),
            "notes": [note.render(style) for note in self.notes],
        }


def _worst_lines(title: str, table: Table, label: str, max_shown: int) -> list[str]:
    """Return how many tests of a table are significant, and its worst rows."""
    p_values = np.array(table.column("p_value"), dtype=np.float64)
    n_tests = int((~np.isnan(p_values)).sum())
    bonferroni = LEVEL / max(n_tests, 1)
    corrected = f"; {int((p_values < bonferroni).sum())} after Bonferroni correction"
    if np.nanmin(p_values, initial=1.0) >= bonferroni and are_checks(table):
        # Predictive p-values from so few draws cannot be that small.
        corrected = ""
    order = np.argsort(np.where(np.isnan(p_values), np.inf, p_values), kind="stable")
    ranked = Table(table.columns, tuple(table.rows[i] for i in order[:max_shown]))
    counts = (
        f"{int((p_values < LEVEL).sum())} of {n_tests} have p < {LEVEL:g}, "
        f"{expected_rejections(table)}{corrected}"
    )
    return [f"{title} ({label}): {counts if n_tests else 'no test possible'}", *ranked.lines()]


def expected_rejections(table: Table) -> str:
    """Return how many tests of a table have p < .05 under a correct model, as a phrase."""
    if are_checks(table):
        return "few or none expected under a correct model, which was fitted to most of them"
    expected = LEVEL * sum(not np.isnan(p) for p in table.column("p_value"))
    number = f"about {expected:.0f}" if expected >= 1.0 else "less than one"
    return f"{number} expected by chance"


def untested_pairs_note(pairs: Table) -> Message | None:
    """Return how many pairs have no test and why; None if all have one."""
    if not len(pairs):
        return None
    untested = np.isnan(pairs.column("z"))
    disjoint = np.array(pairs.column("n_rows")) == 0
    reasons = {
        "no row has both items": int((untested & disjoint).sum()),
        "too few rows deviate from the expectations of both items, or the parameters fit the pair "
        "almost exactly": int((untested & ~disjoint).sum()),
    }
    reasons = {reason: number for reason, number in reasons.items() if number}
    if not reasons:
        return None
    listed = "; ".join(f"{reason} ({plural(number, 'pair')})" for reason, number in reasons.items())
    return Message(
        "untested-pairs",
        "{n_untested:,} of {n_pairs:,} pairs have no test: {reasons}",
        {
            "n_untested": int(untested.sum()),
            "n_pairs": len(pairs),
            "reasons": next(iter(reasons)) if len(reasons) == 1 else listed,
        },
    )


def fit_statistics(
    result: FitResult | DCRL,
    X: Any,
    *,
    sample_weight: Any = None,
    n_tables: int = 100,
    random_state: Any = 0,
) -> FitStatistics:
    """Return the goodness of fit of a model on a table.

    Beyond 2^13 joint states there is no M2. If the treewidth of the latent graph is also too large
    for exact sums, there are predictive checks only. The notes say so.

    Parameters
    ----------
    result : FitResult or DCRL
    X : array or frame
        The table that was fitted, or another one with the same items.
    sample_weight : array, shape (N,), optional
        For a weighted fit, the same weights. They are survey weights, also if they are whole
        numbers: only their ratios matter, and the rows count for Kish's effective sample size.
        Repeat rows that stand for several identical ones instead. Without weights every row counts
        once, and for a weighted fit the notes say so.
    n_tables : int
        Tables drawn for the predictive checks.
    random_state : int, RandomState or None
    """
    fitted = as_result(result)
    values, weights = weighted_sample(observable_values(fitted, X), sample_weight)
    n_tables = checked_count("n_tables", n_tables)
    rows, places = canonical_rows(fitted, values, weights)
    items = np.argsort(places)
    found = _compute_statistics(
        reorder_items(fitted, items),
        values[np.ix_(rows, items)],
        None if weights is None else weights[rows],
        n_tables,
        root_seed(random_state),
    )
    notes = list(found.notes)
    if was_weighted(fitted) and sample_weight is None:
        notes.append(WEIGHTS_MISSING)
    if weights is not None and not was_weighted(fitted):
        notes.append(WEIGHTS_NEW)
    columns = {name: place for place, (name, _) in enumerate(column_names(fitted))}
    names = {name: place for place, name in enumerate((*fitted.item_names, ALL_ITEMS))}
    return replace(
        found,
        pairs=found.pairs.in_order(columns, n_names=2),
        items=found.items.in_order(columns),
        checks=found.checks.in_order(names),
        notes=tuple(notes),
    )


def _compute_statistics(
    result: FitResult, values: Array, weights: Array | None, n_tables: int, seed: int
) -> FitStatistics:
    """Return the statistics of rows and items in an order that depends on their contents only.

    Floating-point sums depend on the order of their terms; the results must not.
    """
    n_effective = float(len(values)) if weights is None else effective_sample_size(weights)
    checks = run_predictive_checks(result, values, weights, n_tables=n_tables, seed=seed)
    if not can_sum_states(result):
        note = Message(
            "too-many-states",
            "{reason}; only the predictive checks are computed",
            {"reason": too_many_states(result, "each of likelihood, M2, pairs and item fit")},
        )
        return FitStatistics(None, None, _EMPTY, _EMPTY, checks, (note,), len(values), n_effective)
    free = FreeParameters.of(result, values, weights)
    columns = ScoredColumns.of(free, values)
    scores = LocalScores.of(free, row_scores(free))
    absolute = compute_limited_information(free, columns)
    pairs = compute_pair_residuals(free, columns, scores)
    notes = [absolute if isinstance(absolute, Message) else None, untested_pairs_note(pairs)]
    if np.isnan(values).any():
        note = Message(
            "missing-at-random",
            "pairs and items use the rows that observed them{m2}; this is valid if cells are "
            "missing completely at random",
            {"m2": "" if isinstance(absolute, Message) else ", M2 uses complete rows"},
        )
        notes.append(note)
    return FitStatistics(
        criteria=compute_criteria(free, values),
        absolute=None if isinstance(absolute, Message) else absolute,
        pairs=pairs,
        items=compute_item_fit(free, columns, scores),
        checks=checks,
        notes=tuple(note for note in notes if note is not None),
        n_rows=len(values),
        n_effective=n_effective,
    )
