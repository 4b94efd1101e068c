"""Assembly of the full report: which panels it has, given a fit, its data and a bootstrap.

To add a panel: write a function that returns a :class:`~hidag.reporting.content.Panel` (in
`panels.py`, from the result of a diagnostic), add a builder to `PANELS` below that computes the
diagnostic from `ReportInputs` or returns None if the panel does not apply, and test it in
``tests/reporting``. Page, table of contents, JSON file and warnings need no change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.causal.causal_effects import AverageEffects, average_effects
from hidag.diagnostics.classification import classify
from hidag.diagnostics.goodness_of_fit import fit_statistics
from hidag.diagnostics.q_validation import validate_q
from hidag.exceptions import HidagWarning, Message
from hidag.fitting.information_criteria import count_parameters
from hidag.inference.fitted_rows import NOT_SUMMED, can_list_states, can_sum_states
from hidag.inference.information.posterior_tables import state_tables
from hidag.inference.intervals import MIN_REPLICATES
from hidag.inference.standard_errors import standard_errors
from hidag.reporting.content import (
    CLASSIFICATION,
    GOODNESS_OF_FIT,
    INTERVENTIONS,
    Q_VALIDATION,
    UNCERTAINTY,
    Panel,
    ReportContent,
    Section,
)
from hidag.reporting.fit_description import list_concerns
from hidag.reporting.misfit import find_unstable_latents
from hidag.reporting.panels import (
    MAX_LATENTS_WITH_ITEMS,
    MAX_PARENT_SETS,
    bootstrap_panel,
    classification_panel,
    goodness_of_fit_panel,
    interventions_panel,
    q_validation_panel,
    standard_error_panel,
)
from hidag.results import FitResult, as_result

if TYPE_CHECKING:
    from hidag.estimator import DCRL
    from hidag.inference.bootstrap_result import BootstrapResult

#: Upper bounds of the work for which a panel is computed without being asked for, some seconds
#: each: rows x items x (cells + items) of the fit statistics,
MAX_STATISTICS_WORK = 1.5e9
#: rows x joint states x squared number of responses of the standard errors,
MAX_ERROR_WORK = 5e8
#: rows x entries of Q x joint states of the Q-matrix validation.
MAX_VALIDATION_WORK = 2.5e6
#: Cost of a term of a junction-tree sum relative to one of a sum over listed states.
JUNCTION_TREE_COST = 10.0
#: Simulated data sets of the predictive checks: fewer if they are large, but at least 40, so that
#: p-values below .05 are possible.
MAX_SIMULATED_CELLS, MIN_SIMULATIONS, MAX_SIMULATIONS = 2e7, 40, 100

#: Sections of a full report and the commands that compute the same.
_COMMANDS = {
    UNCERTAINTY: "`hidag bootstrap`",
    CLASSIFICATION: "`hidag classify`",
    INTERVENTIONS: "`hidag whatif --effects`",
    GOODNESS_OF_FIT: "`hidag goodness`",
}


@dataclass(frozen=True)
class ReportInputs:
    """A fit and the data that its report is computed from.

    Attributes
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        Data of the fit, NaN where missing; without rows if they are not given.
    weights : ndarray, shape (N,), or None
        Sample weights.
    statistics : bool or None
        Whether to compute fit statistics; None if they take seconds.
    """

    result: FitResult
    values: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    statistics: bool | None = None

    @cached_property
    def n_cells(self) -> int:
        """Number of terms of a row's sum over the latents; 0 if it cannot be computed."""
        tables = state_tables(self.result)
        return 0 if tables is None else tables.n_cells


def _uncertainty(inputs: ReportInputs) -> Panel:
    result, n_rows = inputs.result, len(inputs.values)
    bootstrap = "`hidag bootstrap` computes bootstrap intervals and adds them to this report"
    if not can_sum_states(result):
        return Panel(UNCERTAINTY, (f"Standard errors are {NOT_SUMMED}; {bootstrap}.",))
    if can_list_states(result):
        work = float(n_rows) * result.law.space.n_states * len(result.response_names) ** 2
    else:
        # Each parameter needs sums over all rows.
        work = float(n_rows) * inputs.n_cells * count_parameters(result) * JUNCTION_TREE_COST
    if work > MAX_ERROR_WORK:
        return Panel(
            UNCERTAINTY,
            (
                "Standard errors take longer than the fit; `hidag errors` computes them for this Q "
                f"and this graph, and {bootstrap}.",
            ),
        )
    # Survey weights are not counts of rows, as the observed information would assume.
    kind = "louis" if inputs.weights is None else "sandwich"
    errors = standard_errors(result, inputs.values, sample_weight=inputs.weights, kind=kind)
    return standard_error_panel(errors)


def _classification(inputs: ReportInputs) -> Panel:
    return classification_panel(classify(inputs.result, inputs.values))


def _interventions(inputs: ReportInputs) -> Panel | None:
    return interventions_panel(inputs.result) if len(inputs.result.latent_names) > 1 else None


def _goodness_of_fit(inputs: ReportInputs) -> Panel:
    result, values = inputs.result, inputs.values
    n_items = len(result.item_names)
    quick = float(len(values)) * n_items * (inputs.n_cells + n_items) <= MAX_STATISTICS_WORK
    if not (quick if inputs.statistics is None else inputs.statistics):
        return Panel(GOODNESS_OF_FIT, (_explain_no_statistics(inputs),))
    n_tables = int(MAX_SIMULATED_CELLS / values.size)
    statistics = fit_statistics(
        result,
        values,
        sample_weight=inputs.weights,
        n_tables=min(max(n_tables, MIN_SIMULATIONS), MAX_SIMULATIONS),
    )
    # Unweighted statistics of a weighted fit differ from the model without any misfit.
    judged = inputs.weights is not None or not result.weighted
    return goodness_of_fit_panel(statistics, judged=judged)


def _explain_no_statistics(inputs: ReportInputs) -> str:
    """Return why there are no fit statistics and which commands compute them."""
    commands = (
        "they take longer than the fit; `hidag fit --statistics` computes them with the fit, and "
        "`hidag goodness` afterwards"
        if inputs.statistics is None
        else "they were not requested; `hidag goodness` computes them"
    )
    if can_sum_states(inputs.result):
        return f"Fit statistics were not computed: {commands}."
    return (
        f"Predictive checks were not computed: {commands}. Other fit statistics are {NOT_SUMMED}."
    )


def _q_validation(inputs: ReportInputs) -> Panel | None:
    result, q = inputs.result, inputs.result.q_given
    if q is None or (q < 0).any() or len(result.latent_names) < 2:
        return None
    if not can_sum_states(result):
        return Panel(Q_VALIDATION, (f"Tests of the given Q-matrix are {NOT_SUMMED}.",))
    work = float(len(inputs.values)) * q.size * result.law.space.n_states
    if not can_list_states(result) or work > MAX_VALIDATION_WORK:
        return Panel(
            Q_VALIDATION,
            (
                "Tests of the given Q-matrix take longer than the fit; `hidag validate-q` computes "
                "them.",
            ),
        )
    validation = validate_q(result, inputs.values, sample_weight=inputs.weights)
    return q_validation_panel(validation)


#: Builders of the panels in the order of the page, and whether they need the data.
PANELS: tuple[tuple[Callable[[ReportInputs], Panel | None], bool], ...] = (
    (_uncertainty, True),
    (_classification, True),
    (_interventions, False),
    (_goodness_of_fit, True),
    (_q_validation, True),
)


def assemble_report(
    model: FitResult | DCRL,
    X: Any = None,
    *,
    sample_weight: Any = None,
    bootstrap: BootstrapResult | None = None,
    statistics: bool | None = None,
    title: str | None = None,
    warnings: Iterable[Message | HidagWarning | str] = (),
    render: Callable[[Any], str] = str,
) -> ReportContent:
    """Return the contents of the full report of a fit.

    Parameters
    ----------
    model : FitResult or DCRL
    X : table, shape (N, J), optional
        Data of the fit. Without them the report has only the panels that need no data.
    sample_weight : array, shape (N,), optional
        Weights that the fit used.
    bootstrap : BootstrapResult, optional
        Result of :func:`hidag.bootstrap`; its intervals replace the standard errors.
    statistics : bool, optional
        Whether to compute fit statistics; by default if they take seconds.
    title : str, optional
    warnings : iterable of Message, HidagWarning or str
        Warnings that the fit issued.
    render : callable
        Returns a warning in the terms of an interface; Python's by default.

    Returns
    -------
    ReportContent
    """
    result = as_result(model)
    values = np.empty((0, len(result.item_names))) if X is None else result.rows(X)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    inputs = ReportInputs(result, values, weights, statistics)
    built = (build(inputs) for build, needs_data in PANELS if X is not None or not needs_data)
    panels = [panel for panel in built if panel is not None]
    content = ReportContent(
        # The page derives the other concerns from the result.
        warnings=tuple(map(render, list_concerns(result, warnings)[len(list_concerns(result)) :])),
        sections=tuple(panel.section for panel in panels),
        tables=tuple(table for panel in panels for table in panel.tables),
        misfits=_collect_misfits(panels),
        fit_assessed=any(panel.fit_assessed for panel in panels),
        weighted=sample_weight is not None,
    )
    if title is not None:
        content = replace(content, title=title)
    return content if bootstrap is None else add_bootstrap(content, result, bootstrap)


def _collect_misfits(panels: Iterable[Panel]) -> tuple[str, ...]:
    """Return the warnings of all panels, those about goodness of fit first."""
    ordered = sorted(panels, key=lambda panel: not panel.fit_assessed)
    return tuple(warning for panel in ordered for warning in panel.warnings)


def add_bootstrap(
    content: ReportContent, result: FitResult, bootstrap: BootstrapResult
) -> ReportContent:
    """Return the contents of a report with a bootstrap in place of standard errors."""
    effects = bootstrap_effects(result, bootstrap)
    # Intervals of an earlier bootstrap are replaced even if this one has none.
    if effects is not None or INTERVENTIONS in content.headings:
        content = content.with_panel(interventions_panel(result, effects))
    edges = bootstrap.edge_table()
    return replace(
        content.with_panel(bootstrap_panel(bootstrap), first=True),
        support=tuple((row["one"], row["other"], float(row["joined"])) for row in edges),
        directions=tuple(_direction_shares(edges)),
        n_resampled=bootstrap.n_refits,
        unstable_latents=find_unstable_latents(bootstrap),
    )


def bootstrap_effects(result: FitResult, bootstrap: BootstrapResult) -> AverageEffects | None:
    """Return average effects with bootstrap intervals; None if there can be none."""
    if (
        bootstrap.n_refits < MIN_REPLICATES
        or len(result.latent_names) < 2
        or not bootstrap.joint.shape[1]
    ):
        return None
    items = len(result.latent_names) <= MAX_LATENTS_WITH_ITEMS
    return average_effects(result, items=items, replicates=bootstrap, limit=MAX_PARENT_SETS)


def _direction_shares(edges: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, float]]:
    """Yield cause, effect and share of samples with the same direction, of the directed edges."""
    for row in edges:
        one, other = row["one"], row["other"]
        if row["fit"] == "->":
            yield one, other, float(row["one_causes_other"])
        elif row["fit"] == "<-":
            yield other, one, float(row["other_causes_one"])


def missing_section(headings: Iterable[str], result: FitResult) -> Section | None:
    """Return a section that names the panels that a report lacks; None if it lacks none."""
    present = set(headings)
    missing = [
        f"{name}: {command}"
        for name, command in _COMMANDS.items()
        if name not in present and (name != INTERVENTIONS or len(result.latent_names) > 1)
    ]
    if not missing:
        return None
    # Standard errors need sums over joint states.
    if UNCERTAINTY not in present and can_sum_states(result):
        missing[0] += ", or `hidag errors` for this Q and this graph"
    return Section(
        "Not included",
        (
            "This report was written without the data. `hidag fit --out` writes the full report, "
            f"and these commands compute the rest. {'; '.join(missing)}.",
        ),
    )
