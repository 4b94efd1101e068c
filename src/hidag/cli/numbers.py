"""Options that are numbers, lists of numbers or words."""

from __future__ import annotations

import typer

from hidag.errors import SettingError


def levels_of(text: str) -> int | list[int]:
    """Return the levels that an option says: one number, or one per latent with commas between."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise SettingError(
            f"--levels must be a whole number from 2 up, or one per latent with commas between "
            f"(2,3,2), got {text!r}"
        )
    numbers = [int(word) for word in words]
    return numbers[0] if len(numbers) == 1 else numbers


def effects_of(text: str) -> str | int:
    """Return the effects that an option says: a name in small letters, or a highest order."""
    word = text.strip().lower()
    return int(word) if word.isdecimal() else word


def latents_of(text: str | None) -> int | str | None:
    """Return the number of latents that an option says: a whole number, or "auto"."""
    word = None if text is None else text.strip().lower()
    if word is None or word == "auto":
        return word
    if not word.removeprefix("-").isdecimal():
        raise typer.BadParameter(
            f"it must be a whole number or auto, got {text!r}", param_hint="--latents"
        )
    return int(word)


def range_of(text: str | None) -> tuple[int, ...] | None:
    """Return the numbers that an option says: 2..8, a list with commas between, or one number."""
    if text is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        low, dots, high = part.strip().partition("..")
        ends = (low, high) if dots else (low, low)
        if not all(end.strip().isdecimal() for end in ends) or int(ends[0]) > int(ends[1]):
            raise SettingError(
                f"--latents must be a range such as 2..8 or numbers with commas between, got "
                f"{text!r}"
            )
        numbers += range(int(ends[0]), int(ends[1]) + 1)
    return tuple(numbers)


def strengths_of(text: str | None) -> tuple[float | None, ...]:
    """Return strengths of the penalty with commas between; "auto" lets the fit learn its own."""
    if text is None:
        return (None,)
    try:
        words = [word.strip().lower() for word in text.split(",")]
        return tuple(None if word == "auto" else float(word) for word in words)
    except ValueError:
        raise SettingError(
            f"--penalty-strengths must be numbers or auto with commas between, got {text!r}"
        ) from None
