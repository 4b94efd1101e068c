"""Goodness of fit: information criteria, M2, residual pairs, item fit and predictive checks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.rows import describe_rows, effective_sample_size, weighted_mean_std
from hidag.diagnostics.item_fit import compute_item_fit
from hidag.diagnostics.limited_information import LimitedInformation, compute_limited_information
from hidag.diagnostics.pair_residuals import compute_pair_residuals
from hidag.exceptions import PYTHON_STYLE, Advice, Message, Setting, Style
from hidag.fitting import information_criteria
from hidag.fitting.settings import checked_count, root_seed
from hidag.formatting import plural
from hidag.inference import fitted_rows
from hidag.inference.intervals import percentile_interval
from hidag.inference.result_tables import N_EFFECTIVE, Table
from hidag.information.free_parameters import FreeParameters, row_scores
from hidag.information.moment_tests import LocalScores, ScoredColumns, column_names
from hidag.information.posterior_tables import too_many_states
from hidag.measurement.families import item_type
from hidag.measurement.parameters import category_label, nominal_item
from hidag.results import AnyFit, FitResult, as_result, canonical_rows, reorder_items
from hidag.views import View

Array = NDArray[np.float64]
CHECK_COLUMNS = ("item", "statistic", "observed", "expected", "lower", "upper", "p_value", "n_rows")
ALL_ITEMS = "(all items)"
MAX_ITEMS_FOR_PAIRS = 300  # Correlations of pairs are compared up to this many items
LEVEL = 0.05  # Significance level of the tests in summaries
_EMPTY = Table((), ())
WEIGHTS = Setting("sample_weight")
WEIGHTS_MISSING = Message(
    "weights-missing",
    "the fit used sample weights but these statistics do not: likelihood and criteria are those of "
    "unweighted rows, and misfit may come from the weights",
    advice=Advice("repeat-weights", "give the same weights as {setting}", {"setting": WEIGHTS}),
)
WEIGHTS_NEW = Message(
    "weights-not-in-fit",
    "these statistics use sample weights but the fit did not: misfit may come from the weights",
)


def run_predictive_checks(
    result: FitResult, values: Array, weights: Array | None = None, *, n_tables: int, seed: int
) -> Table:
    """Return observed statistics with those of tables drawn from the fit.

    *lower* and *upper* are a 90 % prediction interval; *p_value* is two-sided. With weights there
    are no extremes, because weighting does not make those of a sample those of the population.
    """
    rows, places = canonical_rows(result, values, weights)
    ordered = values[rows]
    row_weights = None if weights is None else weights[rows]
    missing = np.isnan(ordered)
    names, observed = _statistics(result, ordered, row_weights)
    tables = fitted_rows.draw_tables(result, missing, places, n_tables, seed)
    drawn = np.array([_statistics(result, table, row_weights)[1] for table in tables])
    counts = {name: int((~missing[:, j]).sum()) for j, name in enumerate(result.item_names)}
    out = []
    for i, (item, statistic) in enumerate(names):
        below, above = (drawn[:, i] <= observed[i]).sum(), (drawn[:, i] >= observed[i]).sum()
        p_value = min(1.0, 2.0 * (1 + min(below, above)) / (1 + n_tables))
        low, high = percentile_interval(drawn[:, i], 0.9)
        n_rows = counts.get(item, len(values))
        mean = drawn[:, i].mean()
        out.append((item, statistic, observed[i], mean, float(low), float(high), p_value, n_rows))
    found = Table.of(CHECK_COLUMNS, out)
    if row_weights is None:
        return found
    seen = zip(result.item_names, ~missing.T, strict=True)
    sizes = {name: effective_sample_size(row_weights[own]) for name, own in seen}
    total = effective_sample_size(row_weights)
    return found.with_column(N_EFFECTIVE, (sizes.get(item, total) for item, _ in names))


def are_checks(table: Table) -> bool:
    """Return whether a table is one of predictive checks."""
    return table.columns[: len(CHECK_COLUMNS)] == CHECK_COLUMNS


def _statistics(
    result: FitResult, values: Array, weights: Array | None
) -> tuple[list[tuple[str, str]], Array]:
    """Return the names of the statistics, by item and statistic, and their values."""
    row_weights = np.ones(len(values)) if weights is None else weights
    names: list[tuple[str, str]] = []
    out: list[float] = []
    for j, item in enumerate(result.item_names):
        seen = ~np.isnan(values[:, j])
        x, own = values[seen, j], row_weights[seen]
        if not len(x):
            continue
        mean, spread = weighted_mean_std(x, own)
        nominal = nominal_item(result.families[j])
        if nominal is not None:
            words = result.answer_words.get(item)
            names += [(item, f"share of {category_label(c, words)}") for c in nominal.order]
            out += [_share(x == category, own) for category in nominal.order]
            continue
        found = {"mean": mean}
        if not item_type(result.families[j]).is_binary:
            found["standard deviation"] = spread
            if weights is None:
                found |= {"smallest": float(x.min()), "largest": float(x.max())}
            found["share of zeros"] = _share(x == 0, own)
        names += [(item, name) for name in found]
        out += found.values()
    if values.shape[1] > 1:
        names.append((ALL_ITEMS, "spread of rows' means"))
        number = (~np.isnan(values)).sum(axis=1)
        means = _standardise(values, row_weights).sum(axis=1)[number > 0] / number[number > 0]
        out.append(weighted_mean_std(means, row_weights[number > 0])[1])
        if values.shape[1] <= MAX_ITEMS_FOR_PAIRS:
            names.append((ALL_ITEMS, "mean absolute correlation"))
            out.append(_mean_correlation(values, row_weights))
    return names, np.array(out)


def _share(condition: NDArray[np.bool_], weights: Array) -> float:
    return weighted_mean_std(condition.astype(np.float64), weights)[0]


def _standardise(values: Array, weights: Array) -> Array:
    """Return standardised columns, zero where missing."""
    seen, by = ~np.isnan(values), weights[:, None]
    filled = np.where(seen, values, 0.0)
    number = (by * seen).sum(axis=0)
    number[number == 0] = 1.0
    centred = np.where(seen, values - (by * filled).sum(axis=0) / number, 0.0)
    spread = np.sqrt((by * centred**2).sum(axis=0) / number)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def _mean_correlation(values: Array, weights: Array) -> float:
    standard, seen = _standardise(values, weights), (~np.isnan(values)).astype(np.float64)
    by = weights[:, None]
    both = (by * seen).T @ seen
    both[both == 0] = 1.0
    left, right = np.triu_indices(values.shape[1], 1)
    return float(np.abs(((by * standard).T @ standard / both)[left, right]).mean())


@dataclass(frozen=True)
class Criteria:
    """Log-likelihood of the observed cells of a table, and the information criteria of the fit.

    EBIC is BIC plus twice the logarithm of the number of Q-matrices with as many entries (BIC for a
    given Q). Entropy is one minus the mean posterior entropy of the joint state relative to its
    maximum over possible states: 1 if all rows are classified with certainty.
    """

    log_likelihood: float
    n_parameters: int
    n_at_edge: int  # probabilities of the law among them with an expected count below half a row
    aic: float
    bic: float
    ebic: float
    entropy: float
    n_rows: int
    n_cells: int  # observed
    n_effective: float  # number of rows, or their effective sample size, which BIC uses


def compute_criteria(free: FreeParameters, values: Array) -> Criteria:
    """Return the criteria of a fit on a table (N, J), rows weighted by ``free``'s weights."""
    result, weights = free.result, free.data.row_weights
    n_effective = free.data.n_counted
    log_likelihood = float(free.data.weighted(result.row_log_likelihood(values)).sum())
    n_parameters = information_criteria.count_parameters(result)
    n_of_law = free.n_parameters - free.n_of_items
    found = information_criteria.criteria_of(
        log_likelihood, n_parameters, information_criteria.log_number_of_q(result), n_effective
    )
    entropies = ((block.rows, block.joint_entropy()) for block in free.row_blocks())
    uncertainty = sum(float(weights[rows] @ entropy) for rows, entropy in entropies)
    return Criteria(
        log_likelihood=log_likelihood,
        n_parameters=n_parameters,
        n_at_edge=information_criteria.law_parameters(result.law, result.ruled_out) - n_of_law,
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


@dataclass(frozen=True, repr=False)
class FitStatistics(
    View,
    title="{0.n_rows} rows, {0._worst}",
    frames={"items": "items", "pairs": "pairs", "checks": "checks", "measures": "_measures"},
):
    """Goodness of fit of a model on a table.

    Attributes
    ----------
    criteria : Criteria or None, likelihood, number of parameters, AIC, BIC, EBIC and entropy
    absolute : LimitedInformation or None, M2, RMSEA2 and SRMSR of the categorical items
    pairs : Table, residual correlation of each pair of items with its z score; NaN without a test
    items : Table, observed and expected means, RMSD over states, and a test against the other items
    checks : Table, statistics of the table and of tables drawn from the fit
    notes : tuple of Message, missing statistics with reasons, and cautions
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

    @property
    def _worst(self) -> str:
        """The smallest p-value of the items and that of M2."""
        least = np.nanmin([*self.items.column("p_value"), 1.0]) if len(self.items) else 1.0
        absolute = "" if self.absolute is None else f", RMSEA2 {self.absolute.rmsea:.3f}"
        return f"smallest p-value of an item {least:.2g}{absolute}"

    def _measures(self) -> dict[str, Any]:
        parts = (one for one in (self.criteria, self.absolute) if one is not None)
        return {name: value for one in parts for name, value in asdict(one).items()}

    def summary(self, max_shown: int = 8, *, style: Style = PYTHON_STYLE) -> str:
        """Return the statistics as text, with the ``max_shown`` worst pairs, items and checks.

        Notes name settings in the given ``style``, by default that of Python.
        """
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
        """Return everything as plain values; the notes name settings in the given ``style``."""
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
    counts = f"{int((p_values < LEVEL).sum())} of {n_tests} have p < {LEVEL:g}, "
    counts += f"{expected_rejections(table)}{corrected}"
    return [f"{title} ({label}): {counts if n_tests else 'no test possible'}", *ranked.lines()]


def expected_rejections(table: Table) -> str:
    """Return how many tests of a table have p < .05 under a correct model, as a phrase."""
    if are_checks(table):
        return "few or none expected under a correct model: the fit reproduces most of them"
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
    text = "{n_untested:,} of {n_pairs:,} pairs have no test: {reasons}"
    why = next(iter(reasons)) if len(reasons) == 1 else listed
    params = {"n_untested": int(untested.sum()), "n_pairs": len(pairs), "reasons": why}
    return Message("untested-pairs", text, params)


def fit_statistics(
    result: AnyFit,
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

    Returns
    -------
    FitStatistics
        M2 with RMSEA2 and SRMSR, fit of items and pairs of items, predictive checks.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> found = hidag.fit_statistics(model, skills.X, n_tables=5)
    >>> found.absolute.rmsea < 0.03  # M2, RMSEA2 and SRMSR of categorical items
    True
    """
    fitted = as_result(result)
    fitted.refuse_nuisance("goodness of fit")
    values, weights = fitted_rows.weighted_sample(
        fitted_rows.observable_values(fitted, X), sample_weight
    )
    n_tables = checked_count("n_tables", n_tables)
    rows, places = canonical_rows(fitted, values, weights)
    items = np.argsort(places)
    ordered = reorder_items(fitted, items), values[np.ix_(rows, items)]
    row_weights = None if weights is None else weights[rows]
    found = _compute_statistics(*ordered, row_weights, n_tables, root_seed(random_state))
    notes = list(found.notes)
    if fitted.weighted and sample_weight is None:
        notes.append(WEIGHTS_MISSING)
    if weights is not None and not fitted.weighted:
        notes.append(WEIGHTS_NEW)
    columns = {name: place for place, (name, _) in enumerate(column_names(fitted))}
    names = {name: place for place, name in enumerate((*fitted.item_names, ALL_ITEMS))}
    return replace(
        found,
        pairs=found.pairs.in_order(columns, n_names=2),
        items=found.items.in_order(columns),
        checks=found.checks.in_order(names),
        notes=tuple(notes),
    ).like(X)


def _compute_statistics(
    result: FitResult, values: Array, weights: Array | None, n_tables: int, seed: int
) -> FitStatistics:
    """Return the statistics of rows and items in canonical order, on which rounding depends."""
    n_effective = float(len(values)) if weights is None else effective_sample_size(weights)
    checks = run_predictive_checks(result, values, weights, n_tables=n_tables, seed=seed)
    if not fitted_rows.can_sum_states(result):
        reason = too_many_states(result, "each of likelihood, M2, pairs and item fit")
        text = "{reason}; only the predictive checks are computed"
        note = Message("too-many-states", text, {"reason": reason})
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
