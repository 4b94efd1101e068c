"""Background knowledge: edges that must or must not be there, tiers, prerequisites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import GraphError, SettingError
from hidag.structure.orientation import MixedGraph, apply_meek_rules, bits, find_cycle, reachable

# --- The matrix of rules that knowledge comes to: which graphs and which laws obey it

#: Bits of the matrix of rules: i -> j must not be made; the pair i, j must stay joined.
FORBIDDEN = 1
ADJACENT = 2


def nonadjacent_pairs(knowledge: Knowledge, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs that may be joined in neither direction, each once."""
    forbidden = (knowledge.constraints(names) & FORBIDDEN) > 0
    return [(i, j) for i, j in np.argwhere(np.triu(forbidden & forbidden.T, 1)).tolist()]


def admits_complete_dag(knowledge: Knowledge, names: Sequence[str]) -> bool:
    """Return whether every joint law factorises over some graph that the knowledge allows.

    That takes a graph in which all are joined: no pair is kept apart, and directions that are left
    make no circle.
    """
    if nonadjacent_pairs(knowledge, names):
        return False
    forbidden = (knowledge.constraints(names) & FORBIDDEN) > 0
    return find_cycle(np.asarray(forbidden.T & ~forbidden, dtype=np.int8)) is None


def direct_by_rules(
    adjacency: NDArray[np.int8], rules: NDArray[np.uint8]
) -> NDArray[np.int8] | None:
    """Return the closed graph of the members that obey the rules, or None if there are none.

    Parameters
    ----------
    adjacency : ndarray of int8, shape (K, K)
        A completed graph.
    rules : ndarray of uint8, shape (K, K)
    """
    graph = MixedGraph.from_adjacency(adjacency)
    for i in range(graph.n):
        for j in bits(graph.neighbours[i]):
            if rules[i, j] & FORBIDDEN and graph.neighbours[i] >> j & 1:
                graph.orient(j, i)
                apply_meek_rules(graph)
    out = graph.adjacency()
    directed = (out == 1) & (out.T == 0)
    apart = (out | out.T) == 0
    broken = (directed & (rules & FORBIDDEN > 0)).any() or (apart & (rules & ADJACENT > 0)).any()
    return None if broken else out


def orient_by_knowledge(
    completed: NDArray[np.int8], rules: NDArray[np.uint8] | None
) -> NDArray[np.int8]:
    """Return a completed graph with the directions that background knowledge gives it."""
    if rules is None:
        return completed
    out = direct_by_rules(completed, rules)
    if out is None:
        raise GraphError("the search returned a graph that contradicts the background knowledge")
    return out


# ---

Variable = str | int
Edge = tuple[int, int]

#: What knowledge is made of, by name.
PARTS = ("required", "forbidden", "tiers", "hierarchy")


@dataclass(frozen=True)
class Knowledge:
    """What is known about the graph before the search.

    Attributes
    ----------
    required : sequence of (cause, effect)
        Edges that must be there, by name or index.
    forbidden : sequence of (cause, effect)
        Directions that must not occur; forbid both to keep two variables apart.
    tiers : sequence of sequences of variables
        No edge goes from a later tier to an earlier one. Variables in no tier are free, and effects
        may pass through them: a later tier causes nothing earlier if every variable has a tier.
    hierarchy : sequence of (prerequisite, skill)
        Attribute hierarchies of cognitive diagnosis: nobody has the skill (is above its lowest
        level) without the prerequisite. In a fit such states have probability zero, and each step
        of the hierarchy is a required edge from prerequisite to skill. A search alone takes it as
        required edges, and does not pay for such states if no row is in one of them.
    """

    required: Sequence[tuple[Variable, Variable]] = field(default_factory=tuple)
    forbidden: Sequence[tuple[Variable, Variable]] = field(default_factory=tuple)
    tiers: Sequence[Sequence[Variable]] = field(default_factory=tuple)
    hierarchy: Sequence[tuple[Variable, Variable]] = field(default_factory=tuple)

    def constraints(self, names: Sequence[str]) -> NDArray[np.uint8]:
        """Return the rules, shape (K, K): bit 1 if i -> j is forbidden, bit 2 if i, j stay joined.

        Raises
        ------
        GraphError
            If the knowledge contradicts itself or names an unknown variable.
        """
        n = len(names)
        out = np.zeros((n, n), dtype=np.uint8)
        for i, j in _pairs(self.forbidden, "forbidden", names):
            if i == j:
                raise GraphError(
                    f"{names[i]} -> {names[i]} is forbidden, but no variable causes itself anyway; "
                    "name the other variable that is meant"
                )
            out[i, j] |= FORBIDDEN
        tier = self._tier_of(names)
        for i, of_i in tier.items():
            for j, of_j in tier.items():
                if of_i > of_j:
                    out[i, j] |= FORBIDDEN
        steps = self._steps(names)
        required = self.required_adjacency(names)
        for i, j in np.argwhere(required).tolist():
            edge = f"{names[i]} -> {names[j]}"
            wanted = "a step of the hierarchy" if steps[i, j] else "required"
            if i in tier and j in tier and tier[i] > tier[j]:
                raise GraphError(
                    f"{edge} is {wanted}, but {names[i]} is in tier {tier[i] + 1} and "
                    f"{names[j]} in the earlier tier {tier[j] + 1}"
                )
            if out[i, j] & FORBIDDEN:
                both = f"{wanted} and forbidden" if steps[i, j] else "both required and forbidden"
                raise GraphError(f"{edge} is {both}")
        _refuse_cycle(steps, names, "the hierarchy goes round in a circle")
        part = "required edges and the hierarchy" if steps.any() else "required edges"
        _refuse_cycle(required, names, f"the {part} form a cycle")
        self._refuse_way_back(required, tier, names)
        out[required.T == 1] |= FORBIDDEN
        out[(required | required.T) == 1] |= ADJACENT
        return out

    def required_adjacency(self, names: Sequence[str]) -> NDArray[np.int8]:
        """Return the edges that must be there as an adjacency, shape (K, K).

        Required ones, and the steps of the hierarchy: prerequisites of prerequisites need none.
        """
        out = self._steps(names)
        for i, j in _pairs(self.required, "required", names):
            if i == j:
                raise GraphError(
                    f"{names[i]} -> {names[i]} is required, but no variable causes itself"
                )
            out[i, j] = 1
        return out

    def possible_states(self, names: Sequence[str], levels: Sequence[int]) -> NDArray[np.bool_]:
        """Return which joint states the hierarchy allows, one axis per variable."""
        out = np.ones(tuple(levels), dtype=bool)
        at = np.indices(tuple(levels))
        for before, after in _pairs(self.hierarchy, "hierarchy", names):
            out &= ~((at[after] > 0) & (at[before] == 0))
        return out

    def _steps(self, names: Sequence[str]) -> NDArray[np.int8]:
        """Return the hierarchy without the pairs that follow from others, shape (K, K)."""
        n = len(names)
        given = np.zeros((n, n), dtype=np.int8)
        for i, j in _pairs(self.hierarchy, "hierarchy", names):
            if i == j:
                raise GraphError(f"{names[i]} cannot be a prerequisite of itself")
            given[i, j] = 1
        reach = reachable(given, range(n))
        # What is reached in two steps or more needs no edge of its own.
        detours, in_circle = given @ reach.astype(np.int64), np.diag(reach)
        return given * np.asarray((detours == 0) | np.outer(in_circle, in_circle), dtype=np.int8)

    @staticmethod
    def _refuse_way_back(
        required: NDArray[np.int8], tier: dict[int, int], names: Sequence[str]
    ) -> None:
        """Refuse required edges that lead from a later tier to an earlier one by a detour."""
        for start in tier:
            walks = [[start]]
            seen = {start}
            for walk in walks:
                for after in np.flatnonzero(required[walk[-1]]).tolist():
                    if after in seen:
                        continue
                    seen.add(after)
                    walks.append([*walk, after])
                    if after in tier and tier[after] < tier[start]:
                        path = " -> ".join(names[k] for k in walks[-1])
                        raise GraphError(
                            f"the required edges {path} lead from tier {tier[start] + 1} to the "
                            f"earlier tier {tier[after] + 1}"
                        )

    def _tier_of(self, names: Sequence[str]) -> dict[int, int]:
        out: dict[int, int] = {}
        for number, members in enumerate(_entries(self.tiers, "tiers")):
            if isinstance(members, str) or not isinstance(members, Iterable):
                raise GraphError(
                    f"tiers must be lists of variables, such as [['A', 'B'], ['C']], but tier "
                    f"{number + 1} is {members!r}"
                )
            for variable in members:
                k = _index(variable, names)
                if k in out:
                    raise GraphError(
                        f"{names[k]} is in tier {out[k] + 1} and in tier {number + 1}; "
                        f"a variable has one tier"
                    )
                out[k] = number
        return out

    def reindex(self, names: Sequence[str], kept: Sequence[int] | None = None) -> Knowledge:
        """Return the knowledge about some of the variables, by their numbers among those.

        Parameters
        ----------
        names : sequence of str, length K
        kept : sequence of int, optional
            Which variables are left, in their new order; all unless given. Of the others only
            this stays: a chain through them is an edge, or a prerequisite, from end to end.
        """
        place = {int(k): new for new, k in enumerate(range(len(names)) if kept is None else kept)}
        left_out = [k for k in range(len(names)) if k not in place]
        steps, edges = self._steps(names) > 0, self.required_adjacency(names) > 0
        skills = reachable(steps, left_out) & ~steps
        causes = reachable(edges, left_out) & ~edges

        def placed(found: Iterable[Sequence[int]]) -> tuple[Edge, ...]:
            return tuple((place[i], place[j]) for i, j in found if i in place and j in place)

        tier = {place[k]: number for k, number in self._tier_of(names).items() if k in place}
        required, forbidden, hierarchy = (
            _pairs(getattr(self, what), what, names) for what in PARTS if what != "tiers"
        )
        return Knowledge(
            placed([*required, *np.argwhere(causes & ~skills).tolist()]),
            # What is forbidden beside a chain is what the chain does where its middle is gone.
            placed([edge for edge in forbidden if not causes[edge]]),
            tuple(tuple(k for k in tier if tier[k] == number) for number in range(len(self.tiers))),
            placed([*hierarchy, *np.argwhere(skills).tolist()]),
        )

    def to_dict(self) -> dict[str, list[list[Variable]]]:
        """Return plain lists by name of the part, parts that say nothing left out."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: [list(entry) for entry in given] for name, given in parts.items() if given}

    @classmethod
    def from_dict(cls, content: object) -> Knowledge:
        """Return the knowledge of :meth:`to_dict`, for instance of a JSON file.

        Raises
        ------
        GraphError
            If there is anything else in it than the four lists.
        """
        if not isinstance(content, Mapping) or not set(content) <= set(PARTS):
            got = sorted(map(str, content)) if isinstance(content, Mapping) else content
            raise GraphError(
                f"knowledge must have the lists {', '.join(PARTS)} and nothing else, got {got!r}"
            )
        for name, entries in content.items():
            if not isinstance(entries, list) or not all(isinstance(e, list) for e in entries):
                raise GraphError(
                    f"{name} of the knowledge must be a list of lists, got {entries!r}"
                )
        return cls(**{name: tuple(map(tuple, entries)) for name, entries in content.items()})


def check_knowledge(given: object) -> Knowledge | None:
    """Return knowledge that is some, or None."""
    if given is None or isinstance(given, Knowledge):
        return given
    raise SettingError(f"knowledge must be a hidag.Knowledge, got {type(given).__name__}")


def _entries(given: Iterable[Any], what: str) -> Iterable[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise GraphError(f"{what} of the knowledge must be a list, got {given!r}")
    return given


def _pairs(
    given: Sequence[tuple[Variable, Variable]], what: str, names: Sequence[str]
) -> list[Edge]:
    """Return pairs of variables by their numbers."""
    out = []
    for entry in _entries(given, what):
        pair = isinstance(entry, (Sequence, np.ndarray)) and not isinstance(entry, str)
        if not pair or len(entry) != 2:
            raise GraphError(
                f"{what} must be pairs of variables, such as [('A', 'B')], but has {entry!r}"
            )
        out.append((_index(entry[0], names), _index(entry[1], names)))
    return out


def _refuse_cycle(adjacency: NDArray[np.int8], names: Sequence[str], words: str) -> None:
    cycle = find_cycle(adjacency)
    if cycle is None and (adjacency & adjacency.T).any():
        i, j = (int(k) for k in np.argwhere(adjacency & adjacency.T)[0])
        cycle = [i, j, i]
    if cycle is not None:
        raise GraphError(f"{words}: {' -> '.join(names[k] for k in cycle)}")


def _index(variable: Variable, names: Sequence[str]) -> int:
    if isinstance(variable, str):
        if variable not in names:
            known = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise GraphError(f"the knowledge names {variable!r}, but the variables are {known}")
        return list(names).index(variable)
    if not isinstance(variable, (int, np.integer)) or isinstance(variable, bool):
        raise GraphError(
            f"the knowledge names {variable!r}, but variables are called by name or by a whole "
            "number"
        )
    if not 0 <= int(variable) < len(names):
        raise GraphError(
            f"the knowledge names variable {variable}, but indices go from 0 to {len(names) - 1}"
        )
    return int(variable)
