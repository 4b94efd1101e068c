"""What every result shows of itself: one line, text, a view in notebooks, tables and a figure."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import narwhals as nw

from hidag.exceptions import Choices, MissingPackageError, import_extra, invalid_setting
from hidag.formatting import align_columns, format_row, plural, replace_hidden, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Library = Literal["pandas", "polars", "pyarrow"]
#: Columns by name, and rows of plain values.
Content = tuple[tuple[str, ...], list[tuple[Any, ...]]]
LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")
#: Rows and columns of a table in a notebook, rows in text, and characters of a cell.
_HTML_ROWS, _HTML_COLUMNS, _TEXT_ROWS, _CELL = 8, 10, 10, 32
_STYLE = (
    "<style>.hidag table{border-collapse:collapse;margin:.4em 0 .8em;font-size:.9em}"
    ".hidag caption{text-align:left;white-space:nowrap;font-weight:bold}"
    ".hidag th,.hidag td{text-align:left;padding:.1em .9em .1em 0}.hidag{overflow-x:auto}"
    ".hidag summary{cursor:pointer}.hidag svg{max-width:100%;height:auto}</style>"
)
#: Tables in a notebook that are not folded.
_OPEN_TABLES = 2


class View:
    """Base of results; a subclass is declared with a ``title`` and its ``frames``.

    ``title`` is a template for the line that describes the object, formatted with it. ``frames``
    maps the name of each table to the attribute or method that has it, the main table first.
    """

    _title: ClassVar[str] = ""
    _frames: ClassVar[Mapping[str, str]] = {}
    #: Library of the table that the result is about.
    _library: Library | None = None

    def __init_subclass__(
        cls, *, title: str = "", frames: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        cls._title, cls._frames = title or cls._title, frames or cls._frames

    def _headline(self) -> str:
        """Return the line that describes the object."""
        return self._title.format(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._headline()})"

    def like(self, source: Any) -> Self:
        """Return this result, whose tables are of the library of ``source``, a table or result."""
        found = getattr(source, "_library", None) or library_of(source)
        object.__setattr__(self, "_library", found or self._library)
        return self

    def to_frame(self, table: str | None = None, *, library: Library | None = None) -> Any:
        """Return one of the tables as a data frame.

        Parameters
        ----------
        table : str, optional
            Name of the table, the main one by default; a wrong name lists the names.
        library : {"pandas", "polars", "pyarrow"}, optional
            By default that of the data, or one that is loaded.
        """
        names = tuple(self._frames)
        chosen = names[0] if table is None and names else table
        if chosen not in names:
            raise invalid_setting("table", Choices(names), table)
        return make_frame(self.content(chosen), library or self._library)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row of the main table."""
        columns, rows = self.content(next(iter(self._frames)))
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def content(self, table: str) -> Content:
        """Return the columns and the rows of one of the tables, ``table``, as plain values."""
        found = getattr(self, self._frames[table])
        return content_of(found() if callable(found) else found)

    def summary(self) -> str:
        """Return a line that describes the object, and the first rows of its tables, as text."""
        parts = [f"{type(self).__name__}: {self._headline()}"]
        for name in self._frames:
            columns, rows = self.content(name)
            if rows:
                parts.append("\n".join([name, *text_lines(columns, rows)]))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        """Return the view in a notebook: a line, the figure if it is a graph, and short tables."""
        title = f"<b>{type(self).__name__}</b> {_escape(self._headline())}"
        contents = ((name, *self.content(name)) for name in self._frames)
        tables = [html_table(*one) for one in contents if one[2]]
        folded = "".join(tables[_OPEN_TABLES:])
        more = folded and f"<details><summary>more tables</summary>{folded}</details>"
        shown = "".join([f"<p>{title}</p>", self._drawing(), *tables[:_OPEN_TABLES], more])
        return f'<div class="hidag">{_STYLE}{shown}</div>'

    def _drawing(self) -> str:
        """Return the figure in notebooks as SVG; empty if the object has none."""
        return ""

    def plot(self, kind: str | None = None, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw one figure of the result and return its axes.

        Parameters
        ----------
        kind : str, optional
            Kind of the figure, the main one by default; a wrong kind lists the kinds.
        ax : matplotlib Axes, optional
        **options
            Of the function in `hidag.plotting` that draws this kind.
        """
        # By name, because figures are made of results and not the reverse.
        axes: Axes = import_module("hidag.plotting").plot(self, kind, ax, **options)
        return axes


def svg_of(thing: Any, kind: str | None = None) -> str:
    """Return the figure of a result as SVG text; empty without matplotlib."""
    try:
        text: str = import_module("hidag.plotting").figure_bytes(thing, kind, "svg").decode()
    except MissingPackageError:
        return ""
    return text[text.index("<svg") :]


def library_of(X: Any) -> Library | None:
    """Return the data frame library of a table; None for arrays and other libraries."""
    found = nw.from_native(X, pass_through=True)
    if isinstance(found, nw.DataFrame | nw.LazyFrame):
        name = str(found.implementation)
        return next((one for one in LIBRARIES if one == name), None)
    return None


def loaded_library() -> Library:
    """Return the library that scikit-learn is set to, or the first that is loaded."""
    from sklearn import get_config

    wanted = get_config()["transform_output"]
    known = [one for one in LIBRARIES if one == wanted or one in sys.modules]
    return next((one for one in known if one == wanted), known[0] if known else "pandas")


def make_frame(content: Content, library: Library | None = None) -> Any:
    """Return columns and rows as a data frame of a library."""
    chosen = library or loaded_library()
    if chosen not in LIBRARIES:
        raise invalid_setting("library", Choices(LIBRARIES), library)
    import_extra(chosen, "to_frame", "")
    columns, rows = content
    data = {name: [row[c] for row in rows] for c, name in enumerate(columns)}
    return nw.from_dict(data, backend=chosen).to_native()


def content_of(table: Any) -> Content:
    """Return the columns and rows of a table: rows by name, numbers by name, or both parts."""
    if hasattr(table, "columns") and hasattr(table, "rows"):
        return tuple(table.columns), list(table.rows)
    if isinstance(table, tuple):
        columns, rows = table
        return tuple(columns), [tuple(_plain(cell) for cell in row) for row in rows]
    if isinstance(table, Mapping):
        plain = ((name, _plain(value)) for name, value in table.items())
        numbers = [(name, float(one)) for name, one in plain if isinstance(one, int | float)]
        return ("name", "value"), numbers
    columns = tuple(dict.fromkeys(name for row in table for name in row))
    return columns, [tuple(_plain(row.get(name)) for name in columns) for row in table]


def _plain(cell: Any) -> Any:
    """Return a cell as a plain Python value."""
    cell = cell.item() if hasattr(cell, "item") and not getattr(cell, "ndim", 0) else cell
    plain = cell is None or isinstance(cell, bool | int | float | str)
    return cell if plain else ", ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)


def text_lines(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    most: int | None = _TEXT_ROWS,
    indent: str = "  ",
) -> list[str]:
    """Return the header and the first rows as lines of aligned text, long names shortened."""
    shown = rows[:most]
    texts = [[*columns], *(format_row(columns, row) for row in shown)]
    cells = [[shorten(cell, _CELL, "...") for cell in row] for row in texts]
    numeric = [c for c in range(len(columns)) if not any(isinstance(row[c], str) for row in shown)]
    more = [f"... {len(rows) - len(shown)} more"] if len(rows) > len(shown) else []
    return [f"{indent}{line}" for line in [*align_columns(cells, numeric), *more]]


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return the first rows and columns as an HTML table that says what it leaves out."""
    shown = columns[:_HTML_COLUMNS]
    lines = [_html_row("td", format_row(shown, row[:_HTML_COLUMNS])) for row in rows[:_HTML_ROWS]]
    hidden = [
        plural(number, noun)
        for number, noun in ((len(rows) - _HTML_ROWS, "more row"),
                             (len(columns) - len(shown), "more column"))
        if number > 0
    ]  # fmt: skip
    note = f" <small>({_escape(' and '.join(hidden))} in to_frame)</small>" if hidden else ""
    head = _html_row("th", [name.replace("_", " ") for name in shown])
    return f"<table><caption>{_escape(title)}{note}</caption>{head}{''.join(lines)}</table>"


def _html_row(tag: str, cells: Iterable[str]) -> str:
    texts = (f"<{tag}>{_escape(shorten(cell, _CELL))}</{tag}>" for cell in cells)
    return f"<tr>{''.join(texts)}</tr>"


def _escape(text: str) -> str:
    return html.escape(replace_hidden(text))
