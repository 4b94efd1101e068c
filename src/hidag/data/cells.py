"""Convert the cells of a column, Python objects or text, to numbers."""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import (
    Advice,
    DataError,
    Setting,
    SettingError,
    import_extra,
    suggest_name,
)
from hidag.formatting import plural
from hidag.measurement.families import default_family

MISSING_WORDS = frozenset({"", "NA", "NaN", "nan", "null", "None", "."})
"""Text that stands for a missing answer, in files as well as in text columns of a table."""

BOOLEAN_WORDS = {
    "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0,
}  # fmt: skip
"""Text (in any case) that is read as 1 and 0 if a column holds nothing else."""

DOUBTFUL_WORDS = frozenset({
    "n/a", "n.a.", "unknown", "not known", "missing", "not applicable", "refused", "don't know",
    "do not know", "dk", "?", "-", "--", "no answer", "other/unknown",
})  # fmt: skip
"""Text (in any case) that may stand for a missing answer; the user is asked."""

# float() alone would also read '1_000' and digits of other scripts.
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)\Z")
# Row identifiers and codes are written with leading zeros, counts are not.
LEADING_ZEROS = r"\s*0[0-9]+\s*"
_PADDED = re.compile(LEADING_ZEROS)
_PLAIN_TYPES = frozenset({float, int, bool, type(None), np.float64, np.int64, np.bool_})
_DATE_TYPES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_MAX_LABELS = 12  # A column with more different texts has no categories.
#: Numbers with commas between thousands; a leading 0 has none, so 0,125 has a decimal comma.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
#: Numbers with a decimal comma, perhaps with points between thousands.
_DECIMAL_COMMA = re.compile(
    r"[+-]?(?:[0-9]*|[1-9][0-9]{0,2}(?:\.[0-9]{3})+),[0-9]+(?:[eE][+-]?[0-9]+)?"
)

CellKind = Literal["text", "date", "object", "complex"]


@dataclass(frozen=True)
class BadCells:
    """Cells of a column that are not numbers; yes and no do not count if ``among_booleans``."""

    kind: CellKind
    row: int
    content: str
    type_name: str
    count: int
    among_booleans: bool = False


def convert_cells(cells: NDArray[np.object_]) -> tuple[NDArray[np.float64], BadCells | None]:
    """Return cells (N,) as float64, NaN for missing and bad ones, and those that are no numbers."""
    listed = cells.tolist()
    # Most object columns hold plain numbers and None only; numpy reads those at C speed.
    if set(map(type, listed)) <= _PLAIN_TYPES:
        try:
            return cells.astype(np.float64), None
        except OverflowError:  # An integer beyond float64 becomes an infinity below.
            pass
    pandas = sys.modules.get("pandas")  # If pandas is not loaded, no cell holds its markers.
    markers = () if pandas is None else (pandas.NA, pandas.NaT)
    read = [_read_cell(cell, markers) for cell in listed]
    values = np.array([number for number, _ in read])
    bad_rows = [row for row, (_, kind) in enumerate(read) if kind is not None]
    if not bad_rows:
        return values, None
    words = [cell.strip().lower() if isinstance(cell, str) else None for cell in listed]
    if np.isnan(values).all() and all(words[row] in BOOLEAN_WORDS for row in bad_rows):
        values[bad_rows] = [BOOLEAN_WORDS[str(words[row])] for row in bad_rows]
        return values, None
    answers = sorted({*bad_rows, *np.flatnonzero(~np.isnan(values)).tolist()})
    others = [row for row in answers if words[row] not in BOOLEAN_WORDS]
    # Both values must occur: F beside M does not mean false.
    both = {BOOLEAN_WORDS[word] for word in words if word in BOOLEAN_WORDS} == {0.0, 1.0}
    among_booleans = bool(others) and both and 2 * len(others) < len(answers)
    rows = others if among_booleans else bad_rows
    first = listed[rows[0]]
    kind, name = read[rows[0]][1] or "text", type(first).__name__
    return values, BadCells(kind, rows[0], shorten(first), name, len(rows), among_booleans)


def _read_cell(cell: Any, markers: tuple[Any, ...]) -> tuple[float, CellKind | None]:
    """Return the number in a cell (NaN for missing), and its kind if it is not a number."""
    nan = float("nan")
    if cell is None or cell is np.ma.masked or any(cell is marker for marker in markers):
        return nan, None
    if isinstance(cell, bytes):
        cell = cell.decode("latin-1")
    if isinstance(cell, str):
        number = read_number(cell)
        return (nan, "text") if number is None else (number, None)
    if isinstance(cell, _DATE_TYPES):
        return nan, "date"
    if isinstance(cell, decimal.Decimal):
        return (nan if cell.is_nan() else float(cell)), None
    if isinstance(cell, numbers.Real | np.bool_):
        try:
            return float(cell), None
        except OverflowError:
            return float("inf"), None
    return nan, ("complex" if isinstance(cell, numbers.Complex) else "object")


def read_number(text: str) -> float | None:
    """Return the number in a text, NaN for a missing answer, None if it is neither."""
    text = text.strip()
    if text in MISSING_WORDS:
        return float("nan")
    return float(text) if _NUMBER.match(text.lower()) else None


def is_missing(cell: Any) -> bool:
    """Return whether a cell of text or numbers is a missing answer."""
    if isinstance(cell, str):
        cell = read_number(cell) or 0.0  # Text that is not a number is an answer.
    return cell is None or bool(cell != cell)


def has_leading_zeros(cells: NDArray[np.object_]) -> bool:
    """Return whether some cell is text such as '007'."""
    return any(isinstance(cell, str) and _PADDED.fullmatch(cell) for cell in cells.tolist())


def is_boolean_column(cells: NDArray[np.object_]) -> bool:
    """Return whether a column holds yes and no (or similar) and missing answers only."""
    words = any(isinstance(c, str) and c.strip().lower() in BOOLEAN_WORDS for c in cells.tolist())
    return words and convert_cells(cells)[1] is None


def shorten(cell: Any, width: int = 40) -> str:
    """Return a cell as Python writes it, cut to `width` characters."""
    plain = isinstance(cell, datetime.date | datetime.timedelta | datetime.time | np.generic)
    written = str(cell) if plain else repr(cell)
    return written if len(written) <= width else written[: width - 3] + "..."


def import_arrow(module: str) -> Any:
    """Return a module of pyarrow."""
    return import_extra(module, "reading files", "io")


def replace_column(table: Any, name: str, cells: Sequence[Any], kind: Any = "string") -> Any:
    """Return a pyarrow table with other cells in one column."""
    column = import_arrow("pyarrow").array(cells, type=kind)
    return table.set_column(table.column_names.index(name), name, column)


def remove_missing_codes(table: Any, codes: Mapping[str, Sequence[str]]) -> Any:
    """Return a pyarrow table with null in place of codes (text, by column) for missing answers."""
    for name, words in codes.items():
        matching = {n for n in map(read_number, words) if n is not None and n == n}
        kind = table.column(name).type
        if import_arrow("pyarrow").types.is_dictionary(kind):
            kind = kind.value_type
        cells = table.column(name).to_pylist()
        kept = [None if _is_code(cell, words, matching) else cell for cell in cells]
        table = replace_column(table, name, kept, kind)
    return table


def _is_code(cell: Any, words: Sequence[str], matching: set[float]) -> bool:
    if isinstance(cell, str):
        return cell.strip() in words or read_number(cell) in matching
    return cell in matching


# Category labels.


@dataclass(frozen=True)
class CategoryLabels:
    """The labels of a column's categories; the first is coded 0, the next 1.

    ``synonyms`` are pairs of another word and its label, or "" if it means a missing answer.
    """

    labels: tuple[str, ...]
    ordered: bool
    synonyms: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        words = (*self.labels, *(word for word, _ in self.synonyms))
        distinct = {word.casefold() for word in words}
        if len(self.labels) < 2 or len(distinct) < len(words) or "" in distinct:
            text = "a column needs at least two labels that differ by more than upper and lower "
            text += "case, got {labels}"
            raise SettingError("invalid-labels", text, labels=", ".join(map(repr, self.labels)))

    @classmethod
    def parse(cls, text: str) -> CategoryLabels:
        """Return the labels of a text such as "never<often<always" or "north,south".

        "Female=F" is a label and another word for it, "NA=unknown" a word for a missing answer.
        """
        ordered = "<" in text
        groups = [part.split("=") for part in text.split("<" if ordered else ",")]
        if ordered:  # Words for missing answers follow the last grade, after commas.
            last = groups.pop()
            groups += [part.split("=") for part in "=".join(last).split(",")]
        named = [tuple(word.strip() for word in group) for group in groups]
        synonyms = [
            (word, "" if first in MISSING_WORDS else first)
            for first, *more in named
            for word in more
        ]
        labels = tuple(first for first, *_ in named if first not in MISSING_WORDS or not first)
        return cls(labels, ordered, tuple(synonyms))

    @property
    def codes(self) -> dict[str, float]:
        """The number of each word, in lower case; NaN for a missing answer."""
        own = {label.casefold(): float(code) for code, label in enumerate(self.labels)}
        nan = float("nan")
        return own | {word.casefold(): own.get(of.casefold(), nan) for word, of in self.synonyms}

    @property
    def family(self) -> str:
        """The family of such items: binary for two labels, ordinal or categorical for more."""
        if len(self.labels) == 2:
            return default_family("binary")
        if not self.ordered:
            return default_family("categories")
        return f"{default_family('grades')}({len(self.labels)})"


def describe_coding(labels: Sequence[str]) -> str:
    """Return which number codes which label: "0 never, 1 often"."""
    return ", ".join(f"{number} {label}" for number, label in enumerate(labels))


def encode_labels(table: Any, labels: Mapping[str, CategoryLabels]) -> Any:
    """Return a pyarrow table with codes, as text, in place of labels; case does not matter."""
    for name, known in labels.items():
        codes = encode_cells(table.column(name).to_pylist(), name, known)
        texts = [None if code != code else f"{code:.0f}" for code in codes.tolist()]
        table = replace_column(table, name, texts)
    return table


def encode_cells(cells: Sequence[Any], name: str, known: CategoryLabels) -> NDArray[np.float64]:
    """Return the codes of the labels in a column, shape (N,), NaN for missing answers."""
    codes = known.codes
    keys = [None if is_missing(cell) else str(cell).strip().casefold() for cell in cells]
    other = [row for row, key in enumerate(keys) if key is not None and key not in codes]
    if other:
        raise DataError(
            "unknown-label",
            "column {item!r} must hold one of {labels}, but has {content} in row {row} below "
            "the names ({share})",
            {"item": name, "content": shorten(cells[other[0]]), "row": other[0] + 1},
            advice="list all of its labels, or leave the cell empty if the answer is missing",
            labels=", ".join(map(repr, known.labels)),
            share=f"{len(other)} of {len(keys)} cells",
        )
    return np.array([np.nan if key is None else codes[key] for key in keys])


def labels_of_categories(
    name: str, categories: Sequence[Any], *, ordered: bool
) -> CategoryLabels | None:
    """Return the labels of a categorical column; None if its categories are numbers or yes and no.

    A category such as "unknown" may be an answer or a missing one, which only the user can know.
    """
    words = [str(one).strip() for one in categories]
    words = [word for word in words if word not in MISSING_WORDS]
    if len(words) < 2 or all(read_number(word) is not None for word in words):
        return None
    if {word.casefold() for word in words} <= BOOLEAN_WORDS.keys():
        return None
    doubtful = [word for word in words if word.casefold() in DOUBTFUL_WORDS]
    if doubtful:
        kept = ("<" if ordered else ",").join(word for word in words if word not in doubtful)
        raise DataError(
            "doubtful-category",
            "{word!r} in column {item!r} may be an answer or a missing one",
            {"word": doubtful[0], "item": name},
            advice=Advice(
                "declare-words",
                "declare it as missing, {missing}, or list it among the labels",
                {"missing": Setting("words", {name: f"{kept},NA={'='.join(doubtful)}"})},
            ),
        )
    return CategoryLabels(tuple(words), ordered)


def parse_words(words: Mapping[str, str] | None, items: Sequence[str]) -> dict[str, CategoryLabels]:
    """Return the labels by item of the setting ``words``: labels by name or pattern of items."""
    out: dict[str, CategoryLabels] = {}
    for pattern, text in (words or {}).items():
        found = [name for name in items if name == pattern or fnmatchcase(name, pattern)]
        if not found or not isinstance(text, str):
            rule = "{words} must map items to labels such as 'low<middle<high' or 'north,south', "
            rule += "got {pattern!r}: {text!r}"
            params = {"words": Setting("words"), "pattern": pattern, "text": text}
            raise SettingError("invalid-words", rule, params, advice=suggest_name(pattern, items))
        out |= dict.fromkeys(found, CategoryLabels.parse(text))
    return out


def find_labels(cells: Sequence[Any]) -> tuple[str, ...]:
    """Return the different texts of a column, sorted; none if they are many or seldom repeat."""
    texts = [str(cell).strip() for cell in cells if not is_missing(cell)]
    found = {text.casefold(): text for text in reversed(texts)}
    if not 2 <= len(found) <= min(_MAX_LABELS, len(texts) // 2):
        return ()
    return tuple(sorted(found.values()))


# Decimal commas. A comma marks decimals or separates thousands. Some cells cannot be of the other
# kind: 0,5 and 1,25 have decimals; 1,234,567 and 1,234.5 have thousands. 1,016 may be either and is
# read like the others of the file. A file with decimal points as well is not converted.


def convert_decimal_commas(table: Any, columns: Sequence[str]) -> tuple[Any, str]:
    """Return a table with points for decimal commas if they are certain, and a note about it."""
    cells = list(_cells_with(",", table, columns))
    certain = [(name, c) for name, c in cells if _is_decimal(c) and not _THOUSANDS.fullmatch(c)]
    thousands = any(_THOUSANDS.fullmatch(c) and not _is_decimal(c) for _, c in cells)
    if not certain or thousands or find_decimal_point(table, columns) is not None:
        return table, ""
    converted = list(dict.fromkeys(name for name, cell in cells if _is_decimal(cell)))
    for name in converted:
        texts = [None if c is None else c.strip() for c in table.column(name).to_pylist()]
        table = replace_column(
            table, name, [_with_point(c) if c and _is_decimal(c) else c for c in texts]
        )
    where, cell = certain[0]
    read = f"{cell!r} in {where} is read as {_with_point(cell)}"
    return table, f"a comma marks decimals in {plural(len(converted), 'column')}: {read}"


def find_decimal_point(table: Any, columns: Sequence[str]) -> tuple[str, str] | None:
    """Return column and text of a number with a decimal point, or None."""
    cells = _cells_with(".", table, columns)
    return next(((name, text) for name, text in cells if read_number(text) is not None), None)


def advise_on_commas(cell: str, cells: Sequence[Any], point: tuple[str, str] | None = None) -> str:
    """Return how to write a number with commas, "" if it is none; ``point`` is one with a point."""
    if _THOUSANDS.fullmatch(cell):
        texts = [one.strip() for one in cells if isinstance(one, str)]
        others = [one for one in texts if _is_decimal(one) and not _THOUSANDS.fullmatch(one)]
        advice = f"write {cell.replace(',', '')} if its commas separate thousands"
        if _is_decimal(cell):
            like = f", as in {shorten(others[0])}" if others else ""
            advice += f", {_with_point(cell)} if they mark decimals{like}"
        return advice
    if not _is_decimal(cell):
        return ""
    if point is None:
        return "write decimals with a point"
    found = f"there is {shorten(point[1])} in column {point[0]!r}"
    return f"write decimals with a point, and thousands without any: {found}"


def _is_decimal(text: str) -> bool:
    return _DECIMAL_COMMA.fullmatch(text) is not None


def _with_point(text: str) -> str:
    return text.replace(".", "").replace(",", ".")


def _cells_with(mark: str, table: Any, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield column and stripped text of the different cells that contain a mark."""
    compute = import_arrow("pyarrow.compute")
    for name in columns:
        column = table.column(name)
        for text in column.filter(compute.match_substring(column, mark)).unique().to_pylist():
            yield name, text.strip()
