"""Seesaw images: latents, their graph and their effect on pixels found from pixels alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hidag.applications.outcome import Outcome
from hidag.applications.seesaw_page import seesaw_outcome
from hidag.applications.seesaw_tables import PixelFit
from hidag.errors import DataError, HidagWarning
from hidag.estimator import DCRL
from hidag.evaluate import Evaluation, Matching, Parts, evaluate, match_latents, relabel_result
from hidag.progress import Progress
from hidag.simulate.seesaw import (
    LATENTS,
    N_IMAGES,
    pixel_names,
    seesaw_graph,
    seesaw_law,
    simulate_seesaw,
    true_effects,
)
from hidag.simulate.seesaw_scene import SeesawGeometry

Array = NDArray[np.float64]


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
