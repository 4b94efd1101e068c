"""Options and arguments that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hidag.exceptions import SettingError

#: Under which `--help` lists options beyond the first few that most people need.
ITEMS, GRAPH, ESTIMATION, OUTPUT = "Items and Q", "Latents and graph", "Estimation", "Output"

FitFile = Annotated[Path, typer.Argument(help="result.npz, or the folder that holds it.")]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column that names the rows: no item; files with a line per row have it.",
        show_default="no such column",
        rich_help_panel=ITEMS,
    ),
]
WeightsColumn = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="Column with the rows' weights, such as those of a survey: no item. They are scaled "
        "to add up to the number of equal rows that would tell as much.",
        show_default="all rows alike",
        rich_help_panel=ITEMS,
    ),
]
MissingCodes = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="Codes for missing answers, with commas between (99,-9), or COLUMN=CODES for one "
        "column or a pattern; may be given several times.",
        show_default="empty cells and NA",
        rich_help_panel=ITEMS,
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Option(
        "--words",
        help="Answers that stand in words, COLUMN=WORDS for a column or a pattern: with < between "
        "where they have an order ('q*=never<often<always'), with commas where not "
        "(region=north,south). May be given several times.",
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
        help="Columns to leave out, with commas between, or patterns such as 'note_*'; the second "
        "of two columns named alike is 'score#2'. May be given several times.",
        show_default=False,
        rich_help_panel=ITEMS,
    ),
]
IdAgain = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column with the names of the rows.",
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
    int, typer.Option(help="Threads; never changes a result. -1: all.", rich_help_panel=ESTIMATION)
]
NoPlots = Annotated[
    bool, typer.Option("--no-plots", help="Draw no pictures.", rich_help_panel=OUTPUT)
]
NumbersFile = Annotated[
    Path | None, typer.Option(help="CSV file for all numbers.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


# --- Options that are numbers, lists of numbers or words


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


# --- Options that list several things with commas, where names may have commas themselves


def split_known(text: str, known: Callable[[str], bool]) -> list[str]:
    """Return the parts of a text between commas, a comma inside of something known left alone.

    Parameters
    ----------
    text : str
    known : function of a part
        Whether a part that has commas is one thing. The whole text is asked about first, then the
        longest part from where the last one ended; a part without commas is taken as it is.
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


def read_pairs(texts: Sequence[str], option: str, names: Collection[str]) -> dict[str, str]:
    """Return what options such as Z1=1 or Z1=1,Z2=0 say, name by name.

    Parameters
    ----------
    texts : sequence of str
    option : str
        As errors call it.
    names : collection of str
        Those that can be meant.
    """

    def known(part: str) -> bool:
        return part.rpartition("=")[0].strip() in names

    out: dict[str, str] = {}
    for text in texts:
        for part in split_known(text, known):
            name, sign, value = (word.strip() for word in part.rpartition("="))
            if not sign or not name or not value:
                raise SettingError(f"{option} takes NAME=VALUE, such as Z1=1, got {part!r}")
            if name in out:
                raise SettingError(f"{option} names {name} twice")
            out[name] = value
    return out


def read_arrows(texts: Sequence[str], option: str, names: Collection[str]) -> list[tuple[str, str]]:
    """Return what options such as A->B or A->B,B->C say, as pairs of cause and effect."""

    def known(part: str) -> bool:
        ends = [end.strip() for end in part.split("->")]
        return len(ends) == 2 and all(end in names for end in ends)

    out = []
    for text in texts:
        for part in split_known(text, known):
            cause, arrow, effect = (word.strip() for word in part.partition("->"))
            if not arrow or not cause or not effect or "->" in effect:
                raise SettingError(f"{option} takes CAUSE->EFFECT, such as 'Z1->Z2', got {part!r}")
            out.append((cause, effect))
    return out
