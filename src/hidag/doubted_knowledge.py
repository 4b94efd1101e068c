"""What the data have against what a fit was told beforehand: kept with the fit, said in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from hidag.discover import Knowledge
from hidag.discover.rules import any_law_obeys
from hidag.evidence import KnowledgeCost
from hidag.free_coefficients import free_terms, n_free_loadings
from hidag.latent import NetworkLaw
from hidag.result import FitResult

#: Where the settings of a fit hold it, and its two parts.
KEPT_AS = "knowledge_cost"
GRAPH, HIERARCHY = "graph", "hierarchy"
#: Pairs that are named, the dearest first.
_NAMED_PAIRS = 3


def with_doubts(
    result: FitResult, of_graph: KnowledgeCost | None, hierarchy_loss: float
) -> FitResult:
    """Return the fit with what its data have against what it was told; as it is if nothing.

    Parameters
    ----------
    result : FitResult
    of_graph : KnowledgeCost or None
        What knowledge about the graph costs.
    hierarchy_loss : float
        What the observed data's log-likelihood lost when states were ruled out; NaN if none were.
    """
    costs = {GRAPH: of_graph, HIERARCHY: _cost_of_hierarchy(result, hierarchy_loss)}
    told = {part: asdict(cost) for part, cost in costs.items() if cost is not None and cost.strong}
    return replace(result, settings={**result.settings, KEPT_AS: told}) if told else result


def _cost_of_hierarchy(result: FitResult, loss: float) -> KnowledgeCost | None:
    if result.ruled_out is None or np.isnan(loss):
        return None
    in_sum_only = int(free_terms(result).sum()) - n_free_loadings(result)
    fewer = int(result.ruled_out.sum()) + in_sum_only
    return KnowledgeCost(loss, 0.5 * float(np.log(max(_n_rows(result), 2.0))) * fewer)


def doubts_of_knowledge(result: FitResult) -> list[str]:
    """Return what the data have against what the fit was told, as sentences; empty if nothing."""
    costs = result.settings.get(KEPT_AS)
    if not isinstance(costs, Mapping):
        return []
    out = []
    if GRAPH in costs:
        cost = costs[GRAPH]
        dear = [f"{a} and {b} ({lost:,.1f})" for a, b, lost in cost["pairs"][:_NAMED_PAIRS]]
        pairs = f"; kept apart, each pair alone: {', '.join(dear)}" if dear else ""
        out.append(
            "the data speak against what was told about the graph: "
            f"{_price(result, cost)}{pairs}{_law_in_words(result)}"
        )
    if HIERARCHY in costs:
        out.append(
            "the data speak against the hierarchy, by people in states that it rules out: "
            f"{_price(result, costs[HIERARCHY])}"
        )
    return out


def _price(result: FitResult, cost: Mapping[str, Any]) -> str:
    made_up = (
        f", and fewer parameters make up for {cost['saved']:,.1f}" if cost["saved"] > 0 else ""
    )
    # Absent in files of versions that asked the observed data only.
    counted = cost.get("counted")
    where = f"{_n_rows(result):,.0f} rows"
    if counted is not None:
        where = f"expected counts of the latents, which stand for {counted:,.0f} rows"
    return f"it costs {cost['log_likelihood']:,.1f} units of log-likelihood in {where}{made_up}"


def _law_in_words(result: FitResult) -> str:
    """Return that the law does not obey, where it does not; the graph always does."""
    known = Knowledge.from_dict(result.settings["knowledge"])
    if isinstance(result.law, NetworkLaw) or any_law_obeys(known, result.latent_names):
        return ""
    return "; the saturated law that was asked for does not obey it, the graph does"


def _n_rows(result: FitResult) -> float:
    return result.n_samples if np.isnan(result.n_counted) else result.n_counted
