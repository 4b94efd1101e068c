"""The page of an application: findings, then sections with their pictures and tables."""

from __future__ import annotations

from hidag.applications.outcome import Outcome
from hidag.plots import render_figure
from hidag.report.page import as_data_address, render_page
from hidag.report.parts import shown_table


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
