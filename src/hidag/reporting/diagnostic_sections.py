"""Parts of the report that need the table: how well the model fits, and who is where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from hidag.causal.causal_effects import AverageEffects, average_effects
from hidag.causal.item_outcomes import effect_sizes
from hidag.causal.probability_queries import WeightedSample, condition_law
from hidag.data.sample_weights import rows_in_words
from hidag.diagnostics.classification import Classification
from hidag.diagnostics.fit_statistics import LEVEL, FitStatistics, where_true
from hidag.diagnostics.q_validation import QValidation
from hidag.exceptions import Advice
from hidag.formatting import plural
from hidag.inference.asymptotic_draws import find_draws_obstacle, try_draw_asymptotic
from hidag.inference.bootstrap_result import BootstrapResult, unidentified_notes
from hidag.inference.intervals import MIN_REPLICATES, attainable_level, interval_notes
from hidag.inference.standard_errors import StandardErrors
from hidag.reporting.misfit import GOOD_RMSEA, POOR_RMSEA
from hidag.reporting.sections import (
    EFFECTS_HEADING,
    FIT_HEADING,
    PLACEMENT_HEADING,
    Q_HEADING,
    SURE_HEADING,
    Section,
    Table,
    in_words,
)
from hidag.results import FitResult

if TYPE_CHECKING:
    from hidag.inference.result_tables import Table as Found


Panel = tuple[Section, tuple[Table, ...]]

#: Pairs of items are many: the page shows the worst of them.
_SHOWN_PAIRS = 25
_SHOWN_PROFILES = 20
#: A placement that is right less often than this should not decide about anybody.
_TRUSTED_PLACEMENT = 0.8


def fit_panel(found: FitStatistics) -> Panel:
    """Return what the page says about how well the model fits."""
    words: list[str] = []
    if found.criteria is not None:
        c = found.criteria
        rows = rows_in_words(c.n_rows, c.n_effective)
        words.append(
            f"Log-likelihood {c.log_likelihood:,.2f} with {plural(c.n_parameters, 'parameter')}: "
            f"AIC {c.aic:,.2f}, BIC {c.bic:,.2f}, EBIC {c.ebic:,.2f}; {rows} and "
            f"{c.n_cells:,} observed cells were used."
        )
    if found.absolute is not None:
        a = found.absolute
        rows = rows_in_words(a.n_rows, a.n_effective)
        verdict = "good" if a.rmsea < GOOD_RMSEA else "fair" if a.rmsea < POOR_RMSEA else "poor"
        words.append(
            f"Means and pairs of the {a.n_items} categorical items: RMSEA2 {a.rmsea:.4f} (90 % "
            f"interval {a.interval[0]:.4f} to {a.interval[1]:.4f}), which is customarily called "
            f"{verdict}; SRMSR {a.srmsr:.4f}; M2 {a.m2:,.1f} on {plural(a.degrees, 'degree')} of "
            f"freedom, p {a.p_value:.3g}; {rows} without a missing cell."
        )
    tables = []
    for name, caption, part, most in (
        ("item_fit", "Items, those that fit worst first", found.items, None),
        ("pair_fit", "Pairs of items, the worst first", found.pairs, _SHOWN_PAIRS),
        ("checks", "The table beside tables drawn from the fit", found.checks, None),
    ):
        if len(part):
            words.append(_low_chances(caption.split(",")[0], part))
            tables.append(_worst_first(name, caption, part, most))
    words += [f"{note[0].upper()}{note[1:]}." for note in found.notes]
    names = tuple(table.name for table in tables)
    return Section(FIT_HEADING, tuple(words), (), names), tuple(tables)


def placement_panel(found: Classification) -> Panel:
    """Return what the page says about the placement of rows."""
    quality = {row["of"]: row for row in found.quality.to_dicts()}
    doubtful = [
        name for name in found.latent_names if quality[name]["accuracy"] < _TRUSTED_PLACEMENT
    ]
    words = [
        "Each row is placed at the most probable level of each latent. Accuracy is the chance that "
        "such a placement is right, consistency that another test like this one would lead to the "
        "same, both as the model sees it."
    ]
    if len(found.latent_names) > 1:
        words[0] += (
            " A profile is the most probable combination of levels, which is not for every row the "
            "one of the most probable levels."
        )
    if doubtful:
        words.append(
            f"Placements on {', '.join(doubtful)} are right less often than "
            f"{_TRUSTED_PLACEMENT:.0%} of the time: they should not decide about anybody."
        )
    words += [f"{note[0].upper()}{note[1:]}." for note in found.notes]
    tables = [Table("placement", "How far placements can be trusted", *_content(found.quality))]
    caption, common = found.common_profiles(_SHOWN_PROFILES)
    caption = f"{caption[0].upper()}{caption[1:]}"
    if len(common):
        tables.append(Table("profiles", caption, *_content(common)))
    else:
        words.append(f"{caption}.")
    names = tuple(table.name for table in tables)
    return Section(PLACEMENT_HEADING, tuple(words), (), names), tuple(tables)


def bootstrap_panel(found: BootstrapResult) -> Panel:
    """Return what the page says about how sure the fit is."""
    kind = (
        "of rows drawn again from the table"
        if found.kind == "nonparametric"
        else "drawn from the fitted model"
    )
    words = [
        f"The model was fitted again to {plural(found.n_refits, 'table')} {kind}. All latents "
        f"were those of the fit in {found.same_latents.mean():.0%} of them."
    ]
    if found.start == "fitted":
        words.append("Refits began at the fit, so that other optima were not looked for.")
    if found.failures:
        words.append(
            f"{len(found.failures)} of {found.n_resamples} tables could not be fitted, for "
            f"instance: {found.failures[0]}"
        )
    words += [f"{caution}." for caution in interval_notes(found.n_refits, found.q_given)]
    words += [f"{line[0].upper()}{line[1:]}." for line in unidentified_notes(found)]
    intervals = f"{attainable_level(found.n_refits):.0%} intervals"
    unsure = [row for row in found.q_table() if 0.05 < row["probability"] < 0.95]
    tables = [
        _of_rows(
            "edge_support",
            "Pairs of latents: how often they are joined, and how",
            [row for row in found.edge_table() if row["fit"] or row["joined"] >= 0.05],
        ),
        _of_rows(
            "agreement", "How well refits agree about what each latent is", found.agreement_table()
        ),
        _of_rows(
            "law_intervals",
            f"How common each level of each latent is, with {intervals}",
            found.law_table(),
        ),
        _of_rows(
            "intervals", f"Intercepts and loadings with {intervals}", found.coefficient_table()
        ),
    ]
    if found.n_refits < MIN_REPLICATES:
        tables = [table for table in tables if table.name not in ("law_intervals", "intervals")]
    if not found.q_given:
        entries = plural(len(unsure), "entry of Q is", "entries of Q are")
        words.append(f"{entries} in 5 to 95 % of the refits.")
        tables.append(_of_rows("q_support", "Entries of Q that refits do not agree on", unsure))
    tables = [table for table in tables if table.rows]
    names = tuple(table.name for table in tables)
    return Section(SURE_HEADING, tuple(words), (), names), tuple(tables)


def _of_rows(name: str, caption: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    header = in_words(rows[0]) if rows else ()
    return Table(name, caption, header, tuple(tuple(row.values()) for row in rows))


def _content(found: Found) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    return in_words(found.columns), found.rows


def _chances(found: Found) -> list[float]:
    return [1.0 if isnan(p) else p for p in found.column("p_value")]


def _low_chances(what: str, found: Found) -> str:
    """Return how many tests have a low chance, beside how many of a true model would."""
    known = [p for p in found.column("p_value") if not isnan(p)]
    if not known:
        return f"{what}: none could be tested."
    low = sum(p < LEVEL for p in known)
    return f"{what}: {low} of {len(known)} tests have p < {LEVEL:g}, {where_true(found)}."


def _worst_first(name: str, caption: str, found: Found, most: int | None) -> Table:
    chances = _chances(found)
    order: Sequence[int] = sorted(range(len(found)), key=chances.__getitem__)[:most]
    rows = tuple(found.rows[i] for i in order)
    left = f" ({len(order)} of {len(found)})" if len(order) < len(found) else ""
    return Table(name, caption + left, in_words(found.columns), rows)


# --- The part of the report about how sure the numbers are, before anything is refitted

_OF_ITEMS = ("coefficient", "dispersion", "cutpoint")
_HEADER = ("of", "term", "estimate", "standard error", "lower", "upper")


def errors_panel(found: StandardErrors) -> tuple[Section, tuple[Table, ...]]:
    """Return what the page says about standard errors, Q and the graph taken as known."""
    words = [
        f"Standard errors and {found.level:.0%} intervals from {found.n_rows:,.0f} rows, for this "
        "Q and this graph. That other ones might have been found is not in them: `hidag bootstrap` "
        "fits resampled tables, and its answer then stands here."
    ]
    if found.flat:
        words.append(
            f"The data say nothing of {plural(len(found.flat), 'parameter')}, for instance of "
            f"{found.flat[0]}."
        )
    if found.known_in_sum:
        words.append(
            f"Prerequisites leave {plural(len(found.known_in_sum), 'parameter')} known in sum "
            f"only, for instance {found.known_in_sum[0]}: the states that would tell them apart do "
            "not occur."
        )
    if found.distance > 1.0:
        words.append(
            f"The fit is {found.distance:.1f} standard errors from the maximum of the likelihood, "
            "so that intervals are off by as much: the penalty holds coefficients back."
        )
    tables = []
    for name, caption, kinds in (
        ("share_errors", "How common each level of each latent is", ("share",)),
        ("errors", "Intercepts, loadings and what else items have", _OF_ITEMS),
    ):
        rows = tuple(tuple(row[1:]) for row in found.table.rows if row[0] in kinds)
        if rows:
            tables.append(Table(name, caption, _HEADER, rows))
    return Section(SURE_HEADING, tuple(words), (), tuple(t.name for t in tables)), tuple(tables)


# --- The part of the report about a Q-matrix that was given: what the data would change in it

_DOUBTS = ("item", "latent", "provisional", "action", "likelihood_ratio", "price", "p_value")


def q_panel(found: QValidation) -> tuple[Section, tuple[Table, ...]]:
    """Return what the page says about a given Q."""
    n_changed = int((found.provisional != found.suggested).sum())
    if n_changed:
        words = [
            f"The data would change {n_changed} of {found.provisional.size} entries of the "
            f"Q-matrix that was given, from a log-likelihood of {found.log_likelihood:,.2f} to "
            f"{found.suggested_log_likelihood:,.2f}. Nothing was changed: whether an entry makes "
            "sense is not for the data alone to say.",
            "A change is worth while if twice the log-likelihood pays log N for each coefficient "
            "and log K for the choice (price). Changes were made one at a time, the best first, "
            "because wrong entries make right ones look wrong.",
        ]
    else:
        words = [
            f"The data would change none of the {found.provisional.size} entries of the Q-matrix "
            f"that was given ({found.rows_in_words()})."
        ]
    words += [f"{line[0].upper()}{line[1:]}." for line in found.not_judged_in_words()]
    words.append("`hidag validate-q --resamples 50` also says how often other samples would agree.")
    doubts = found.doubtful()
    places = [doubts.columns.index(name) for name in _DOUBTS]
    steps = found.steps
    tables = [
        Table("q_changes", "Changes, one at a time", in_words(steps.columns), steps.rows),
        Table(
            "q_doubts",
            "Entries in doubt, each judged alone",
            in_words(_DOUBTS),
            tuple(tuple(row[place] for place in places) for row in doubts.rows),
        ),
    ]
    tables = [table for table in tables if table.rows]
    names = tuple(table.name for table in tables)
    return Section(Q_HEADING, tuple(words), (), names), tuple(tables)


# --- The part of the report about what would happen if a latent were set

#: Up to so many joint states intervals are a matter of a second.
STATES_FOR_INTERVALS = 1 << 6
N_DRAWS = 100
#: Sets of parents that are looked at for each latent, at the most.
MOST_CHOICES = 32
#: With more latents than this, effects on items are left to `hidag whatif --effects`.
LATENTS_WITH_ITEMS = 20
BY_REFITS = Advice("bootstrap-intervals", "`hidag bootstrap` computes them by refits")
#: Smaller effects are not worth a line: on levels, and on items in their standard deviations.
_NOTHING = 5e-4
_SHOWN_ITEMS = 200


def effects_of(result: FitResult) -> tuple[AverageEffects, str | None]:
    """Return the average effects that a page shows, with intervals where that is quick.

    And why there are none, in words, with a command that makes them if there is one; None where
    there are.
    """
    if result.law.space.n_states <= STATES_FOR_INTERVALS:
        draws, obstacle = try_draw_asymptotic(result, N_DRAWS, advice=BY_REFITS)
        reason = None if obstacle is None else str(obstacle)
    else:
        draws, reason = None, _why_left_out(result)
    items = len(result.latent_names) <= LATENTS_WITH_ITEMS
    found = average_effects(
        result, items=items, replicates=draws, fix_graph=True, limit=MOST_CHOICES
    )
    return found, reason


def _why_left_out(result: FitResult) -> str:
    """Return why intervals that are not quick are left out, with a command that makes them."""
    obstacle = find_draws_obstacle(result, advice=BY_REFITS)
    return (
        str(obstacle)
        if obstacle is not None
        else (
            "they take a while with so many joint states; `hidag whatif --effects` makes them, and "
            "`hidag bootstrap` by refits"
        )
    )


def effects_panel(
    result: FitResult, found: AverageEffects | None = None
) -> tuple[Section, tuple[Table, ...]]:
    """Return what the page says about setting latents.

    Parameters
    ----------
    result : FitResult
    found : AverageEffects, optional
        With intervals of a bootstrap, for instance; computed unless given.
    """
    if found is None and isinstance(condition_law(result.law), WeightedSample):
        wait = "The graph is so dense that effects take long to compute: hidag whatif does so."
        return Section(EFFECTS_HEADING, (wait,)), ()
    found, reason = effects_of(result) if found is None else (found, None)
    words = [
        "What setting a latent from its lowest to its highest level in everybody would add, on "
        "average, if the graph has the causes right and nothing outside it causes two of them. "
        "Seeing a latent at its highest level is another question: that also tells of its causes."
    ]
    n_open = len(result.graph.undirected_edges)
    if n_open:
        words.append(
            f"The data leave the direction of {n_open} "
            f"{'edge' if n_open == 1 else 'edges'} open, so some effects are known only to lie "
            "between the least and the most that the possible directions allow."
        )
    if found.lower is not None:
        words.append(
            f"Lower and upper are {found.level:.0%} intervals, from {found.interval_source}"
            + (
                "; where the graph or Q is in doubt itself they are too narrow, and `hidag "
                "bootstrap` gives intervals that allow for it."
                if found.graph_fixed
                else ", so that they also say how unsure the graph is."
            )
        )
    elif reason is not None:
        words.append(f"There are no intervals here: {reason}.")
    if len(result.latent_names) > LATENTS_WITH_ITEMS:
        words.append(
            f"Effects on items are left out for more than {LATENTS_WITH_ITEMS} latents; `hidag "
            "whatif --effects` computes them."
        )
    unidentified = found.unidentified_note()
    for note in (found.interval_note(), found.truncation_note(), unidentified):
        if note is not None:
            words.append(f"{str(note)[0].upper()}{str(note)[1:]}.")
    tables = []
    everything = found.rows()
    sizes = effect_sizes(everything, result)
    for kind, name, caption in (
        ("latent", "effects_on_latents", "Effects of latents on the levels of others"),
        ("item", "effects_on_items", "Effects of latents on items"),
    ):
        order = sorted(range(len(everything)), key=lambda r: -sizes[r])
        rows = [
            everything[r] for r in order if everything[r]["kind"] == kind and sizes[r] > _NOTHING
        ]
        if not rows and kind == "latent" and unidentified is None:
            words.append("No latent has an effect on another.")
        if not rows:
            continue
        columns = ["cause", "effect", "low", "high"]
        columns += ["lower", "upper"] if found.lower is not None else []
        left = f", the {_SHOWN_ITEMS} largest" if len(rows) > _SHOWN_ITEMS else ""
        tables.append(
            Table(
                name,
                caption + left,
                tuple({"low": "least", "high": "most"}.get(c, c) for c in columns),
                tuple(tuple(row[c] for c in columns) for row in rows[:_SHOWN_ITEMS]),
            )
        )
    names = tuple(table.name for table in tables)
    return Section(EFFECTS_HEADING, tuple(words), (), names), tuple(tables)
