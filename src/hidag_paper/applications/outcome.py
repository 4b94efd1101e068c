"""What an application leaves behind, before any of it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hidag.exceptions import SettingError
from hidag.fitting.settings import plain_value
from hidag.plotting.figure import Size, on_axes, render_figure
from hidag.reporting.html_page import as_data_address, render_page
from hidag.reporting.sections import Section, Table, shown_table
from hidag.results import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure to be drawn.

    Attributes
    ----------
    name : str
        Of its files, without an ending.
    caption : str
        One or two sentences; also read aloud in place of the picture.
    draw : callable
        Draws into the empty figure it is given.
    size : (float, float)
        In inches.
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
        """Return a picture drawn into one pair of axes, which fill the figure if asked."""
        return cls(name, caption, on_axes(draw, fill=fill), size)


@dataclass(frozen=True)
class Outcome:
    """An application that has run.

    Attributes
    ----------
    name : str
        Of the command.
    title : str
    findings : tuple of str
        Sentences at the head of the page: what was found, most important first.
    cautions : tuple of str
        What the reader must know before believing it.
    result : FitResult
        The fit that the page is about.
    seed : int
        As the user gave it.
    settings : mapping
        All options of the application.
    sections : tuple of Section
    pictures : tuple of Picture
    tables : tuple of Table
    numbers : mapping
        More entries of summary.json.
    """

    name: str
    title: str
    findings: tuple[str, ...]
    result: FitResult
    seed: int
    settings: Mapping[str, Any]
    sections: tuple[Section, ...]
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    cautions: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, things, shown in (
            ("picture", self.pictures, [n for part in self.sections for n in part.pictures]),
            ("table", self.tables, [n for part in self.sections for n in part.tables]),
        ):
            _check_names(what, [thing.name for thing in things], shown)

    def summary(self) -> dict[str, Any]:
        """Return the contents of summary.json: plain numbers, strings, lists and mappings."""
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
        return {name: _plain(value) for name, value in content.items()}


def _plain(value: Any) -> Any:
    """Return what JSON can hold; numbers that are not finite become null."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    plain = plain_value(value)
    return None if isinstance(plain, float) and not isfinite(plain) else plain


def _check_names(what: str, names: Sequence[str], shown: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingError(
            f"each {what} needs a name of its own, but {', '.join(twice)} is there twice"
        )
    unknown = sorted(set(shown) - set(names))
    if unknown:
        raise SettingError(f"a section shows the {what} {', '.join(unknown)}, which is not there")


# --- The page of an application: findings, then sections with their pictures and tables


def render_outcome(outcome: Outcome, *, command: str | None = None) -> str:
    """Return the page of an application as one self-contained HTML text.

    Parameters
    ----------
    outcome : Outcome
    command : str, optional
        What to type to make it again.
    """
    pictures = {
        picture.name: {
            "address": as_data_address(render_figure(picture.draw, picture.size)),
            "caption": picture.caption,
        }
        for picture in outcome.pictures
    }
    return render_page(
        "application.html.jinja",
        names=(*outcome.result.item_names, *outcome.result.latent_names),
        title=outcome.title,
        outcome=outcome,
        pictures=pictures,
        tables={table.name: shown_table(table) for table in outcome.tables},
        command=command,
        settings=sorted((str(k), str(v)) for k, v in outcome.settings.items()),
        versions=sorted(outcome.result.versions.items()),
    )
