"""Tables, pictures and sentences that every exploration of a table has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.plotting import style
from hidag.plotting.figure import size_of_graph, size_of_q
from hidag.plotting.graph import plot_graph
from hidag.plotting.q_matrix import plot_q
from hidag.plotting.selection import SIZE as SELECTION_SIZE
from hidag.plotting.selection import plot_selection
from hidag.reporting.sections import Section, Table
from hidag.reporting.sections import Table as PageTable
from hidag_paper.applications.exploration import COMES_BACK, Exploration, FamilyFit, Misfit
from hidag_paper.applications.outcome import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Items in the table of latents, and pairs in the table of misfits.
SHOWN_ITEMS, SHOWN_PAIRS = 6, 12


def number_table(found: Exploration) -> PageTable:
    """Return the criteria for each number of latents, and whether all latents come back."""
    rows = []
    for k in found.selection.latents:
        one = found.selection.fitted.get(k)
        if one is None or one.criteria is None:
            continue
        met = found.halves[k]
        rows.append(
            (
                k,
                one.criteria.log_likelihood,
                one.criteria.n_parameters,
                one.criteria.bic,
                one.criteria.ebic,
                met.lowest,
                int((met.correlation >= COMES_BACK).sum()),
                "chosen" if k == found.chosen else "",
            )
        )
    return PageTable(
        "number_of_latents",
        "Numbers of latents: fit to all rows, and how well two halves of the rows agree.",
        (
            "latents",
            "log-likelihood",
            "parameters",
            "BIC",
            "EBIC",
            "lowest agreement of halves",
            "latents that come back",
            "",
        ),
        tuple(rows),
        decimals=2,
    )


def latent_table(found: Exploration) -> PageTable:
    """Return each latent with its share, its items and how well it comes back."""
    result = found.result
    share = result.law.marginals()[:, 1]
    rows = []
    for k, name in enumerate(result.latent_names):
        order = np.argsort(-np.abs(found.effects[:, k]), kind="stable")[:SHOWN_ITEMS]
        items = ", ".join(
            f"{result.item_names[j]} {found.effects[j, k]:+.2f}"
            for j in order
            if result.q_matrix[j, k]
        )
        again = found.latents_again[:, k]
        rows.append(
            (
                name,
                float(share[k]),
                int(result.q_matrix[:, k].sum()),
                items,
                float(found.halves[found.chosen].correlation.min())
                if not len(again)
                else float(again.min()),
            )
        )
    return PageTable(
        "latents",
        "The latents: share of rows that have each, items it drives, the strongest of them with "
        "what the latent adds in standard deviations, and its lowest correlation with a refit.",
        ("latent", "share", "items", "strongest items", "lowest agreement"),
        tuple(rows),
        decimals=2,
    )


def effect_table(found: Exploration) -> PageTable:
    """Return what each latent adds to each item; empty cells are no direct effect."""
    result = found.result
    shown = np.where(result.q_matrix == 1, found.effects, np.nan)
    return PageTable(
        "effects",
        "What a latent adds to an item's mean, in standard deviations of the item, the other "
        "latents as they are.",
        ("item", "family", *result.latent_names),
        tuple(
            (name, result.families[j], *(float(v) for v in shown[j]))
            for j, name in enumerate(result.item_names)
        ),
        decimals=2,
    )


def edge_table(found: Exploration) -> PageTable:
    """Return the edges with how often the refits have them."""
    names = found.result.latent_names
    adjacency = found.result.graph.adjacency
    rows = tuple(
        (
            names[a],
            "-" if adjacency[b, a] else "->",
            names[b],
            joined,
            same,
        )
        for a, b, joined, same in found.edges
    )
    return PageTable(
        "edges",
        f"Edges of the graph, and the share of {len(found.refits)} refits with that edge, and with "
        f"that edge and direction. Refits: {'; '.join(found.refits)}.",
        ("latent", "edge", "latent ", "found again", "with its direction"),
        rows,
        decimals=2,
    )


def misfit_table(found: Exploration, gaps: Misfit) -> PageTable:
    """Return the pairs of items that the fit explains least."""
    names = found.result.item_names
    return PageTable(
        "misfit",
        f"The pairs of items whose correlation the fit misses most. Over all pairs the root mean "
        f"square of what is missed is {gaps.root_mean_square:.3f}; without any latent it would be "
        f"{gaps.unexplained:.3f}.",
        ("item", "other item", "correlation", "under the fit", "difference"),
        tuple(
            (names[i], names[j], seen, said, seen - said)
            for i, j, seen, said in gaps.pairs[:SHOWN_PAIRS]
        ),
        decimals=2,
    )


def graph_picture(found: Exploration) -> Picture:
    """Return the graph among the latents, its edges with how many refits have them."""
    graph, names = found.result.graph, found.result.latent_names
    support = {(names[a], names[b]): joined for a, b, joined, _ in found.edges}
    said = ""
    if support and found.refits:
        said = (
            f" Dashes and numbers say in what share of the {len(found.refits)} refits the two are "
            "joined too."
        )
    return Picture.on_axes(
        "graph",
        "The graph among the latents. An arrow is a direction that the data tell; a line without "
        f"one can be either way.{said}",
        partial(plot_graph, graph, support=support if said else None),
        size_of_graph(graph, legend=bool(said)),
        fill=True,
    )


def number_picture(found: Exploration) -> Picture:
    """Return the criteria over the number of latents."""
    return Picture(
        "number_of_latents",
        "Left: eigenvalues of the items' correlations against tables with shuffled columns. Right: "
        "criteria less their best, which is zero. The bar marks the number that was chosen, which "
        "these criteria have no say in.",
        partial(plot_selection, found.selection, marked=found.chosen),
        SELECTION_SIZE,
    )


def agreement_picture(found: Exploration) -> Picture:
    """Return how well latents of two halves agree, by number of latents."""

    def draw(ax: Axes) -> None:
        for k, met in found.halves.items():
            ordered = np.sort(met.correlation)[::-1]
            place = k + np.linspace(-0.18, 0.18, len(ordered)) if len(ordered) > 1 else [k]
            ax.plot(
                place,
                ordered,
                linestyle="none",
                marker="o",
                markersize=5.0,
                markerfacecolor=style.BLUE if k == found.chosen else style.PAPER,
                markeredgecolor=style.BLUE,
            )
        ax.axhline(COMES_BACK, color=style.VERMILION, linewidth=1.2, linestyle=(0, (4, 2)))
        ax.set_ylim(0.0, 1.03)
        ax.set_xticks(list(found.halves))
        ax.set_xlabel("number of latents", fontsize=style.SMALL_FONT_SIZE)
        ax.set_ylabel("agreement of two halves", fontsize=style.SMALL_FONT_SIZE)
        ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT, labelcolor=style.INK)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(style.FAINT)

    return Picture.on_axes(
        "agreement",
        "A dot is a latent: how well its rows' chances correlate between fits to two halves of the "
        f"rows. Above the dashed line ({COMES_BACK:g}) it is said to come back; filled dots are "
        "those of the number that was chosen.",
        draw,
        (5.6, 2.9),
    )


def loadings_picture(found: Exploration) -> Picture:
    """Return the effects of latents on items as a heat map."""
    result = found.result
    shown = np.where(result.q_matrix == 1, found.effects, 0.0)
    return Picture.on_axes(
        "effects",
        "What each latent adds to each item, in standard deviations of the item.",
        lambda ax: plot_q(
            shown, ax, item_names=result.item_names, latent_names=result.latent_names
        ),
        size_of_q(*shown.shape),
    )


def number_words(found: Exploration) -> str:
    """Return how the number of latents was chosen, in words."""
    lowest = found.halves[found.chosen].lowest
    best = found.selection.votes["EBIC"]
    if found.all_come_back:
        rule = (
            f"{found.chosen} is the largest number fitted of which every latent is found again in "
            f"the other half of the rows (lowest agreement {lowest:.2f})."
        )
    else:
        rule = (
            f"for no number fitted does every latent come back in the other half of the rows; "
            f"{found.chosen} does best (lowest agreement {lowest:.2f}, {COMES_BACK:g} was wanted)."
        )
    if len(found.halves) == 1:
        return f"{rule} No other number was asked for."
    if best == found.chosen:
        return f"{rule} EBIC chooses the same number."
    end = ", the most that were fitted, and might go on" if found.criterion_at_end else ""
    return (
        f"{rule} EBIC would have {best}{end}: with so many rows any departure from the model pays "
        "for another latent, and what is real has to show itself twice."
    )


def stability_words(found: Exploration) -> str:
    """Return how much of latents and edges comes back in the refits, in words."""
    again = found.latents_again.min(axis=0)
    n_good = int((again >= COMES_BACK).sum())
    always = sum(joined == 1.0 for _, _, joined, _ in found.edges)
    turned = sum(same == 1.0 for _, _, _, same in found.edges)
    return (
        f"{n_good} of {len(again)} latents come back in all {len(found.refits)} refits, "
        f"{always} of {len(found.edges)} edges are there in all of them, and {turned} with the "
        "same direction."
    )


# --- Sections, tables and numbers of the outcome that every exploration of a table has


def number_section(found: Exploration) -> Section:
    """Return the section on the number of latents."""
    return Section(
        "How many states",
        (number_words(found),),
        pictures=("number_of_latents", "agreement"),
        tables=("number_of_latents",),
    )


def misfit_section(found: Exploration, gaps: Misfit) -> Section:
    """Return the section on the pairs of items that stay unexplained."""
    first, second, seen, fitted = gaps.pairs[0]
    names = found.result.item_names
    return Section(
        "What the states do not explain",
        (
            f"The worst pair is {names[first]} and {names[second]}: their correlation is "
            f"{seen:.2f}, under the fit {fitted:.2f}.",
        ),
        tables=("misfit",),
    )


def count_family_table(counts: list[FamilyFit], caption: str) -> Table:
    """Return the comparison of families of counts: name, log-likelihood, parameters, BIC."""
    return Table(
        "count_families",
        caption,
        ("family of the counts", "log-likelihood", "parameters", "BIC"),
        tuple(counts),
        decimals=1,
    )


def common_numbers(found: Exploration, gaps: Misfit) -> dict[str, Any]:
    """Return the numbers of the summary that every exploration has."""
    return {
        "n_latents": found.chosen,
        "selection": found.selection.to_dict(),
        "split_half_agreement": {k: met.correlation for k, met in found.halves.items()},
        "misfit_root_mean_square": gaps.root_mean_square,
        "unexplained_root_mean_square": gaps.unexplained,
    }
