"""Report of an application: findings, and sections with figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hidag.exceptions import SettingError
from hidag.fitting.settings import plain_value
from hidag.plotting.figure import Size, on_axes, render_figure
from hidag.reporting.content import Table, display_table
from hidag.reporting.html_page import data_uri, render_page
from hidag.results import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ReportFigure:
    """A figure to be drawn.

    Attributes
    ----------
    name : str
        Stem of its files.
    caption : str
        Also the alternative text.
    draw : callable
        Draws into the empty figure that it receives.
    size : (float, float)
        Inches.
    """

    name: str
    caption: str
    draw: Callable[[Figure], object]
    size: Size

    @classmethod
    def on_axes(
        cls,
        name: str,
        caption: str,
        draw: Callable[[Axes], object],
        size: Size,
        *,
        fill: bool = False,
    ) -> Self:
        """Return a figure with one axes, which fill it if ``fill`` is set."""
        return cls(name, caption, on_axes(draw, fill=fill), size)


@dataclass(frozen=True)
class ReportSection:
    """A heading with paragraphs of plain text, figures and tables."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class ApplicationReport:
    """Results of an application.

    Attributes
    ----------
    name : str
        Of the command.
    title : str
    findings : tuple of str
        Sentences at the top of the page, the most important first.
    result : FitResult
        The main fit.
    seed : int
        As the user gave it.
    settings : mapping
        All options of the application.
    sections : tuple of ReportSection
    cautions : tuple of str
        Limitations that readers must know.
    numbers : mapping
        Further entries of summary.json.
    """

    name: str
    title: str
    findings: tuple[str, ...]
    result: FitResult
    seed: int
    settings: Mapping[str, Any]
    sections: tuple[ReportSection, ...]
    cautions: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, parts in (("figure", self.figures), ("table", self.tables)):
            names = [part.name for part in parts]
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise SettingError(
                    "duplicate-name",
                    "the name of each {kind} must be unique, but {names} is repeated",
                    kind=kind,
                    names=", ".join(repeated),
                )

    @property
    def figures(self) -> tuple[ReportFigure, ...]:
        """The figures of all sections."""
        return tuple(figure for section in self.sections for figure in section.figures)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of all sections."""
        return tuple(table for section in self.sections for table in section.tables)

    def summary(self) -> dict[str, Any]:
        """Return the content of summary.json."""
        result = self.result
        content = {
            "application": self.name,
            "title": self.title,
            "findings": list(self.findings),
            "cautions": list(self.cautions),
            "latent_names": list(result.latent_names),
            "adjacency": result.graph.adjacency.tolist(),
            "item_names": list(result.item_names),
            "q_matrix": result.q_matrix.tolist(),
            "log_likelihood": result.log_likelihood,
            "n_rows": result.n_samples,
            "settings": dict(self.settings),
            "fit_settings": dict(result.settings),
            "seed": self.seed,
            "versions": dict(result.versions),
            **self.numbers,
        }
        return {name: _to_json(value) for name, value in content.items()}

    def render(self, *, command: str | None = None) -> str:
        """Return a self-contained HTML page; ``command`` is the command line that reproduces it."""
        figures = {
            figure.name: data_uri(render_figure(figure.draw, figure.size))
            for figure in self.figures
        }
        return render_page(
            "application.html.jinja",
            names=(*self.result.item_names, *self.result.latent_names),
            title=self.title,
            report=self,
            figures=figures,
            tables={table.name: display_table(table) for table in self.tables},
            command=command,
            settings=sorted((str(k), str(v)) for k, v in self.settings.items()),
            versions=sorted(self.result.versions.items()),
        )


def _to_json(value: Any) -> Any:
    """Return a value that JSON can represent; numbers that are not finite become null."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _to_json(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(entry) for entry in value]
    plain = plain_value(value)
    return None if isinstance(plain, float) and not isfinite(plain) else plain
