"""What items show in each state of their latents, and in the common profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.causal.item_outcomes import MEAN, Outcome, item_outcomes
from hidag.exceptions import DataError, SettingError
from hidag.formatting import plural
from hidag.plotting import style
from hidag.plotting.figure import Size, axes_points, grays, name_rows, new_axes, plain_frame
from hidag.plotting.latent_distribution import MOST_PROFILES, common_profiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.results import FitResult


#: An item whose latents have more joint states than this is not drawn: nobody could read it.
MOST_STATES = 64
#: More items than this are put in the order of their latents.
_SORTED = 60
#: Means that differ by a smaller share of the largest would look alike on an axis from zero.
_SEEN_FROM_ZERO = 0.15
#: Points.
_LONGEST_BAR = 240.0


def size_of_response(n_states: int) -> Size:
    """Return a size in inches for `plot_item_response`."""
    return 1.6 + min(max(0.42 * n_states, 2.4), 11.0), 3.0


def size_of_responses(n_items: int, n_profiles: int) -> Size:
    """Return a size in inches for `plot_responses`."""
    return 2.4 + 0.36 * max(n_profiles, 6), 1.4 + min(max(0.2 * n_items, 1.6), 10.0)


def plot_item_response(result: FitResult, item: str | int, ax: Axes | None = None) -> Axes:
    """Draw what is expected of an item in each state of its latents, and return the axes.

    The mean, as points; for grades and categories their probabilities, as shares of a bar. States
    that a hierarchy rules out are left out, and the axis says how many: nobody is in them, and what
    would be expected there was not fitted to anything.

    Parameters
    ----------
    result : FitResult
    item : str or int
        Name or number.
    ax : matplotlib Axes, optional
        A new figure of fitting size unless given.
    """
    j = _item(result, item)
    outcomes = item_outcomes(result, [j])
    latents = outcomes[0].latents
    shape = outcomes[0].table.shape
    states = np.indices(shape).reshape(len(shape), -1).T if shape else np.zeros((1, 0), np.int64)
    occurs = _occurring(result, latents)
    n_left_out = int((~occurs).sum())
    states = states[occurs]
    if len(states) > MOST_STATES:
        raise DataError(
            f"{result.item_names[j]} has {len(latents)} latents with {len(states)} joint states; "
            f"at most {MOST_STATES} can be drawn"
        )
    if ax is None:
        ax = new_axes(size_of_response(len(states)))
    parts = [one for one in outcomes if one.what != MEAN]
    if parts:
        _draw_shares(ax, parts, occurs)
    else:
        _draw_means(ax, outcomes[0].table.ravel()[occurs], result.families[j])
    plain_frame(ax)
    ax.set_xticks(range(len(states)))
    ax.set_xticklabels(["".join(map(str, state)) or "all" for state in states.tolist()])
    # Tilted where levels would touch each other.
    if 0.62 * style.SMALL_FONT_SIZE * (len(latents) + 1) > axes_points(ax)[0] / len(states):
        ax.tick_params(axis="x", rotation=90)
    names = ", ".join(style.shown_name(result.latent_names[k], 16) for k in latents)
    words = f"levels of {names}" if latents else "no latent drives the item"
    if n_left_out:
        words += f"\n{plural(n_left_out, 'state')} ruled out by the hierarchy"
    ax.set_xlabel(words, fontsize=style.SMALL_FONT_SIZE, color=style.INK, parse_math=False)
    ax.set_title(
        style.shown_name(result.item_names[j]),
        fontsize=style.FONT_SIZE,
        color=style.INK,
        loc="left",
        parse_math=False,
    )
    return ax


def _occurring(result: FitResult, latents: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which joint states of some latents, in ascending order, a hierarchy lets occur."""
    levels = result.law.space.levels
    if result.ruled_out is None:
        return np.ones(int(np.prod([levels[k] for k in latents])), dtype=bool)
    others = tuple(k for k in range(len(levels)) if k not in latents)
    return np.atleast_1d((~result.ruled_out).reshape(levels).any(axis=others)).ravel()


def _item(result: FitResult, item: str | int) -> int:
    names = result.item_names
    if isinstance(item, str) and item in names:
        return names.index(item)
    if not isinstance(item, str) and 0 <= int(item) < len(names):
        return int(item)
    raise SettingError(f"there is no item {item!r} among the {len(names)} items of the fit")


def _draw_means(ax: Axes, means: NDArray[np.float64], family: str) -> None:
    x = np.arange(len(means))
    share = family.startswith(("bernoulli", "beta"))
    # Stems from zero show nothing where means lie close together and far from it, as years do.
    far = not share and float(np.ptp(means)) < _SEEN_FROM_ZERO * float(np.abs(means).max())
    foot = _foot(means) if far else 0.0
    ax.vlines(x, foot, means, color=style.HAIR, linewidth=5.0)
    if not far:
        ax.axhline(0.0, color=style.FAINT, linewidth=0.8)
    ax.plot(x, means, linestyle="none", marker="o", markersize=6.0, color=style.BLUE)
    if share:
        ax.set_ylim(0.0, 1.0)
    if far:
        ax.set_ylim(*sorted((foot, _foot(-means) * -1.0)))
        ax.ticklabel_format(axis="y", useOffset=False)
    label = "probability of a yes" if family.startswith("bernoulli") else "expected value"
    ax.set_ylabel(label, fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    ax.set_xlim(-0.6, len(means) - 0.4)


def _foot(means: NDArray[np.float64]) -> float:
    """Return a height somewhat below all means."""
    spread = float(np.ptp(means)) or abs(float(means.min())) or 1.0
    return float(means.min()) - 0.3 * spread


def _draw_shares(ax: Axes, parts: list[Outcome], occurs: NDArray[np.bool_]) -> None:
    below = np.zeros(int(occurs.sum()))
    for one, shade in zip(parts, grays(len(parts)), strict=True):
        shares = one.table.ravel()[occurs]
        ax.bar(
            range(len(below)),
            shares,
            bottom=below,
            width=0.74,
            color=shade,
            edgecolor=style.PAPER,
            linewidth=0.8,
            label=one.what[3:-1],
        )
        below = below + shares
    ax.set_ylim(0.0, 1.0)
    ax.set_xlim(-0.6, len(below) - 0.4)
    ax.set_ylabel("probability", fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        reverse=True,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
    )


def plot_responses(result: FitResult, ax: Axes | None = None, *, most: int = MOST_PROFILES) -> Axes:
    """Draw what is expected of all items in the most common profiles, as a heat map.

    Yes/no items by their probability of a yes; others between their own lowest and highest mean
    over the profiles. Nominal items have no mean and are left out. Many items stand in the order of
    the latents that drive them.

    Parameters
    ----------
    result : FitResult
    ax : matplotlib Axes, optional
        A new figure of fitting size unless given.
    most : int
        Profiles drawn, the most common first.
    """
    profiles, shares = common_profiles(result, most=most)
    rows: list[NDArray[np.float64]] = []
    names: list[str] = []
    driven: list[tuple[int, ...]] = []
    for one in item_outcomes(result):
        if one.what != MEAN:
            continue
        means = one.table[tuple(profiles[:, k] for k in one.latents)] * np.ones(len(profiles))
        family = result.families[result.item_names.index(one.item)]
        if not family.startswith("bernoulli"):
            span = float(np.ptp(means))
            means = (means - means.min()) / span if span > 0 else np.full(len(means), 0.5)
        rows.append(means)
        names.append(one.item)
        driven.append(one.latents)
    if len(rows) > _SORTED:
        # Items of the same latent together: a pattern shows where single lines cannot be read.
        order = sorted(range(len(rows)), key=lambda r: (driven[r], r))
        rows, names = [rows[r] for r in order], [names[r] for r in order]
    if not rows:
        raise DataError("no item has a mean: all have unordered categories")
    if ax is None:
        ax = new_axes(size_of_responses(len(rows), len(profiles)))
    image = ax.imshow(
        np.array(rows), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest"
    )
    name_rows(ax, names, axes_points(ax)[1], "items")
    letters = len(result.latent_names)
    ax.set_xticks(range(len(profiles)))
    ax.set_xticklabels(
        ["".join(map(str, profile)) if letters <= 12 else "" for profile in profiles.tolist()],
        rotation=90 if letters > 3 else 0,
        fontsize=style.SMALL_FONT_SIZE - 1.0,
        color=style.INK,
    )
    words = "profile" if letters <= 12 else f"{len(profiles)} most common profiles"
    ax.set_xlabel(
        f"{words}, the most common left ({100 * shares.sum():.3g} % of the law)",
        fontsize=style.SMALL_FONT_SIZE,
        color=style.INK,
    )
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    figure = ax.get_figure(root=True)
    assert figure is not None
    shrink = min(1.0, _LONGEST_BAR / axes_points(ax)[1])
    bar = figure.colorbar(
        image, ax=ax, fraction=0.04, pad=0.03, aspect=28, shrink=shrink, anchor=(0.0, 1.0)
    )
    plain = all(name.startswith("bernoulli") for name in result.families)
    words = "probability of a yes" if plain else "yes, or mean from lowest to highest"
    bar.set_label(words, fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    bar.ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT)
    bar.outline.set_visible(False)  # type: ignore[operator]
    return ax
