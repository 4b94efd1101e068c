"""Simulated seesaw images: latent states, rendered scenes, ball masks and pooled pixels.

The latent distribution is that of the paper's section on ball images; the steps from a scene to 256
binary pixels follow its supplement ("Seesaw Image Generator and Preprocessing Details").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Setting, SettingError
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.simulation.designs import dag_from_parents
from hidag.simulation.truth import Seed
from hidag.structure.graphs import CPDAG

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Paints = NDArray[np.uint8]

#: Pixels along a side of a scene.
SIDE = 256

#: RGB colours. Only the balls are darker than the threshold of the mask.
PALETTE: dict[str, tuple[int, int, int]] = {
    "background": (244, 241, 234),
    "tray": (120, 144, 156),
    "pivot": (141, 132, 126),
    "plank": (196, 154, 108),
    "tray ball 1": (94, 24, 32),
    "tray ball 2": (20, 66, 44),
    "hidden ball": (74, 44, 92),
    "left ball": (22, 40, 84),
}
_NUMBER = {name: number for number, name in enumerate(PALETTE)}

#: Weights of red, green and blue in the luminance (ITU-R recommendation BT.601).
_LUMA = np.array([0.299, 0.587, 0.114])

#: Scenes rendered in one batch, which fits into the processor cache.
_SCENES_AT_ONCE = 64


@dataclass(frozen=True)
class SeesawGeometry:
    """Positions and sizes in image sides. Tilt and jitter are the paper's, the rest is chosen here.

    Attributes
    ----------
    tilt : float
        Angle of the plank in degrees, in either direction.
    jitter : float
        Largest offset along each axis of the pivot, the centre of the plank, and the two balls of
        the seesaw, which share one offset.
    pivot : (float, float)
        Tip of the pivot; without jitter also the centre of the plank.
    pivot_size : (float, float)
        Half the width of the foot, and the height.
    plank : (float, float)
        Half the length, and the thickness.
    seat : float
        Distance of the left ball from the centre, relative to half the length of the plank.
    ball : float
        Radius of the left ball and of the balls on the tray.
    hidden_ball : float
        Radius of the fourth ball, which the left ball covers completely.
    slots : ((float, float), (float, float))
        Points where the balls touch the tray.
    """

    tilt: float = 25.0
    jitter: float = 0.001
    pivot: tuple[float, float] = (0.42, 0.36)
    pivot_size: tuple[float, float] = (0.07, 0.22)
    plank: tuple[float, float] = (0.32, 0.025)
    seat: float = 0.85
    ball: float = 0.06
    hidden_ball: float = 0.045
    slots: tuple[tuple[float, float], tuple[float, float]] = ((0.62, 0.74), (0.88, 0.74))

    def angles(self, left_up: Flags) -> Array:
        """Return the angle of the plank in radians, negative with the left end up."""
        return np.asarray(np.where(left_up, -1.0, 1.0) * np.deg2rad(self.tilt))

    def left_ball(self, left_up: Flags, centre: Array) -> Array:
        """Return the centres of the left balls, shape (n, 2), given those of the planks."""
        angle = self.angles(left_up)
        along = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        across = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
        half, thickness = self.plank
        return np.asarray(centre - self.seat * half * along + (thickness / 2 + self.ball) * across)


def draw_jitter(n_scenes: int, geometry: SeesawGeometry, rng: np.random.Generator) -> Array:
    """Draw the offsets of each scene, shape (n, 3, 2): pivot, plank, balls of the seesaw."""
    return rng.uniform(-geometry.jitter, geometry.jitter, size=(n_scenes, 3, 2))


def render_scenes(states: NDArray[np.uint8], jitter: Array, geometry: SeesawGeometry) -> Paints:
    """Return the colour index of every pixel, shape (n, 256, 256), top row first.

    Parameters
    ----------
    states : ndarray of 0 and 1, shape (n, 4)
        Ball in the left slot, ball in the right slot, left end up, fourth ball visible.
    jitter : ndarray, shape (n, 3, 2)
        Offsets from `draw_jitter`.
    geometry : SeesawGeometry
    """
    scenes = np.empty((len(states), SIDE, SIDE), dtype=np.uint8)
    scenes[:] = _tray(geometry)
    # Scenes with the same plank position differ only by jitter, so that each shape lies in the same
    # small window of all of them.
    for up in (0, 1):
        rows = np.flatnonzero(states[:, 2] == up)
        for first in range(0, len(rows), _SCENES_AT_ONCE):
            some = rows[first : first + _SCENES_AT_ONCE]
            _draw_seesaw(scenes, some, states[some].astype(bool), jitter[some], geometry)
    return scenes


def to_rgb(scenes: Paints) -> NDArray[np.uint8]:
    """Return the RGB values of scenes, shape (..., 3)."""
    return np.asarray(np.array(list(PALETTE.values()), dtype=np.uint8)[scenes])


def to_gray(scenes: Paints) -> NDArray[np.uint8]:
    """Return the gray values of scenes, 0 to 255, of the same shape."""
    return np.asarray(np.rint(np.array(list(PALETTE.values())) @ _LUMA).astype(np.uint8)[scenes])


def _draw_seesaw(
    scenes: Paints,
    rows: NDArray[np.intp],
    states: Flags,
    jitter: Array,
    geometry: SeesawGeometry,
) -> None:
    """Draw pivot, plank and balls, back to front, into scenes with the same plank position."""
    up = states[:, 2]
    pivot = geometry.pivot + jitter[:, 0]
    centre = geometry.pivot + jitter[:, 1]
    foot, height = geometry.pivot_size
    half, thickness = geometry.plank
    angle = geometry.angles(up)[:, None, None]
    cosine, sine = np.cos(angle), np.sin(angle)

    def in_pivot(x: Array, y: Array) -> Flags:
        return np.asarray((np.abs(x) <= foot * -y / height) & (y >= -height))

    def in_plank(x: Array, y: Array) -> Flags:
        lengthwise = np.abs(cosine * x + sine * y) <= half
        return np.asarray(lengthwise & (np.abs(cosine * y - sine * x) <= thickness / 2))

    tilt = np.deg2rad(geometry.tilt)
    reach = np.array([half * np.cos(tilt) + thickness, half * np.sin(tilt) + thickness])
    _fill(scenes, rows, "pivot", pivot, np.array([foot, height]), in_pivot)
    _fill(scenes, rows, "plank", centre, reach, in_plank)
    for k, slot in enumerate(geometry.slots):
        here = rows[states[:, k]]
        where = np.tile([slot[0], slot[1] + geometry.ball], (len(here), 1))
        _fill_disc(scenes, here, f"tray ball {k + 1}", where, geometry.ball)
    # The fourth ball is behind the position of the left ball with the left end down. With the left
    # end up it is visible or absent.
    there = ~up | states[:, 3]
    down = geometry.left_ball(np.zeros_like(up), centre) + jitter[:, 2]
    _fill_disc(scenes, rows[there], "hidden ball", down[there], geometry.hidden_ball)
    left = geometry.left_ball(up, centre) + jitter[:, 2]
    _fill_disc(scenes, rows, "left ball", left, geometry.ball)


def _fill_disc(
    scenes: Paints, rows: NDArray[np.intp], paint: str, centres: Array, radius: float
) -> None:
    def in_disc(x: Array, y: Array) -> Flags:
        return np.asarray(x * x + y * y <= radius * radius)

    _fill(scenes, rows, paint, centres, np.array([radius, radius]), in_disc)


def _fill(
    scenes: Paints,
    rows: NDArray[np.intp],
    paint: str,
    centres: Array,
    reach: Array,
    inside: Callable[[Array, Array], Flags],
) -> None:
    """Colour the pixels of some scenes whose centres are inside a shape.

    ``inside`` receives coordinates relative to ``centres``, shape (m, 2), and ``reach`` bounds the
    extent of the shape along x and y.
    """
    if len(rows) == 0:
        return
    low = np.floor((centres.min(axis=0) - reach) * SIDE).astype(int)
    high = np.ceil((centres.max(axis=0) + reach) * SIDE).astype(int)
    left, right = np.clip([low[0], high[0]], 0, SIDE)
    top, bottom = np.clip([SIDE - high[1], SIDE - low[1]], 0, SIDE)
    x = (np.arange(left, right) + 0.5) / SIDE
    y = 1.0 - (np.arange(top, bottom) + 0.5) / SIDE
    hit = inside(x - centres[:, :1, None], y[:, None] - centres[:, 1:, None])
    window = scenes[rows, top:bottom, left:right]
    window[hit] = _NUMBER[paint]
    scenes[rows, top:bottom, left:right] = window


def _tray(geometry: SeesawGeometry) -> Paints:
    """Return a scene with the tray alone: a foot, a stem, a fork, and a shelf on each prong."""
    scene = np.full((SIDE, SIDE), _NUMBER["background"], dtype=np.uint8)
    (x1, y1), (x2, y2) = geometry.slots
    middle, ground = (x1 + x2) / 2, geometry.pivot[1] - geometry.pivot_size[1]
    thin, fork, wide = 0.012, min(y1, y2) - 0.12, geometry.ball
    for left, right, low, high in (
        (middle - 0.08, middle + 0.08, ground, ground + 2 * thin),
        (middle - thin, middle + thin, ground, fork),
        (x1 - thin, x2 + thin, fork - 2 * thin, fork),
        (x1 - thin, x1 + thin, fork, y1),
        (x2 - thin, x2 + thin, fork, y2),
        (x1 - wide, x1 + wide, y1 - thin, y1),
        (x2 - wide, x2 + wide, y2 - thin, y2),
    ):
        top, bottom = round((1.0 - high) * SIDE), round((1.0 - low) * SIDE)
        scene[top:bottom, round(left * SIDE) : round(right * SIDE)] = _NUMBER["tray"]
    return scene


N_IMAGES = 10_000
LATENTS = ("Z1", "Z2", "Z3", "Z4")
#: Meaning of level 1 of each latent.
MEANINGS = (
    "ball in the left slot",
    "ball in the right slot",
    "left end of the plank up",
    "fourth ball visible",
)
PARENTS = ((), (), (0, 1), (2,))

#: Pixels brighter than this are 1 in the mask; balls are darker.
THRESHOLD = 80
MASK_SIDE = 96
POOLED_SIDE = 16

#: Images rendered in one batch, to limit memory.
_IMAGES_AT_ONCE = 512

#: Nearest scene pixel for each row and column of the mask.
_NEAREST = ((np.arange(MASK_SIDE) + 0.5) * SIDE / MASK_SIDE).astype(np.intp)


@dataclass(frozen=True)
class SeesawImages:
    """Images with their latent states.

    Attributes
    ----------
    states : ndarray of uint8, shape (N, 4)
    jitter : ndarray, shape (N, 3, 2)
    pooled : ndarray of uint8, shape (N, 16, 16)
        0 if a ball is in the cell, else 1.
    geometry : SeesawGeometry
    """

    states: NDArray[np.uint8]
    jitter: Array
    pooled: NDArray[np.uint8]
    geometry: SeesawGeometry

    def scenes(self, rows: NDArray[np.intp]) -> Paints:
        """Render the scenes of some images again, shape (n, 256, 256)."""
        return render_scenes(self.states[rows], self.jitter[rows], self.geometry)


def seesaw_law() -> NetworkLaw:
    """Return the distribution of the latents: two balls tip the plank, which uncovers a fourth."""
    rises = np.array([[0.2, 0.2], [0.2, 0.8]])
    even = np.array([0.5, 0.5])
    return NetworkLaw(
        StateSpace.binary(4),
        PARENTS,
        (even, even, np.stack([1.0 - rises, rises], axis=-1), np.array([[1.0, 0.0], [0.01, 0.99]])),
    )


def seesaw_graph() -> CPDAG:
    """Return the graph Z1, Z2 -> Z3 -> Z4, in which all directions are identified."""
    return dag_from_parents(PARENTS).to_cpdag()


def simulate_seesaw(
    n_images: int = N_IMAGES, *, rng: Seed = None, geometry: SeesawGeometry | None = None
) -> SeesawImages:
    """Simulate seesaw images.

    Parameters
    ----------
    n_images : int
    rng : int, SeedSequence, Generator or None
    geometry : SeesawGeometry, optional
    """
    if n_images < 1:
        raise SettingError(
            "out-of-range",
            "{setting} must be at least 1, got {value}",
            setting=Setting("n_images"),
            value=n_images,
        )
    generator = np.random.default_rng(rng)
    where = SeesawGeometry() if geometry is None else geometry
    states = seesaw_law().sample(n_images, generator)
    jitter = draw_jitter(n_images, where, generator)
    pooled = np.empty((n_images, POOLED_SIDE, POOLED_SIDE), dtype=np.uint8)
    for first in range(0, n_images, _IMAGES_AT_ONCE):
        some = slice(first, first + _IMAGES_AT_ONCE)
        pooled[some] = pool(ball_masks(render_scenes(states[some], jitter[some], where)))
    for values in (states, jitter, pooled):
        values.setflags(write=False)
    return SeesawImages(states, jitter, pooled, where)


def ball_masks(scenes: Paints) -> NDArray[np.uint8]:
    """Return masks of the balls, shape (n, 96, 96): 0 on a ball, 1 elsewhere.

    The paper thresholds the gray image and then resizes it by nearest neighbours. Both steps work
    pixel by pixel, so that only the remaining pixels are converted.
    """
    near = scenes[:, _NEAREST[:, None], _NEAREST]
    return (to_gray(near) > THRESHOLD).astype(np.uint8)


def pool(masks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the minimum over each cell of 6 x 6 pixels, shape (n, 16, 16)."""
    cell = MASK_SIDE // POOLED_SIDE
    blocks = masks.reshape(-1, POOLED_SIDE, cell, POOLED_SIDE, cell)
    return np.asarray(blocks.min(axis=(2, 4)))


def pixel_names() -> tuple[str, ...]:
    """Return names of the 256 pooled pixels, row by row from the top left."""
    return tuple(f"r{i + 1}c{j + 1}" for i in range(POOLED_SIDE) for j in range(POOLED_SIDE))


def true_effects(geometry: SeesawGeometry | None = None) -> NDArray[np.int8]:
    """Return the sign of the effect of each latent on each pixel, shape (256, 4).

    Scenes without jitter are compared over all possible states. A pixel of the fourth ball becomes
    bright when the left end goes up, and dark when the ball is visible.
    """
    where = SeesawGeometry() if geometry is None else geometry
    law = seesaw_law()
    states = law.space.states().astype(np.uint8)
    possible = law.probabilities > 0
    pictures = pool(ball_masks(render_scenes(states, np.zeros((len(states), 3, 2)), where)))
    pixels = pictures.reshape(len(states), -1).astype(np.int8)
    effects = np.zeros((pixels.shape[1], len(LATENTS)), dtype=np.int8)
    for k in range(len(LATENTS)):
        raised = states.copy()
        raised[:, k] = 1
        above = law.space.number(raised)
        both = possible & possible[above] & (states[:, k] == 0)
        changes = pixels[above[both]] - pixels[both]
        # Each latent changes a pixel in one direction only, in all scenes.
        effects[:, k] = changes.min(axis=0) + changes.max(axis=0)
    return np.sign(effects).astype(np.int8)
