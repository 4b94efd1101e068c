"""Seesaw images: latents, their graph and their effects on pixels, estimated from pixels alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hidag.data.table import read_table
from hidag.estimator import DCRL
from hidag.exceptions import Advice, DataError
from hidag.metrics.evaluation import Evaluation, evaluate
from hidag.metrics.matching import Matching, Parts, match_latents, relabel_law
from hidag.parallel import Progress
from hidag.plotting.figure import size_of_graph, size_of_q
from hidag.plotting.graph import plot_graph
from hidag.plotting.q_matrix import plot_q
from hidag.reporting.content import Table
from hidag.results import FitResult
from hidag_paper.applications.claims import claims_section
from hidag_paper.applications.exploration import rename_latents
from hidag_paper.applications.figures import plot_effect_maps, plot_images, size_of_images
from hidag_paper.applications.report import ApplicationReport, ReportFigure, ReportSection
from hidag_paper.seesaw import (
    LATENTS,
    MEANINGS,
    N_IMAGES,
    POOLED_SIDE,
    SeesawGeometry,
    SeesawImages,
    ball_masks,
    pixel_names,
    seesaw_graph,
    seesaw_law,
    simulate_seesaw,
    to_rgb,
    true_effects,
)

Number = TypeVar("Number", np.int8, np.float64)

#: Scenes in the figure of examples.
N_EXAMPLES = 5


@dataclass(frozen=True)
class PixelFit:
    """A fit to the pixels that vary.

    Attributes
    ----------
    result : FitResult
    varies : ndarray of bool, shape (J,)
        Which of all pixels were fitted.
    """

    result: FitResult
    varies: NDArray[np.bool_]

    def over_all(self, values: NDArray[Number], constant: float = 0.0) -> NDArray[Number]:
        """Return values of the fitted pixels, shape (V, ...), as values of all J pixels."""
        expanded = np.full((len(self.varies), *values.shape[1:]), constant, dtype=values.dtype)
        expanded[self.varies] = values
        return expanded

    def effect_maps(self) -> NDArray[np.float64]:
        """Return logistic(B e_k) of each latent, shape (K, h, w): 0.5 where it has no effect."""
        maps = expit(self.over_all(self.result.loadings))
        return np.asarray(maps.T.reshape(-1, POOLED_SIDE, POOLED_SIDE))


def fit_pixels(
    pooled: NDArray[np.uint8],
    n_latents: int,
    *,
    seed: int,
    observer: Callable[[Progress], None] | None = None,
) -> PixelFit:
    """Fit binary images without the pixels that are constant.

    A constant pixel is not informative and its intercept would be infinite. `DCRL` rejects such
    columns, because in a table of items they are usually errors.

    Parameters
    ----------
    pooled : ndarray of 0 and 1, shape (N, 16, 16)
    n_latents : int
    seed : int
    observer : callable, optional
        Receives the progress of the fit.
    """
    pixels = pooled.reshape(len(pooled), -1)
    varies = pixels.min(axis=0) != pixels.max(axis=0)
    if int(varies.sum()) < n_latents:
        raise DataError(
            "too-few-pixels",
            "only {n} pixels differ between the {n_images} images, too few for {k} latents",
            advice=Advice("more-images", "use more images"),
            n=int(varies.sum()),
            n_images=len(pooled),
            k=n_latents,
        )
    names = np.array(pixel_names())[varies].tolist()
    table = read_table(pixels[:, varies].astype(np.float64), names=names)
    model = DCRL(n_latents, family="bernoulli", random_state=seed, observer=observer)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table)
    for warning in caught:
        # Pixels of the same ball are equal by design.
        if getattr(warning.message, "code", "") != "duplicate-columns":
            warnings.warn(warning.message, stacklevel=2)
    return PixelFit(model.result_, varies)


def match_to_truth(
    found: PixelFit, effects: NDArray[np.int8]
) -> tuple[PixelFit, Matching, Evaluation]:
    """Return the fit with the names of the true latents, the matching, and the errors.

    Parameters
    ----------
    found : PixelFit
    effects : ndarray of -1, 0 and 1, shape (J, K)
        True effect of each latent on each pixel.
    """
    own = Parts.of(found.result)
    estimated = Parts(
        found.over_all(own.q_matrix),
        loadings=found.over_all(found.result.loadings),
        law=own.law,
        graph=own.graph,
    )
    truth = Parts(
        (effects != 0).astype(np.int8),
        loadings=effects.astype(np.float64),
        law=seesaw_law(),
        graph=seesaw_graph(),
    )
    matching = match_latents(estimated, truth)
    relabelled = _relabelled(found.result, matching)
    return PixelFit(relabelled, found.varies), matching, evaluate(estimated, truth)


def _relabelled(result: FitResult, matching: Matching) -> FitResult:
    """Return the same fit with the order, polarity and names of the true latents."""
    order, flips = np.array(matching.permutation), np.array(matching.flips)
    named = rename_latents(result, tuple(np.array(LATENTS)[np.argsort(order)].tolist()))
    return replace(
        named,
        latent_names=LATENTS,
        parameters=result.parameters.reordered(latents=order).flipped(flips),
        law=relabel_law(result.law, order, flips),
        graph=named.graph.permute(matching.permutation),
        edge_probabilities=result.edge_probabilities[np.ix_(order, order)],
    )


def run_seesaw(
    *,
    seed: int = 1,
    n_images: int = N_IMAGES,
    jitter: float | None = None,
    observer: Callable[[Progress], None] | None = None,
) -> ApplicationReport:
    """Simulate seesaw images, fit their pixels and compare the fit with the truth.

    Parameters
    ----------
    seed : int
        Of the images and the fit.
    n_images : int
    jitter : float, optional
        As in `SeesawGeometry`. Default: the value of the paper.
    observer : callable, optional
        Receives the progress of the fit.
    """
    geometry = SeesawGeometry() if jitter is None else SeesawGeometry(jitter=jitter)
    image_seed, fit_seed = np.random.SeedSequence(seed).generate_state(2)
    images = simulate_seesaw(n_images, rng=int(image_seed), geometry=geometry)
    found = fit_pixels(images.pooled, len(LATENTS), seed=int(fit_seed), observer=observer)
    # The truth is not used before this line.
    effects = true_effects(geometry)
    found, matching, evaluation = match_to_truth(found, effects)
    q = found.over_all(found.result.q_matrix)
    n_pixels, n_parents = len(q), q.sum(axis=1)
    n_constant = int((~found.varies).sum())
    if evaluation.shd_graph == 0:
        verdict = "The estimated graph is the true graph, Z1, Z2 -> Z3 -> Z4."
    else:
        verdict = (
            f"The estimated graph differs from the true graph in {evaluation.shd_graph} of 6 pairs "
            "of latents."
        )
    return ApplicationReport(
        name="seesaw",
        title="Latent causes in images of a seesaw",
        findings=(
            verdict,
            f"Q is sparse: {int((n_parents == 0).sum())} of {n_pixels} pixels have no parent, "
            f"{int((n_parents == 1).sum())} have one, {int((n_parents > 1).sum())} have more; "
            f"{evaluation.shd_q} of {q.size:,} entries differ from the true Q.",
            f"{n_constant} of {n_pixels} pixels are constant in all {n_images:,} images. They were "
            "excluded from the fit and have no effects in the maps and tables.",
        ),
        cautions=(
            "While the left ball covers it, the fourth ball is invisible. P(Z4 = 1 | Z3 = 0) is "
            "therefore not identified: every value has the same likelihood, including the one at "
            "which Z4 does not depend on Z3. The paper's distribution has a zero there, which its "
            "identifiability theorems exclude. The estimated value is arbitrary, and the edge "
            "Z3 -> Z4 depends on it.",
        ),
        result=found.result,
        seed=seed,
        settings={"seed": seed, "n_images": n_images, "jitter": geometry.jitter},
        sections=(
            _image_section(images),
            _graph_section(images, found, matching),
            _effect_section(images, found, effects),
            claims_section(found.result),
        ),
        numbers={
            # All pixels, including the constant ones.
            "item_names": list(pixel_names()),
            "q_matrix": q.tolist(),
            "true_q_matrix": (effects != 0).astype(int).tolist(),
            "true_adjacency": seesaw_graph().adjacency.tolist(),
            "n_constant_pixels": n_constant,
            "matching": {
                "permutation": list(matching.permutation),
                "flips": list(matching.flips),
            },
            "shd_graph": evaluation.shd_graph,
            "shd_q": evaluation.shd_q,
            "information_ratio": found.result.information_ratio,
        },
    )


def _image_section(images: SeesawImages) -> ReportSection:
    rows = _example_rows(images.states)
    scenes = images.scenes(rows)
    lines = [list(to_rgb(scenes)), list(ball_masks(scenes)), list(images.pooled[rows])]
    states = [" ".join(map(str, state)) for state in images.states[rows].tolist()]
    figure = ReportFigure(
        "scenes",
        "Scenes with their true states (Z1 Z2 Z3 Z4), the masks of the balls, and the 16 x 16 "
        "pixels that are fitted: the first image of several states.",
        lambda figure: plot_images(
            figure,
            lines,
            row_names=("scene", "mask", "pooled"),
            column_names=[f"Z = {state}" for state in states],
        ),
        size_of_images(len(lines), len(rows)),
    )
    return ReportSection(
        "Images",
        (
            "A plank on a pivot with a ball on its left end, and a tray with two slots. A ball may "
            "lie in the left slot (Z1) and in the right slot (Z2). With both balls, the left end "
            "of the plank usually goes up (Z3); otherwise it usually stays down. A fourth ball is "
            "behind the left ball while that is down, and otherwise visible (Z4) in 99 % of cases.",
            "Each scene of 256 x 256 pixels is converted to gray; pixels brighter than 80 become "
            "white, the balls black. The mask is reduced to 96 x 96 by nearest neighbours and "
            "pooled to 16 x 16: a cell is black if any of its pixels is. The fit uses only these "
            "256 pixels. Pivot, plank and balls are shifted at random by up to "
            f"{images.geometry.jitter:g} of the image side.",
            "The latent distribution, the tilt of 25 degrees, the jitter and the preprocessing are "
            "those of the paper. It does not give positions, sizes and colours; they are chosen "
            "here.",
        ),
        (figure,),
    )


def _example_rows(states: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return the first image of each of several states, including the rarest event."""
    _, first = np.unique(seesaw_law().space.number(states), return_index=True)
    rows = np.sort(first).tolist()
    # Only images with the left end up and no fourth ball identify Z4, and they are rare.
    rare = [row for row in rows if states[row, 2] == 1 and states[row, 3] == 0][:1]
    others = [row for row in rows if row not in rare]
    return np.array([*others[: N_EXAMPLES - len(rare)], *rare], dtype=np.intp)


def _graph_section(images: SeesawImages, found: PixelFit, matching: Matching) -> ReportSection:
    graph, truth = found.result.graph, seesaw_graph()
    # A legend is useful only if some edge differs.
    reference = None if graph == truth else truth
    comparison = ": the true graph." if reference is None else ", compared with the true graph."
    figure = ReportFigure.on_axes(
        "graph",
        f"Estimated causal graph among the latents{comparison}",
        lambda ax: plot_graph(graph, ax, truth=reference),
        size_of_graph(graph, truth=reference),
        fill=True,
    )
    order = "; ".join(
        f"{name} is latent {k + 1} of the fit{', its levels exchanged' if flip else ''}"
        for name, k, flip in zip(LATENTS, matching.permutation, matching.flips, strict=True)
    )
    return ReportSection(
        "Causal graph",
        (
            "Two independent causes have a common effect, which has an effect itself. In this "
            "graph all directions are identified.",
            "The fit does not use the truth. The order and the level labels of its latents are "
            f"arbitrary; they were matched with the true latents afterwards: {order}.",
        ),
        (figure,),
        (_law_table(images, found.result), _latent_table(images, found)),
    )


def _law_table(images: SeesawImages, result: FitResult) -> Table:
    """Return the conditional probabilities: true, relative frequencies and estimates."""
    law = seesaw_law()
    states = law.space.states()
    drawn = np.bincount(law.space.number(images.states), minlength=len(states)) / len(images.states)
    fitted = np.asarray(result.law.probabilities)
    rows = []
    for k, parents in enumerate(law.parents):
        for levels in np.ndindex(*(2,) * len(parents)):
            given = (states[:, list(parents)] == levels).all(axis=1)
            event = given & (states[:, k] == 1)
            condition = ", ".join(
                f"{LATENTS[a]} = {m}" for a, m in zip(parents, levels, strict=True)
            )
            shares = [float(p[event].sum() / p[given].sum()) for p in (drawn, fitted)]
            name = f"{LATENTS[k]} = 1" + (f" | {condition}" if condition else "")
            rows.append((name, float(law.tables[k][levels][1]), *shares))
    return Table(
        "law",
        "Conditional probabilities of the latents: true, relative frequency in the images, and "
        "estimated.",
        ("probability of", "true", "drawn", "fitted"),
        tuple(rows),
    )


def _latent_table(images: SeesawImages, found: PixelFit) -> Table:
    """Return the classification accuracy of each latent by the position of the plank."""
    pixels = images.pooled.reshape(len(images.pooled), -1)[:, found.varies]
    correct = found.result.most_probable_states(pixels.astype(np.float64)) == images.states
    up = images.states[:, 2] == 1
    accuracy = np.stack([correct[up].mean(axis=0), correct[~up].mean(axis=0)], axis=1).tolist()
    return Table(
        "latents",
        "Share of images with a correctly classified latent, with the left end of the plank up and "
        "down. With the left end down, Z4 is not identified.",
        ("latent", "meaning", "left end up", "left end down"),
        tuple((n, m, *a) for n, m, a in zip(LATENTS, MEANINGS, accuracy, strict=True)),
    )


def _effect_section(
    images: SeesawImages, found: PixelFit, effects: NDArray[np.int8]
) -> ReportSection:
    maps = ReportFigure(
        "effects",
        "Effect maps logistic(B e_k): mid-gray no effect, black a ball more likely, white a ball "
        "less likely.",
        lambda figure: plot_effect_maps(
            figure,
            found.effect_maps(),
            names=[f"{name}\n{words}" for name, words in zip(LATENTS, MEANINGS, strict=True)],
        ),
        (9.6, 2.6),
    )
    loadings = ReportFigure.on_axes(
        "q",
        "Loadings of the pixels that vary; r3c10 is row 3, column 10 of the pooled image.",
        lambda ax: plot_q(found.result, ax, truth=(effects != 0)[found.varies]),
        size_of_q(*found.result.q_matrix.shape),
    )
    columns = (
        images.pooled.reshape(len(images.pooled), -1).mean(axis=0).tolist(),
        found.over_all(found.result.intercept, constant=np.nan).tolist(),
        found.over_all(found.result.loadings).tolist(),
        effects.tolist(),
    )
    table = Table(
        "pixels",
        "All pixels: share of bright images, estimated intercept and loadings (log odds of "
        "bright), and the sign of the true effects. Constant pixels have no intercept.",
        ("pixel", "bright", "intercept", *LATENTS, *(f"true {name}" for name in LATENTS)),
        tuple(
            (name, bright, intercept, *own, *true)
            for name, bright, intercept, own, true in zip(pixel_names(), *columns, strict=True)
        ),
        decimals=2,
    )
    paragraph = (
        "Each map shows logistic(B e_k), the probability of a bright pixel with the loadings of "
        "latent k only and no intercept. Mid-gray is 0.5, no effect; black: a ball becomes more "
        "likely; white: less likely."
    )
    return ReportSection("Effects on the pixels", (paragraph,), (maps, loadings), (table,))
