"""Assembly of the full report: which panels it has, given a fit, its data and a bootstrap.

docs/how_to_add.md adds a panel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from hidag.formatting import sentence_case
from hidag.inference.fitted_rows import can_sum_states, not_summed
from hidag.inference.intervals import MIN_REPLICATES
from hidag.inference.standard_errors import standard_errors
from hidag.information.posterior_tables import can_list_states, state_tables
from hidag.reporting import panels
from hidag.reporting.content import Heading, Panel, ReportContent, Section
from hidag.reporting.fit_description import list_concerns
from hidag.results import AnyFit, FitResult, as_result
from hidag.results.findings import rejection_note

if TYPE_CHECKING:
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
    Heading.UNCERTAINTY: "`hidag bootstrap`", Heading.CLASSIFICATION: "`hidag classify`",
    Heading.INTERVENTIONS: "`hidag whatif --effects`", Heading.GOODNESS_OF_FIT: "`hidag goodness`",
}  # fmt: skip


@dataclass(frozen=True)
class ReportInputs:
    """A fit and the data that its report is computed from."""

    result: FitResult
    values: NDArray[np.float64]  # (N, J), NaN where missing; without rows if they are not given
    weights: NDArray[np.float64] | None = None  # (N,)
    statistics: bool | None = None  # whether to compute fit statistics; None if they take seconds

    @cached_property
    def n_cells(self) -> int:
        """Number of terms of a row's sum over the latents; 0 if it cannot be computed."""
        tables = state_tables(self.result)
        return 0 if tables is None else tables.n_cells


def _uncertainty(inputs: ReportInputs) -> Panel:
    result, n_rows = inputs.result, len(inputs.values)
    bootstrap = "`hidag bootstrap` computes bootstrap intervals and adds them to this report"
    if not can_sum_states(result):
        return Panel(Heading.UNCERTAINTY, (f"Standard errors are {not_summed()}; {bootstrap}.",))
    if can_list_states(result):
        work = float(n_rows) * result.law.space.n_states * len(result.response_names) ** 2
    else:
        # Each parameter needs sums over all rows.
        work = float(n_rows) * inputs.n_cells * count_parameters(result) * JUNCTION_TREE_COST
    if work > MAX_ERROR_WORK:
        errors = "`hidag standard-errors` computes them for this Q and this graph"
        slow = f"Standard errors take longer than the fit; {errors}, and {bootstrap}."
        return Panel(Heading.UNCERTAINTY, (slow,))
    # Survey weights are not counts of rows, as the observed information would assume.
    kind = "louis" if inputs.weights is None else "sandwich"
    found = standard_errors(result, inputs.values, sample_weight=inputs.weights, kind=kind)
    return panels.standard_error_panel(found)


def _interventions(inputs: ReportInputs) -> Panel | None:
    several = len(inputs.result.latent_names) > 1
    return panels.interventions_panel(inputs.result) if several else None


def _goodness_of_fit(inputs: ReportInputs) -> Panel:
    result, values = inputs.result, inputs.values
    n_items = len(result.item_names)
    quick = float(len(values)) * n_items * (inputs.n_cells + n_items) <= MAX_STATISTICS_WORK
    if not (quick if inputs.statistics is None else inputs.statistics):
        commands = "they were not requested; `hidag goodness` computes them"
        if inputs.statistics is None:
            ways = "`hidag fit --statistics` computes them with the fit, and `hidag goodness`"
            commands = f"they take longer than the fit; {ways} afterwards"
        text = f"Fit statistics were not computed: {commands}."
        if not can_sum_states(result):
            others = f"Other fit statistics are {not_summed()}."
            text = f"Predictive checks were not computed: {commands}. {others}"
        return Panel(Heading.GOODNESS_OF_FIT, (text,))
    n_tables = min(max(int(MAX_SIMULATED_CELLS / values.size), MIN_SIMULATIONS), MAX_SIMULATIONS)
    statistics = fit_statistics(result, values, sample_weight=inputs.weights, n_tables=n_tables)
    # Unweighted statistics of a weighted fit differ from the model without any misfit.
    judged = inputs.weights is not None or not result.weighted
    return panels.goodness_of_fit_panel(statistics, judged=judged)


def _q_validation(inputs: ReportInputs) -> Panel | None:
    result, q = inputs.result, inputs.result.q_given
    if q is None or (q < 0).any() or len(result.latent_names) < 2:
        return None
    if not can_sum_states(result):
        return Panel(Heading.Q_VALIDATION, (f"Tests of the given Q-matrix are {not_summed()}.",))
    work = float(len(inputs.values)) * q.size * result.law.space.n_states
    if not can_list_states(result) or work > MAX_VALIDATION_WORK:
        slow = "Tests of the given Q-matrix take longer than the fit"
        return Panel(Heading.Q_VALIDATION, (f"{slow}; `hidag validate-q` computes them.",))
    validation = validate_q(result, inputs.values, sample_weight=inputs.weights)
    return panels.q_validation_panel(validation)


#: Builders of the panels in the order of the page, and whether they need the data.
PANELS: tuple[tuple[Callable[[ReportInputs], Panel | None], bool], ...] = (
    (_uncertainty, True),
    (lambda inputs: panels.classification_panel(classify(inputs.result, inputs.values)), True),
    (_interventions, False),
    (_goodness_of_fit, True),
    (_q_validation, True),
)


def assemble_report(
    model: AnyFit,
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
    model, X, sample_weight, bootstrap, statistics, title
        As in :func:`write_report`. Without data only the panels that need none are computed.
    warnings : iterable of Message, HidagWarning or str
        Warnings that the fit issued.
    render : function of a warning
        Returns it in the terms of an interface; Python's by default.
    """
    result = as_result(model)
    values = np.empty((0, len(result.item_names))) if X is None else result.rows(X)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    inputs = ReportInputs(result, values, weights, statistics)
    panels_of_fit = () if result.nuisance else PANELS
    built = (build(inputs) for build, needs in panels_of_fit if X is not None or not needs)
    parts = [_with_note(panel, result) for panel in built if panel is not None]
    assessed_first = sorted(parts, key=lambda panel: not panel.fit_assessed)
    content = ReportContent(
        # The page derives the other concerns from the result.
        warnings=tuple(map(render, list_concerns(result, warnings)[len(list_concerns(result)) :])),
        sections=tuple(panel.section for panel in parts),
        tables=tuple(table for panel in parts for table in panel.tables),
        misfits=tuple(warning for panel in assessed_first for warning in panel.warnings),
        fit_assessed=any(panel.fit_assessed for panel in parts),
        weighted=sample_weight is not None,
        fit=result.digest,
    )
    if title is not None:
        content = replace(content, title=title)
    return content if bootstrap is None else add_bootstrap(content, result, bootstrap)


def _with_note(panel: Panel, result: FitResult) -> Panel:
    """Return a panel that says so if it assumes a model which the checks reject."""
    note = rejection_note(result.misfits)
    # Classification has the note itself, and goodness of fit does not assume the model.
    if note is None or panel.heading in (Heading.CLASSIFICATION, Heading.GOODNESS_OF_FIT):
        return panel
    return replace(panel, paragraphs=(f"{sentence_case(str(note))}.", *panel.paragraphs))


def add_bootstrap(
    content: ReportContent, model: AnyFit, bootstrap: BootstrapResult
) -> ReportContent:
    """Return ``content`` about ``model`` with a ``bootstrap`` in place of standard errors."""
    result = as_result(model)
    effects = bootstrap_effects(result, bootstrap)
    # Intervals of an earlier bootstrap are replaced even if this one has none.
    if effects is not None or Heading.INTERVENTIONS in content.headings:
        content = content.with_panel(panels.interventions_panel(result, effects))
    return replace(
        content.with_panel(panels.bootstrap_panel(bootstrap), first=True),
        edge_probabilities=tuple(map(tuple, bootstrap.edge_probabilities.tolist())),
        n_resampled=bootstrap.n_refits,
        unstable_latents=panels.find_unstable_latents(bootstrap),
    )


def bootstrap_effects(result: FitResult, bootstrap: BootstrapResult) -> AverageEffects | None:
    """Return average effects with bootstrap intervals; None if there can be none."""
    n_latents = len(result.latent_names)
    if bootstrap.n_refits < MIN_REPLICATES or n_latents < 2 or not bootstrap.joint.shape[1]:
        return None
    items = n_latents <= panels.MAX_LATENTS_WITH_ITEMS
    return average_effects(result, items=items, replicates=bootstrap, limit=panels.MAX_PARENT_SETS)


def missing_section(headings: Iterable[str], result: FitResult) -> Section | None:
    """Return a section that names the panels that a report lacks; None if it lacks none."""
    present = set(headings)
    missing = [
        f"{name}: {command}"
        for name, command in _COMMANDS.items()
        if name not in present and (name != Heading.INTERVENTIONS or len(result.latent_names) > 1)
    ]
    if not missing:
        return None
    if result.nuisance:
        names = ", ".join(one.name for one in result.nuisance)
        text = f"Not available for fits with nuisances ({names}): {', '.join(_COMMANDS)}."
        return Section("Not included", (text,))
    # Standard errors need sums over joint states.
    if Heading.UNCERTAINTY not in present and can_sum_states(result):
        missing[0] += ", or `hidag standard-errors` for this Q and this graph"
    text = (
        "This report was written without the data. `hidag fit --out` writes the full report, and "
        f"these commands compute the rest. {'; '.join(missing)}."
    )
    return Section("Not included", (text,))
