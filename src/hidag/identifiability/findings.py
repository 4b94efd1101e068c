"""Findings: the status of one condition, with a witness and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hidag.formatting import plural

Status = Literal["holds", "fails", "undecided"]

#: Longer lists of names are cut, and the rest is counted.
MAX_LISTED = 8


@dataclass(frozen=True)
class Finding:
    """The status of one condition of the paper.

    Attributes
    ----------
    name : str
        Short name of the condition, such as "blocks"; unique within a certificate.
    source : str
        Theorem or assumption that states it.
    status : {"holds", "fails", "undecided"}
        "undecided" means that the arguments given do not decide it.
    sentence : str
        Explanation without a full stop.
    witness : mapping
        Items and latents that prove the status, by name.
    advice : str
        Recommended change; empty if none is needed.
    required : bool
        Whether a theorem that applies to the design requires the condition.
    provably_bad : bool
        Whether failure proves that different parameters give the same distribution of the data.
    """

    name: str
    source: str
    status: Status
    sentence: str
    witness: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""
    required: bool = True
    provably_bad: bool = False

    @property
    def holds(self) -> bool | None:
        """True, False, or None if undecided."""
        return {"holds": True, "fails": False, "undecided": None}[self.status]


@dataclass(frozen=True)
class Condition:
    """A condition to be checked; its methods return the finding.

    Attributes as of :class:`Finding`.
    """

    name: str
    source: str
    required: bool = True

    def found(self, status: Status, sentence: str, witness: Any = None, **more: Any) -> Finding:
        """Return a finding with a status."""
        return Finding(
            self.name, self.source, status, sentence, witness or {}, required=self.required, **more
        )

    def holds(self, sentence: str, witness: Any = None) -> Finding:
        """Return that the condition holds."""
        return self.found("holds", sentence, witness)

    def undecided(self, sentence: str, witness: Any = None, advice: str = "") -> Finding:
        """Return that the condition is undecided."""
        return self.found("undecided", sentence, witness, advice=advice)

    def fails(
        self, sentence: str, witness: Any = None, advice: str = "", *, provably_bad: bool = False
    ) -> Finding:
        """Return that the condition fails."""
        return self.found("fails", sentence, witness, advice=advice, provably_bad=provably_bad)


def join_names(names: Sequence[str], *, last: str = "and", limit: int = MAX_LISTED) -> str:
    """Return names as a phrase: "a, b and c", or "a, b, c and 9 more"."""
    if len(names) > limit:
        return f"{', '.join(names[: limit - 1])} {last} {len(names) - limit + 1} more"
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def with_noun(noun: str, names: Sequence[str]) -> str:
    """Return names after their noun: "item a", "items a and b", or "no item"."""
    return f"{noun}{'s' * (len(names) > 1)} {join_names(names)}" if names else f"no {noun}"


def sentence_case(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def describe_additions(loads: Sequence[Sequence[str]]) -> str:
    """Return the advice to add items, each given by the latents it should load on."""
    kinds = Counter(tuple(names) for names in loads)
    parts = [f"{plural(count, 'item')} on {join_names(names)}" for names, count in kinds.items()]
    return f"add {plural(len(loads), 'item')}: {join_names(parts)}"
