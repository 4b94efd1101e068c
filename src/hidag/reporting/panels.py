"""Panels of the report: results of diagnostics, inference and interventions as text and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, sqrt
from typing import TYPE_CHECKING, Any

from hidag.causal.causal_effects import AverageEffects, average_effects
from hidag.causal.probability_queries import WeightedSample, condition_law, effect_sizes
from hidag.data.rows import describe_rows
from hidag.diagnostics.goodness_of_fit import LEVEL, FitStatistics, expected_rejections
from hidag.exceptions import Advice, Message, SettingError
from hidag.formatting import join_names, plural, sentence_case
from hidag.inference.asymptotic_draws import find_draws_obstacle, try_draw_asymptotic
from hidag.inference.bootstrap_result import BootstrapResult, unidentified_notes
from hidag.inference.intervals import MIN_REPLICATES, attainable_level, interval_notes
from hidag.inference.result_tables import N_EFFECTIVE
from hidag.reporting.content import Heading, Panel, Table, column_headings
from hidag.results import FitResult

if TYPE_CHECKING:
    from hidag.diagnostics.classification import Classification
    from hidag.diagnostics.limited_information import LimitedInformation
    from hidag.diagnostics.q_validation import QValidation
    from hidag.inference.result_tables import Table as ResultTable
    from hidag.inference.standard_errors import StandardErrors

#: Conventional bounds of RMSEA2, good below the first and poor above the second, and of the
#: standardized root mean square residual.
GOOD_RMSEA, POOR_RMSEA, POOR_SRMSR = 0.03, 0.05, 0.05
#: Residual correlations, and RMSD of items, that are practically relevant.
RELEVANT_SIZE = 0.1
#: A p-value far in the tail is inaccurate: a single pair needs this share of Bonferroni's bound.
SINGLE_SHARE = 0.01
#: More than this share of low predictive p-values is not expected under a true model.
MAX_LOW_CHECKS = 0.1
#: Excess of the likelihood ratio over its penalty that is called very strong evidence.
STRONG_EVIDENCE = 10.0
#: Share of bootstrap samples that should reproduce a latent.
MIN_RECURRENCE = 0.8
#: Share of undetermined parameters from which they are reported: items without error have one.
MAX_UNDETERMINED = 0.1
_MAX_PAIRS, _MAX_PROFILES, _MAX_ITEM_EFFECTS = 25, 20, 200
#: Classification accuracy below which decisions about single persons are discouraged.
_MIN_ACCURACY = 0.8
#: Bootstrap shares between which an entry of Q counts as uncertain, and of edges that are listed.
_RARE, _FREQUENT = 0.05, 0.95
#: Explanations of columns that are not common.
_COLUMNS = {
    "item_fit": " RMSD is the root mean square difference of the means over latent states.",
    "pair_fit": " Observed, expected and residual are correlations; z tests the part (tested) that "
    "no small change of the parameters removes.",
}
_ITEM_PARAMETERS = ("coefficient", "dispersion", "cutpoint")
_Q_COLUMNS = ("item", "latent", "provisional", "action", "likelihood_ratio", "penalty", "p_value")

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
    "they take long with so many joint states; `hidag whatif --effects` computes them, and "
    "`hidag bootstrap` computes bootstrap intervals",
)
#: Smaller effects are omitted: on probabilities, and on items in standard deviations.
_NEGLIGIBLE = 5e-4


def goodness_of_fit_panel(statistics: FitStatistics, *, judged: bool = True) -> Panel:
    """Return the panel of fit statistics.

    ``judged`` is whether misfit is reported: not if the fit used sample weights and these did not.
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
            f"(90% interval {a.interval[0]:.4f} to {a.interval[1]:.4f}), conventionally called "
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
            paragraphs.append(f"{noun}: {_count_low_p_values(part)}.{_COLUMNS.get(name, '')}")
            tables.append(_worst_first(name, caption, part, limit))
    paragraphs += _sentences(statistics.notes)
    return Panel(
        Heading.GOODNESS_OF_FIT,
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
        low = f"The accuracy for {', '.join(weak)} is below {_MIN_ACCURACY:.0%}"
        paragraphs.append(f"{low}: do not base decisions about individual persons on it.")
    paragraphs += _sentences(classification.notes)
    caption, common = classification.common_profiles(_MAX_PROFILES)
    if not len(common):
        paragraphs += _sentences([caption])
    quality = "Classification accuracy and consistency"
    placement = _table("placement", quality, classification.quality)
    profiles = _table("profiles", sentence_case(caption), common)
    return _panel(Heading.CLASSIFICATION, paragraphs, placement, profiles)


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
        headings = (*header, "estimate", "standard error", "lower", "upper")
        tables.append(Table(name, caption, headings, rows))
    return _panel(Heading.UNCERTAINTY, paragraphs, *tables, warnings=find_undetermined(errors))


def bootstrap_panel(bootstrap: BootstrapResult) -> Panel:
    """Return the panel of bootstrap support and intervals."""
    drawn = bootstrap.kind == "nonparametric"
    source = "drawn from the data with replacement" if drawn else "simulated from the fitted model"
    paragraphs = [
        f"The model was refitted to {plural(bootstrap.n_refits, 'sample')} {source}. All latents "
        f"were reproduced in {bootstrap.same_latents.mean():.0%} of the samples."
    ]
    if bootstrap.start == "fitted":
        paragraphs.append("Refits started from the estimate; other optima were not searched.")
    if bootstrap.failures:
        paragraphs.append(
            f"{len(bootstrap.failures)} of {bootstrap.n_resamples} samples could not be fitted, "
            f"for instance: {bootstrap.failures[0].reason}"
        )
    paragraphs += _sentences(interval_notes(bootstrap.n_refits, bootstrap.q_given))
    paragraphs += _sentences(unidentified_notes(bootstrap))
    edges = [row for row in bootstrap.edge_table() if row["fit"] or row["joined"] >= _RARE]
    agreement = bootstrap.agreement_table()
    tables = [
        _table_of_dicts(
            "edge_support", "Probabilities of edges, averaged over bootstrap samples", edges
        ),
        _table_of_dicts("agreement", "Agreement of the latents across samples", agreement),
    ]
    if bootstrap.n_refits >= MIN_REPLICATES:
        intervals = f"with {attainable_level(bootstrap.n_refits):.0%} intervals"
        law, items = bootstrap.law_table(), bootstrap.coefficient_table()
        tables += [
            _table_of_dicts("law_intervals", f"Latent distribution {intervals}", law),
            _table_of_dicts("intervals", f"Item parameters {intervals}", items),
        ]
    if not bootstrap.q_given:
        uncertain = [r for r in bootstrap.q_table() if _RARE < r["probability"] < _FREQUENT]
        entries = plural(len(uncertain), "entry of Q is 1", "entries of Q are 1")
        paragraphs.append(f"{entries} in 5 to 95 % of the samples.")
        tables.append(_table_of_dicts("q_support", "Uncertain entries of Q", uncertain))
    return _panel(Heading.UNCERTAINTY, paragraphs, *tables)


def q_validation_panel(validation: QValidation) -> Panel:
    """Return the panel of changes that the data support in a given Q-matrix."""
    n_changed = int((validation.provisional != validation.suggested).sum())
    n_entries = validation.provisional.size
    paragraphs = [
        f"The data support no change of the {n_entries} entries of the given Q-matrix "
        f"({validation.describe_rows()})."
    ]
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
    untested = validation.untested_note()
    paragraphs += [] if untested is None else _sentences([untested])
    resampled = "`hidag validate-q --resamples 50` also reports how often bootstrap samples agree."
    tests = [{c: row[c] for c in _Q_COLUMNS} for row in validation.doubtful().to_dicts()]
    caption = "Entries that the data would change, each tested alone"
    steps = _table("q_changes", "Changes, one at a time", validation.steps)
    tables, warnings = (
        (steps, _table_of_dicts("q_tests", caption, tests)),
        find_q_misfit(validation),
    )
    return _panel(Heading.Q_VALIDATION, [*paragraphs, resampled], *tables, warnings=warnings)


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
    """Return the panel of average effects of interventions on latents, by default computed here."""
    if effects is None and isinstance(condition_law(result.law), WeightedSample):
        dense = "The graph is too dense to compute effects quickly; `hidag whatif` computes them."
        return Panel(Heading.INTERVENTIONS, (dense,))
    effects, reason = compute_effects(result) if effects is None else (effects, None)
    paragraphs = [
        "Average causal effect of an intervention that raises a latent from its lowest to its "
        "highest level in the whole population, if the graph is correct and there is no "
        "unmeasured confounding. This differs from conditioning on the latent, which also carries "
        "information about its causes."
    ]
    if n_open := len(result.graph.undirected_edges):
        paragraphs.append(
            f"The data do not identify the direction of {plural(n_open, 'edge')}; effects that "
            "depend on it are given as the least and the most over the possible directions."
        )
    else:
        paragraphs.append("All directions are identified, so least and most are equal.")
    paragraphs += _describe_effect_intervals(effects, reason)
    if len(result.latent_names) > MAX_LATENTS_WITH_ITEMS:
        omitted = f"Effects on items are omitted with more than {MAX_LATENTS_WITH_ITEMS} latents"
        paragraphs.append(f"{omitted}; `hidag whatif --effects` computes them.")
    unidentified, rows = effects.unidentified_note(), effects.rows()
    notes = (effects.interval_note(), effects.truncation_note(), unidentified)
    paragraphs += _sentences(note for note in notes if note is not None)
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
        header = tuple({"low": "least", "high": "most"}.get(c, c) for c in columns)
        cells = tuple(tuple(row[c] for c in columns) for row in chosen[:_MAX_ITEM_EFFECTS])
        tables.append(Table(name, caption, header, cells))
    return _panel(Heading.INTERVENTIONS, paragraphs, *tables)


def _describe_effect_intervals(effects: AverageEffects, reason: str | None) -> list[str]:
    if effects.lower is None:
        return [] if reason is None else [f"No intervals: {reason}."]
    scope = ", which includes the uncertainty about the graph."
    if effects.graph_fixed:
        scope = (
            "; they are conditional on the graph and Q and too narrow if these are uncertain, "
            "which `hidag bootstrap` takes into account."
        )
    source = effects.interval_source
    return [f"Lower and upper are {effects.level:.0%} intervals from {source}{scope}"]


def _sentences(clauses: Iterable[Any]) -> list[str]:
    """Return clauses as sentences with a capital letter and a full stop."""
    return [f"{sentence_case(str(clause))}." for clause in clauses]


def _panel(
    heading: str, paragraphs: Iterable[str], *tables: Table, warnings: tuple[str, ...] = ()
) -> Panel:
    """Return a panel with the tables that have rows."""
    return Panel(heading, tuple(paragraphs), tuple(one for one in tables if one.rows), warnings)


def _table(name: str, caption: str, table: ResultTable) -> Table:
    return Table(name, caption, column_headings(table.columns), table.rows)


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
    part = f" ({len(order)} of {len(table)})" if len(order) < len(table) else ""
    rows = tuple(table.rows[i] for i in order)
    return Table(name, caption + part, column_headings(table.columns), rows)


# Misfits. Effect sizes come first: with many rows a good model is rejected too, and with few rows a
# poor one is not. A misfit is reported if its size is called poor and exceeds sampling error.


def find_misfits(statistics: FitStatistics) -> tuple[str, ...]:
    """Return warnings that fit statistics justify, as clauses; empty if there are none."""
    absolute = statistics.absolute
    out = _poor_residuals(statistics.pairs) if absolute is None else _poor_moments(absolute)
    if pairs := _significant_rows(statistics.pairs, "residual"):
        worst, most = pairs[0], "most of all " if len(pairs) > 1 else ""
        out.append(
            f"{plural(len(pairs), 'pair of items has', 'pairs of items have')} a residual "
            f"correlation that the model does not reproduce, {most}{worst['first']} and "
            f"{worst['second']} ({worst['residual']:.2f})"
        )
    if items := _significant_rows(statistics.items, "rmsd"):
        worst, most = items[0], "most of all " if len(items) > 1 else ""
        out.append(
            f"{plural(len(items), 'item does', 'items do')} not fit given the other items, "
            f"{most}{worst['item']} (RMSD {worst['rmsd']:.2f} over the latent states)"
        )
    low = sum(p < LEVEL for p in statistics.checks.column("p_value"))
    if low > max(1.0, MAX_LOW_CHECKS * len(statistics.checks)):
        checks = f"{low} of {len(statistics.checks)} predictive checks have p < {LEVEL:g}"
        out.append(f"{checks}: data simulated from the model differ from the observed data")
    return tuple(out)


def find_q_misfit(validation: QValidation) -> tuple[str, ...]:
    """Return a warning if the data strongly contradict the given Q-matrix; empty if not."""
    gains = [
        (row["likelihood_ratio"] - row["penalty"]) * (1.0 if row["action"] == "add" else -1.0)
        for row in validation.steps.to_dicts()
    ]
    # A true Q-matrix with many entries may have one that is barely rejected.
    if max(gains, default=0.0) < STRONG_EVIDENCE:
        return ()
    n_changed = int((validation.provisional != validation.suggested).sum())
    share = f"{n_changed} of {validation.provisional.size} entries"
    return (f"the data support changes of {share} of the given Q-matrix",)


def find_unstable_latents(bootstrap: BootstrapResult) -> tuple[str, ...]:
    """Return a warning about latents that many bootstrap samples do not reproduce."""
    unstable = [
        f"{row['latent']} (reproduced in {round(row['share_same'] * bootstrap.n_refits)} of "
        f"{bootstrap.n_refits:,})"
        for row in bootstrap.agreement_table()
        if row["share_same"] < MIN_RECURRENCE
    ]
    if not unstable:
        return ()
    these = "this latent" if len(unstable) == 1 else "these latents"
    latents = f"{plural(len(unstable), 'latent')}: {join_names(unstable)}"
    return (
        f"bootstrap samples often do not reproduce {latents}; the interpretation of {these} may "
        "not generalize to other samples",
    )


def find_undetermined(errors: StandardErrors) -> tuple[str, ...]:
    """Return a warning if many parameters are not locally identified; empty if not."""
    # Parameters that a hierarchy identifies only in sum are counted out.
    n_parameters = len(errors.names) - len(errors.known_in_sum)
    if len(errors.flat) <= MAX_UNDETERMINED * n_parameters:
        return ()
    share = f"{len(errors.flat)} of {n_parameters} parameters"
    where = "not locally identified or on the boundary"
    return (f"{share} are {where}, for instance {errors.flat[0]}",)


def _poor_moments(absolute: LimitedInformation) -> list[str]:
    """Return a warning about the limited-information statistics of categorical items."""
    # The expected size of sample correlations under independence is subtracted.
    srmsr = sqrt(max(absolute.srmsr**2 - 1.0 / absolute.n_effective, 0.0))
    poor = []
    if absolute.rmsea >= POOR_RMSEA and absolute.interval[0] > GOOD_RMSEA:
        poor.append(f"RMSEA2 {absolute.rmsea:.3f} (poor from {POOR_RMSEA:g})")
    if srmsr >= POOR_SRMSR:
        poor.append(f"SRMSR {absolute.srmsr:.3f} (poor from {POOR_SRMSR:g})")
    return [f"poor fit of the associations between items: {', '.join(poor)}"] if poor else []


def _poor_residuals(pairs: ResultTable) -> list[str]:
    """Return a warning about residual correlations, for items without M2."""
    rows = [row for row in pairs.to_dicts() if not isnan(row["residual"])]
    if not rows:
        return []
    srmsr = sqrt(sum(row["residual"] ** 2 for row in rows) / len(rows))
    by_chance = sum(1.0 / row.get(N_EFFECTIVE, row["n_rows"]) for row in rows) / len(rows)
    size = f"root mean square of the residual correlations {srmsr:.3f} (poor from {POOR_SRMSR:g})"
    poor = srmsr**2 - by_chance >= POOR_SRMSR**2
    return [f"poor fit of the associations between items: {size}"] if poor else []


def _significant_rows(table: ResultTable, size: str) -> list[dict[str, Any]]:
    """Return rows with relevant misfit and p below Bonferroni's bound, the largest first."""
    rows = [row for row in table.to_dicts() if not isnan(row["p_value"])]
    bound = LEVEL / max(len(rows), 1)
    bad = [row for row in rows if abs(row[size]) >= RELEVANT_SIZE and row["p_value"] < bound]
    if len(bad) == 1 and bad[0]["p_value"] > SINGLE_SHARE * bound:
        return []
    return sorted(bad, key=lambda row: -abs(row[size]))
