"""Sections that the reports of all exploratory analyses share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.plotting import style
from hidag.plotting.figure import size_of_graph, size_of_q, style_axes
from hidag.plotting.graph import plot_graph
from hidag.plotting.q_matrix import plot_q
from hidag.plotting.selection import SIZE as SELECTION_SIZE
from hidag.plotting.selection import plot_selection
from hidag.reporting.content import Table
from hidag_paper.applications.exploration import (
    REPLICATED,
    Exploration,
    FamilyFit,
    ResidualCorrelations,
)
from hidag_paper.applications.report import ReportFigure, ReportSection

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Items per latent and pairs of items in the tables.
MAX_ITEMS, MAX_PAIRS = 6, 12


def count_family_table(fits: Sequence[FamilyFit], caption: str) -> Table:
    """Return the comparison of the count families."""
    header = ("family of the counts", "log-likelihood", "parameters", "BIC")
    return Table("count_families", caption, header, tuple(fits), decimals=1)


def describe_number(found: Exploration) -> str:
    """Return a paragraph on the choice of the number of latents."""
    lowest = found.halves[found.chosen].lowest
    if found.all_replicated:
        text = (
            f"{found.chosen} is the largest fitted number for which every latent is replicated in "
            f"the other half of the rows (lowest correlation {lowest:.2f})."
        )
    else:
        text = (
            "For no fitted number is every latent replicated in the other half of the rows; "
            f"{found.chosen} comes closest (lowest correlation {lowest:.2f}, required "
            f"{REPLICATED:g})."
        )
    if len(found.halves) == 1:
        return f"{text} No other number was requested."
    best = found.selection.votes["EBIC"]
    if best == found.chosen:
        return f"{text} EBIC selects the same number."
    end = ", the largest number fitted," if found.criterion_at_end else ""
    return (
        f"{text} EBIC selects {best}{end} because with many rows any deviation from the model "
        "favours another latent; replication is a stricter criterion."
    )


def describe_stability(found: Exploration) -> str:
    """Return a sentence on the replication of latents and edges in the refits."""
    replicated = (found.replication.min(axis=0) >= REPLICATED).tolist()
    adjacent = sum(share == 1.0 for _, _, share, _ in found.edges)
    directed = sum(share == 1.0 for _, _, _, share in found.edges)
    return (
        f"All {len(found.refits)} refits replicate {sum(replicated)} of {len(replicated)} latents "
        f"and contain {adjacent} of {len(found.edges)} edges, {directed} of them with the same "
        "direction."
    )


def number_section(found: Exploration) -> ReportSection:
    """Return the section on the number of latents."""
    rows = []
    for k in found.selection.latents:
        fit = found.selection.fitted.get(k)
        if fit is None or fit.criteria is None:
            continue
        values, match = fit.criteria, found.halves[k]
        n_replicated = int((match.correlation >= REPLICATED).sum())
        criteria = (values.log_likelihood, values.n_parameters, values.bic, values.ebic)
        chosen = "chosen" if k == found.chosen else ""
        rows.append((k, *criteria, match.lowest, n_replicated, chosen))
    criteria_header = ("latents", "log-likelihood", "parameters", "BIC", "EBIC")
    table = Table(
        "number_of_latents",
        "Numbers of latents: fits to all rows, and agreement of fits to two halves of the rows.",
        (*criteria_header, "lowest correlation of halves", "replicated latents", ""),
        tuple(rows),
        decimals=2,
    )
    criteria_figure = ReportFigure(
        "number_of_latents",
        "Left: eigenvalues of the item correlations and of those of tables with permuted columns. "
        "Right: information criteria minus their minimum. The bar marks the chosen number, which "
        "does not depend on these criteria.",
        partial(plot_selection, found.selection, marked=found.chosen),
        SELECTION_SIZE,
    )
    agreement_figure = ReportFigure.on_axes(
        "agreement",
        "Correlation of the posterior probabilities of each latent between fits to two halves of "
        f"the rows. Latents above the dashed line ({REPLICATED:g}) are replicated; filled dots "
        "belong to the chosen number.",
        partial(_draw_agreement, found),
        (5.6, 2.9),
    )
    return ReportSection(
        "Number of latents",
        (describe_number(found),),
        (criteria_figure, agreement_figure),
        (table,),
    )


def _draw_agreement(found: Exploration, ax: Axes) -> None:
    for k, match in found.halves.items():
        ordered = np.sort(match.correlation)[::-1]
        x = k + np.linspace(-0.18, 0.18, len(ordered)) if len(ordered) > 1 else [k]
        face = style.BLUE if k == found.chosen else style.PAPER
        edge: dict[str, Any] = {"markeredgecolor": style.BLUE, "markersize": 5.0}
        ax.plot(x, ordered, linestyle="none", marker="o", markerfacecolor=face, **edge)
    ax.axhline(REPLICATED, color=style.VERMILION, linewidth=1.2, linestyle=(0, (4, 2)))
    ax.set_ylim(0.0, 1.03)
    ax.set_xticks(list(found.halves))
    ax.set_xlabel("number of latents", **style.text_options())
    ax.set_ylabel("correlation between halves", **style.text_options())
    style_axes(ax, grid=None)


def latent_tables(found: Exploration) -> tuple[Table, Table]:
    """Return the tables of the latents and of their effects on the items."""
    result, header = found.result, ("latent", "probability", "items", "strongest items")
    probability = result.law.marginals()[:, 1].tolist()
    rows = []
    for k, name in enumerate(result.latent_names):
        order = np.argsort(-np.abs(found.effects[:, k]), kind="stable")[:MAX_ITEMS]
        items = ", ".join(
            f"{result.item_names[j]} {found.effects[j, k]:+.2f}"
            for j in order
            if result.q_matrix[j, k]
        )
        lowest = float(found.replication[:, k].min())
        rows.append((name, probability[k], int(result.q_matrix[:, k].sum()), items, lowest))
    effects = np.where(result.q_matrix == 1, found.effects, np.nan).tolist()
    return (
        Table(
            "latents",
            "The latents: probability of level 1, number of items, the strongest items with their "
            "effects in standard deviations, and the lowest correlation with a refit.",
            (*header, "lowest correlation"),
            tuple(rows),
            decimals=2,
        ),
        Table(
            "effects",
            "Effects of the latents on the items, in standard deviations of the item; the other "
            "latents are held constant. Empty cells: no direct effect.",
            ("item", "family", *result.latent_names),
            tuple(
                (name, result.families[j], *effects[j]) for j, name in enumerate(result.item_names)
            ),
            decimals=2,
        ),
    )


def effect_figure(found: Exploration) -> ReportFigure:
    """Return a heat map of the effects of the latents on the items."""
    result = found.result
    effects = np.where(result.q_matrix == 1, found.effects, 0.0)
    names: dict[str, Any] = {"item_names": result.item_names, "latent_names": result.latent_names}
    return ReportFigure.on_axes(
        "effects",
        "Effects of the latents on the items, in standard deviations of the item.",
        lambda ax: plot_q(effects, ax, label="effect / standard deviation", **names),
        size_of_q(*effects.shape),
    )


def graph_section(found: Exploration, interpretation: str) -> ReportSection:
    """Return the section on the graph, with the support of its edges."""
    graph, names, n_refits = found.result.graph, found.result.latent_names, len(found.refits)
    support = {(names[a], names[b]): share for a, b, share, _ in found.edges}
    caption = (
        "Causal graph among the latents (CPDAG). The direction of edges without an arrow is not "
        "identified."
    )
    if support:
        caption += f" Dashes and numbers: share of the {n_refits} refits that contain the edge."
    figure = ReportFigure.on_axes(
        "graph",
        caption,
        partial(plot_graph, graph, support=support or None),
        size_of_graph(graph, legend=bool(support)),
        fill=True,
    )
    table = Table(
        "edges",
        f"Edges of the graph, with the share of {n_refits} refits that contain the edge, and the "
        f"edge with its direction. Refits: {'; '.join(found.refits)}.",
        ("latent", "edge", "latent ", "share with edge", "share with direction"),
        tuple(
            (names[a], "-" if graph.adjacency[b, a] else "->", names[b], adjacent, same)
            for a, b, adjacent, same in found.edges
        ),
        decimals=2,
    )
    paragraphs = (describe_stability(found), interpretation)
    return ReportSection("Causal graph", paragraphs, (figure,), (table,))


def residual_section(found: Exploration, residuals: ResidualCorrelations) -> ReportSection:
    """Return the section on the correlations that the fit does not explain."""
    names = found.result.item_names
    rows = tuple(
        (names[i], names[j], observed, implied, observed - implied)
        for i, j, observed, implied in residuals.pairs[:MAX_PAIRS]
    )
    first, second, observed, implied, _ = rows[0]
    table = Table(
        "misfit",
        "Pairs of items with the largest residual correlations. The root mean square over all "
        f"pairs is {residuals.root_mean_square:.3f}; without latents it would be "
        f"{residuals.observed_root_mean_square:.3f}.",
        ("item", "other item", "observed", "model-implied", "residual"),
        rows,
        decimals=2,
    )
    sentence = (
        f"The largest residual is that of {first} and {second}: their correlation is "
        f"{observed:.2f}, the model implies {implied:.2f}."
    )
    return ReportSection("Residual correlations", (sentence,), (), (table,))


def common_numbers(found: Exploration, residuals: ResidualCorrelations) -> dict[str, Any]:
    """Return the entries of summary.json that all explorations have."""
    return {
        "n_latents": found.chosen,
        "selection": found.selection.to_dict(),
        "split_half_agreement": {k: match.correlation for k, match in found.halves.items()},
        "misfit_root_mean_square": residuals.root_mean_square,
        "unexplained_root_mean_square": residuals.observed_root_mean_square,
    }


def common_cautions(found: Exploration) -> list[str]:
    """Return the limitations that the replication of the latents implies."""
    cautions = []
    lowest = found.replication.min(axis=0)
    weak = [
        name for name, r in zip(found.result.latent_names, lowest, strict=True) if r < REPLICATED
    ]
    if weak:
        cautions.append(f"Not replicated in every refit: {'; '.join(weak)}.")
    if found.criterion_at_end:
        cautions.append(
            f"No information criterion stops at {found.chosen} latents: EBIC is lowest for the "
            "largest number fitted. The number rests on the replication in halves of the rows."
        )
    return cautions
