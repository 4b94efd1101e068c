"""Options and arguments that several commands share, and functions that parse them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hidag.exceptions import SettingError, invalid_setting

#: Panels of `--help` for options beyond the most common ones.
ITEMS, GRAPH, ESTIMATION, OUTPUT = "Items and Q", "Latents and graph", "Estimation", "Output"

FitFile = Annotated[Path, typer.Argument(help="result.npz, or the folder that holds it.")]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column of row identifiers, which is not an item; output files with a line per row "
        "contain it.",
        show_default="no such column",
        rich_help_panel=ITEMS,
    ),
]
WeightsColumn = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="Column of row weights, such as survey weights, which is not an item. They are scaled "
        "to add up to the effective sample size.",
        show_default="equal weights",
        rich_help_panel=ITEMS,
    ),
]
MissingCodes = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="Codes for missing answers, separated by commas (99,-9), or COLUMN=CODES for a column "
        "or a pattern; may be given several times.",
        show_default="empty cells and NA",
        rich_help_panel=ITEMS,
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Option(
        "--words",
        help="Labels of categories, COLUMN=LABELS for a column or a pattern: separated by < if "
        "they are ordered ('q*=never<often<always'), by commas if not (region=north,south). May "
        "be given several times.",
        show_default=False,
        rich_help_panel=ITEMS,
    ),
]
MissingAgain = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="Codes for missing answers, as in `hidag fit`.",
        show_default="those of the fit",
    ),
]
DroppedColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        help="Columns to leave out, separated by commas, or patterns such as 'note_*'; the second "
        "of two columns named 'score' is 'score#2'. May be given several times.",
        show_default=False,
        rich_help_panel=ITEMS,
    ),
]
IdAgain = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column of row identifiers.",
        show_default="that of the fit, or row numbers",
    ),
]
Types = Annotated[
    Path | None,
    typer.Option(
        help="CSV with the columns item and type.", show_default=False, rich_help_panel=ITEMS
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Jobs = Annotated[
    int,
    typer.Option(
        help="Threads, which do not change the result; -1: all.", rich_help_panel=ESTIMATION
    ),
]
NoPlots = Annotated[
    bool, typer.Option("--no-plots", help="Draw no figures.", rich_help_panel=OUTPUT)
]
NumbersFile = Annotated[
    Path | None, typer.Option(help="CSV file for the results.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def parse_levels(text: str) -> int | list[int]:
    """Return the number of levels: one number, or a list with one per latent."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        expected = "a whole number from 2 up, or one per latent separated by commas (2,3,2)"
        raise invalid_setting("levels", expected, text)
    numbers = [int(word) for word in words]
    return numbers[0] if len(numbers) == 1 else numbers


def parse_effects(text: str) -> str | int:
    """Return the effects: a name in lower case, or the highest order of interactions."""
    word = text.strip().lower()
    return int(word) if word.isdecimal() else word


def parse_latents(text: str | None) -> int | str | None:
    """Return the number of latents, or "auto"."""
    word = None if text is None else text.strip().lower()
    if word is None or word == "auto":
        return word
    if not word.removeprefix("-").isdecimal():
        raise typer.BadParameter(
            f"it must be a whole number or auto, got {text!r}", param_hint="--latents"
        )
    return int(word)


def parse_range(text: str | None) -> tuple[int, ...] | None:
    """Return the numbers in a range such as 2..8 or a list separated by commas."""
    if text is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        low, dots, high = part.strip().partition("..")
        ends = (low, high) if dots else (low, low)
        if not all(end.strip().isdecimal() for end in ends) or int(ends[0]) > int(ends[1]):
            expected = "a range such as 2..8 or numbers separated by commas"
            raise invalid_setting("n_latents", expected, text)
        numbers += range(int(ends[0]), int(ends[1]) + 1)
    return tuple(numbers)


def parse_strengths(text: str | None) -> tuple[float | None, ...]:
    """Return penalty strengths separated by commas; "auto" (None) estimates the strength."""
    if text is None:
        return (None,)
    try:
        words = [word.strip().lower() for word in text.split(",")]
        return tuple(None if word == "auto" else float(word) for word in words)
    except ValueError:
        expected = "numbers or auto, separated by commas"
        raise invalid_setting("penalty_strengths", expected, text) from None


def split_known(text: str, known: Callable[[str], bool]) -> list[str]:
    """Return the parts of a text between commas, except commas inside of a known name.

    Parameters
    ----------
    text : str
    known : function of a part
        Whether a part with commas is a name. The longest parts are tried first.
    """
    pieces = text.split(",")
    out = []
    start = 0
    while start < len(pieces):
        end = len(pieces)
        while end > start + 1 and not known(",".join(pieces[start:end]).strip()):
            end -= 1
        out.append(",".join(pieces[start:end]).strip())
        start = end
    return out


def parse_pairs(texts: Sequence[str], option: str, names: Collection[str]) -> dict[str, str]:
    """Return the values in options such as Z1=1 or Z1=1,Z2=0 by name.

    Parameters
    ----------
    texts : sequence of str
    option : str
    names : collection of str
        Known names, which may contain commas.
    """

    def known(part: str) -> bool:
        return part.rpartition("=")[0].strip() in names

    out: dict[str, str] = {}
    for text in texts:
        for part in split_known(text, known):
            name, sign, value = (word.strip() for word in part.rpartition("="))
            if not sign or not name or not value:
                raise SettingError(
                    "invalid-option",
                    "{option} takes NAME=VALUE, such as Z1=1, got {part!r}",
                    option=option,
                    part=part,
                )
            if name in out:
                raise SettingError(
                    "repeated-name", "{option} names {name} twice", option=option, name=name
                )
            out[name] = value
    return out


def parse_arrows(
    texts: Sequence[str], option: str, names: Collection[str]
) -> list[tuple[str, str]]:
    """Return the pairs of cause and effect in options such as A->B or A->B,B->C."""

    def known(part: str) -> bool:
        ends = [end.strip() for end in part.split("->")]
        return len(ends) == 2 and all(end in names for end in ends)

    out = []
    for text in texts:
        for part in split_known(text, known):
            cause, arrow, effect = (word.strip() for word in part.partition("->"))
            if not arrow or not cause or not effect or "->" in effect:
                raise SettingError(
                    "invalid-option",
                    "{option} takes CAUSE->EFFECT, such as 'Z1->Z2', got {part!r}",
                    option=option,
                    part=part,
                )
            out.append((cause, effect))
    return out
