"""Validation of a provisional Q-matrix: entries that the data would add or drop."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from hidag.data.q_matrix import QSpec, read_q_matrix
from hidag.data.rows import select_weighted_rows
from hidag.data.table import read_table
from hidag.diagnostics import q_entry_tests as entry_tests
from hidag.estimator import DCRL
from hidag.exceptions import Advice, DataError, HidagWarning, Message, Setting, SettingError
from hidag.fitting.settings import root_seed
from hidag.formatting import first_names, plural
from hidag.inference.fitted_rows import can_sum_states, require_weights
from hidag.inference.result_tables import Table
from hidag.information.posterior_tables import too_many_states
from hidag.metrics.matching import Parts, match_latents
from hidag.results import AnyFit, FitResult, as_result, canonical_rows
from hidag.views import View

Array = NDArray[np.float64]
IntArray = NDArray[np.int8]

N_CANDIDATES = 4  # Refits at each step, of the changes with the best screening statistics
MAX_REFITS = 24  # Entries with a likelihood ratio from a refit
_COLUMNS = (
    "item", "latent", "provisional", "suggested", "estimated", "action", "screening",
    "likelihood_ratio", "degrees", "p_value", "penalty", "support",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class QValidation(
    View,
    title="{0._n_changed} of {0.provisional.size} entries would be changed",
    frames={"entries": "entries", "steps": "steps"},
):
    """Result of the validation of a provisional Q.

    Attributes
    ----------
    entries : Table
        One row for each entry of Q. *screening* approximates twice the gain (add) or loss (drop) in
        log-likelihood from changing this entry alone, without a refit; *likelihood_ratio* is the
        same from a refit, for the least supported entries; *penalty* is that of the criterion;
        *support* is the share of resampled tables in which the change is selected. An addition is
        selected if it gains more than the penalty, a removal if it loses less. *action* is "not
        judged" where prerequisites leave no state in which the entry matters.
    provisional, suggested : int8 arrays (J, K)
    estimated : int8 array (J, K) or None, from a fit without a given Q, latents matched
    steps : Table, changes from the provisional to the suggested Q, one at a time, each refitted
    log_likelihood, suggested_log_likelihood : float
    n_rows, n_resamples : int
    n_counted : float, number of rows, or the sum of their weights
    item_names, latent_names : tuple of str
    """

    entries: Table
    provisional: IntArray
    suggested: IntArray
    estimated: IntArray | None
    steps: Table
    log_likelihood: float
    suggested_log_likelihood: float
    n_rows: int
    n_counted: float
    n_resamples: int
    item_names: tuple[str, ...]
    latent_names: tuple[str, ...]

    @property
    def _n_changed(self) -> int:
        return int((self.provisional != self.suggested).sum())

    def describe_rows(self) -> str:
        """Return the number of rows, and the sum of their weights if it differs."""
        rows, same = f"{self.n_rows:,} rows", self.n_counted == self.n_rows
        return rows if same else f"{rows} with weights that sum to {self.n_counted:,.0f}"

    def doubtful(self) -> Table:
        """Return the entries whose change is selected, alone or in a step."""
        rows = [
            row
            for row, entry in zip(self.entries.rows, self.entries.to_dicts(), strict=True)
            if entry["provisional"] != entry["suggested"]
            or _excess(entry["action"], entry["likelihood_ratio"], entry["penalty"]) > 0
        ]
        return Table(self.entries.columns, tuple(rows))

    def untested_note(self) -> Message | None:
        """Return which entries cannot be tested because of prerequisites; None if all can."""
        untested = self.entries.where(action=entry_tests.NOT_TESTED).to_dicts()
        if not untested:
            return None
        text = (
            "{entries} cannot be tested and stay unchanged, because prerequisites rule out all "
            "states in which they matter: {names}"
        )
        names = first_names([f"{row['item']} on {row['latent']}" for row in untested])
        number = plural(len(untested), "entry", "entries")
        return Message("untested-entries", text, {"entries": number, "names": names})

    def summary(self, max_shown: int = 30) -> str:
        """Return up to ``max_shown`` suggested changes and the Q-matrices side by side as text."""
        lines = [
            f"provisional Q on {self.describe_rows()}: log-likelihood {self.log_likelihood:,.2f}; "
            f"{self._headline()}, to a log-likelihood of {self.suggested_log_likelihood:,.2f}"
        ]
        for heading, table, most in (
            ("stepwise changes, each tested in the Q of the step before", self.steps, None),
            (
                "doubtful entries, each tested as the only change of the provisional Q",
                self.doubtful(),
                max_shown,
            ),
        ):
            lines += ["", heading, *table.lines(most)] if len(table) else []
        note = self.untested_note()
        lines += [] if note is None else ["", str(note)]
        lines += ["", "Q-matrices (+ added, - dropped)", *self.side_by_side()]
        return "\n".join(lines)

    def side_by_side(self) -> list[str]:
        """Return the provisional, suggested and, if there is one, estimated Q as lines."""
        signs = {(1, 1): "1", (0, 0): ".", (0, 1): "+", (1, 0): "-"}
        both = (self.suggested,) if self.estimated is None else (self.suggested, self.estimated)
        in_brackets = [f"({name})" for name in self.latent_names] if len(both) == 2 else []
        rows = (
            [
                name,
                *(
                    signs[pair]
                    for q in both
                    for pair in zip(own.tolist(), q[j].tolist(), strict=True)
                ),
            ]
            for j, (name, own) in enumerate(zip(self.item_names, self.provisional, strict=True))
        )
        lines = Table.of(["item", *self.latent_names, *in_brackets], rows).lines()
        if self.estimated is not None:
            lines.append("in brackets: estimated without a given Q")
        return lines


def validate_q(
    fit: AnyFit,
    X: Any,
    provisional_q: Any = None,
    *,
    estimated: AnyFit | None = None,
    sample_weight: Any = None,
    n_resamples: int = 0,
    max_changes: int = 20,
    random_state: Any = 0,
) -> QValidation:
    """Return which entries of a provisional Q the data would add or drop.

    All entries are screened by score and Wald tests, and the least supported ones refitted. From
    the provisional Q the best change is then made, one at a time, while twice the gain in
    log-likelihood exceeds the penalty: log N for each coefficient and log K for the choice. Entries
    that matter in no state allowed by prerequisites stay unchanged.

    Parameters
    ----------
    fit : FitResult or DCRL
        A fit with the provisional Q given; or an estimator, whose settings are used to fit the
        provisional Q first. If it was fitted without a given Q, its Q is shown for comparison.
    X : array or frame
    provisional_q : array or frame, shape (J, K), optional
        1 and 0; by default the Q given to the fit.
    estimated : FitResult or DCRL, optional
        A fit without a given Q for comparison; its latents are matched to those of the Q.
    sample_weight : array, shape (N,), optional
        As in ``DCRL.fit``; for a weighted fit, the same weights. All statistics take a weight as
        the number of identical rows: pass survey weights through ``hidag.survey_weights`` first.
    n_resamples : int
        Resampled tables on which doubtful entries are tested again.
    max_changes : int
    random_state : int, RandomState or None
        Seed of the resampling and of additional fits.

    Returns
    -------
    QValidation
        The tests of all entries, the suggested Q and the steps that lead to it.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> hidag.validate_q(model, skills.X)
    QValidation(0 of 45 entries would be changed)
    """
    for name, number in (("n_resamples", n_resamples), ("max_changes", max_changes)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
            reason = "{setting} must be a whole number of at least 0, got {value!r}"
            raise SettingError("invalid-count", reason, setting=Setting(name), value=number)
    seed = root_seed(random_state)
    if isinstance(fit, FitResult):
        require_weights(fit, sample_weight, "judging its Q")
    result = fit_provisional(fit, X, provisional_q, seed, sample_weight)
    if estimated is None and hasattr(fit, "result_") and not has_given_q(fit.result_):
        estimated = fit
    result.refuse_nuisance("validation of Q")
    if not can_sum_states(result):
        raise too_many_states(result, "validation of Q")
    table, weights = select_weighted_rows(read_table(result.rows(X), min_rows=2), sample_weight)
    values = table.values
    model = entry_tests.fit_given_q(result, values, weights)
    tests = entry_tests.screen_entries(model)
    ratios = _refit_entries(model, _most_doubtful(model, tests))
    better, steps = _change_stepwise(model, ratios, max_changes)
    selected = {key for key, ratio in ratios.items() if ratio.excess > 0}
    selected |= {(int(j), int(k)) for j, k in np.argwhere(better.q != model.q)}
    support = _resample_support(model, sorted(selected), n_resamples, seed)
    other = None if estimated is None else match_estimated_q(as_result(estimated), result)
    names, latents = result.item_names, result.latent_names
    rows = []
    for test in tests:
        key = (test.item, test.latent)
        ratio = ratios.get(key)
        value, degrees = (np.nan, test.degrees) if ratio is None else (ratio.value, ratio.degrees)
        best = test.statistic if np.isnan(value) else value
        p_value = float(chi2.sf(best, degrees)) if degrees and not np.isnan(best) else np.nan
        penalty = (
            np.nan if test.action == entry_tests.NOT_TESTED else change_penalty(model, degrees)
        )
        third = "" if other is None else int(other[key])
        entry = (names[test.item], latents[test.latent], model.q[key], better.q[key], third)
        numbers = (test.statistic, value, degrees, p_value, penalty, support.get(key, np.nan))
        rows.append((*entry, test.action, *numbers))
    return QValidation(
        entries=Table.of(_COLUMNS, rows),
        provisional=model.q,
        suggested=better.q,
        estimated=other,
        steps=steps,
        log_likelihood=model.log_likelihood,
        suggested_log_likelihood=better.log_likelihood,
        n_rows=len(values),
        n_counted=model.n_rows,
        n_resamples=int(n_resamples),
        item_names=names,
        latent_names=latents,
    ).like(X)


def change_penalty(model: entry_tests.QModel, degrees: int) -> float:
    """Return the penalty of a change, on the scale of twice the log-likelihood."""
    return degrees * float(np.log(model.n_rows)) + float(np.log(max(model.q.shape[1], 1)))


def _excess(action: str, value: float, penalty: float) -> float:
    """Return the gain beyond the penalty (add), or the penalty beyond the loss (drop)."""
    return value - penalty if action == "add" else penalty - value


@dataclass(frozen=True)
class _Ratio:
    """Twice the gain (add) or loss (drop) in log-likelihood of a change, from a refit."""

    action: str
    value: float
    degrees: int
    penalty: float
    excess: float  # over the penalty; the change is selected if positive
    model: entry_tests.QModel


def _likelihood_ratio(model: entry_tests.QModel, item: int, latent: int) -> _Ratio:
    other = entry_tests.flip_entry(model.q, item, latent)
    degrees = model.n_coefficients(other, item) - model.n_coefficients(model.q, item)
    action = "add" if other[item, latent] else "drop"
    refitted = model.refit(other)
    gained = refitted.log_likelihood - model.log_likelihood
    if action == "drop" and gained > 0 and not model.effects.conjunctive:
        # A nested model cannot fit better: the fit was in a lower local maximum.
        gained = refitted.log_likelihood - refitted.refit(model.q).log_likelihood
    value = 2.0 * gained if action == "add" else -2.0 * gained
    penalty = change_penalty(model, abs(degrees))
    return _Ratio(action, value, abs(degrees), penalty, _excess(action, value, penalty), refitted)


def _refit_entries(
    model: entry_tests.QModel, chosen: Sequence[entry_tests.EntryTest]
) -> dict[tuple[int, int], _Ratio]:
    return {(t.item, t.latent): _likelihood_ratio(model, t.item, t.latent) for t in chosen}


def _most_doubtful(
    model: entry_tests.QModel, tests: Sequence[entry_tests.EntryTest]
) -> list[entry_tests.EntryTest]:
    """Return the entries to refit: those closest to being changed by the screening statistic."""

    def excess(test: entry_tests.EntryTest) -> float:
        if np.isnan(test.statistic):
            return 0.0
        return _excess(test.action, test.statistic, change_penalty(model, test.degrees))

    testable = [test for test in tests if test.action != entry_tests.NOT_TESTED]
    ranked = sorted(testable, key=lambda test: (-excess(test), test.item, test.latent))
    if model.effects.conjunctive:
        return ranked
    near = [test for test in ranked if excess(test) > -change_penalty(model, test.degrees)]
    return near[:MAX_REFITS]


def _change_stepwise(
    model: entry_tests.QModel, ratios: dict[tuple[int, int], _Ratio], max_changes: int
) -> tuple[entry_tests.QModel, Table]:
    """Return the model after the best changes, one at a time, and the table of changes."""
    current = model
    steps: list[tuple[Any, ...]] = []
    names, latents = model.result.item_names, model.result.latent_names
    visited = {model.q.tobytes()}
    while len(steps) < max_changes:
        if steps:
            chosen = _most_doubtful(current, entry_tests.screen_entries(current))
            most = None if current.effects.conjunctive else N_CANDIDATES
            ratios = _refit_entries(current, chosen[:most])
        unseen = {k: r for k, r in ratios.items() if r.model.q.tobytes() not in visited}
        key = max(unseen, key=lambda k: (unseen[k].excess, -k[0], -k[1]), default=None)
        if key is None or unseen[key].excess <= 0:
            break
        best = unseen[key]
        steps.append((names[key[0]], latents[key[1]], best.action, best.value, best.penalty))
        current = best.model
        visited.add(current.q.tobytes())
    return current, Table.of(("item", "latent", "action", "likelihood_ratio", "penalty"), steps)


def _resample_support(
    model: entry_tests.QModel, entries: Sequence[tuple[int, int]], n_resamples: int, seed: int
) -> dict[tuple[int, int], float]:
    """Return the share of resampled tables in which each change alone is selected."""
    if not n_resamples or not entries:
        return {}
    rows, _ = canonical_rows(model.result, model.values)
    hits = dict.fromkeys(entries, 0)
    for number in range(n_resamples):
        n_rows = len(model.values)
        weights = np.empty(n_rows)
        draw = np.random.default_rng((seed, number)).multinomial
        weights[rows] = draw(n_rows, np.full(n_rows, 1.0 / n_rows))
        # Rows are resampled with equal probabilities and keep their weights.
        resampled = model.reweight(weights if model.weights is None else weights * model.weights)
        for key in entries:
            hits[key] += _likelihood_ratio(resampled, *key).excess > 0
    return {key: count / n_resamples for key, count in hits.items()}


def has_given_q(result: FitResult) -> bool:
    """Return whether a fit was given a Q without entries to estimate."""
    return result.q_given is not None and bool((result.q_given >= 0).all())


def fit_provisional(
    fit: AnyFit, X: Any, provisional_q: Any, seed: int, sample_weight: Any = None
) -> FitResult:
    """Return a fit with the provisional Q: ``fit`` itself, or one with an estimator's settings."""
    advice = Advice("give-q", "pass it as {setting}", {"setting": Setting("provisional_q")})
    if isinstance(fit, FitResult):
        if not has_given_q(fit):
            reason = "the fit was not given a Q with only 1 and 0 as entries"
            raise DataError("no-q", reason, advice="pass a DCRL and the provisional Q")
        if provisional_q is not None:
            other = _require_complete(read_q_matrix(provisional_q, fit.item_names))
            if not np.array_equal(other.entries, fit.q_matrix):
                reason = "a result can only be validated with the Q that it was given"
                raise DataError("other-q", reason, advice="pass a DCRL and the provisional Q")
        return fit
    given = fit.q_matrix if provisional_q is None else provisional_q
    if given is None:
        raise DataError("no-q", "there is no Q to validate", advice=advice)
    items = read_table(X).names
    known = _require_complete(read_q_matrix(given, items))
    names = known.latent_names if known.named else fit.latent_names
    own = {"q_matrix": known.entries, "latent_names": names, "n_latents": known.n_latents}
    model = DCRL(**fit.get_params() | own | {"random_state": seed})
    with warnings.catch_warnings():
        # The validation itself reports the evidence about this Q.
        warnings.simplefilter("ignore", HidagWarning)
        return replace(model.fit(X, sample_weight=sample_weight).result_, item_names=items)


def _require_complete(q: QSpec) -> QSpec:
    if not q.fully_known:
        reason = (
            "the provisional Q must have only 1 and 0 as entries, but {entries} to be estimated"
        )
        entries = plural(int((q.entries < 0).sum()), "entry is", "entries are")
        advice = "fit it and validate the estimated Q"
        raise DataError("incomplete-q", reason, advice=advice, entries=entries)
    return q


def match_estimated_q(estimated: FitResult, provisional: FitResult) -> IntArray:
    """Return an estimated Q with its latents matched to those of the provisional one."""
    if estimated.item_names != provisional.item_names:
        reason = "{setting} must have the items of the provisional Q in the same order"
        raise DataError("wrong-items", reason, setting=Setting("estimated"))
    ours = Parts(estimated.q_matrix, loadings=estimated.strengths)
    matching = match_latents(ours, Parts(provisional.q_matrix, loadings=provisional.strengths))
    out = np.zeros_like(provisional.q_matrix)
    for k, column in enumerate(matching.permutation):
        if column >= 0:
            out[:, k] = estimated.q_matrix[:, column]
    return out
