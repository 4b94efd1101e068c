"""Exports of a fit as a Bayesian network: BIF, DOT, GML and dowhy's graph format.

These formats hold one DAG: where directions are open, one member of the equivalence class, that of
the fitted law if it has one. Conditional queries have the same answer in all members, interventions
may not. Where the fitted law does not factorise over the graph, the tables are
those of the closest law that does, and a warning and a comment in the text say so.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from hidag.causal.probability_queries import N_DRAWS, factorise_over_dag, item_states, log_density
from hidag.exceptions import Advice, HidagWarning, Message, Setting
from hidag.latent.laws import NetworkLaw, SaturatedLaw
from hidag.measurement.families import item_type
from hidag.measurement.parameters import category_label
from hidag.results import AnyFit, FitResult, as_result
from hidag.structure.graphs import DAG
from hidag.structure.mixed_graphs import quote_for_dot

Array = NDArray[np.float64]

#: Up to this many joint states the total variation is a sum over them, beyond it an estimate.
MAX_SUMMED_STATES = 1 << 20
ROUNDING = 1e-8  # Smaller total variations are rounding errors
#: Larger tables of items are not exported: other programs fail to read them.
MAX_ITEM_CELLS = 1 << 16
MAX_ITEM_VALUES = 1 << 8  # Items with more values, such as binomial(1000), have no table


def network_law(result: FitResult) -> NetworkLaw:
    """Return the fitted law over one member of the graph, or the closest law that factorises."""
    law = result.law
    if isinstance(law, NetworkLaw) and result.graph.contains(
        DAG.from_parents(law.parents, result.latent_names)
    ):
        return law
    return factorise_over_dag(law, result.graph.to_dag())


def total_variation(result: FitResult, network: NetworkLaw) -> float:
    """Return the total variation distance between the fitted law and a network."""
    law = result.law
    if law is network:
        return 0.0
    if isinstance(law, NetworkLaw) and law.space.n_states > MAX_SUMMED_STATES:
        states = law.sample(N_DRAWS, np.random.default_rng(0))
        ratio = np.exp(_log_probabilities(network, states) - _log_probabilities(law, states))
        return float(np.maximum(1.0 - ratio, 0.0).mean())
    return float(np.maximum(law.probabilities - network.probabilities, 0.0).sum())


def _log_probabilities(law: NetworkLaw, states: NDArray[np.integer]) -> Array:
    """Return the log probabilities of joint states (n, K), shape (n,)."""
    out = np.zeros(len(states))
    with np.errstate(divide="ignore"):
        for k, (causes, table) in enumerate(zip(law.parents, law.tables, strict=True)):
            out += np.log(table[tuple(states[:, v] for v in (*causes, k))])
    return out


@dataclass(frozen=True)
class Node:
    """A variable of the network."""

    name: str
    states: tuple[str, ...]
    parents: tuple[int, ...]  # their positions among the nodes
    table: Array  # (levels of the parents..., number of states)
    is_latent: bool


def network_nodes(
    result: FitResult, *, items: bool = False, law: NetworkLaw | None = None
) -> list[Node]:
    """Return the latents and, on request, the items that have a table."""
    law = network_law(result) if law is None else law
    out = [
        Node(name, tuple(map(str, range(m))), causes, table, True)
        for name, m, causes, table in zip(
            result.latent_names, law.space.levels, law.parents, law.tables, strict=True
        )
    ]
    left_out = set(items_without_table(result) if items else result.item_names)
    for j, name in enumerate(result.item_names):
        if name in left_out:
            continue
        values = _possible_values(result.families[j])
        latents, states = item_states(result, j)
        shape = [law.space.levels[k] for k in latents]
        columns = [np.exp(log_density(result, j, c, states)) for c in values]
        table = np.stack(columns, axis=-1).reshape(*shape, len(values))
        table = table / table.sum(axis=-1, keepdims=True)
        labels = tuple(category_label(c, result.answer_words.get(name)) for c in values)
        out.append(Node(name, labels, latents, table, False))
    return out


def items_without_table(result: FitResult) -> tuple[str, ...]:
    """Return the items without a conditional table: too many values, or too many latents."""
    out = []
    for j, name in enumerate(result.item_names):
        n_values = len(_possible_values(result.families[j]))
        latents = result.parameters.support[result.responses.item == j].any(axis=0)
        n_states = float(np.prod(np.array(result.law.space.levels)[latents]))
        if not n_values or n_states * n_values > MAX_ITEM_CELLS:
            out.append(name)
    return tuple(out)


def _possible_values(family: str) -> tuple[float, ...]:
    """Return the values of an item of a family; empty where they are too many to list."""
    values = item_type(family).possible_values()
    return () if values is None or len(values) > MAX_ITEM_VALUES else tuple(values.tolist())


def plain_names(names: Sequence[str]) -> list[str]:
    """Return names of letters, digits, points, - and _, unique when case is ignored (pgmpy)."""
    out: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "_"
        number, candidate = 2, plain
        while candidate.lower() in out:
            candidate, number = f"{plain}_{number}", number + 1
        out[candidate.lower()] = candidate
    return list(out.values())


def _prepare_export(result: FitResult, items: bool) -> tuple[list[Node], Message | None]:
    """Return the nodes, and a note if their tables are not the fitted law; warn of that."""
    law = network_law(result)
    distance = total_variation(result, law)
    note = None
    if distance >= ROUNDING:
        text = "fit with {setting} to export the fitted distribution itself"
        option = {"setting": Setting("law", "network")}
        saturated = isinstance(result.law, SaturatedLaw)
        warning = HidagWarning(
            "law-not-factorised",
            "the exported tables are not the fitted latent distribution, which does not factorise "
            "over the graph, but the closest one that does: probabilities differ by up to "
            "{distance:.2g}",
            {"distance": distance},
            advice=Advice("set-option", text, option) if saturated else None,
        )
        # The third frame is the caller of the format's function.
        warnings.warn(warning, stacklevel=3)
        note = warning.message
    return network_nodes(result, items=items, law=law), note


def to_bif(result: AnyFit, *, items: bool = False) -> str:
    """Return the Bayesian Interchange Format: variables, states and conditional tables.

    Names are reduced to letters, digits, points, - and _, and made unique when case is ignored.
    Comments list the renamed variables, items left out because their table is too large, and say
    whether the tables are not those of the fitted law.

    Parameters
    ----------
    result : FitResult or DCRL
    items : bool, whether to export the items with the latents
    """
    fitted = as_result(result)
    nodes, note = _prepare_export(fitted, items)
    names = plain_names([node.name for node in nodes])
    left_out = items_without_table(fitted) if items else ()
    lines = [] if note is None else [f"// {note}"]
    lines += [f"// {json.dumps(name)} is left out: its table is too large" for name in left_out]
    lines += [
        f"// {name} is {json.dumps(node.name)}"
        for name, node in zip(names, nodes, strict=True)
        if name != node.name
    ]
    lines += ["network hidag {", "}"]
    for name, node in zip(names, nodes, strict=True):
        states = f"{len(node.states)} ] {{ {', '.join(plain_names(node.states))} }}"
        lines += [f"variable {name} {{", f"  type discrete [ {states};", "}"]
    for name, node in zip(names, nodes, strict=True):
        if not node.parents:
            lines += [f"probability ( {name} ) {{", f"  table {_numbers(node.table)};", "}"]
            continue
        lines.append(f"probability ( {name} | {', '.join(names[a] for a in node.parents)} ) {{")
        for levels in np.ndindex(*node.table.shape[:-1]):
            pairs = zip(node.parents, levels, strict=True)
            given = ", ".join(nodes[a].states[level] for a, level in pairs)
            lines.append(f"  ({given}) {_numbers(node.table[levels])};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _numbers(row: Array) -> str:
    return ", ".join(repr(float(p)) for p in row)


def to_gml(result: AnyFit, *, items: bool = False) -> str:
    """Return GML whose nodes have their states and, as JSON, parents and conditional tables.

    ``result`` and ``items`` are as in `to_bif`.
    """
    nodes, note = _prepare_export(as_result(result), items)
    graph = nx.DiGraph()
    if note is not None:
        graph.graph["comment"] = str(note)
    for node in nodes:
        graph.add_node(
            node.name,
            kind="latent" if node.is_latent else "item",
            states=",".join(node.states),
            parents=json.dumps([nodes[a].name for a in node.parents]),
            table=json.dumps(node.table.tolist()),
        )
    graph.add_edges_from((nodes[a].name, node.name) for node in nodes for a in node.parents)
    return "\n".join(nx.generate_gml(graph)) + "\n"


def to_dot(result: AnyFit, *, items: bool = False) -> str:
    """Return Graphviz text of the fitted graph, with conditional tables in the nodes' tooltips.

    Undirected edges have no arrow head; the tables are over one member of the equivalence class.
    ``result`` and ``items`` are as in `to_bif`.
    """
    fitted = as_result(result)
    nodes, note = _prepare_export(fitted, items)
    lines = [] if note is None else [f"  // {note}"]
    lines += [
        f"  {quote_for_dot(node.name)} [shape={'ellipse' if node.is_latent else 'box'}, "
        f"tooltip={quote_for_dot(_format_table(node, nodes))}];"
        for node in nodes
    ]
    undirected = {frozenset(pair) for pair in fitted.graph.undirected_edges}
    for node in nodes:
        for a in node.parents:
            is_open = frozenset((nodes[a].name, node.name)) in undirected and node.is_latent
            attribute = " [dir=none]" if is_open else ""
            ends = map(quote_for_dot, (nodes[a].name, node.name))
            lines.append(f"  {' -> '.join(ends)}{attribute};")
    return "\n".join(["digraph {", *lines, "}", ""])


def _format_table(node: Node, nodes: Sequence[Node]) -> str:
    lines = []
    for levels in np.ndindex(*node.table.shape[:-1]):
        pairs = zip(node.parents, levels, strict=True)
        given = ", ".join(f"{nodes[a].name}={nodes[a].states[v]}" for a, v in pairs)
        shares = ", ".join(
            f"P({state})={p:.4g}" for state, p in zip(node.states, node.table[levels], strict=True)
        )
        lines.append(f"{given}: {shares}" if given else shares)
    return "; ".join(lines)


def to_dowhy(result: AnyFit, *, items: bool = True) -> str:
    """Return GML text of one DAG for dowhy's ``CausalModel(graph=...)``.

    Pass the latents to dowhy as columns of the data (posterior means or sampled states). GML,
    because dowhy reads it without further packages and keeps all names. ``result`` and ``items``
    are as in `to_bif`.
    """
    fitted = as_result(result)
    names = list(fitted.latent_names)
    edges = [(a, k) for k, causes in enumerate(network_law(fitted).parents) for a in causes]
    if items:
        for j, name in enumerate(fitted.item_names):
            edges += [(k, len(names)) for k in item_states(fitted, j)[0]]
            names.append(name)
    lines = ["graph [", "  directed 1"]
    for index, name in enumerate(names):
        # Entities, because dowhy guesses the format from the text.
        label = re.sub(r"[^A-Za-z0-9 _-]", lambda found: f"&#{ord(found[0])};", name)
        lines += ["  node [", f"    id {index}", f'    label "{label}"', "  ]"]
    for source, target in edges:
        lines += ["  edge [", f"    source {source}", f"    target {target}", "  ]"]
    return "\n".join([*lines, "]", ""])


#: Export functions by the name of the format.
_FORMATS: tuple[Callable[..., str], ...] = (to_bif, to_dot, to_dowhy, to_gml)
EXPORTS = {one.__name__.removeprefix("to_"): one for one in _FORMATS}
