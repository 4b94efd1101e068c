"""A fit to pixels among all pixels, and its tables beside the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hidag.report.parts import Table
from hidag.result import FitResult
from hidag.simulate.seesaw import (
    LATENTS,
    MEANINGS,
    POOLED_SIDE,
    SeesawImages,
    pixel_names,
    seesaw_law,
)

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
