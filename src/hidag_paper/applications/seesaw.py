"""Seesaw images: latents, their graph and their effect on pixels found from pixels alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hidag.estimator import DCRL
from hidag.exceptions import DataError, HidagWarning
from hidag.metrics.evaluation import Evaluation, evaluate
from hidag.metrics.matching import Matching, match_latents, relabel_result
from hidag.metrics.model_parts import Parts
from hidag.parallel import Progress
from hidag.plotting.effect_maps import plot_effect_maps, plot_images, size_of_images
from hidag.plotting.figure import size_of_graph, size_of_q
from hidag.plotting.graph import plot_graph
from hidag.plotting.q_matrix import plot_q
from hidag.reporting.sections import Section, Table
from hidag.results import FitResult
from hidag_paper.applications.outcome import Outcome, Picture
from hidag_paper.seesaw import (
    LATENTS,
    MEANINGS,
    N_IMAGES,
    POOLED_SIDE,
    SeesawGeometry,
    SeesawImages,
    colours,
    mask_of,
    pixel_names,
    seesaw_graph,
    seesaw_law,
    simulate_seesaw,
    true_effects,
)

# --- A fit to pixels among all pixels, and its tables beside the truth

Array = NDArray[np.float64]
Number = TypeVar("Number", np.int8, np.float64)


@dataclass(frozen=True)
class PixelFit:
    """A fit to the pixels that vary, and its place among all of them.

    Attributes
    ----------
    result : FitResult
        Of the pixels that vary.
    varies : ndarray of bool, shape (J,)
    """

    result: FitResult
    varies: NDArray[np.bool_]

    def over_all(self, values: NDArray[Number], constant: float = 0.0) -> NDArray[Number]:
        """Return numbers per varying pixel, shape (V, ...), put back among all J pixels."""
        out = np.full((len(self.varies), *values.shape[1:]), constant, dtype=values.dtype)
        out[self.varies] = values
        return out

    def effect_maps(self) -> Array:
        """Return logistic(B e_k) of each latent, shape (K, h, w): 0.5 where it has no effect."""
        maps = expit(self.over_all(self.result.loadings))
        return np.asarray(maps.T.reshape(-1, POOLED_SIDE, POOLED_SIDE))


def law_table(images: SeesawImages, result: FitResult) -> Table:
    """Return the conditional probabilities: true, among the images, and fitted."""
    law = seesaw_law()
    states = law.space.states()
    drawn = np.bincount(law.space.number(images.states), minlength=len(states)) / len(images.states)
    fitted = np.asarray(result.law.probabilities)
    rows = []
    for k, causes in enumerate(law.parents):
        for levels in np.ndindex(*(2,) * len(causes)):
            given = (states[:, list(causes)] == levels).all(axis=1)
            here = given & (states[:, k] == 1)
            words = ", ".join(f"{LATENTS[a]} = {m}" for a, m in zip(causes, levels, strict=True))
            rows.append(
                (
                    f"{LATENTS[k]} = 1" + (f" given {words}" if words else ""),
                    float(law.tables[k][levels][1]),
                    float(drawn[here].sum() / drawn[given].sum()),
                    float(fitted[here].sum() / fitted[given].sum()),
                )
            )
    return Table(
        "law",
        "The latents' law: as it is, among the images drawn, and as fitted.",
        ("probability of", "true", "drawn", "fitted"),
        tuple(rows),
    )


def latent_table(images: SeesawImages, found: PixelFit) -> Table:
    """Return how often each latent is told right, with the plank up and down."""
    pixels = images.pooled.reshape(len(images.pooled), -1)[:, found.varies]
    guessed = found.result.classify(pixels.astype(np.float64))
    right = guessed == images.states
    up = images.states[:, 2] == 1
    return Table(
        "latents",
        "Share of images whose latent is told right, with the plank's left end up and down. What "
        "the fit says of Z4 with the left end down is arbitrary.",
        ("latent", "meaning", "left end up", "left end down"),
        tuple(
            (name, MEANINGS[k], float(right[up, k].mean()), float(right[~up, k].mean()))
            for k, name in enumerate(LATENTS)
        ),
    )


def pixel_table(images: SeesawImages, found: PixelFit, effects: NDArray[np.int8]) -> Table:
    """Return the coefficients of all pixels beside what their scenes say."""
    bright = images.pooled.reshape(len(images.pooled), -1).mean(axis=0)
    intercept = found.over_all(found.result.intercept, constant=np.nan)
    loadings = found.over_all(found.result.loadings)
    return Table(
        "pixels",
        "All pixels: how often they are bright, fitted intercept and loadings (log odds of "
        "bright), and what the scenes' geometry says each latent does. Pixels that never change "
        "have no intercept.",
        (
            *("pixel", "bright", "intercept", *LATENTS),
            *(f"true {name}" for name in LATENTS),
        ),
        tuple(
            (
                name,
                float(bright[j]),
                float(intercept[j]),
                *(float(value) for value in loadings[j]),
                *(int(sign) for sign in effects[j]),
            )
            for j, name in enumerate(pixel_names())
        ),
        decimals=2,
    )


# --- The page on seesaw images: what was found beside the truth, in pictures, tables and words

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


# ---


def fit_pixels(
    pooled: NDArray[np.uint8],
    n_latents: int,
    *,
    seed: int,
    observer: Callable[[Progress], None] | None = None,
) -> PixelFit:
    """Return the fit of binary images; pixels that are the same in all of them are left out.

    A pixel that never changes says nothing about any latent, and its intercept would be infinite.
    `DCRL` refuses such columns, because in a table of items they are more often a mistake.

    Parameters
    ----------
    pooled : ndarray of 0 and 1, shape (N, 16, 16)
    n_latents : int
    seed : int
    observer : callable, optional
    """
    pixels = pooled.reshape(len(pooled), -1)
    varies = pixels.min(axis=0) != pixels.max(axis=0)
    if int(varies.sum()) < n_latents:
        raise DataError(
            f"only {int(varies.sum())} pixels differ between the {len(pooled)} images, too few for "
            f"{n_latents} latents; draw more images with --images"
        )
    names = np.array(pixel_names())[varies]
    model = DCRL(n_latents, family="bernoulli", random_state=seed, observer=observer)
    with warnings.catch_warnings():
        # Pixels of one ball light up together: they are what the images are made of, no copies.
        warnings.filterwarnings("ignore", "items .* are (equal|opposite) in all", HidagWarning)
        model.fit(_named(pixels[:, varies].astype(np.float64), names.tolist()))
    return PixelFit(model.result_, varies)


def _named(values: Array, names: list[str]) -> object:
    import pyarrow

    return pyarrow.table({name: values[:, j] for j, name in enumerate(names)})


def run_seesaw(
    *,
    seed: int = 1,
    n_images: int = N_IMAGES,
    jitter: float | None = None,
    observer: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Return what is found in freshly drawn seesaw images, beside the truth behind them.

    Parameters
    ----------
    seed : int
        Of the images and of the fit; the same seed gives the same outcome.
    n_images : int
    jitter : float, optional
        As in `SeesawGeometry`; the paper's unless given.
    observer : callable, optional
        Told of the fit's progress.
    """
    geometry = SeesawGeometry() if jitter is None else SeesawGeometry(jitter=jitter)
    for_images, for_fit = np.random.SeedSequence(seed).generate_state(2)
    images = simulate_seesaw(n_images, rng=int(for_images), geometry=geometry)
    found = fit_pixels(images.pooled, len(LATENTS), seed=int(for_fit), observer=observer)
    # The truth is looked at only from here on.
    effects = true_effects(geometry)
    matched, matching, evaluation = held_against_truth(found, effects)
    return seesaw_outcome(images, matched, matching, evaluation, effects, seed)


def held_against_truth(
    found: PixelFit, effects: NDArray[np.int8]
) -> tuple[PixelFit, Matching, Evaluation]:
    """Return the fit under the truth's names, how they were matched, and how far it is off.

    Parameters
    ----------
    found : PixelFit
    effects : ndarray of -1, 0 and 1, shape (J, K)
        What raising a latent does to each pixel.
    """
    ours = Parts.of(found.result)
    everywhere = Parts(
        found.over_all(ours.q_matrix),
        loadings=found.over_all(found.result.loadings),
        law=ours.law,
        graph=ours.graph,
    )
    truth = Parts(
        (effects != 0).astype(np.int8),
        loadings=effects.astype(np.float64),
        law=seesaw_law(),
        graph=seesaw_graph(),
    )
    matching = match_latents(everywhere, truth)
    renamed = relabel_result(found.result, matching, LATENTS)
    return PixelFit(renamed, found.varies), matching, evaluate(everywhere, truth)
