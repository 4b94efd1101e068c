"""Background knowledge about a graph: required and forbidden edges, tiers, hierarchies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import GraphError, invalid_setting
from hidag.structure.mixed_graphs import (
    MixedGraph,
    apply_meek_rules,
    bits,
    cycle_error,
    find_cycle,
    reachable,
)

FORBIDDEN, ADJACENT = 1, 2  # Bits of the constraint matrix: no i -> j; i and j are adjacent.

Adjacency = NDArray[np.int8]
Constraints = NDArray[np.uint8]
Variable = str | int
Edge = tuple[int, int]

#: The parts of background knowledge, by name.
PARTS = ("required", "forbidden", "tiers", "hierarchy")


@dataclass(frozen=True)
class Knowledge:
    """Background knowledge about the graph.

    Attributes
    ----------
    required : sequence of (cause, effect)
        Required edges, by name or index.
    forbidden : sequence of (cause, effect)
        Forbidden edges; forbid both directions to make two variables nonadjacent.
    tiers : sequence of sequences of variables
        No edge goes from a later tier to an earlier one. Variables in no tier are unrestricted,
        and effects may pass through them: a later tier causes nothing earlier if every variable
        has a tier.
    hierarchy : sequence of (prerequisite, skill)
        Attribute hierarchy of cognitive diagnosis: nobody has the skill (is above its lowest
        level) without the prerequisite. In a fit such states have probability zero, and each
        direct prerequisite is a required edge to its skill. In a search alone the score does not
        penalise the parameters of such states, if no row is in one of them.

    Examples
    --------
    >>> import hidag
    >>> hidag.Knowledge(required=[("Z1", "Z2")]).required
    [('Z1', 'Z2')]
    """

    required: Sequence[tuple[Variable, Variable]] = field(default_factory=tuple)
    forbidden: Sequence[tuple[Variable, Variable]] = field(default_factory=tuple)
    tiers: Sequence[Sequence[Variable]] = field(default_factory=tuple)
    hierarchy: Sequence[tuple[Variable, Variable]] = field(default_factory=tuple)

    def constraints(self, names: Sequence[str]) -> Constraints:
        """Return constraints on ``names``, shape (K, K): bits ``FORBIDDEN`` and ``ADJACENT``."""
        n = len(names)
        out = np.zeros((n, n), dtype=np.uint8)
        for i, j in self._pairs("forbidden", names):
            out[i, j] |= FORBIDDEN
        tier = self._tiers(names)
        for i, of_i in tier.items():
            for j, of_j in tier.items():
                if of_i > of_j:
                    out[i, j] |= FORBIDDEN
        steps = self._hierarchy_steps(names)
        required = self.required_adjacency(names)
        for i, j in np.argwhere(required).tolist():
            if out[i, j] & FORBIDDEN:
                status = "a step of the hierarchy" if steps[i, j] else "required"
                params = {"cause": names[i], "effect": names[j], "status": status}
                if i in tier and j in tier and tier[i] > tier[j]:
                    text = "{cause} -> {effect} is {status}, but {cause} is in tier {later} and "
                    text += "{effect} in the earlier tier {earlier}"
                    tiers = {"later": tier[i] + 1, "earlier": tier[j] + 1}
                    raise GraphError("required-against-tiers", text, tiers, **params)
                text = "{cause} -> {effect} is {status} and also forbidden"
                raise GraphError("required-and-forbidden", text, **params)
        _refuse_cycle(steps, names, "steps of the hierarchy")
        _refuse_cycle(
            required, names, "required edges" + (" and the hierarchy" if steps.any() else "")
        )
        _refuse_paths_against_tiers(required, tier, names)
        out[required.T == 1] |= FORBIDDEN
        out[(required | required.T) == 1] |= ADJACENT
        return out

    def required_adjacency(self, names: Sequence[str]) -> Adjacency:
        """Return required edges and steps of the hierarchy as adjacency of ``names``, (K, K)."""
        out = self._hierarchy_steps(names)
        for edge in self._pairs("required", names):
            out[edge] = 1
        return out

    def possible_states(self, names: Sequence[str], levels: Sequence[int]) -> NDArray[np.bool_]:
        """Return the joint states of ``names`` with these ``levels`` that the hierarchy allows."""
        out = np.ones(tuple(levels), dtype=bool)
        at = np.indices(tuple(levels))
        for before, after in self._pairs("hierarchy", names):
            out &= ~((at[after] > 0) & (at[before] == 0))
        return out

    def reindex(self, names: Sequence[str], variables: Sequence[int] | None = None) -> Knowledge:
        """Return the knowledge about ``variables`` of ``names``; paths via others become edges."""
        order = range(len(names)) if variables is None else variables
        place = {int(k): new for new, k in enumerate(order)}
        dropped = [k for k in range(len(names)) if k not in place]
        steps, edges = self._hierarchy_steps(names) > 0, self.required_adjacency(names) > 0
        new_steps = reachable(steps, dropped) & ~steps
        new_edges = reachable(edges, dropped) & ~edges

        def placed(pairs: Iterable[Sequence[int]]) -> tuple[Edge, ...]:
            return tuple((place[i], place[j]) for i, j in pairs if i in place and j in place)

        tier = {place[k]: number for k, number in self._tiers(names).items() if k in place}
        required, forbidden, hierarchy = (
            self._pairs(part, names) for part in ("required", "forbidden", "hierarchy")
        )
        return Knowledge(
            placed([*required, *np.argwhere(new_edges & ~new_steps).tolist()]),
            # A direct edge may be forbidden beside a path; without its middle the path is the edge.
            placed([edge for edge in forbidden if not new_edges[edge]]),
            tuple(tuple(k for k in tier if tier[k] == number) for number in range(len(self.tiers))),
            placed([*hierarchy, *np.argwhere(new_steps).tolist()]),
        )

    def to_dict(self) -> dict[str, list[list[Variable]]]:
        """Return the parts that are not empty as lists, by name."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: [list(entry) for entry in given] for name, given in parts.items() if given}

    @classmethod
    def from_dict(cls, content: object) -> Knowledge:
        """Return the knowledge whose :meth:`to_dict` is ``content``, such as from a JSON file."""
        if not isinstance(content, Mapping) or not set(content) <= set(PARTS):
            found = sorted(map(str, content)) if isinstance(content, Mapping) else content
            raise _invalid("knowledge", f"a dict of the lists {', '.join(PARTS)}", found)
        for name, entries in content.items():
            if not isinstance(entries, list) or not all(isinstance(e, list) for e in entries):
                raise _invalid(name, "a list of lists", entries)
        return cls(**{name: tuple(map(tuple, entries)) for name, entries in content.items()})

    def _entries(self, part: str) -> Iterable[Any]:
        entries = getattr(self, part)
        if isinstance(entries, str) or not isinstance(entries, Iterable):
            raise _invalid(part, "a list", entries)
        return entries

    def _pairs(self, part: str, names: Sequence[str]) -> list[Edge]:
        """Return the pairs of a part by the indices of their variables."""
        out = []
        for entry in self._entries(part):
            is_pair = isinstance(entry, (Sequence, np.ndarray)) and not isinstance(entry, str)
            if not is_pair or len(entry) != 2:
                raise _invalid(part, "pairs of variables, such as [('A', 'B')]", entry)
            i, j = _index(entry[0], names), _index(entry[1], names)
            if i == j:
                text = "{part} contains the pair ({name}, {name}); a pair must name two different "
                text += "variables"
                raise GraphError("self-loop", text, {"part": part, "name": names[i]})
            out.append((i, j))
        return out

    def _hierarchy_steps(self, names: Sequence[str]) -> Adjacency:
        """Return the transitive reduction of the hierarchy, shape (K, K)."""
        n = len(names)
        given = np.zeros((n, n), dtype=np.int8)
        for pair in self._pairs("hierarchy", names):
            given[pair] = 1
        reach = reachable(given, range(n))
        implied, in_cycle = given @ reach.astype(np.int64), np.diag(reach)
        return given * np.asarray((implied == 0) | np.outer(in_cycle, in_cycle), dtype=np.int8)

    def _tiers(self, names: Sequence[str]) -> dict[int, int]:
        """Return the tier of each variable that has one, counting from 0."""
        out: dict[int, int] = {}
        for number, members in enumerate(self._entries("tiers")):
            if isinstance(members, str) or not isinstance(members, Iterable):
                expected = "lists of variables, such as [['A', 'B'], ['C']]"
                raise _invalid("tiers", expected, members)
            for variable in members:
                k = _index(variable, names)
                if k in out:
                    text = "{name} is in tier {first} and in tier {second}; a variable has one tier"
                    params = {"name": names[k], "first": out[k] + 1, "second": number + 1}
                    raise GraphError("two-tiers", text, params)
                out[k] = number
        return out


def check_knowledge(given: object) -> Knowledge | None:
    """Return the argument if it is a Knowledge or None; raise otherwise."""
    if given is None or isinstance(given, Knowledge):
        return given
    raise invalid_setting("knowledge", "a hidag.Knowledge", type(given).__name__)


def nonadjacent_pairs(knowledge: Knowledge, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs for which both directions are forbidden, each once."""
    forbidden = (knowledge.constraints(names) & FORBIDDEN) > 0
    return [(i, j) for i, j in np.argwhere(np.triu(forbidden & forbidden.T, 1)).tolist()]


def admits_complete_dag(knowledge: Knowledge, names: Sequence[str]) -> bool:
    """Return whether the knowledge allows some complete DAG, over which every law factorises."""
    if nonadjacent_pairs(knowledge, names):
        return False
    forbidden = (knowledge.constraints(names) & FORBIDDEN) > 0
    return find_cycle(np.asarray(forbidden.T & ~forbidden, dtype=np.int8)) is None


def orient_by_constraints(cpdag: Adjacency, constraints: Constraints) -> Adjacency | None:
    """Return the closed graph (K, K) of the members that satisfy the constraints, or None."""
    graph = MixedGraph.from_adjacency(cpdag)
    for i in range(graph.n):
        for j in bits(graph.neighbours[i]):
            if constraints[i, j] & FORBIDDEN and graph.neighbours[i] >> j & 1:
                graph.orient(j, i)
                apply_meek_rules(graph)
    out = graph.adjacency()
    forbidden = ((out > out.T) & (constraints & FORBIDDEN > 0)).any()
    missing = (((out | out.T) == 0) & (constraints & ADJACENT > 0)).any()
    return None if forbidden or missing else out


def orient_by_knowledge(cpdag: Adjacency, constraints: Constraints | None) -> Adjacency:
    """Return a CPDAG with the further directions that background knowledge implies."""
    out = cpdag if constraints is None else orient_by_constraints(cpdag, constraints)
    if out is None:
        text = "the search returned a graph that contradicts the background knowledge"
        raise GraphError("search-against-knowledge", text)
    return out


def _invalid(part: str, expected: str, found: object) -> GraphError:
    params = {"part": part, "expected": expected, "found": found}
    return GraphError("invalid-knowledge", "{part} must be {expected}, got {found!r}", params)


def _refuse_cycle(adjacency: Adjacency, names: Sequence[str], edges: str) -> None:
    cycle = find_cycle(adjacency)
    if cycle is None and (adjacency & adjacency.T).any():
        i, j = (int(k) for k in np.argwhere(adjacency & adjacency.T)[0])
        cycle = [i, j, i]
    if cycle is not None:
        raise cycle_error([names[k] for k in cycle], edges)


def _refuse_paths_against_tiers(
    required: Adjacency, tier: dict[int, int], names: Sequence[str]
) -> None:
    """Refuse paths of required edges from a later tier to an earlier one."""
    graph = nx.DiGraph(np.argwhere(required).tolist())
    for start in tier:
        paths = nx.single_source_shortest_path(graph, start) if start in graph else {}
        for end, path in paths.items():
            if tier.get(end, tier[start]) < tier[start]:
                text = "the required edges {path} lead from tier {later} to the earlier tier "
                text += "{earlier}"
                tiers = {"later": tier[start] + 1, "earlier": tier[end] + 1}
                along = " -> ".join(names[k] for k in path)
                raise GraphError("required-against-tiers", text, tiers, path=along)


def _index(variable: Variable, names: Sequence[str]) -> int:
    """Return the index of a variable given by name or index."""
    if isinstance(variable, str):
        if variable in names:
            return list(names).index(variable)
        expected = "one of " + ", ".join([*names[:8], *["..."] * (len(names) > 8)])
    elif not isinstance(variable, (int, np.integer)) or isinstance(variable, bool):
        expected = "a name or an index"
    elif 0 <= int(variable) < len(names):
        return int(variable)
    else:
        expected = f"an index from 0 to {len(names) - 1}"
    text = "the knowledge names the variable {variable!r}; expected {expected}"
    raise GraphError("unknown-variable", text, {"variable": variable, "expected": expected})
