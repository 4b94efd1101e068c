"""Options and arguments of the commands, and functions that parse them.

Options that several commands share are annotated types; those of one command are default values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from hidag.exceptions import SettingError, invalid_setting


def option(
    default: Any,
    text: str,
    *names: str,
    panel: str | None = None,
    shown: str | bool = True,
    least: int | None = None,
) -> Any:
    """Return an option with its help text; by default it has the name of the parameter.

    ``default`` is an ellipsis in annotated types; ``shown`` describes it in the help, where None
    and False do not appear.
    """
    shown = shown if default is not None or shown is not True else False
    return typer.Option(
        default, *names, help=text, show_default=shown, rich_help_panel=panel, min=least
    )


#: Options beyond the most common ones, in panels of `--help`.
item_option = partial(option, panel="Items and Q")
graph_option = partial(option, panel="Latents and graph")
estimation_option = partial(option, panel="Estimation")
output_option = partial(option, panel="Output")

_FIT = "Fit: the folder that `hidag fit --out` wrote, or result.npz in it."
FitFile = Annotated[Path, typer.Argument(help=_FIT)]
_IDS = "Column of row identifiers, not an item; output files with a line per row contain it."
_WEIGHTS = (
    "Column of row weights, such as survey weights, not an item; they are scaled to add up to the "
    "effective sample size."
)
_CODES = (
    "Codes for missing answers, separated by commas (99,-9), or COLUMN=CODES for a column or a "
    "pattern; may be given several times."
)
_LABELS = (
    "Labels of categories, COLUMN=LABELS for a column or a pattern: separated by < if they are "
    "ordered ('q*=never<often<always'), by commas if not (region=north,south). May be given "
    "several times."
)
_DROPPED = (
    "Columns to leave out, separated by commas, or patterns such as 'note_*'; the second of two "
    "columns named 'score' is 'score#2'. May be given several times."
)
Name = str | None
Texts = list[str] | None
File = Path | None
IdColumn = Annotated[Name, item_option(..., _IDS, "--id", shown="no such column")]
WeightsColumn = Annotated[Name, item_option(..., _WEIGHTS, shown="equal weights")]
MissingCodes = Annotated[Texts, item_option(..., _CODES, shown="empty cells and NA")]
Words = Annotated[Texts, item_option(..., _LABELS, shown=False)]
DroppedColumns = Annotated[Texts, item_option(..., _DROPPED, shown=False)]
Types = Annotated[
    File,
    item_option(
        ..., "CSV file with the columns item and type; types are those of --family.", shown=False
    ),
]
MissingAgain = Annotated[
    Texts,
    option(
        ...,
        "Codes for missing answers, such as 99,-9, as in `hidag fit`.",
        shown="those of the fit",
    ),
]
IdAgain = Annotated[
    Name, option(..., "Column of row identifiers.", "--id", shown="that of the fit, or row numbers")
]
Seed = Annotated[
    int, option(..., "Seed of the random numbers: the same seed gives the same result.", least=0)
]
_THREADS = "Number of threads, -1 for all; it does not change the result."
Jobs = Annotated[int, estimation_option(..., _THREADS)]
NoPlots = Annotated[bool, output_option(..., "Do not draw figures.", "--no-plots")]
NumbersFile = Annotated[
    File, option(..., "CSV file for the results, created if needed.", shown=False)
]
Json = Annotated[bool, option(..., "Print JSON instead of text.", "--json")]


def parse_levels(text: str) -> int | list[int]:
    """Return the number of levels: one number, or a list with one per latent."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        expected = "a whole number from 2 up, or one per latent separated by commas (2,3,2)"
        raise invalid_setting("levels", expected, text)
    numbers = [parse_whole(word, "levels") for word in words]
    return numbers[0] if len(numbers) == 1 else numbers


def parse_fit_levels(text: str) -> Any:
    """Return the levels of a fit: numbers, also with equal steps (4-linear), or "auto"."""
    # Here, because help needs no numerical package.
    from hidag.fitting.settings import LINEAR

    words = [word.strip().lower() for word in text.split(",")]
    if words == ["auto"] or any(word.endswith(LINEAR) for word in words):
        return words[0] if len(words) == 1 else words
    return parse_levels(text)


def parse_nuisance(text: str | None) -> Any:
    """Return the nuisance: a word, or a list of items."""
    return text if text is None or "," not in text else [word.strip() for word in text.split(",")]


def parse_doublets(text: str | None) -> list[tuple[str, ...]] | None:
    """Return pairs of items: a+b,c+d."""
    if text is None:
        return None
    return [tuple(word.strip() for word in pair.split("+")) for pair in text.split(",")]


def parse_effects(text: str) -> str | int:
    """Return the effects: a name in lower case, or the highest order of interactions."""
    word = text.strip().lower()
    return parse_whole(word, "effects") if word.isdecimal() else word


_MAX_DIGITS = 20


def parse_latents(text: str | None) -> int | str | None:
    """Return the number of latents, or "auto"."""
    word = None if text is None else text.strip().lower()
    if word is None or word == "auto":
        return word
    if not word.removeprefix("-").isdecimal():
        problem = f"it must be a whole number or auto, got {text!r}"
        raise typer.BadParameter(problem, param_hint="--latents")
    return parse_whole(word, "n_latents")


def parse_whole(text: str, name: str) -> int:
    """Return a whole number of a setting unless it has more digits than any of them."""
    if len(text) > _MAX_DIGITS:
        raise invalid_setting(name, f"a whole number of at most {_MAX_DIGITS} digits", text[:40])
    return int(text)


def parse_range(text: str | None) -> tuple[int, ...] | None:
    """Return the numbers in a range such as 2..8 or a list separated by commas."""
    if text is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        low, dots, high = part.strip().partition("..")
        ends = (low, high) if dots else (low, low)
        if (
            not all(end.strip().isdecimal() for end in ends)
            or len(max(ends, key=len)) > 99
            or int(ends[0]) > int(ends[1])
        ):
            expected = "a range such as 2..8 or numbers separated by commas"
            raise invalid_setting("n_latents", expected, text)
        from hidag.fitting.settings import checked_count

        first, last = (parse_whole(end, "n_latents") for end in ends)
        checked_count("n_latents", max(last, 1))
        numbers += range(first, last + 1)
    return tuple(numbers)


def parse_strengths(text: str | None) -> tuple[float | None, ...]:
    """Return penalty strengths separated by commas; "auto" (None) estimates the strength."""
    words = [word.strip().lower() for word in ("auto" if text is None else text).split(",")]
    try:
        return tuple(None if word == "auto" else float(word) for word in words)
    except ValueError:
        expected = "numbers or auto, separated by commas"
        raise invalid_setting("penalty_strengths", expected, text) from None


def split_known(text: str, known: Callable[[str], bool]) -> list[str]:
    """Return the parts of a text between commas; the longest known parts may contain commas."""
    pieces = text.split(",")
    out, start = [], 0
    while start < len(pieces):
        end = len(pieces)
        while end > start + 1 and not known(",".join(pieces[start:end]).strip()):
            end -= 1
        out.append(",".join(pieces[start:end]).strip())
        start = end
    return out


def _split_at(
    sign: str, texts: Sequence[str], known: Callable[[str], bool], option: str, form: str
) -> Iterator[tuple[str, str]]:
    """Yield what is left and right of the last sign in each part of some texts."""
    for text in texts:
        for part in split_known(text, known):
            left, found, right = (word.strip() for word in part.rpartition(sign))
            if not found or not left or not right or (sign == "->" and sign in left):
                template = "{option} takes {form}, got {part!r}"
                raise SettingError("invalid-option", template, option=option, form=form, part=part)
            yield left, right


def parse_pairs(texts: Sequence[str], option: str, names: Collection[str]) -> dict[str, str]:
    """Return the values in options such as Z1=1,Z2=0 by name; known names may contain commas."""

    def known(part: str) -> bool:
        return part.rpartition("=")[0].strip() in names

    out: dict[str, str] = {}
    for name, value in _split_at("=", texts, known, option, "NAME=VALUE, such as Z1=1"):
        if name in out:
            template = "{option} names {name} twice"
            raise SettingError("repeated-name", template, option=option, name=name)
        out[name] = value
    return out


def parse_arrows(
    texts: Sequence[str], option: str, names: Collection[str]
) -> list[tuple[str, str]]:
    """Return the pairs of cause and effect in options such as A->B,B->C."""

    def known(part: str) -> bool:
        ends = [end.strip() for end in part.split("->")]
        return len(ends) == 2 and all(end in names for end in ends)

    return list(_split_at("->", texts, known, option, "CAUSE->EFFECT, such as 'Z1->Z2'"))
