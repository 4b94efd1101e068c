"""Options that are numbers, lists of numbers or words."""

from __future__ import annotations

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
