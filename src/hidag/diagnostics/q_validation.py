"""Is my Q right: entries that the data would add or drop, and what they say for it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from hidag.data.q_matrix import QSpec, read_q_matrix
from hidag.data.sample_weights import select_weighted_rows
from hidag.data.table import read_table
from hidag.diagnostics.q_entry_tests import (
    NOT_JUDGED,
    GivenQ,
    Screened,
    changed,
    given_q,
    screened_entries,
)
from hidag.estimator import DCRL
from hidag.exceptions import DataError, HidagWarning, SettingError
from hidag.fitting.settings import root_seed
from hidag.formatting import plural
from hidag.inference.fitted_rows import can_sum_states, canonical_rows, require_weights
from hidag.inference.information.posterior_tables import too_many_states
from hidag.inference.refit import refit_settings
from hidag.inference.result_tables import Table
from hidag.metrics.matching import match_latents
from hidag.metrics.model_parts import Parts
from hidag.results import FitResult
from hidag.structure.knowledge import Knowledge

# --- A provisional Q and the fits around it: one that was given it, one that was not

IntArray = NDArray[np.int8]
#: From the caller of ``validate_q``: the warning function, ``_like``, ``provisional_fit``,
#: ``validate_q``, the caller.
_STACK = 4


def has_given_q(result: FitResult) -> bool:
    """Return whether a fit was given a Q without open entries."""
    return result.q_given is not None and bool((result.q_given >= 0).all())


def provisional_fit(
    fit: FitResult | DCRL, X: Any, provisional_q: Any, seed: int, sample_weight: Any = None
) -> FitResult:
    """Return a fit with the provisional Q given: the one that came, or a new one."""
    if not isinstance(fit, FitResult):
        given = fit.q_matrix if provisional_q is None else provisional_q
        if given is None:
            raise DataError("there is no Q to validate; give it as provisional_q")
        table = read_table(X)
        q = _known_q(read_q_matrix(given, table.names))
        model = DCRL(**{**fit.get_params(), "n_latents": q.n_latents})
        return _fitted(model, q, X, table.names, seed, sample_weight)
    result: FitResult = fit
    if provisional_q is None:
        if not has_given_q(result):
            raise DataError(
                "the fit was not given a Q with 1 and 0 throughout; give the provisional Q as "
                "provisional_q"
            )
        return result
    q = _known_q(read_q_matrix(provisional_q, result.item_names))
    if has_given_q(result) and np.array_equal(result.q_matrix, q.entries):
        return result
    model = _like(result, q)
    return _fitted(model, q, result.rows(X), result.item_names, seed, sample_weight)


def _like(result: FitResult, q: QSpec) -> DCRL:
    """Return an estimator with a fit's settings for another Q.

    What the fit was told of its latents goes with them, where it is clear which they are; otherwise
    a warning says what is left out.

    Raises
    ------
    SettingError
        If it is not clear, and the latents of the fit have not all as many levels.
    """
    settings, forgotten = refit_settings(result)
    if forgotten:
        warnings.warn(
            f"the fit of the provisional Q takes the default {' and '.join(forgotten)}, because a "
            "result does not remember one's own; give the fitted DCRL instead of the result",
            HidagWarning,
            stacklevel=_STACK,
        )
    known: Knowledge | None = settings.pop("knowledge", None)
    names = settings.pop("latent_names", None)
    levels = result.law.space.levels
    settings |= {"n_latents": q.n_latents, "family": list(result.families), "verbose": 0}
    place, reason = _same_latents(result, q)
    if place:
        return DCRL(**settings | {
            "levels": [levels[k] for k in place],
            "latent_names": [result.latent_names[k] for k in place],
            "knowledge": None if known is None else known.reindex(result.latent_names, place),
        })  # fmt: skip
    if len(set(levels)) > 1:
        raise SettingError(
            f"{reason}, and the latents of the fit have {', '.join(map(str, levels))} levels; "
            "give a DCRL with the levels of the latents of that Q instead of the fit"
        )
    left_out = list({} if known is None else known.to_dict())
    if names is not None and not q.named:
        left_out.append("latent_names")
    if left_out:
        warnings.warn(
            f"{reason}: what the fit was told of its latents ({', '.join(left_out)}) is left out; "
            "give a DCRL with what is known of the latents of that Q instead of the fit",
            HidagWarning,
            stacklevel=_STACK,
        )
    return DCRL(**settings | {"levels": levels[0]})


def _same_latents(result: FitResult, q: QSpec) -> tuple[list[int], str]:
    """Return which latent of a fit each column of a Q is; none, and why, if that is not clear."""
    ours = result.latent_names
    if q.n_latents != len(ours):
        return [], f"the provisional Q has {plural(q.n_latents, 'latent')}, the fit {len(ours)}"
    if q.named:
        if set(q.latent_names) == set(ours):
            return [ours.index(name) for name in q.latent_names], ""
        theirs = ", ".join(q.latent_names)
        return (
            [],
            f"the latents of the provisional Q are {theirs}, those of the fit {', '.join(ours)}",
        )
    if result.q_given is None:
        return [], (
            "the fit found its latents without a Q, and the provisional Q, whose columns have no "
            "names, does not say which of them is which"
        )
    return list(range(len(ours))), ""


def _known_q(q: QSpec) -> QSpec:
    if not q.fully_known:
        raise DataError(
            "the provisional Q must be 1 and 0 throughout to be held against the data, but it has "
            f"{plural(int((q.entries < 0).sum()), 'entry', 'entries')} to be estimated; fit it "
            "and validate the Q that comes back"
        )
    return q


def _fitted(
    model: DCRL, q: QSpec, X: Any, items: tuple[str, ...], seed: int, sample_weight: Any
) -> FitResult:
    """Return a confirmatory fit, items and latents with their names."""
    names = q.latent_names if q.named else model.latent_names
    model.set_params(q_matrix=q.entries, latent_names=names, random_state=seed)
    with warnings.catch_warnings():
        # What there is to say about the evidence for this Q is said in what comes back.
        warnings.simplefilter("ignore", HidagWarning)
        return replace(model.fit(X, sample_weight=sample_weight).result_, item_names=items)


def matched_q(estimated: FitResult, provisional: FitResult) -> IntArray:
    """Return an estimated Q with its latents in the places of the provisional ones."""
    if estimated.item_names != provisional.item_names:
        raise DataError("the estimated fit must have the items of the provisional Q, in its order")
    ours = Parts(estimated.q_matrix, loadings=estimated.strengths)
    matching = match_latents(ours, Parts(provisional.q_matrix, loadings=provisional.strengths))
    out = np.zeros_like(provisional.q_matrix)
    for k, place in enumerate(matching.permutation):
        if place >= 0:
            out[:, k] = estimated.q_matrix[:, place]
    return out


# --- What was found about a provisional Q: a table of entries, a way to a better Q, words

#: Entries that are named one by one.
_NAMED = 5


@dataclass(frozen=True)
class QValidation:
    """A provisional Q held against the data.

    Attributes
    ----------
    entries : Table
        A row for each entry of Q. *screening* is about what the change of this entry alone would
        gain in twice the log-likelihood (add) or cost (drop), without a refit; *likelihood_ratio*
        the same by a refit, for the entries that matter most; *price* what it has to exceed;
        *support* the share of resampled tables in which it does. A change is worth while if an
        addition gains more than its price, or a removal costs less. *action* is "not judged" where
        the change makes no difference in any state that prerequisites let occur.
    provisional, suggested : ndarray of int8, shape (J, K)
    estimated : ndarray of int8, shape (J, K), or None
        From a fit without a given Q, latents matched.
    steps : Table
        The changes that lead from the provisional to the suggested Q, one at a time, each refitted:
        twice the log-likelihood gained, and the price.
    log_likelihood, suggested_log_likelihood : float
    n_rows, n_resamples : int
    n_counted : float
        What the rows count for: their number, or the sum of their weights.
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

    def rows_in_words(self) -> str:
        """Return how many rows there are, and what they count for where that is not the same."""
        whole = f"{self.n_rows:,} rows"
        return (
            whole if self.n_counted == self.n_rows else f"{whole} that count {self.n_counted:,.0f}"
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each entry of Q."""
        return self.entries.to_dicts()

    def doubtful(self) -> Table:
        """Return the entries that the data would change, one by one or on the way."""
        rows = [
            row
            for row, told in zip(self.entries.rows, self.entries.to_dicts(), strict=True)
            if told["provisional"] != told["suggested"] or _worth_while(told)
        ]
        return Table(self.entries.columns, tuple(rows))

    def not_judged_in_words(self) -> list[str]:
        """Return which entries no data can judge, as a sentence without a full stop if any."""
        rows = self.entries.to_dicts()
        names = [f"{row['item']} on {row['latent']}" for row in rows if row["action"] == NOT_JUDGED]
        if not names:
            return []
        more = ", ..." if len(names) > _NAMED else ""
        return [
            f"prerequisites leave {plural(len(names), 'entry', 'entries')} not judged and as they "
            f"were, because nobody is in a state in which they make a difference: "
            f"{', '.join(names[:_NAMED])}{more}"
        ]

    def summary(self, n_shown: int = 30) -> str:
        """Return the suggested changes and the two Q-matrices side by side."""
        n_changed = int((self.provisional != self.suggested).sum())
        lines = [
            f"provisional Q against {self.rows_in_words()}: log-likelihood "
            f"{self.log_likelihood:,.2f}; {n_changed} of {self.provisional.size} entries would be "
            f"changed, to {self.suggested_log_likelihood:,.2f}"
        ]
        if len(self.steps):
            heading = "changes, one after another, each judged in the Q that those before it made"
            lines += ["", heading, *self.steps.lines()]
        doubtful = self.doubtful()
        if len(doubtful):
            heading = "entries in doubt, each judged as the only change to the provisional Q"
            lines += ["", heading, *doubtful.lines(n_shown)]
        lines += [line for words in self.not_judged_in_words() for line in ("", words)]
        lines += ["", "Q side by side (+ added, - dropped by the data)", *self.side_by_side()]
        return "\n".join(lines)

    def side_by_side(self) -> list[str]:
        """Return the provisional, the suggested and, if there is one, the estimated Q as lines."""
        header = ["item", *self.latent_names]
        signs = {(1, 1): "1", (0, 0): ".", (0, 1): "+", (1, 0): "-"}
        if self.estimated is not None:
            header += [f"({name})" for name in self.latent_names]
        rows = []
        for j, name in enumerate(self.item_names):
            pairs = zip(self.provisional[j].tolist(), self.suggested[j].tolist(), strict=True)
            row = [name, *(signs[pair] for pair in pairs)]
            if self.estimated is not None:
                pairs = zip(self.provisional[j].tolist(), self.estimated[j].tolist(), strict=True)
                row += [signs[pair] for pair in pairs]
            rows.append(row)
        lines = Table.of(header, rows).lines()
        if self.estimated is not None:
            lines.append("in brackets: estimated without any given Q")
        return lines


def _worth_while(entry: dict[str, Any]) -> bool:
    """Return whether the change of one entry alone is worth while."""
    value = entry["likelihood_ratio"]
    if np.isnan(value):
        return False
    return bool(value > entry["price"] if entry["action"] == "add" else value < entry["price"])


# ---

Array = NDArray[np.float64]

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
        require_weights(fit, sample_weight, "judging its Q")
    result = provisional_fit(fit, X, provisional_q, seed, sample_weight)
    if isinstance(fit, FitResult) and estimated is None and not has_given_q(fit):
        estimated = fit
    if not can_sum_states(result):
        raise too_many_states(result, "judging entries of Q")
    counted, weights = select_weighted_rows(read_table(result.rows(X), min_rows=2), sample_weight)
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

    make_unique = [told for told in glance if told.action != NOT_JUDGED]
    ranked = sorted(make_unique, key=lambda told: (-excess(told), told.item, told.latent))
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
