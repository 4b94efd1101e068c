"""The newsgroups of documents, held against states that were found without them."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.applications.exploration import Exploration
from hidag.applications.newsgroups_data import Labels
from hidag.applications.outcome import Picture
from hidag.plots import style
from hidag.report.parts import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def topic_told(found: Exploration, labels: Labels) -> tuple[float, float]:
    """Return how often profiles of states tell a document's subject, and the most frequent one.

    Learned from the documents with even numbers, counted on the others.
    """
    profiles = [tuple(row) for row in (found.posterior() > 0.5).tolist()]
    topics = labels.topic.tolist()
    usual = Counter(topics[::2]).most_common(1)[0][0]
    seen: dict[tuple[bool, ...], Counter[str]] = defaultdict(Counter)
    for profile, topic in zip(profiles[::2], topics[::2], strict=True):
        seen[profile][topic] += 1
    told = [seen[p].most_common(1)[0][0] if p in seen else usual for p in profiles[1::2]]
    truth = topics[1::2]
    right = float(np.mean([a == b for a, b in zip(told, truth, strict=True)]))
    return right, float(np.mean([t == usual for t in truth]))


def group_shares(found: Exploration, labels: Labels) -> tuple[list[str], Array]:
    """Return the groups, and the average chance of each state in each of them, (G, K)."""
    chances = found.posterior()
    groups = sorted(set(labels.group.tolist()))
    return groups, np.stack([chances[labels.group == g].mean(axis=0) for g in groups])


def groups_table(found: Exploration, labels: Labels) -> Table:
    """Return how often each state is on in each group."""
    groups, shares = group_shares(found, labels)
    sizes = [int((labels.group == g).sum()) for g in groups]
    return Table(
        "groups",
        "Average chance of each state in the documents of each newsgroup.",
        ("newsgroup", "documents", *found.result.latent_names),
        tuple(
            (g, n, *(float(v) for v in row))
            for g, n, row in zip(groups, sizes, shares, strict=True)
        ),
        decimals=2,
    )


def groups_picture(found: Exploration, labels: Labels) -> Picture:
    """Return the table of groups as a picture."""
    groups, shares = group_shares(found, labels)
    return Picture.on_axes(
        "groups",
        "How often each state is on in each newsgroup: the darker, the more documents. Newsgroups "
        "were looked at after the fit.",
        partial(_draw_shares, groups=groups, names=found.result.latent_names, shares=shares),
        (2.6 + 0.95 * shares.shape[1], 1.6 + 0.34 * len(groups)),
    )


def _draw_shares(ax: Axes, *, groups: list[str], names: tuple[str, ...], shares: Array) -> None:
    ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_yticks(range(len(groups)), groups, fontsize=style.SMALL_FONT_SIZE)
    ax.set_xticks(
        range(len(names)),
        [style.shown_name(name).replace(", ", ",\n") for name in names],
        fontsize=style.SMALL_FONT_SIZE,
    )
    for (row, column), value in np.ndenumerate(shares):
        ink = style.PAPER if value > 0.55 else style.INK
        ax.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            color=ink,
            fontsize=style.SMALL_FONT_SIZE,
        )
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
