"""Formatting of numbers, counts and names for text, tables and figures."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from math import floor, isfinite, isnan, log10
from typing import Any

#: Columns in the unit of an item (mol, dollars): smallness is relative to the row.
_IN_UNITS = frozenset(
    {
        *("estimate", "standard error", "lower", "upper", "least", "most", "fit", "low", "high"),
        *("observed", "expected", "before", "after"),
    }
)
#: Columns of numbers between 0 and 1 that have a common scale.
_SHARES = frozenset({"share", "rmsd", "RMSD"})
_P_VALUES = frozenset({"p", "p value"})  # Columns of p-values, which may be genuinely tiny.
#: Smaller numbers are rounding errors around zero; relative to the row for columns in units.
_ROUNDING = 1e-12
_LARGE, _LARGE_IN_CELL = 1e6, 1e4  # Larger numbers are written with an exponent.
#: Significant digits of large numbers, of small numbers and of small p-values.
_DIGITS_LARGE, _DIGITS_SMALL, _DIGITS_P = 4, 3, 2
#: Significant digits of a standard error; further digits of the estimate are noise.
_DIGITS_ERROR = 2
_MAX_DECIMALS, _MAX_DIGITS = 6, 8
_HALF_INTERVAL = 1.64  # Half the width of a 90 % normal interval, in standard errors.
_MAX_INTEGER = 1e15  # Integers below this are exact in float64.


def format_number(
    value: float, *, error: float | None = None, decimals: int = 3, grouped: bool = False
) -> str:
    """Return a number with fixed decimals, or with significant digits if very large or small.

    A standard ``error`` sets the decimals, at least ``decimals``; NaN gives an empty string.
    """
    size = abs(value)
    if isnan(value):
        return ""
    if size == 0 or not isfinite(value):
        return f"{value + 0.0:g}"
    comma = "," if grouped else ""
    if error is not None and isfinite(error) and error > 0:
        places = max(decimals, _DIGITS_ERROR - 1 - _exponent(error))
        if places <= _MAX_DECIMALS and size < _LARGE:
            text = f"{value:{comma}.{places}f}"
            # A number rounded to zero has no sign.
            return text[1:] if text.startswith("-") and not text.strip("-0.,") else text
        digits = _exponent(size) - _exponent(error) + _DIGITS_ERROR
        return f"{value:.{min(max(digits, _DIGITS_ERROR), _MAX_DIGITS)}g}"
    if size >= _LARGE:
        return f"{value:.{_DIGITS_LARGE}g}"
    if size < 10.0 ** (1 - decimals):
        return f"{value:.{_DIGITS_SMALL}g}"
    return f"{value:{comma}.{decimals}f}"


def format_value(number: float) -> str:
    """Return a data value: integers in full, other numbers with six significant digits."""
    whole = float(number).is_integer() and abs(number) < _MAX_INTEGER
    return f"{number:.0f}" if whole else f"{number:g}"


def format_cell(value: float) -> str:
    """Return a number for a cell of a figure: two decimals if the size allows it."""
    size = abs(value)
    if size >= _LARGE_IN_CELL:
        return f"{value:.{_DIGITS_SMALL}g}"
    # A small entry must not read as zero.
    return f"{value:.1g}" if 0 < size < 5e-3 else f"{value + 0.0:.2f}"


def format_range(low: float, high: float) -> str:
    """Return "low to high", or one number if both are formatted identically."""
    ends = (_without_rounding(end, max(abs(low), abs(high))) for end in (low, high))
    texts = list(map(format_number, ends))
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def format_row(
    names: Sequence[str], cells: Sequence[Any], *, decimals: int = 3, grouped: bool = False
) -> list[str]:
    """Return a table row as text; column names identify standard errors, p-values and units."""
    plain = [name.replace("_", " ") for name in names]
    floats = {
        name: cell for name, cell in zip(plain, cells, strict=True) if isinstance(cell, float)
    }
    sizes = (abs(v) for name, v in floats.items() if name in _IN_UNITS and not isnan(v))
    largest, error = max(sizes, default=0.0), _standard_error(floats)
    out = []
    for name, cell in zip(plain, cells, strict=True):
        if cell is None:
            out.append("")
        elif isinstance(cell, bool):
            out.append("yes" if cell else "no")
        elif not isinstance(cell, float):
            out.append(f"{cell:,}" if grouped and isinstance(cell, int) else str(cell))
        elif name in _IN_UNITS:
            own = _without_rounding(cell, largest)
            out.append(format_number(own, error=error, decimals=decimals, grouped=grouped))
        elif name in _P_VALUES:
            out.append(_format_p_value(cell, decimals))
        elif name in _SHARES and abs(cell) >= 0.5 * 10.0**-decimals:
            out.append(f"{cell:.{decimals}f}")
        else:
            own = _without_rounding(cell, 1.0)
            out.append(format_number(own, decimals=decimals, grouped=grouped))
    return out


def _standard_error(row: dict[str, float]) -> float | None:
    """Return the standard error of a row, possibly derived from its interval."""
    if "standard error" in row:
        return float(row["standard error"])
    for lower, upper in (("lower", "upper"), ("low", "high")):
        if lower in row and upper in row:
            return float(abs(row[upper] - row[lower]) / 2 / _HALF_INTERVAL)
    return None


def _without_rounding(value: float, scale: float) -> float:
    """Return the value, or zero if it is a rounding error on this scale."""
    return 0.0 if abs(value) <= _ROUNDING * scale else value


def _format_p_value(value: float, decimals: int) -> str:
    small = 0 < value < 0.5 * 10.0**-decimals
    digits = f".{_DIGITS_P}g" if small else f".{decimals}f"
    return "" if isnan(value) else "0" if value == 0 else f"{value:{digits}}"


def _exponent(size: float) -> int:
    return floor(log10(size))


ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
MAX_LISTED = 8  # Longer lists of names are cut, and the rest is counted.
#: Bidirectional classes of the characters that change the direction of the text after them.
_DIRECTIONAL = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def is_hidden(char: str) -> bool:
    """Return whether a character is an invisible control or bidirectional formatting character."""
    return unicodedata.category(char) == "Cc" or unicodedata.bidirectional(char) in _DIRECTIONAL


def replace_hidden(text: str, keep: str = "\n\t") -> str:
    """Return a text with hidden characters, except ``keep``, shown as replacement characters."""
    # Pages have many thousand cells, nearly all of them plain.
    if text.isprintable():
        return text
    mark = "\N{REPLACEMENT CHARACTER}"
    return "".join(mark if char not in keep and is_hidden(char) else char for char in text)


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: 1 item, 1,000 items."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def join_names(names: Sequence[str], *, last: str = "and", limit: int = MAX_LISTED) -> str:
    """Return names as a phrase: "a, b and c", or "a, b, c and 9 more"."""
    if len(names) > limit:
        return f"{', '.join(names[: limit - 1])} {last} {len(names) - limit + 1} more"
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def first_names(names: Sequence[str], most: int = 5) -> str:
    """Return the first names as text, with dots if there are more."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def with_noun(noun: str, names: Sequence[str]) -> str:
    """Return names after their noun: "item a", "items a and b", or "no item"."""
    return f"{noun}{'s' * (len(names) > 1)} {join_names(names)}" if names else f"no {noun}"


def align_columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return rows as lines with aligned columns, those in ``right`` aligned on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    align = [str.rjust if c in right else str.ljust for c in range(len(widths))]
    lines = (zip(align, row, widths, strict=True) for row in rows)
    return ["  ".join(pad(cell, width) for pad, cell, width in line).rstrip() for line in lines]


def sentence_case(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def shorten(name: str, max_length: int, mark: str = ELLIPSIS) -> str:
    """Return a name of at most ``max_length`` characters, with its middle replaced by a mark.

    Both ends stay; numbers are not cut if there is room, because a part is another number.
    """
    if len(name) <= max_length:
        return name
    room = max(max_length - len(mark), 0)
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
    """Return the first position from ``cut`` on that is not inside a number."""
    if cut and name[cut - 1].isdigit():
        while cut < len(name) and name[cut].isdigit():
            cut += 1
    return cut


#: First characters with which a spreadsheet begins a formula, or skips them before one.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def protect_cell(text: str) -> str:
    """Return a text for a CSV file so that no spreadsheet evaluates it: after an apostrophe."""
    if not text.lstrip("'").startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def unprotect_cell(text: str) -> str:
    """Return the text that `protect_cell` was given."""
    protected = text.startswith("'") and text.lstrip("'").startswith(_FORMULA)
    return text[1:] if protected else text
