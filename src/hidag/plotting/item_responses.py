"""Plots of the expected item responses by latent state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.causal.probability_queries import MEAN, tabulate_outcomes
from hidag.exceptions import DataError, SettingError
from hidag.formatting import plural
from hidag.latent.laws import possible_margin
from hidag.measurement.families import family_named, item_type
from hidag.plotting import figure as frame
from hidag.plotting import style
from hidag.plotting.figure import Size
from hidag.plotting.latent_distribution import MOST_PROFILES, common_profiles, draw_stacked_bars
from hidag.results import as_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.results import AnyFit, FitResult

#: Items whose parents have more joint states are not drawn.
MOST_STATES = 64
#: More items are sorted by their parents.
_MAX_UNSORTED_ITEMS = 60
#: Means whose range is a smaller fraction of the largest are drawn on an axis without zero.
_MIN_RELATIVE_RANGE = 0.15
#: Profile labels have one digit per latent, for at most this many latents.
_MAX_LABEL_LENGTH = 12


def size_of_responses(n_items: int, n_profiles: int) -> Size:
    """Return (width, height) in inches for `plot_responses` of ``n_items`` in ``n_profiles``."""
    return 2.4 + 0.36 * max(n_profiles, 6), 1.4 + min(max(0.2 * n_items, 1.6), 10.0)


def plot_item_response(result: AnyFit, item: str | int, ax: Axes | None = None) -> Axes:
    """Draw the expected response of an item in each joint state of its parents; return the axes.

    Means are drawn as points; probabilities of ordinal and nominal categories as stacked bars.
    States that a hierarchy excludes are omitted, and the axis label gives their number.

    Parameters
    ----------
    result : FitResult or DCRL
    item : str or int, name or index
    ax : matplotlib Axes, optional
    """
    fitted = as_result(result)
    j = _item_index(fitted, item)
    outcomes = tabulate_outcomes(fitted, [j])
    latents, shape = outcomes[0].latents, outcomes[0].table.shape
    possible = _possible_states(fitted, latents)
    states = np.array(list(np.ndindex(*shape)), dtype=np.int64)[possible]
    if len(states) > MOST_STATES:
        sizes = {"n_latents": len(latents), "n_states": len(states), "most": MOST_STATES}
        parents = "{item} has {n_latents} parents with {n_states} joint states"
        template = parents + "; at most {most} can be drawn"
        raise DataError("too-many-states", template, sizes, item=fitted.item_names[j])
    ax = ax or frame.new_axes((1.6 + min(max(0.42 * len(states), 2.4), 11.0), 3.0))
    categories = [one for one in outcomes if one.what != MEAN]
    values = np.array([one.table.ravel()[possible] for one in categories or outcomes[:1]])
    if categories:
        draw_stacked_bars(ax, values, [one.what[3:-1] for one in categories])
        frame.add_legend(ax, loc="upper left", bbox_to_anchor=(1.0, 1.0), reverse=True)
    else:
        _draw_means(ax, values[0], fitted.families[j])
    ax.set_xlim(-0.6, len(states) - 0.4)
    ax.set_xticks(range(len(states)))
    ax.set_xticklabels(["".join(map(str, state)) or "all" for state in states.tolist()])
    width = frame.CHARACTER_WIDTH * style.SMALL_FONT_SIZE * (len(latents) + 1)
    if width > frame.axes_points(ax)[0] / len(states):
        ax.tick_params(axis="x", rotation=90)
    names = ", ".join(style.display_name(fitted.latent_names[k], 16) for k in latents)
    label = f"levels of {names}" if latents else "the item has no parents"
    if n_excluded := int((~possible).sum()):
        label += f"\n{plural(n_excluded, 'state')} excluded by the hierarchy"
    frame.label_axes(ax, label)
    name = style.display_name(fitted.item_names[j])
    ax.set_title(name, loc="left", **style.text_options(style.FONT_SIZE))
    return ax


def _possible_states(result: FitResult, latents: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which joint states of some latents, in ascending order, a hierarchy permits."""
    if result.ruled_out is None:
        return np.ones(len(result.terms.states_of(np.array(latents, dtype=np.intp))), dtype=bool)
    return possible_margin(~result.ruled_out, result.law.space, latents).ravel()


def _item_index(result: FitResult, item: str | int) -> int:
    names = result.item_names
    if isinstance(item, str) and item in names:
        return names.index(item)
    if not isinstance(item, str) and 0 <= int(item) < len(names):
        return int(item)
    template = "the fit has {n} items, but not {item!r}"
    raise SettingError("unknown-item", template, item=item, n=len(names))


def _draw_means(ax: Axes, means: NDArray[np.float64], family: str) -> None:
    x = np.arange(len(means))
    low, high, span = float(means.min()), float(means.max()), float(np.ptp(means))
    is_share = family_named(family).has_unit_mean
    # Stems from zero hide the differences of means far from zero, such as years.
    far = not is_share and span < _MIN_RELATIVE_RANGE * float(np.abs(means).max())
    margin = 0.3 * (span or abs(low) or 1.0)
    ax.vlines(x, low - margin if far else 0.0, means, color=style.HAIR, linewidth=5.0)
    frame.draw_dots(ax, x, means, 6.0, style.BLUE)
    if far:
        ax.set_ylim(low - margin, high + margin)
        ax.ticklabel_format(axis="y", useOffset=False)
    else:
        ax.axhline(0.0, color=style.FAINT, linewidth=0.8)
    if is_share:
        ax.set_ylim(0.0, 1.0)
    binary = item_type(family).is_binary
    frame.label_axes(ax, y="probability of 1" if binary else "expected value")
    frame.style_axes(ax)


def plot_responses(result: AnyFit, ax: Axes | None = None, *, most: int = MOST_PROFILES) -> Axes:
    """Draw the expected responses of all items in the most common profiles, and return the axes.

    In the heat map, binary items are coloured by the probability of 1, other items by the mean
    rescaled to its range over the profiles. Nominal items have no mean and are omitted. With many
    items, the rows are sorted by the parents of the items.

    Parameters
    ----------
    result : FitResult or DCRL
    ax : matplotlib Axes, optional
    most : int, largest number of profiles (joint states of all latents)
    """
    fitted = as_result(result)
    profiles, shares = common_profiles(fitted, most=most)
    rows: list[tuple[tuple[int, ...], str, NDArray[np.float64]]] = []
    for one in tabulate_outcomes(fitted):
        if one.what != MEAN:
            continue
        means = one.table[tuple(profiles[:, k] for k in one.latents)] * np.ones(len(profiles))
        family = fitted.families[fitted.item_names.index(one.item)]
        if not item_type(family).is_binary:
            span = float(np.ptp(means))
            means = (means - means.min()) / span if span > 0 else np.full(len(means), 0.5)
        rows.append((one.latents, one.item, means))
    if not rows:
        raise DataError("no-means", "no item has a mean: all items are nominal")
    if len(rows) > _MAX_UNSORTED_ITEMS:
        rows.sort(key=lambda row: row[0])
    ax = ax or frame.new_axes(size_of_responses(len(rows), len(profiles)))
    image = frame.draw_heat_map(ax, np.array([means for _, _, means in rows]), "Blues", (0.0, 1.0))
    frame.label_rows(ax, [item for _, item, _ in rows], "items")
    n_latents = len(fitted.latent_names)
    labelled = n_latents <= _MAX_LABEL_LENGTH
    ax.set_xticks(range(len(profiles)))
    texts = ["".join(map(str, profile)) if labelled else "" for profile in profiles.tolist()]
    turned = {"rotation": 90 if n_latents > 3 else 0}
    ax.set_xticklabels(texts, **style.text_options(style.SMALL_FONT_SIZE - 1.0, **turned))
    which = "profiles" if labelled else f"{len(profiles)} profiles"
    total = f"total probability {shares.sum():.3g}"
    ax.set_xlabel(f"{which} in descending order of probability, {total}", **style.text_options())
    binary = all(item_type(name).is_binary for name in fitted.families)
    label = "probability of 1" if binary else "probability of 1, or mean rescaled to [0, 1]"
    frame.add_colorbar(ax, image, label, fraction=0.04)
    return ax
