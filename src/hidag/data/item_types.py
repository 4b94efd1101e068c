"""The response family of each item: as the user says, or guessed where the values allow it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.column_checks import DROP_DATES, DROP_ROW_NAMES
from hidag.data.table import Observations
from hidag.data.type_inference import BINARY, POSITIVE, REAL, Guess, infer_family
from hidag.data.value_checks import check_values, recode_advice, with_code_advice
from hidag.exceptions import Advice, DataError, Setting, SettingError, join_advice
from hidag.formatting import plural
from hidag.measurement.families import ITEM_TYPES, item_type
from hidag.measurement.families.registry import family_names, split_name

_SHOWN_NAMES = 5


def ambiguous_types_error(
    ambiguous: dict[str, Guess], families: Sequence[str], observations: Observations
) -> DataError:
    """Return the error about all items whose family cannot be inferred, with a setting to paste.

    Parameters
    ----------
    ambiguous : dict from item to its guess
    families : sequence of str, length J
        Of all items, suggestions included.
    observations : Observations
    """
    groups: dict[str | float, list[str]] = {}
    for name, guess in ambiguous.items():
        # How often a code occurs differs from item to item; the advice about it does not.
        groups.setdefault(guess.reason if guess.code is None else guess.code, []).append(name)
    lines = []
    for names in groups.values():
        reasons = list(dict.fromkeys(ambiguous[name].reason for name in names))
        first = "the first " if len(reasons) > 1 else ""
        shown = ", ".join(repr(name) for name in names[:_SHOWN_NAMES])
        more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        lines.append(f"\n  {shown}{more}: {first}{reasons[0]}")
    position = {name: item for item, name in enumerate(observations.names)}
    if any(guess.suggestion == POSITIVE for guess in ambiguous.values()):
        # Times of the same test belong to one family even if only some of them are very skewed.
        positive = sum(
            families[item] == REAL and bool(observations.column(item).min() > 0)
            for name, item in position.items()
            if name not in ambiguous
        )
        if positive:
            others = plural(positive, "other positive item")
            lines.append(f"\n  ({others} would be modelled as {REAL})")
    # A setting to paste would make items of row identifiers and dates; a binary item is inferred
    # once the code among its values is gone.
    pasted: dict[Any, str] = {
        name if observations.named else position[name]: guess.suggestion
        for name, guess in ambiguous.items()
        if not (guess.names_rows or guess.is_date)
        and (guess.code is None or guess.suggestion != BINARY)
    }
    advice = [recode_advice(group) for group in groups if isinstance(group, float)]
    for advice_of_kind, kind in ((DROP_ROW_NAMES, "names_rows"), (DROP_DATES, "is_date")):
        names = [name for name, guess in ambiguous.items() if getattr(guess, kind)]
        if names:
            advice.append(replace(advice_of_kind, params={"item": names[0]}))
    if pasted:
        which = "the types" if len(pasted) == len(ambiguous) else "the types of the others"
        text = f"set {which}, for instance {{family}}; the other items stay 'auto'"
        advice.append(Advice("name-family", text, {"family": Setting("family", pasted)}))
    return DataError(
        "ambiguous-types",
        "{auto} cannot infer the type of {n} of {n_items} items:{findings}\n",
        advice=join_advice(*advice),
        auto=Setting("family", _AUTO),
        n=len(ambiguous),
        n_items=observations.n_items,
        findings="".join(lines),
    )


_AUTO = "auto"
_SHOWN_VALUES = 8


@dataclass(frozen=True)
class FamilyChoice:
    """The family of each item and why.

    Attributes
    ----------
    families : tuple of str, length J
    inferred : tuple of bool, length J
        True where the family was guessed from the values.
    reasons : tuple of str, length J
    names : tuple of str, length J
        The items.
    """

    families: tuple[str, ...]
    inferred: tuple[bool, ...]
    reasons: tuple[str, ...]
    names: tuple[str, ...]

    def table(self) -> str:
        """Return one line per item: name, family, given or inferred, reason."""
        rows = [("item", "family", "source", "reason")]
        for name, family, inferred, reason in zip(
            self.names, self.families, self.inferred, self.reasons, strict=True
        ):
            rows.append((name, family, "inferred" if inferred else "given", reason))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = (
            "  ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]
            )
            for row in rows
        )
        return "\n".join(line.rstrip() for line in lines)


def resolve_families(
    observations: Observations,
    family: str | Sequence[str] | Mapping[Any, str],
    weights: NDArray[np.float64] | None = None,
) -> FamilyChoice:
    """Return the family of each item.

    Parameters
    ----------
    observations : Observations
    family : str, sequence of str, or mapping
        One family for all items; one per item; or a mapping from the name or the position
        (counting from 0) of an item to its family. "auto" in place of a family, and an item that
        a mapping leaves out, ask for a guess by the rules of `hidag.data.type_inference`.
    weights : ndarray, shape (N,), optional
        How many rows each row counts for: frequent categories of nominal items are asked about
        first.

    Returns
    -------
    FamilyChoice
        Whether the values suit the families is left to `check_values`.

    Raises
    ------
    DataError
        If an item is to be guessed and its values are ambiguous; all such items are listed, with
        a setting to paste. If the values do not show what a family needs in brackets.
    SettingError
        If a family or an item is unknown, or the number of families is not that of the items.
    """
    asked = _per_item(observations.names, family)
    families: list[str] = []
    inferred: list[bool] = []
    reasons: list[str] = []
    doubtful: dict[str, Guess] = {}
    for item, word in enumerate(asked):
        if word != _AUTO:
            families.append(_with_brackets(word, observations, item, weights))
            inferred.append(False)
            reasons.append("set by the user")
            continue
        name = observations.names[item]
        guess = infer_family(observations.column(item), padded=name in observations.padded)
        if guess.family is None:
            doubtful[name] = guess
        families.append(guess.suggestion)
        inferred.append(True)
        reasons.append(guess.reason)
    if doubtful:
        raise ambiguous_types_error(doubtful, families, observations)
    return FamilyChoice(tuple(families), tuple(inferred), tuple(reasons), observations.names)


def aliases() -> dict[str, str]:
    """Return other words for kinds of items, as they occur in a types.csv."""
    return {alias: name for name, kind in ITEM_TYPES.items() for alias in kind.aliases}


def family_name(word: str) -> str:
    """Return the family that `word` stands for, "auto" included.

    Brackets may be left out where the values will show what they hold ("ordinal").

    Raises
    ------
    SettingError
        If the word stands for no family, or lacks what its brackets must say.
    """
    if not isinstance(word, str):
        raise SettingError(
            f"family must be given by name, but got {word!r}; use one of {_listed()}"
        )
    key, number = split_name(word.strip().lower())
    key = aliases().get(key, key)
    if key == _AUTO and number is None:
        return key
    if key in ITEM_TYPES:
        if number is None and ITEM_TYPES[key].argument_source:
            return key
        return item_type(key if number is None else f"{key}({number})").name
    near = difflib.get_close_matches(key, [*ITEM_TYPES, *aliases(), _AUTO], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {_listed()}"
    raise SettingError(f"family={word!r} is unknown; {hint}")


def _with_brackets(
    word: str, observations: Observations, item: int, weights: NDArray[np.float64] | None
) -> str:
    """Return the family with what its brackets hold read off the item's values, where left out."""
    kind = ITEM_TYPES.get(word)
    if kind is None or not kind.argument_source:
        return word
    values = observations.column(item)
    distinct = np.unique(values)
    if len(distinct) == 2 and np.array_equal(distinct, (0, 1)):
        # Two grades are a yes/no answer: the same model under another name.
        return BINARY
    own = None if weights is None else weights[observations.observed[:, item]]
    found = kind.name_from_values(values, own)
    if found is not None:
        return found
    shown = ", ".join(f"{value:g}" for value in distinct[:_SHOWN_VALUES])
    more = ", ..." if len(distinct) > _SHOWN_VALUES else ""
    example = Setting("family", f"{word}({kind.example_argument})")
    advice = Advice(
        "family-argument", "recode the item, or set what can occur: {example}", {"example": example}
    )
    raise DataError(
        "number-not-in-values",
        "{family} takes its {number} from values that are {expected}, but item {item!r} holds "
        "{values}",
        advice=with_code_advice(advice, values, observations.names[item]),
        family=Setting("family", word),
        number=kind.argument_name,
        expected=kind.argument_source,
        item=observations.names[item],
        values=shown + more,
    )


def _listed() -> str:
    return ", ".join(repr(name) for name in (*family_names(), _AUTO))


def _per_item(
    names: tuple[str, ...], family: str | Sequence[str] | Mapping[Any, str]
) -> tuple[str, ...]:
    """Return one word per item: a family or "auto"."""
    if isinstance(family, str):
        return (family_name(family),) * len(names)
    if isinstance(family, Mapping):
        words: dict[int, Any] = {}
        for key, word in family.items():
            item = _position(key, names)
            if item in words:
                raise SettingError(
                    f"family must name each item once, but item {names[item]!r} occurs by name "
                    "and by position"
                )
            words[item] = word
        return _families_named([words.get(item, _AUTO) for item in range(len(names))], names)
    try:
        listed = list(family)
    except TypeError:
        raise SettingError(
            f"family must be a name, one name per item, or a mapping, but got {family!r}"
        ) from None
    if len(listed) != len(names):
        raise SettingError(
            "family must have one entry per item, but got "
            f"{plural(len(listed), 'entry', 'entries')} for {plural(len(names), 'item')}"
        )
    return _families_named(listed, names)


def _families_named(words: list[Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the family of each item; an error says for which items it holds."""
    families: list[str] = []
    wrong: dict[str, list[str]] = {}
    for word, name in zip(words, names, strict=True):
        try:
            families.append(family_name(word))
        except SettingError as error:
            wrong.setdefault(str(error), []).append(name)
    if wrong:
        sentence, items = next(iter(wrong.items()))
        raise SettingError(f"item {items[0]!r} ({len(items)} of {len(names)} items): {sentence}")
    return tuple(families)


def _position(key: Any, names: tuple[str, ...]) -> int:
    """Return the position of the item that a key of the mapping means."""
    if isinstance(key, str):
        if key in names:
            return names.index(key)
        near = difflib.get_close_matches(key, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the first item is {names[0]!r}"
        raise SettingError(f"family names the item {key!r}, which the table does not have; {hint}")
    try:
        return int(range(len(names))[key])
    except (TypeError, IndexError):
        raise SettingError(
            f"family must name items of the table, but got {key!r}; use a column name or a "
            f"position from 0 to {len(names) - 1}"
        ) from None


__all__ = [
    "FamilyChoice",
    "aliases",
    "check_values",
    "family_name",
    "resolve_families",
]
