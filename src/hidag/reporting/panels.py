"""Panels of the report: results of diagnostics, inference and interventions as text and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from hidag.causal.causal_effects import AverageEffects, average_effects
from hidag.causal.probability_queries import WeightedSample, condition_law, effect_sizes
from hidag.data.rows import describe_rows
from hidag.diagnostics.goodness_of_fit import LEVEL, FitStatistics, expected_rejections
from hidag.exceptions import Advice, Message, SettingError
from hidag.formatting import plural, sentence_case
from hidag.inference.asymptotic_draws import find_draws_obstacle, try_draw_asymptotic
from hidag.inference.bootstrap_result import BootstrapResult, unidentified_notes
from hidag.inference.intervals import MIN_REPLICATES, attainable_level, interval_notes
from hidag.reporting.content import (
    CLASSIFICATION,
    GOODNESS_OF_FIT,
    INTERVENTIONS,
    Q_VALIDATION,
    UNCERTAINTY,
    Panel,
    Table,
    column_headings,
)
from hidag.reporting.misfit import (
    GOOD_RMSEA,
    POOR_RMSEA,
    find_misfits,
    find_q_misfit,
    find_undetermined,
)
from hidag.results import FitResult

if TYPE_CHECKING:
    from hidag.diagnostics.classification import Classification
    from hidag.diagnostics.q_validation import QValidation
    from hidag.inference.result_tables import Table as ResultTable
    from hidag.inference.standard_errors import StandardErrors

_MAX_PAIRS = 25
_MAX_PROFILES = 20
#: Classification accuracy below which decisions about single persons are discouraged.
_MIN_ACCURACY = 0.8
#: Bootstrap shares between which an entry of Q counts as uncertain, and of edges that are listed.
_RARE, _FREQUENT = 0.05, 0.95
_ITEM_PARAMETERS = ("coefficient", "dispersion", "cutpoint")
_ERROR_HEADER = ("estimate", "standard error", "lower", "upper")
_Q_COLUMNS = ("item", "latent", "provisional", "action", "likelihood_ratio", "price", "p_value")

#: Joint states up to which intervals of effects take about a second.
MAX_STATES_FOR_INTERVALS = 1 << 6
N_DRAWS = 100
#: Sets of possible parents examined for each latent.
MAX_PARENT_SETS = 32
#: With more latents, effects on items are left to `hidag whatif --effects`.
MAX_LATENTS_WITH_ITEMS = 20
_BY_BOOTSTRAP = Advice("bootstrap-intervals", "`hidag bootstrap` computes bootstrap intervals")
_SLOW_INTERVALS = Message(
    "slow-intervals",
    "they take long with so many joint states",
    advice=Advice(
        "bootstrap-intervals",
        "`hidag whatif --effects` computes them, and `hidag bootstrap` computes bootstrap "
        "intervals",
    ),
)
#: Smaller effects are omitted: on probabilities, and on items in standard deviations.
_NEGLIGIBLE = 5e-4
_MAX_ITEM_EFFECTS = 200


def goodness_of_fit_panel(statistics: FitStatistics, *, judged: bool = True) -> Panel:
    """Return the panel of fit statistics.

    Parameters
    ----------
    statistics : FitStatistics
    judged : bool
        Whether misfit is reported; not if the fit used sample weights and the statistics did not.
    """
    paragraphs: list[str] = []
    if statistics.criteria is not None:
        c = statistics.criteria
        paragraphs.append(
            f"Log-likelihood {c.log_likelihood:,.2f} with {plural(c.n_parameters, 'parameter')}: "
            f"AIC {c.aic:,.2f}, BIC {c.bic:,.2f}, EBIC {c.ebic:,.2f} "
            f"({describe_rows(c.n_rows, c.n_effective)}, {c.n_cells:,} observed cells)."
        )
    if statistics.absolute is not None:
        a = statistics.absolute
        verdict = "good" if a.rmsea < GOOD_RMSEA else "fair" if a.rmsea < POOR_RMSEA else "poor"
        paragraphs.append(
            f"Limited-information fit of the {a.n_items} categorical items: RMSEA2 {a.rmsea:.4f} "
            f"(90 % interval {a.interval[0]:.4f} to {a.interval[1]:.4f}), conventionally called "
            f"{verdict}; SRMSR {a.srmsr:.4f}; M2 {a.m2:,.1f}, df {a.degrees:,}, p {a.p_value:.3g} "
            f"({describe_rows(a.n_rows, a.n_effective)} without missing cells)."
        )
    tables = []
    for name, noun, caption, part, limit in (
        ("item_fit", "Items", "Item fit, worst first", statistics.items, None),
        ("pair_fit", "Pairs of items", "Fit of item pairs, worst first", statistics.pairs,
         _MAX_PAIRS),
        ("checks", "Predictive checks", "Observed data and data simulated from the model",
         statistics.checks, None),
    ):  # fmt: skip
        if len(part):
            paragraphs.append(f"{noun}: {_count_low_p_values(part)}.")
            tables.append(_worst_first(name, caption, part, limit))
    paragraphs += _sentences(statistics.notes)
    return Panel(
        GOODNESS_OF_FIT,
        tuple(paragraphs),
        tuple(tables),
        find_misfits(statistics) if judged else (),
        # Predictive checks alone do not detect residual associations.
        fit_assessed=statistics.criteria is not None and len(statistics.pairs) > 0,
    )


def classification_panel(classification: Classification) -> Panel:
    """Return the panel of classification accuracy and common profiles."""
    accuracy = {row["latent"]: row["accuracy"] for row in classification.quality.to_dicts()}
    weak = [name for name in classification.latent_names if accuracy[name] < _MIN_ACCURACY]
    about = (
        "Each row is assigned to the most probable level of each latent. Accuracy is the "
        "probability that the assignment is correct, consistency the probability that a parallel "
        "test gives the same assignment; both are computed from the model."
    )
    if len(classification.latent_names) > 1:
        about += (
            " A profile is the most probable combination of levels; it may differ from the "
            "combination of the most probable levels."
        )
    paragraphs = [about]
    if weak:
        paragraphs.append(
            f"The accuracy for {', '.join(weak)} is below {_MIN_ACCURACY:.0%}: do not base "
            "decisions about individual persons on it."
        )
    paragraphs += _sentences(classification.notes)
    quality = classification.quality
    tables = [
        Table(
            "placement",
            "Classification accuracy and consistency",
            column_headings(quality.columns),
            quality.rows,
        )
    ]
    caption, common = classification.common_profiles(_MAX_PROFILES)
    if len(common):
        tables.append(
            Table("profiles", sentence_case(caption), column_headings(common.columns), common.rows)
        )
    else:
        paragraphs += _sentences([caption])
    return Panel(CLASSIFICATION, tuple(paragraphs), tuple(tables))


def standard_error_panel(errors: StandardErrors) -> Panel:
    """Return the panel of standard errors for the estimated Q-matrix and graph."""
    paragraphs = [
        f"Standard errors and {errors.level:.0%} intervals from {errors.n_rows:,.0f} rows, "
        "conditional on the Q-matrix and the graph. They do not include the uncertainty about Q "
        "and the graph; `hidag bootstrap` includes it and replaces this section."
    ]
    if errors.flat:
        paragraphs.append(
            f"{plural(len(errors.flat), 'parameter is', 'parameters are')} not locally identified "
            "or on the boundary (an estimated probability of 0 or 1), without a standard error; "
            f"for instance {errors.flat[0]}."
        )
    if errors.known_in_sum:
        paragraphs.append(
            f"Prerequisites identify {plural(len(errors.known_in_sum), 'parameter')} only in sum, "
            f"for instance {errors.known_in_sum[0]}: the states that distinguish them have "
            "probability zero."
        )
    if errors.distance > 1.0:
        paragraphs.append(
            f"The estimate is {errors.distance:.1f} standard errors from the maximum of the "
            "likelihood because the penalty shrinks coefficients; the intervals are biased by as "
            "much."
        )
    tables = []
    for name, caption, kinds, header in (
        ("share_errors", "Latent distribution", ("share",), ("latent", "level")),
        ("errors", "Item parameters", _ITEM_PARAMETERS, ("item", "term")),
    ):
        rows = tuple(tuple(row[1:]) for row in errors.table.rows if row[0] in kinds)
        if rows:
            tables.append(Table(name, caption, (*header, *_ERROR_HEADER), rows))
    return Panel(UNCERTAINTY, tuple(paragraphs), tuple(tables), find_undetermined(errors))


def bootstrap_panel(bootstrap: BootstrapResult) -> Panel:
    """Return the panel of bootstrap support and intervals."""
    source = (
        "drawn from the data with replacement"
        if bootstrap.kind == "nonparametric"
        else "simulated from the fitted model"
    )
    paragraphs = [
        f"The model was refitted to {plural(bootstrap.n_refits, 'sample')} {source}. All latents "
        f"were reproduced in {bootstrap.same_latents.mean():.0%} of the samples."
    ]
    if bootstrap.start == "fitted":
        paragraphs.append("Refits started from the estimate; other optima were not searched.")
    if bootstrap.failures:
        paragraphs.append(
            f"{len(bootstrap.failures)} of {bootstrap.n_resamples} samples could not be fitted, "
            f"for instance: {bootstrap.failures[0]}"
        )
    paragraphs += _sentences(interval_notes(bootstrap.n_refits, bootstrap.q_given))
    paragraphs += _sentences(unidentified_notes(bootstrap))
    tables = [
        _table_of_dicts(
            "edge_support",
            "Support of edges (shares of bootstrap samples)",
            [row for row in bootstrap.edge_table() if row["fit"] or row["joined"] >= _RARE],
        ),
        _table_of_dicts(
            "agreement", "Agreement of the latents across samples", bootstrap.agreement_table()
        ),
    ]
    if bootstrap.n_refits >= MIN_REPLICATES:
        intervals = f"with {attainable_level(bootstrap.n_refits):.0%} intervals"
        tables += [
            _table_of_dicts(
                "law_intervals", f"Latent distribution {intervals}", bootstrap.law_table()
            ),
            _table_of_dicts(
                "intervals", f"Item parameters {intervals}", bootstrap.coefficient_table()
            ),
        ]
    if not bootstrap.q_given:
        uncertain = [r for r in bootstrap.q_table() if _RARE < r["probability"] < _FREQUENT]
        entries = plural(len(uncertain), "entry of Q is 1", "entries of Q are 1")
        paragraphs.append(f"{entries} in 5 to 95 % of the samples.")
        tables.append(_table_of_dicts("q_support", "Uncertain entries of Q", uncertain))
    return Panel(UNCERTAINTY, tuple(paragraphs), tuple(table for table in tables if table.rows))


def q_validation_panel(validation: QValidation) -> Panel:
    """Return the panel of changes that the data support in a given Q-matrix."""
    n_changed = int((validation.provisional != validation.suggested).sum())
    n_entries = validation.provisional.size
    if n_changed:
        paragraphs = [
            f"The data support changes of {n_changed} of {n_entries} entries of the given "
            f"Q-matrix, which raise the log-likelihood from {validation.log_likelihood:,.2f} to "
            f"{validation.suggested_log_likelihood:,.2f}. The fit was not changed: whether an "
            "entry is meaningful is a question of content too.",
            "A change is suggested if twice the gain in log-likelihood exceeds log N for each "
            "coefficient plus log K for the selection (the penalty). Changes were made one at a "
            "time, the best first, because wrong entries affect the tests of correct ones.",
        ]
    else:
        paragraphs = [
            f"The data support no change of the {n_entries} entries of the given Q-matrix "
            f"({validation.describe_rows()})."
        ]
    untested = validation.untested_note()
    paragraphs += [] if untested is None else _sentences([untested])
    paragraphs.append(
        "`hidag validate-q --resamples 50` also reports how often bootstrap samples agree."
    )
    tests = validation.doubtful()
    positions = [tests.columns.index(name) for name in _Q_COLUMNS]
    steps = validation.steps
    tables = (
        Table("q_changes", "Changes, one at a time", column_headings(steps.columns), steps.rows),
        Table(
            "q_tests",
            "Entries that the data would change, each tested alone",
            column_headings(_Q_COLUMNS),
            tuple(tuple(row[position] for position in positions) for row in tests.rows),
        ),
    )
    return Panel(
        Q_VALIDATION,
        tuple(paragraphs),
        tuple(table for table in tables if table.rows),
        find_q_misfit(validation),
    )


def compute_effects(result: FitResult) -> tuple[AverageEffects, str | None]:
    """Return average effects, with intervals if these are quick, and why there are none."""
    obstacle: Message | SettingError | None
    if result.law.space.n_states <= MAX_STATES_FOR_INTERVALS:
        draws, obstacle = try_draw_asymptotic(result, N_DRAWS, advice=_BY_BOOTSTRAP)
    else:
        draws, obstacle = None, find_draws_obstacle(result, advice=_BY_BOOTSTRAP) or _SLOW_INTERVALS
    items = len(result.latent_names) <= MAX_LATENTS_WITH_ITEMS
    effects = average_effects(
        result, items=items, replicates=draws, fix_graph=True, limit=MAX_PARENT_SETS
    )
    return effects, None if obstacle is None else str(obstacle)


def interventions_panel(result: FitResult, effects: AverageEffects | None = None) -> Panel:
    """Return the panel of average effects of interventions on latents.

    Parameters
    ----------
    result : FitResult
    effects : AverageEffects, optional
        For instance with bootstrap intervals; computed if not given.
    """
    if effects is None and isinstance(condition_law(result.law), WeightedSample):
        return Panel(
            INTERVENTIONS,
            ("The graph is too dense to compute effects quickly; `hidag whatif` computes them.",),
        )
    effects, reason = compute_effects(result) if effects is None else (effects, None)
    paragraphs = [
        "Average causal effect of an intervention that raises a latent from its lowest to its "
        "highest level in the whole population, if the graph is correct and there is no "
        "unmeasured confounding. This differs from conditioning on the latent, which also carries "
        "information about its causes.",
        *_describe_open_directions(result),
        *_describe_effect_intervals(effects, reason),
    ]
    if len(result.latent_names) > MAX_LATENTS_WITH_ITEMS:
        paragraphs.append(
            f"Effects on items are omitted with more than {MAX_LATENTS_WITH_ITEMS} latents; "
            "`hidag whatif --effects` computes them."
        )
    unidentified = effects.unidentified_note()
    notes = (effects.interval_note(), effects.truncation_note(), unidentified)
    paragraphs += _sentences(note for note in notes if note is not None)
    rows = effects.rows()
    sizes = effect_sizes(rows, result)
    order = sorted(range(len(rows)), key=lambda r: -sizes[r])
    columns = ["cause", "effect", "low", "high"]
    columns += ["lower", "upper"] if effects.lower is not None else []
    tables = []
    for kind, name, caption in (
        ("latent", "effects_on_latents", "Effects on the probabilities of other latents' levels"),
        ("item", "effects_on_items", "Effects on items"),
    ):
        chosen = [rows[r] for r in order if rows[r]["kind"] == kind and sizes[r] > _NEGLIGIBLE]
        if not chosen:
            if kind == "latent" and unidentified is None:
                paragraphs.append("No latent has an effect on another latent.")
            continue
        if len(chosen) > _MAX_ITEM_EFFECTS:
            caption += f", the {_MAX_ITEM_EFFECTS} largest"
        tables.append(
            Table(
                name,
                caption,
                tuple({"low": "least", "high": "most"}.get(c, c) for c in columns),
                tuple(tuple(row[c] for c in columns) for row in chosen[:_MAX_ITEM_EFFECTS]),
            )
        )
    return Panel(INTERVENTIONS, tuple(paragraphs), tuple(tables))


def _describe_open_directions(result: FitResult) -> list[str]:
    n_open = len(result.graph.undirected_edges)
    if not n_open:
        return []
    edges = plural(n_open, "edge")
    return [
        f"The data do not identify the direction of {edges}; effects that depend on it are given "
        "as the least and the most over the possible directions."
    ]


def _describe_effect_intervals(effects: AverageEffects, reason: str | None) -> list[str]:
    if effects.lower is None:
        return [] if reason is None else [f"No intervals: {reason}."]
    scope = (
        "; they are conditional on the graph and Q and too narrow if these are uncertain, which "
        "`hidag bootstrap` takes into account."
        if effects.graph_fixed
        else ", which includes the uncertainty about the graph."
    )
    return [
        f"Lower and upper are {effects.level:.0%} intervals from {effects.interval_source}{scope}"
    ]


def _sentences(clauses: Iterable[Any]) -> list[str]:
    """Return clauses as sentences with a capital letter and a full stop."""
    return [f"{sentence_case(str(clause))}." for clause in clauses]


def _table_of_dicts(name: str, caption: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    header = column_headings(rows[0]) if rows else ()
    return Table(name, caption, header, tuple(tuple(row.values()) for row in rows))


def _count_low_p_values(table: ResultTable) -> str:
    """Return the number of low p-values beside the number expected under a true model."""
    tested = [p for p in table.column("p_value") if not isnan(p)]
    if not tested:
        return "no test could be computed"
    low = sum(p < LEVEL for p in tested)
    return f"{low} of {len(tested)} tests have p < {LEVEL:g}, {expected_rejections(table)}"


def _worst_first(name: str, caption: str, table: ResultTable, limit: int | None) -> Table:
    p_values = [1.0 if isnan(p) else p for p in table.column("p_value")]
    order = sorted(range(len(table)), key=p_values.__getitem__)[:limit]
    rows = tuple(table.rows[i] for i in order)
    part = f" ({len(order)} of {len(table)})" if len(order) < len(table) else ""
    return Table(name, caption + part, column_headings(table.columns), rows)
