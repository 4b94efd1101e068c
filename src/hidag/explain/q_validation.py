"""Is my Q right: entries that the data would add or drop, and what they say for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from hidag.errors import SettingError
from hidag.estimator import DCRL
from hidag.explain.draws import canonical_rows
from hidag.explain.given_q import GivenQ, changed, given_q
from hidag.explain.provisional import has_given_q, matched_q, provisional_fit
from hidag.explain.q_screening import NOT_JUDGED, Screened, screened_entries
from hidag.explain.q_verdict import QValidation
from hidag.explain.rows import can_sum_states, need_weights
from hidag.explain.state_tables import too_many_states
from hidag.explain.tables import Table
from hidag.observations import read_table
from hidag.result import FitResult
from hidag.row_weights import weighted_rows
from hidag.settings import root_seed

Array = NDArray[np.float64]
Q = NDArray[np.int8]

#: Changes that are fitted at each step, the most promising at a glance.
TRIED = 4
#: Entries whose likelihood ratio is found by a refit.
MOST_REFITS = 24
_COLUMNS = (
    "item", "latent", "provisional", "suggested", "estimated", "action", "screening",
    "likelihood_ratio", "degrees", "p_value", "price", "support",
)  # fmt: skip


def validate_q(
    fit: FitResult | DCRL,
    X: Any,
    provisional_q: Any = None,
    *,
    estimated: FitResult | None = None,
    sample_weight: Any = None,
    n_resamples: int = 0,
    max_changes: int = 20,
    random_state: Any = 0,
) -> QValidation:
    """Return which entries of a provisional Q the data would add or drop.

    Every entry is judged at a glance (score and Wald tests), the most doubtful ones by refits. From
    the provisional Q the best change is then made, one at a time, as long as twice the
    log-likelihood pays for it: log N for each coefficient and log K for the choice. Entries stay as
    they are that make no difference in any state that prerequisites let occur: no data judge them.

    Parameters
    ----------
    fit : FitResult or DCRL
        A fit with the provisional Q given; or one without, or an estimator, whose settings are
        taken to fit the provisional Q first. A fit without a given Q is shown beside it. What a
        fit was told of its latents (edges, tiers, prerequisites, names, levels) holds for those of
        the provisional Q: by name, or by column if that has no names and the fit had a Q. Where
        latents differ a warning says what is left out.
    X : array or frame
    provisional_q : array or frame, shape (J, K), optional
        1 and 0; by default the Q that the fit was given.
    estimated : FitResult, optional
        A fit without a given Q to show beside; its latents are matched to those of the Q.
    sample_weight : array, shape (N,), optional
        As in ``DCRL.fit``; of a fit that had weights, the same. All numbers, statistics at a glance
        and p-values among them, are those of a table in which every row stands as often as its
        weight says: weights of a survey go through ``hidag.survey_weights`` first.
    n_resamples : int
        Tables of resampled rows on which doubtful entries are judged again.
    max_changes : int
    random_state : int, RandomState or None
        Of the resampling, and of fits that have to be made.
    """
    for name, number in (("n_resamples", n_resamples), ("max_changes", max_changes)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
            raise SettingError(f"{name} must be a whole number of at least 0, got {number!r}")
    seed = root_seed(random_state)
    if isinstance(fit, FitResult):
        need_weights(fit, sample_weight, "judging its Q")
    result = provisional_fit(fit, X, provisional_q, seed, sample_weight)
    if isinstance(fit, FitResult) and estimated is None and not has_given_q(fit):
        estimated = fit
    if not can_sum_states(result):
        raise SettingError(too_many_states(result, "judging entries of Q"))
    counted, weights = weighted_rows(read_table(result.rows(X), min_rows=2), sample_weight)
    values = counted.values
    model = given_q(result, values, weights)
    glance = screened_entries(model)
    ratios = _refits(model, _most_doubtful(model, glance))
    better, steps = _stepwise(model, glance, ratios, max_changes)
    asked = {key for key, told in ratios.items() if told.worth_while}
    asked |= {(int(j), int(k)) for j, k in np.argwhere(better.q != model.q)}
    support = _support(model, sorted(asked), n_resamples, seed)
    other = None if estimated is None else matched_q(estimated, result)
    names, latents = result.item_names, result.latent_names
    rows = []
    for told in glance:
        key = (told.item, told.latent)
        ratio = ratios.get(key)
        value, degrees = (np.nan, told.degrees) if ratio is None else (ratio.value, ratio.degrees)
        best = told.statistic if np.isnan(value) else value
        rows.append(
            (
                names[told.item],
                latents[told.latent],
                int(model.q[key]),
                int(better.q[key]),
                "" if other is None else int(other[key]),
                told.action,
                told.statistic,
                value,
                degrees,
                float(chi2.sf(best, degrees)) if degrees and not np.isnan(best) else np.nan,
                np.nan if told.action == NOT_JUDGED else price(model, degrees),
                support.get(key, np.nan),
            )
        )
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
    )


def price(model: GivenQ, degrees: int) -> float:
    """Return what a change has to be worth in twice the log-likelihood."""
    return degrees * float(np.log(model.n_rows)) + float(np.log(max(model.q.shape[1], 1)))


@dataclass(frozen=True)
class _Ratio:
    """Twice the log-likelihood that a change gains (add) or costs (drop), by a refit."""

    action: str
    value: float
    degrees: int
    price: float
    model: GivenQ

    @property
    def excess(self) -> float:
        """What the change is worth beyond its price; what is saved counts for a removal."""
        gain = self.value - self.price
        return gain if self.action == "add" else -gain

    @property
    def worth_while(self) -> bool:
        return self.excess > 0


def _ratio(model: GivenQ, item: int, latent: int) -> _Ratio:
    other = changed(model.q, item, latent)
    degrees = model.n_coefficients(other, item) - model.n_coefficients(model.q, item)
    action = "add" if other[item, latent] else "drop"
    refitted = model.fitted(other)
    gained = refitted.log_likelihood - model.log_likelihood
    if action == "drop" and gained > 0 and not model.effects.conjunctive:
        # One of two nested models cannot fit better: the fit was not at its highest maximum.
        gained = refitted.log_likelihood - refitted.fitted(model.q).log_likelihood
    value = 2.0 * gained if action == "add" else -2.0 * gained
    return _Ratio(action, value, abs(degrees), price(model, abs(degrees)), refitted)


def _most_doubtful(model: GivenQ, glance: Sequence[Screened]) -> list[Screened]:
    """Return the entries to be refitted: those nearest to being changed, at a glance."""

    def excess(told: Screened) -> float:
        if np.isnan(told.statistic):
            return 0.0
        gain = told.statistic - price(model, told.degrees)
        return gain if told.action == "add" else -gain

    told_apart = [told for told in glance if told.action != NOT_JUDGED]
    ranked = sorted(told_apart, key=lambda told: (-excess(told), told.item, told.latent))
    if model.effects.conjunctive:
        return ranked
    # What is far from its price at a glance needs no refit.
    near = [told for told in ranked if excess(told) > -price(model, told.degrees)]
    return near[:MOST_REFITS]


def _refits(model: GivenQ, chosen: Sequence[Screened]) -> dict[tuple[int, int], _Ratio]:
    return {(told.item, told.latent): _ratio(model, told.item, told.latent) for told in chosen}


def _stepwise(
    model: GivenQ,
    glance: Sequence[Screened],
    ratios: dict[tuple[int, int], _Ratio],
    max_changes: int,
) -> tuple[GivenQ, Table]:
    """Return the model after the best changes, one at a time, and what they were."""
    current = model
    steps: list[tuple[Any, ...]] = []
    names, latents = model.result.item_names, model.result.latent_names
    seen = {model.q.tobytes()}
    while len(steps) < max_changes:
        tried = ratios
        if steps:
            chosen = _most_doubtful(current, screened_entries(current))
            tried = _refits(current, chosen if current.effects.conjunctive else chosen[:TRIED])
        good = [
            (ratio.excess, key)
            for key, ratio in tried.items()
            if ratio.worth_while and ratio.model.q.tobytes() not in seen
        ]
        if not good:
            break
        _, key = max(good, key=lambda entry: (entry[0], -entry[1][0], -entry[1][1]))
        best = tried[key]
        steps.append((names[key[0]], latents[key[1]], best.action, best.value, best.price))
        current = best.model
        seen.add(current.q.tobytes())
    return current, Table.of(("item", "latent", "action", "likelihood_ratio", "price"), steps)


def _support(
    model: GivenQ, entries: Sequence[tuple[int, int]], n_resamples: int, seed: int
) -> dict[tuple[int, int], float]:
    """Return in which share of resampled tables each change alone is worth while."""
    if not n_resamples or not entries:
        return {}
    rows, _ = canonical_rows(model.result, model.values)
    hits = dict.fromkeys(entries, 0)
    for number in range(n_resamples):
        rng = np.random.default_rng((seed, number))
        n_rows = len(model.values)
        weights = np.empty(n_rows)
        weights[rows] = rng.multinomial(n_rows, np.full(n_rows, 1.0 / n_rows))
        if model.weights is not None:
            # Rows are drawn alike and bring their weights.
            weights *= model.weights
        there = model.on(weights)
        for key in entries:
            hits[key] += _ratio(there, *key).worth_while
    return {key: count / n_resamples for key, count in hits.items()}
