"""What a check says: one finding per condition, each with its witness and what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["holds", "fails", "undecided"]

#: More names than this in one sentence are counted instead of listed.
LISTED = 8

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Finding:
    """What was found about one condition of the paper.

    Attributes
    ----------
    name : str
        Short name of the condition, such as "blocks"; unique within a certificate.
    source : str
        Where the paper states it.
    status : {"holds", "fails", "undecided"}
        "undecided" means that it cannot be decided from what was given.
    sentence : str
        What was found, for a reader who is no mathematician.
    witness : mapping
        What proves it, by the names of items and latents.
    advice : str
        What to change; empty if nothing has to be.
    required : bool
        Whether one of the theorems that were used asks for this condition.
    provably_bad : bool
        Whether the failure is more than a missing guarantee: different parameters then give the
        same distribution of the data, so no method can tell them apart.
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
        """True, False, or None where it cannot be decided."""
        return {"holds": True, "fails": False, "undecided": None}[self.status]


def join_names(names: Sequence[str], *, last: str = "and", limit: int = LISTED) -> str:
    """Return names as a phrase: "a, b and c", or "a, b, c and 9 more"."""
    if len(names) > limit:
        return f"{', '.join(names[: limit - 1])} {last} {len(names) - limit + 1} more"
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "one item", "12 items"."""
    word = _SMALL[number] if 0 <= number < len(_SMALL) else str(number)
    return f"{word} {noun}{'' if number == 1 else 's'}"


def latents_phrase(names: Sequence[str]) -> str:
    """Return "latent a" or "latents a and b"."""
    return f"latent{'' if len(names) == 1 else 's'} {join_names(names)}"


def items_phrase(names: Sequence[str]) -> str:
    """Return "no item", "item a" or "items a and b"."""
    if not names:
        return "no item"
    return f"item{'' if len(names) == 1 else 's'} {join_names(names)}"


def sentence_case(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def new_items(loads: Sequence[Sequence[str]]) -> str:
    """Return items to add in words, each given by the latents that it should load on."""
    kinds: dict[tuple[str, ...], int] = {}
    for names in loads:
        kinds[tuple(names)] = kinds.get(tuple(names), 0) + 1
    parts = [f"{counted(times, 'item')} on {join_names(names)}" for names, times in kinds.items()]
    return f"add {counted(len(loads), 'item')}: {join_names(parts)}"
