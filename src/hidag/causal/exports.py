"""A fit as a Bayesian network for other programs: BIF, DOT and GML with conditional tables, dowhy.

These formats hold one DAG. Where the graph leaves directions open, the network is over one of its
members, the one that the fitted law is written over if it has one: queries without an intervention
have the same answer in all members, interventions may not. Where the fitted law does not factorise
over the graph the tables are those of the nearest law that does; a warning and the text say so.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from hidag.causal.item_outcomes import item_states, log_density
from hidag.causal.probability_queries import N_DRAWS, law_over
from hidag.exceptions import HidagWarning
from hidag.latent.laws import NetworkLaw, SaturatedLaw
from hidag.measurement.families.registry import family_named
from hidag.measurement.nominal import categorical_named, worded
from hidag.results import FitResult, as_result
from hidag.structure.graphs import DAG

if TYPE_CHECKING:
    from hidag.estimator import DCRL


# --- The fitted law as a network of tables, and how far that is from the law itself

Array = NDArray[np.float64]

#: Up to so many joint states a distance is a sum over them, beyond it is a mean over draws.
MOST_LISTED = 1 << 20
#: Smaller distances are rounding.
NO_DISTANCE = 1e-8


def network_law(result: FitResult) -> NetworkLaw:
    """Return the fitted law over one member of the graph: the nearest one if that is another."""
    law = result.law
    if isinstance(law, NetworkLaw):
        own = DAG.from_parents(law.parents, result.latent_names)
        if result.graph.contains(own):
            return law
    return law_over(law, result.graph.to_dag())


def distance_to_network(result: FitResult, network: NetworkLaw) -> float:
    """Return by how much probabilities of events differ at the most: the total variation.

    A sum over joint states; beyond 2^20 of them a mean over 200,000 draws with a fixed seed.

    Parameters
    ----------
    result : FitResult
    network : NetworkLaw
        What :func:`network_law` gave.
    """
    law = result.law
    if law is network:
        return 0.0
    if isinstance(law, NetworkLaw) and law.space.n_states > MOST_LISTED:
        states = law.sample(N_DRAWS, np.random.default_rng(0))
        ratio = np.exp(_log_probabilities(network, states) - _log_probabilities(law, states))
        return float(np.maximum(1.0 - ratio, 0.0).mean())
    return float(np.maximum(law.probabilities - network.probabilities, 0.0).sum())


def note_on_law(result: FitResult, network: NetworkLaw) -> str | None:
    """Return in a sentence that a network is not the fitted law, and what helps; None if it is."""
    distance = distance_to_network(result, network)
    if distance < NO_DISTANCE:
        return None
    remedy = (
        "; fit with law='network' for a law that can be exported as it is"
        if isinstance(result.law, SaturatedLaw)
        else ""
    )
    return (
        "these tables are not the fitted law, which does not factorise over the graph, but the "
        "nearest one that does: probabilities of events differ from the fit's by up to "
        f"{distance:.2g}{remedy}"
    )


def _log_probabilities(law: NetworkLaw, states: NDArray[np.integer]) -> Array:
    """Return the log probability of joint states given by rows, shape (n,)."""
    out = np.zeros(len(states))
    with np.errstate(divide="ignore"):
        for k, (causes, table) in enumerate(zip(law.parents, law.tables, strict=True)):
            out += np.log(table[tuple(states[:, v] for v in (*causes, k))])
    return out


# ---

#: Larger tables of items are not written: nobody could read them in.
LARGEST_ITEM_TABLE = 1 << 16
#: Longer lists of values, of successes in many trials, are as those of measures.
LONGEST_LIST = 1 << 8


@dataclass(frozen=True)
class Node:
    """A variable of the network.

    Attributes
    ----------
    name : str
    states : tuple of str
    parents : tuple of int
        Places of its parents among the nodes.
    table : ndarray, shape (levels of the parents..., number of states)
    hidden : bool
        Whether it is a latent.
    """

    name: str
    states: tuple[str, ...]
    parents: tuple[int, ...]
    table: Array
    hidden: bool


def network_nodes(
    result: FitResult, *, items: bool = False, law: NetworkLaw | None = None
) -> list[Node]:
    """Return the latents with their tables, and if wanted the items that can have one.

    ``law`` is what :func:`hidag.causal.exports.network_law` gave, if that is known.
    """
    law = network_law(result) if law is None else law
    out = [
        Node(name, tuple(map(str, range(m))), causes, table, True)
        for name, m, causes, table in zip(
            result.latent_names, law.space.levels, law.parents, law.tables, strict=True
        )
    ]
    left_out = set(items_without_table(result)) if items else set()
    for j, name in enumerate(result.item_names if items else ()):
        if name in left_out:
            continue
        categories = _values(result.families[j])
        latents, states = item_states(result, j)
        shape = [law.space.levels[k] for k in latents]
        columns = [np.exp(log_density(result, j, c, states)) for c in categories]
        table = np.stack(columns, axis=-1).reshape(*shape, len(categories))
        table = table / table.sum(axis=-1, keepdims=True)
        called = tuple(worded(c, result.answer_words.get(name)) for c in categories)
        out.append(Node(name, called, latents, table, False))
    return out


def items_without_table(result: FitResult) -> tuple[str, ...]:
    """Return the items that a network of tables cannot hold.

    Those without a short list of values, such as measures and counts without an end, and those with
    so many latents that nobody could read their table in.
    """
    out = []
    for j, name in enumerate(result.item_names):
        n_values = len(_values(result.families[j]))
        driven = result.parameters.support[result.responses.item == j].any(axis=0)
        n_states = float(np.prod(np.array(result.law.space.levels)[driven]))
        if not n_values or n_states * n_values > LARGEST_ITEM_TABLE:
            out.append(name)
    return tuple(out)


def _values(family: str) -> tuple[float, ...]:
    """Return the values that an item of a family can take; none where they are no short list."""
    nominal = categorical_named(family)
    if nominal is not None:
        return tuple(sorted(nominal.categories))
    values = family_named(family).values()
    return () if values is None or len(values) > LONGEST_LIST else tuple(values.tolist())


def plain_names(names: Sequence[str]) -> list[str]:
    """Return names of letters, digits, points, - and _, all different, as near as can be.

    They differ by more than small and capital letters, which pgmpy takes for the same.
    """
    out: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "_"
        number, tried = 2, plain
        while tried.lower() in out:
            tried, number = f"{plain}_{number}", number + 1
        out[tried.lower()] = tried
    return list(out.values())


def _nodes_and_note(result: FitResult, items: bool) -> tuple[list[Node], str | None]:
    """Return the nodes, and what is to be said of their tables, which the caller is warned of."""
    law = network_law(result)
    note = note_on_law(result, law)
    if note is not None:
        # Those who call the format's function.
        warnings.warn(note, HidagWarning, stacklevel=3)
    return network_nodes(result, items=items, law=law), note


def to_bif(result: FitResult | DCRL, *, items: bool = False) -> str:
    """Return the Bayesian Interchange Format: variables, states and conditional tables.

    Names, of states too, keep letters, digits, points, - and _. Comments say which variables have
    another name for that, or because two names differed in small and capital letters only, and
    also whether the tables are not those of the fitted law.

    Parameters
    ----------
    result : FitResult or DCRL
    items : bool
        Whether items are in the network too: those that have a short list of values. Others are
        named in comments.
    """
    fitted = as_result(result)
    nodes, note = _nodes_and_note(fitted, items)
    names = plain_names([node.name for node in nodes])
    left_out = items_without_table(fitted) if items else ()
    lines = [] if note is None else [f"// {note}"]
    lines += [f"// {json.dumps(name)} is left out: it has no short table" for name in left_out]
    lines += [
        f"// {name} is {json.dumps(node.name)}"
        for name, node in zip(names, nodes, strict=True)
        if name != node.name
    ]
    lines += ["network hidag {", "}"]
    for name, node in zip(names, nodes, strict=True):
        listed = ", ".join(plain_names(node.states))
        lines += [
            f"variable {name} {{",
            f"  type discrete [ {len(node.states)} ] {{ {listed} }};",
            "}",
        ]
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


def to_gml(result: FitResult | DCRL, *, items: bool = False) -> str:
    """Return GML whose nodes have their states and, as JSON, parents and conditional tables.

    Items without a short list of values are left out: :func:`items_without_table` names them. The
    graph's ``comment`` says whether the tables are not those of the fitted law.
    """
    fitted = as_result(result)
    nodes, note = _nodes_and_note(fitted, items)
    graph = nx.DiGraph()
    if note is not None:
        graph.graph["comment"] = note
    for node in nodes:
        graph.add_node(
            node.name,
            kind="latent" if node.hidden else "item",
            states=",".join(node.states),
            parents=json.dumps([nodes[a].name for a in node.parents]),
            table=json.dumps(node.table.tolist()),
        )
    graph.add_edges_from((nodes[a].name, node.name) for node in nodes for a in node.parents)
    return "\n".join(nx.generate_gml(graph)) + "\n"


def to_dot(result: FitResult | DCRL, *, items: bool = False) -> str:
    """Return Graphviz text of the fitted graph; conditional tables are in the nodes' tooltips.

    Edges whose direction the data leave open are drawn without an arrow head, as in
    ``result.graph.to_dot()``; the tables are over one member. Items without a short list of values
    are left out: :func:`items_without_table` names them. A comment says whether the tables are not
    those of the fitted law.
    """
    fitted = as_result(result)
    nodes, note = _nodes_and_note(fitted, items)
    lines = [] if note is None else [f"  // {note}"]
    lines += [
        f"  {_quoted(node.name)} [shape={'ellipse' if node.hidden else 'box'}, "
        f"tooltip={_quoted(_table_in_words(node, nodes))}];"
        for node in nodes
    ]
    open_ways = {frozenset(pair) for pair in fitted.graph.undirected_edges}
    for node in nodes:
        for a in node.parents:
            free = frozenset((nodes[a].name, node.name)) in open_ways and node.hidden
            attribute = " [dir=none]" if free else ""
            lines.append(f"  {_quoted(nodes[a].name)} -> {_quoted(node.name)}{attribute};")
    return "\n".join(["digraph {", *lines, "}", ""])


def _table_in_words(node: Node, nodes: Sequence[Node]) -> str:
    lines = []
    for levels in np.ndindex(*node.table.shape[:-1]):
        pairs = zip(node.parents, levels, strict=True)
        given = ", ".join(f"{nodes[a].name}={nodes[a].states[v]}" for a, v in pairs)
        shares = ", ".join(
            f"P({state})={p:.4g}" for state, p in zip(node.states, node.table[levels], strict=True)
        )
        lines.append(f"{given}: {shares}" if given else shares)
    return "; ".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def to_dowhy(result: FitResult | DCRL, *, items: bool = True) -> str:
    """Return the graph as dowhy's ``CausalModel(graph=...)`` takes it: GML text of one DAG.

    Latents that are columns of the data given to dowhy (their posteriors, or sampled states) are
    variables there like any other; items hang below the latents that drive them. dowhy reads GML
    without further packages and gives names back as they are, which it does not for Graphviz text.
    """
    fitted = as_result(result)
    names = list(fitted.latent_names)
    edges = [(a, k) for k, causes in enumerate(network_law(fitted).parents) for a in causes]
    if items:
        for j, name in enumerate(fitted.item_names):
            edges += [(k, len(names)) for k in item_states(fitted, j)[0]]
            names.append(name)
    lines = ["graph [", "  directed 1"]
    for place, name in enumerate(names):
        lines += ["  node [", f"    id {place}", f'    label "{_in_entities(name)}"', "  ]"]
    for source, target in edges:
        lines += ["  edge [", f"    source {source}", f"    target {target}", "  ]"]
    return "\n".join([*lines, "]", ""])


def _in_entities(name: str) -> str:
    """Return a name with all but plain letters, digits, blanks, - and _ as GML's entities.

    dowhy guesses from the text whether it is a file, Graphviz or GML: no name may mislead it.
    """
    return re.sub(r"[^A-Za-z0-9 _-]", lambda found: f"&#{ord(found[0])};", name)


#: The formats by name.
EXPORTS: dict[str, Callable[..., str]] = {
    "bif": to_bif,
    "dot": to_dot,
    "dowhy": to_dowhy,
    "gml": to_gml,
}
