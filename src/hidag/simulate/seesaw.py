"""The paper's seesaw images: latents drawn, scenes painted, masks taken and pooled.

The law is that of the paper's section on ball images, the steps from a scene to 256 binary pixels
are those of its supplement ("Seesaw Image Generator and Preprocessing Details").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG
from hidag.errors import SettingError
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulate.networks import dag_from_parents
from hidag.simulate.sample import Seed
from hidag.simulate.seesaw_scene import (
    SIDE,
    Paints,
    SeesawGeometry,
    draw_jitter,
    grays,
    paint_scenes,
)

Array = NDArray[np.float64]

N_IMAGES = 10_000
LATENTS = ("Z1", "Z2", "Z3", "Z4")
#: In words, for the reader of a picture: what it means that a latent is 1.
MEANINGS = (
    "ball in the left slot",
    "ball in the right slot",
    "left end of the plank up",
    "fourth ball in sight",
)
PARENTS = ((), (), (0, 1), (2,))

#: Pixels brighter than this are 1 in the mask; balls are darker.
THRESHOLD = 80
MASK_SIDE = 96
POOLED_SIDE = 16

#: Images that are painted at once, for the sake of memory; it changes no image.
_IMAGES_AT_ONCE = 512

#: The pixel whose middle is nearest, for each of the mask's rows and columns.
_NEAREST = ((np.arange(MASK_SIDE) + 0.5) * SIDE / MASK_SIDE).astype(np.intp)


@dataclass(frozen=True)
class SeesawImages:
    """Images with the latents behind them.

    Attributes
    ----------
    states : ndarray of uint8, shape (N, 4)
    jitter : ndarray, shape (N, 3, 2)
    pooled : ndarray of uint8, shape (N, 16, 16)
        0 where a ball is seen in the cell, else 1.
    geometry : SeesawGeometry
    """

    states: NDArray[np.uint8]
    jitter: Array
    pooled: NDArray[np.uint8]
    geometry: SeesawGeometry

    def scenes(self, rows: NDArray[np.intp]) -> Paints:
        """Return the full scenes of some images, painted again, shape (n, 256, 256)."""
        return paint_scenes(self.states[rows], self.jitter[rows], self.geometry)


def seesaw_law() -> NetworkLaw:
    """Return the law of the four latents: two balls tip the plank, which may show a fourth."""
    rises = np.array([[0.2, 0.2], [0.2, 0.8]])
    even = np.array([0.5, 0.5])
    return NetworkLaw(
        StateSpace.binary(4),
        PARENTS,
        (even, even, np.stack([1.0 - rises, rises], axis=-1), np.array([[1.0, 0.0], [0.01, 0.99]])),
    )


def seesaw_graph() -> CPDAG:
    """Return the graph Z1, Z2 -> Z3 -> Z4, in which data can tell every direction."""
    return dag_from_parents(PARENTS).to_cpdag()


def simulate_seesaw(
    n_images: int = N_IMAGES, *, rng: Seed = None, geometry: SeesawGeometry | None = None
) -> SeesawImages:
    """Return images drawn from the seesaw's law.

    Parameters
    ----------
    n_images : int
    rng : int, SeedSequence, Generator or None
        The same seed gives the same bits; None draws afresh.
    geometry : SeesawGeometry, optional
    """
    if n_images < 1:
        raise SettingError(f"n_images must be at least 1, got {n_images}")
    generator = np.random.default_rng(rng)
    where = SeesawGeometry() if geometry is None else geometry
    states = seesaw_law().sample(n_images, generator)
    jitter = draw_jitter(n_images, where, generator)
    pooled = np.empty((n_images, POOLED_SIDE, POOLED_SIDE), dtype=np.uint8)
    for first in range(0, n_images, _IMAGES_AT_ONCE):
        some = slice(first, first + _IMAGES_AT_ONCE)
        pooled[some] = pool(mask_of(paint_scenes(states[some], jitter[some], where)))
    for values in (states, jitter, pooled):
        values.setflags(write=False)
    return SeesawImages(states, jitter, pooled, where)


def mask_of(scenes: Paints) -> NDArray[np.uint8]:
    """Return the masks that show balls only, shape (n, 96, 96): 0 on a ball, 1 elsewhere.

    Grays above the threshold are 1, and the result is made smaller by nearest neighbours. Only the
    pixels that will be left are turned into grays: both steps go pixel by pixel.
    """
    near = scenes[:, _NEAREST[:, None], _NEAREST]
    return (grays(near) > THRESHOLD).astype(np.uint8)


def pool(masks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the least pixel of each cell of 6 x 6, shape (n, 16, 16)."""
    cell = MASK_SIDE // POOLED_SIDE
    blocks = masks.reshape(-1, POOLED_SIDE, cell, POOLED_SIDE, cell)
    return np.asarray(blocks.min(axis=(2, 4)))


def pixel_names() -> tuple[str, ...]:
    """Return names of the 256 pooled pixels, row by row from the top left."""
    return tuple(f"r{i + 1}c{j + 1}" for i in range(POOLED_SIDE) for j in range(POOLED_SIDE))


def true_effects(geometry: SeesawGeometry | None = None) -> NDArray[np.int8]:
    """Return what raising each latent alone does to each pixel, shape (256, 4): -1, 0 or 1.

    From scenes without jitter, over the states that can occur: a pixel of the hidden ball goes
    bright when the plank rises, and dark when the ball comes into sight.
    """
    where = SeesawGeometry() if geometry is None else geometry
    law = seesaw_law()
    states = law.space.states().astype(np.uint8)
    possible = law.probabilities > 0
    pictures = pool(mask_of(paint_scenes(states, np.zeros((len(states), 3, 2)), where)))
    pixels = pictures.reshape(len(states), -1).astype(np.int8)
    effects = np.zeros((pixels.shape[1], len(LATENTS)), dtype=np.int8)
    for k in range(len(LATENTS)):
        raised = states.copy()
        raised[:, k] = 1
        above = law.space.number(raised)
        both = possible & possible[above] & (states[:, k] == 0)
        changes = pixels[above[both]] - pixels[both]
        # Pixels go one way only with each latent: no scene has a latent that does both.
        effects[:, k] = changes.min(axis=0) + changes.max(axis=0)
    return np.sign(effects).astype(np.int8)
