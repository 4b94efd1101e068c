"""The response family of each item: given by the user, or inferred from the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.cells import describe_coding
from hidag.data.table import Observations
from hidag.data.type_inference import BINARY, POSITIVE, REAL, Guess, infer_family
from hidag.data.value_checks import DROP_DATES, DROP_ROW_IDS, recode_advice, with_code_advice
from hidag.exceptions import (
    Advice,
    DataError,
    Setting,
    SettingError,
    invalid_setting,
    join_advice,
    suggest_name,
)
from hidag.formatting import align_columns, first_names, plural
from hidag.measurement.families import ITEM_TYPES, item_type
from hidag.measurement.families.base import family_names, split_name

Floats = NDArray[np.float64]
FamilySetting = str | Sequence[str] | Mapping[Any, str]
_AUTO = "auto"
GIVEN_FAMILY = "set by the user"  # Reason of a family that the user gave.
_MAX_NAMES, _MAX_VALUES = 5, 8


def ambiguous_types_error(
    ambiguous: dict[str, Guess], families: Sequence[str], observations: Observations
) -> DataError:
    """Return the error about all items whose family cannot be inferred, with a setting to paste."""
    groups: dict[str | float, list[str]] = {}
    for name, guess in ambiguous.items():
        # How often a code occurs differs from item to item; the advice about it does not.
        groups.setdefault(guess.reason if guess.code is None else guess.code, []).append(name)
    lines = []
    for names in groups.values():
        reasons = list(dict.fromkeys(ambiguous[name].reason for name in names))
        first = "the first " if len(reasons) > 1 else ""
        shown = ", ".join(repr(name) for name in names[:_MAX_NAMES])
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
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
        if not (guess.is_row_id or guess.is_date)
        and (guess.code is None or guess.suggestion != BINARY)
    }
    advice = [recode_advice(group) for group in groups if isinstance(group, float)]
    for advice_of_kind, kind in ((DROP_ROW_IDS, "is_row_id"), (DROP_DATES, "is_date")):
        names = [name for name, guess in ambiguous.items() if getattr(guess, kind)]
        if names:
            advice.append(replace(advice_of_kind, params={"item": names[0]}))
    if pasted:
        which = "the types" if len(pasted) == len(ambiguous) else "the types of the others"
        text = f"set {which}, for instance {{family}}; the other items stay 'auto'"
        advice.append(Advice("name-family", text, {"family": Setting("family", pasted)}))
    problem = "{auto} cannot infer the type of {n} of {n_items} items:{findings}\n"
    params: dict[str, Any] = {"auto": Setting("family", _AUTO), "n": len(ambiguous)}
    params |= {"findings": "".join(lines), "n_items": observations.n_items}
    return DataError("ambiguous-types", problem, params, advice=join_advice(*advice))


@dataclass(frozen=True)
class FamilyChoice:
    """The family of each item, whether it was inferred from the values, and the reason for it."""

    families: tuple[str, ...]
    inferred: tuple[bool, ...]
    reasons: tuple[str, ...]
    names: tuple[str, ...]

    def table(self) -> str:
        """Return one line per item: name, family, given or inferred, reason."""
        sources = ["inferred" if inferred else "given" for inferred in self.inferred]
        rows = [("item", "family", "source", "reason")]
        rows += zip(self.names, self.families, sources, self.reasons, strict=True)
        return "\n".join(align_columns(rows))


def resolve_families(
    observations: Observations, family: FamilySetting, weights: Floats | None = None
) -> FamilyChoice:
    """Return the family of each item.

    ``family`` is one for all items, one per item, or a mapping from the name or the position
    (counting from 0) of an item. "auto", and items that a mapping leaves out, are inferred by the
    rules of `hidag.data.type_inference`; if values are ambiguous, the error lists all such items
    and a setting to paste. ``weights``, shape (N,), order the categories of nominal items.
    """
    families: list[str] = []
    reasons: list[str] = []
    ambiguous: dict[str, Guess] = {}
    given = _families_per_item(observations.names, family)
    for item, (name, word) in enumerate(zip(observations.names, given, strict=True)):
        labels = observations.labels.get(name) if word == _AUTO else None
        if labels is not None:
            families.append(_with_argument(labels.family, observations, item, weights))
            reasons.append(f"words: {describe_coding(labels.labels)}")
        elif word != _AUTO:
            families.append(_with_argument(word, observations, item, weights))
            reasons.append(GIVEN_FAMILY)
        else:
            guess = infer_family(observations.column(item), padded=name in observations.padded)
            if guess.family is None:
                ambiguous[name] = guess
            families.append(guess.family or guess.suggestion)
            reasons.append(guess.reason)
    if ambiguous:
        raise ambiguous_types_error(ambiguous, families, observations)
    inferred = tuple(word == _AUTO for word in given)
    return FamilyChoice(tuple(families), inferred, tuple(reasons), observations.names)


def family_name(word: str) -> str:
    """Return the full name of a family, or "auto"; "ordinal" takes its argument from values."""
    if not isinstance(word, str):
        raise invalid_setting("family", f"a name, one of {_list_families()}", word)
    key, number = split_name(word.strip().lower())
    # Other names, as a types.csv may use them.
    aliases = {alias: name for name, kind in ITEM_TYPES.items() for alias in kind.aliases}
    key = aliases.get(key, key)
    if key == _AUTO and number is None:
        return key
    if key in ITEM_TYPES:
        if number is None and ITEM_TYPES[key].argument_source:
            return key
        return item_type(key if number is None else f"{key}({number})").name
    text = "{family} is unknown"
    params = {"family": Setting("family", word), "known": _list_families()}
    advice = suggest_name(key, [*ITEM_TYPES, *aliases, _AUTO], "use one of {known}")
    raise SettingError("unknown-family", text, params, advice=advice)


def _with_argument(word: str, observations: Observations, item: int, weights: Floats | None) -> str:
    """Return the family with an argument taken from the item's values, if it lacks one."""
    kind = ITEM_TYPES.get(word)
    if kind is None or not kind.argument_source:
        return word
    values = observations.column(item)
    distinct = np.unique(values)
    if len(distinct) == 2 and np.array_equal(distinct, (0, 1)):
        # With two grades both families are the same model.
        return BINARY
    own = None if weights is None else weights[observations.observed[:, item]]
    found = kind.name_from_values(values, own)
    if found is not None:
        return found
    shown = first_names([f"{value:g}" for value in distinct], _MAX_VALUES)
    name, text = observations.names[item], "recode the item, or set what can occur: {example}"
    example = {"example": Setting("family", f"{word}({kind.example_argument})")}
    raise DataError(
        "number-not-in-values",
        "{family} takes its {number} from values that are {expected}, but item {item!r} holds "
        "{values}",
        {"family": Setting("family", word), "item": name, "values": shown},
        advice=with_code_advice(Advice("family-argument", text, example), values, name),
        number=kind.argument_name,
        expected=kind.argument_source,
    )


def _list_families() -> str:
    return ", ".join(repr(name) for name in (*family_names(), _AUTO))


def _families_per_item(names: tuple[str, ...], family: FamilySetting) -> tuple[str, ...]:
    """Return one word per item: a family or "auto"."""
    if isinstance(family, str):
        return (family_name(family),) * len(names)
    if isinstance(family, Mapping):
        words: dict[int, Any] = {}
        for key, word in family.items():
            item = _position(key, names)
            if item in words:
                text = "{family} must name each item once, but item {name!r} occurs by name and by "
                text += "position"
                params = {"family": Setting("family"), "name": names[item]}
                raise SettingError("item-named-twice", text, params)
            words[item] = word
        return _family_names([words.get(item, _AUTO) for item in range(len(names))], names)
    try:
        listed = list(family)
    except TypeError:
        raise invalid_setting("family", "a name, one name per item, or a mapping", family) from None
    if len(listed) != len(names):
        text = "{family} must have one entry per item, but got {entries} for {items}"
        counts = {"entries": plural(len(listed), "entry", "entries")}
        counts["items"] = plural(len(names), "item")
        raise SettingError("wrong-number-of-families", text, counts, family=Setting("family"))
    return _family_names(listed, names)


def _family_names(words: list[Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the family of each item; an error names the items that it is about."""
    families: list[str] = []
    first: SettingError | None = None
    items: list[str] = []
    for word, name in zip(words, names, strict=True):
        try:
            families.append(family_name(word))
        except SettingError as error:
            first = first or error
            items += [name] * (error.message == first.message)
    if first is not None:
        text = "item {name!r} ({n} of {n_items} items): {error}"
        params = {"name": items[0], "n": len(items), "n_items": len(names), "error": first.message}
        raise SettingError("invalid-family-of-item", text, params)
    return tuple(families)


def _position(key: Any, names: tuple[str, ...]) -> int:
    """Return the position of the item with this name or position."""
    if isinstance(key, str):
        if key in names:
            return names.index(key)
        raise SettingError(
            "family-of-unknown-item",
            "{family} names the item {name!r}, which the table does not have",
            {"family": Setting("family"), "name": key, "first": names[0]},
            advice=suggest_name(key, names, "the first item is {first!r}"),
        )
    try:
        return int(range(len(names))[key])
    except (TypeError, IndexError):
        text = "{family} must name items of the table, but got {name!r}"
        params = {"family": Setting("family"), "name": key, "last": len(names) - 1}
        advice = "use a column name or a position from 0 to {last}"
        raise SettingError("family-of-unknown-item", text, params, advice=advice) from None
