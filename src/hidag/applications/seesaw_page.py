"""The page on seesaw images: what was found beside the truth, in pictures, tables and words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.applications.outcome import Outcome, Picture
from hidag.applications.seesaw_tables import PixelFit, latent_table, law_table, pixel_table
from hidag.evaluate import Evaluation, Matching
from hidag.plots import (
    plot_effect_maps,
    plot_graph,
    plot_images,
    plot_q,
    size_of_graph,
    size_of_images,
    size_of_q,
)
from hidag.report.parts import Section
from hidag.simulate.seesaw import (
    LATENTS,
    MEANINGS,
    SeesawImages,
    mask_of,
    pixel_names,
    seesaw_graph,
    seesaw_law,
)
from hidag.simulate.seesaw_scene import colours

#: Scenes in the picture of samples.
N_SHOWN = 5


def seesaw_outcome(
    images: SeesawImages,
    found: PixelFit,
    matching: Matching,
    evaluation: Evaluation,
    effects: NDArray[np.int8],
    seed: int,
) -> Outcome:
    """Return the outcome of a fit to seesaw images, already under the truth's names.

    Parameters
    ----------
    images : SeesawImages
    found : PixelFit
    matching : Matching
        How the fit's latents were matched with the true ones.
    evaluation : Evaluation
    effects : ndarray of -1, 0 and 1, shape (J, K)
        What raising a latent does to each pixel.
    seed : int
    """
    result = found.result
    q = found.over_all(result.q_matrix)
    n_images, n_pixels = len(images.pooled), len(found.varies)
    n_constant = int((~found.varies).sum())
    drives = q.sum(axis=1)
    exact = evaluation.shd_graph == 0
    verdict = (
        "The graph found from the pixels is Z1, Z2 -> Z3 -> Z4, exactly the one behind the images."
        if exact
        else f"The graph found differs from the one behind the images in {evaluation.shd_graph} of "
        "6 pairs of latents."
    )
    findings = (
        verdict,
        f"Q is sparse: {int((drives == 0).sum())} of {n_pixels} pixels have no latent, "
        f"{int((drives == 1).sum())} have one, {int((drives > 1).sum())} have more; "
        f"{evaluation.shd_q} of {q.size:,} entries differ from what the scenes' geometry says.",
        f"{n_constant} of {n_pixels} pixels are the same in all {n_images:,} images. They were "
        "left out of the fit and put back, without effects, into maps and tables.",
    )
    cautions = (
        "While the left ball is in front of it, nothing shows whether the fourth ball is there. So "
        "the images do not determine how often Z4 is 1 where Z3 is 0: any share fits them equally "
        "well, even the one at which Z4 does not depend on Z3. The paper's law has a zero there, "
        "which its identifiability theorems exclude. The fit settles on some share, and Z3 -> Z4 "
        "rests on that too.",
    )
    return Outcome(
        name="seesaw",
        title="Hidden causes behind images of a seesaw",
        findings=findings,
        cautions=cautions,
        result=result,
        seed=seed,
        settings={"seed": seed, "n_images": n_images, "jitter": images.geometry.jitter},
        sections=_sections(images, matching),
        pictures=_pictures(images, found, effects),
        tables=(
            law_table(images, result),
            latent_table(images, found),
            pixel_table(images, found, effects),
        ),
        numbers={
            # All pixels, not only those that were fitted.
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
            "information_ratio": result.information_ratio,
        },
    )


def _sections(images: SeesawImages, matching: Matching) -> tuple[Section, ...]:
    way = "; ".join(
        f"{name} is number {k + 1} of the fit{', its 0 and 1 exchanged' if flip else ''}"
        for name, k, flip in zip(LATENTS, matching.permutation, matching.flips, strict=True)
    )
    return (
        Section(
            "The images",
            (
                "A plank on a pivot, with a ball on its left end, and a tray with two slots. A "
                "ball may lie in the left slot (Z1) and in the right one (Z2). With both, the left "
                "end of the plank mostly goes up (Z3); else it mostly stays down. Where the left "
                "ball lies while it is down, a fourth ball is hidden behind it, which then comes "
                "into sight (Z4) in 99 of 100 cases.",
                "Each scene of 256 x 256 pixels becomes gray; pixels brighter than 80 are white, "
                "the balls are black. That mask is made smaller to 96 x 96 by nearest neighbours, "
                "and pooled to 16 x 16: a cell is black if any of its pixels is. The fit sees "
                "these 256 pixels and nothing else. Pivot, plank and balls are shifted at random "
                f"by up to {images.geometry.jitter:g} of the image's side.",
                "The law, the tilt of 25 degrees, the jitter and the steps from scene to pixels "
                "are the paper's. Where things stand, how large they are and their colours are "
                "not printed there; they are round numbers chosen for these pictures.",
            ),
            ("scenes",),
        ),
        Section(
            "The graph",
            (
                "Two independent causes of one event, which in turn has an effect: in such a graph "
                "data can tell every direction.",
                "The fit never saw the truth. Its latents have an order and a way round of their "
                f"own; for reading they were matched with the true ones afterwards: {way}.",
            ),
            ("graph",),
            ("law", "latents"),
        ),
        Section(
            "What each latent does to the image",
            (
                "Each map shows logistic(B e_k), the probabilities of bright pixels with only "
                "latent k's loadings switched on and no intercept. Mid-gray is 0.5, no effect; "
                "black, a ball becomes more likely; white, less likely.",
            ),
            ("effects", "q"),
            ("pixels",),
        ),
    )


def _pictures(
    images: SeesawImages, found: PixelFit, effects: NDArray[np.int8]
) -> tuple[Picture, ...]:
    rows = _rows_to_show(images.states)
    scenes = images.scenes(rows)
    lines = [list(colours(scenes)), list(mask_of(scenes)), list(images.pooled[rows])]
    states = [" ".join(f"{z}" for z in state) for state in images.states[rows]]
    graph, truth = found.result.graph, seesaw_graph()
    # A legend that says "found" of every edge would only take room.
    beside = None if graph == truth else truth
    return (
        Picture(
            "scenes",
            "Scenes with their true (Z1 Z2 Z3 Z4), their balls-only masks, and the 16 x 16 pixels "
            "that are fitted: the first image of each of some states.",
            lambda figure: plot_images(
                figure,
                lines,
                row_names=("scene", "mask", "pooled"),
                column_names=[f"Z = {state}" for state in states],
            ),
            size_of_images(len(lines), len(rows)),
        ),
        Picture.on_axes(
            "graph",
            "The graph among the latents as it was found"
            + (": the true one." if beside is None else ", held against the true one."),
            lambda ax: plot_graph(graph, ax, truth=beside),
            size_of_graph(graph, truth=beside),
            fill=True,
        ),
        Picture(
            "effects",
            "Effect maps logistic(B e_k): mid-gray is no effect, black a ball more likely, white "
            "a ball less likely.",
            lambda figure: plot_effect_maps(
                figure,
                found.effect_maps(),
                names=[f"{name}\n{words}" for name, words in zip(LATENTS, MEANINGS, strict=True)],
            ),
            (9.6, 2.6),
        ),
        Picture.on_axes(
            "q",
            "Loadings of the pixels that vary; r3c10 is row 3, column 10 of the pooled image.",
            lambda ax: plot_q(found.result, ax, truth=(effects != 0)[found.varies]),
            size_of_q(*found.result.q_matrix.shape),
        ),
    )


def _rows_to_show(states: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return the first image of each of the first few states, and of the rarest event."""
    numbers = seesaw_law().space.number(states)
    _, first = np.unique(numbers, return_index=True)
    shown = np.sort(first)
    # That the plank is up and the fourth ball away is rare, and all there is to tell Z4 by.
    away = [row for row in shown if states[row, 2] == 1 and states[row, 3] == 0][:1]
    others = [row for row in shown if row not in away]
    return np.array([*others[: N_SHOWN - len(away)], *away], dtype=np.intp)
