"""What is said about items whose type cannot be guessed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hidag.observations import dates, row_names
from hidag.observations.infer import Guess
from hidag.observations.table import Observations
from hidag.shown_text import counted

_SHOWN_NAMES = 5


def doubt_sentence(
    doubtful: dict[str, Guess], families: Sequence[str], observations: Observations
) -> str:
    """Return the one sentence about all items that cannot be guessed, with a setting to paste.

    Parameters
    ----------
    doubtful : dict from item to its guess
    families : sequence of str, length J
        Of all items, suggestions included.
    observations : Observations
    """
    alike: dict[str | float, list[str]] = {}
    for name, guess in doubtful.items():
        # How often a code comes up differs from item to item; what to do about it does not.
        alike.setdefault(guess.reason if guess.code is None else guess.code, []).append(name)
    share = f"{len(doubtful)} of {observations.n_items}"
    lines = [f"family='auto' cannot tell the type of {share} items:"]
    for names in alike.values():
        reasons = list(dict.fromkeys(doubtful[name].reason for name in names))
        first = "the first " if len(reasons) > 1 else ""
        shown = ", ".join(repr(name) for name in names[:_SHOWN_NAMES])
        more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        lines.append(f"  {shown}{more}: {first}{reasons[0]}")
    position = {name: item for item, name in enumerate(observations.names)}
    if any(guess.suggestion == "lognormal" for guess in doubtful.values()):
        # Times of the same test belong to one family even if only some of them are very skewed.
        positive = sum(
            families[item] == "gaussian" and bool(observations.column(item).min() > 0)
            for name, item in position.items()
            if name not in doubtful
        )
        if positive:
            others = counted(positive, "other positive item")
            lines.append(f"  ({others} would be taken as gaussian)")
    # A setting to paste would turn names of rows and dates into items, and yes/no items with a
    # code would be refused.
    pasted: dict[Any, str] = {
        name if observations.named else position[name]: guess.suggestion
        for name, guess in doubtful.items()
        if not (guess.names_rows or guess.is_date or _told_by_rest(guess))
    }
    remedies = {
        row_names.REMEDY: any(guess.names_rows for guess in doubtful.values()),
        dates.REMEDY: any(guess.is_date for guess in doubtful.values()),
    }
    told = [remedy for remedy, wanted in remedies.items() if wanted]
    if told:
        lines.append("; ".join(told) + (";" if pasted else ""))
    if pasted:
        which = "they" if len(pasted) == len(doubtful) else "the others"
        then = "then " if any(_without_code(guess) for guess in doubtful.values()) else ""
        lines.append(
            f"{then}say what {which} are, for instance family={pasted!r}; the other items stay "
            "'auto'"
        )
    return "\n".join(lines)


def _told_by_rest(guess: Guess) -> bool:
    """Return whether an item's other values tell its family, once the code among them is gone."""
    return guess.code is not None and guess.suggestion == "bernoulli"


def _without_code(guess: Guess) -> bool:
    """Return whether the suggestion is for values without the code: grades have no gaps."""
    return guess.code is not None and guess.suggestion == "ordinal"
