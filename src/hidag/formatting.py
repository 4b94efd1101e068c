"""Numbers as people read them: as many digits as say something, whatever the unit is."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from math import floor, isfinite, isnan, log10
from typing import Any

#: Columns in the unit of an item, which may be mol or dollars: what is small there depends on it.
_OF_UNITS = frozenset(
    {
        *("estimate", "standard error", "lower", "upper", "least", "most", "fit", "low", "high"),
        *("observed", "expected", "before", "after"),
    }
)
#: Columns in which a number can be as small as what rounding leaves of zero.
_CHANCES = frozenset({"p", "p value"})
#: Smaller numbers are what rounding leaves of zero; beside the others of a row where units matter.
_ROUNDING = 1e-12
#: From here on zeros would hide how large a number is.
_LARGE = 1e6
_DIGITS_OF_LARGE = 4
_LARGE_IN_CELL = 1e4
_DIGITS_OF_SMALL = 3
#: A chance that is shown for being small is read for its size alone.
_DIGITS_OF_CHANCE = 2
#: Digits of a standard error that matter; further ones of the estimate are noise.
_DIGITS_OF_ERROR = 2
#: Decimals that can still be counted.
_MOST_DECIMALS = 6
_MOST_DIGITS = 8
#: Half a 90 % interval is that many standard errors.
_HALF_INTERVAL = 1.64
#: Whole numbers below this are stored to the last digit.
_LONGEST_WHOLE = 1e15


def shown_number(
    value: float, *, error: float | None = None, decimals: int = 3, grouped: bool = False
) -> str:
    """Return a number as text: plain decimals for ordinary sizes, else a few significant digits.

    Parameters
    ----------
    value : float
        NaN is no number and no text.
    error : float, optional
        Its standard error: digits go as far as that tells, and no less than ``decimals``.
    decimals : int
        Of numbers of ordinary size.
    grouped : bool
        Whether thousands are set apart by commas.
    """
    size = abs(value)
    if isnan(value):
        return ""
    if size == 0 or not isfinite(value):
        return f"{value + 0.0:g}"
    comma = "," if grouped else ""
    if error is not None and isfinite(error) and error > 0:
        places = max(decimals, _DIGITS_OF_ERROR - 1 - _magnitude(error))
        if places <= _MOST_DECIMALS and size < _LARGE:
            return _without_sign(f"{value:{comma}.{places}f}")
        digits = _magnitude(size) - _magnitude(error) + _DIGITS_OF_ERROR
        return f"{value:.{min(max(digits, _DIGITS_OF_ERROR), _MOST_DIGITS)}g}"
    if size >= _LARGE:
        return f"{value:.{_DIGITS_OF_LARGE}g}"
    if size < 10.0 ** (1 - decimals):
        return f"{value:.{_DIGITS_OF_SMALL}g}"
    return f"{value:{comma}.{decimals}f}"


def shown_value(number: float) -> str:
    """Return a number in six digits, or a whole one in full, as it would be looked for."""
    whole = float(number).is_integer() and abs(number) < _LONGEST_WHOLE
    return f"{number:.0f}" if whole else f"{number:g}"


def shown_in_cell(value: float) -> str:
    """Return a number for a small cell of a picture: two decimals, or what is seen instead."""
    size = abs(value)
    if size >= _LARGE_IN_CELL:
        return f"{value:.{_DIGITS_OF_SMALL}g}"
    # Nothing looks like an entry that is there and does nothing.
    return f"{value:.1g}" if 0 < size < 5e-3 else f"{value + 0.0:.2f}"


def shown_range(low: float, high: float, *, error: float | None = None, decimals: int = 3) -> str:
    """Return two numbers that something lies between, or one where they read alike."""
    a, b = (_beside(one, max(abs(low), abs(high))) for one in (low, high))
    texts = [shown_number(one, error=error, decimals=decimals) for one in (a, b)]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def shown_row(
    names: Sequence[str], cells: Sequence[Any], *, decimals: int = 3, grouped: bool = False
) -> list[str]:
    """Return the cells of a row as text, nothing where there is no number.

    Parameters
    ----------
    names : sequence of str
        Of the columns, in words or with underscores: they tell standard errors, chances, and
        numbers in the unit of an item.
    cells : sequence
        Text, whole numbers, numbers and truth values.
    decimals, grouped
        As :func:`shown_number` takes them.
    """
    plain = [name.replace("_", " ") for name in names]
    found = {
        name: abs(cell)
        for name, cell in zip(plain, cells, strict=True)
        if name in _OF_UNITS and isinstance(cell, float) and not isnan(cell)
    }
    largest, error = max(found.values(), default=0.0), _error_of(plain, cells)
    out = []
    for name, cell in zip(plain, cells, strict=True):
        if cell is None:
            out.append("")
        elif isinstance(cell, bool):
            out.append("yes" if cell else "no")
        elif not isinstance(cell, float):
            out.append(f"{cell:,}" if grouped and isinstance(cell, int) else str(cell))
        elif name in _OF_UNITS:
            own = _beside(cell, largest)
            out.append(shown_number(own, error=error, decimals=decimals, grouped=grouped))
        elif name in _CHANCES:
            out.append(_shown_chance(cell, decimals))
        else:
            own = 0.0 if abs(cell) <= _ROUNDING else cell
            out.append(shown_number(own, decimals=decimals, grouped=grouped))
    return out


def _error_of(names: Sequence[str], cells: Sequence[Any]) -> float | None:
    """Return the standard error that a row tells, by itself or by the ends of an interval."""
    row = {name: cell for name, cell in zip(names, cells, strict=True) if isinstance(cell, float)}
    if "standard error" in row:
        return float(row["standard error"])
    for lower, upper in (("lower", "upper"), ("low", "high")):
        if lower in row and upper in row:
            return float(abs(row[upper] - row[lower]) / 2 / _HALF_INTERVAL)
    return None


def _beside(value: float, largest: float) -> float:
    """Return a number, zero where it is what rounding leaves beside a larger one."""
    return 0.0 if abs(value) <= _ROUNDING * largest else value


def _shown_chance(value: float, decimals: int) -> str:
    """Return a chance as text: a small one is not none."""
    small = 0 < value < 0.5 * 10.0**-decimals
    digits = f".{_DIGITS_OF_CHANCE}g" if small else f".{decimals}f"
    return "" if isnan(value) else "0" if value == 0 else f"{value:{digits}}"


def _magnitude(size: float) -> int:
    return floor(log10(size))


def _without_sign(text: str) -> str:
    """Return a text without the sign of a number that was rounded to zero."""
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text


# --- Names made fit to be shown, short enough and with nothing hidden in them; nouns counted

#: Stands for what was cut out.
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
#: Bidirectional classes of characters that turn the text after them around.
_TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def hidden(letter: str) -> bool:
    """Return whether a character is not seen itself but steers what shows it."""
    return unicodedata.category(letter) == "Cc" or unicodedata.bidirectional(letter) in _TURNING


def visible(text: str, keep: str = "\n\t") -> str:
    """Return a text in which a mark that readers see stands for each hidden character.

    A name can hold a character that turns around all that follows (U+202E): what is read is then
    not what is there.

    Parameters
    ----------
    text : str
    keep : str
        Hidden characters that may stay.
    """
    # Pages have many thousand cells, nearly all of them plain.
    if text.isprintable():
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if letter not in keep and hidden(letter) else letter
        for letter in text
    )


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: 1 item, 1,000 items.

    Parameters
    ----------
    number : int
    one, many : str
        The noun after 1 and after other numbers; by default the latter ends in an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def shortened(name: str, longest: int, mark: str = ELLIPSIS) -> str:
    """Return a name of at most so many letters; what is too much is cut out of its middle.

    Questions of a survey begin alike and variables of a wave end alike, so that names cut at one
    end would all read the same: both ends stay. Numbers are not cut in two if there is room:
    items 100 to 109 would read alike, and a part of a number is another number.

    Parameters
    ----------
    name : str
    longest : int
        Letters, the mark among them.
    mark : str
        Stands where something was cut out.
    """
    if len(name) <= longest:
        return name
    room = max(longest - len(mark), 0)
    end = room // 2
    head = room - end
    past = _end_of_number(name, head)
    if past - head <= end // 2:
        head, end = past, end - (past - head)
    past = _end_of_number(name, len(name) - end)
    if past < len(name):
        end = len(name) - past
    return name[:head].rstrip() + mark + (name[-end:].lstrip() if end else "")


def _end_of_number(name: str, cut: int) -> int:
    """Return the first place from a cut on that is not inside a number."""
    if cut and name[cut - 1].isdigit():
        while cut < len(name) and name[cut].isdigit():
            cut += 1
    return cut
