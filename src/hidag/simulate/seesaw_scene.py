"""Scenes of a seesaw, a forked tray and four balls, painted without a drawing library.

Lengths are in units of the picture's side, x to the right and y up. A scene is kept as the number
of the paint in each pixel: colours and grays follow from it by looking them up, and no picture
needs three channels until somebody wants to see it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Paints = NDArray[np.uint8]

#: Pixels along a side.
SIDE = 256

#: Red, green and blue of each paint. Only the balls are darker than the mask's threshold.
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

#: Weights of red, green and blue in a gray (ITU-R recommendation BT.601).
_LUMA = np.array([0.299, 0.587, 0.114])

#: Scenes that are painted at once: few enough for a processor's cache. It changes no picture.
_SCENES_AT_ONCE = 64


@dataclass(frozen=True)
class SeesawGeometry:
    """Where things are. The paper gives the tilt and the jitter; all else is chosen here.

    Attributes
    ----------
    tilt : float
        Degrees by which the plank turns either way.
    jitter : float
        Largest offset along each axis: of the pivot, of the plank's centre, and of the two balls
        at the seesaw's side, which share theirs.
    pivot : (float, float)
        Tip of the pivot, where the plank's centre lies too without jitter.
    pivot_size : (float, float)
        Half the width of its foot, and its height.
    plank : (float, float)
        Half its length, and its thickness.
    seat : float
        How far out the left ball sits, as a share of half the plank's length.
    ball : float
        Radius of the left ball and of the balls on the tray.
    hidden_ball : float
        Radius of the fourth ball. It is farther away and looks smaller, so that the left ball hides
        all of it.
    slots : ((float, float), (float, float))
        Where the balls touch the tray.
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
        """Return the plank's angle of each scene in radians: negative with the left side up."""
        return np.asarray(np.where(left_up, -1.0, 1.0) * np.deg2rad(self.tilt))

    def left_ball(self, left_up: Flags, centre: Array) -> Array:
        """Return where the centre of the ball on the plank's left end is, shape (n, 2).

        Parameters
        ----------
        left_up : ndarray of bool, shape (n,)
        centre : ndarray, shape (n, 2)
            Of the plank.
        """
        angle = self.angles(left_up)
        along = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        across = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
        half, thickness = self.plank
        return np.asarray(centre - self.seat * half * along + (thickness / 2 + self.ball) * across)


def draw_jitter(n_scenes: int, geometry: SeesawGeometry, rng: np.random.Generator) -> Array:
    """Return offsets of each scene, shape (n, 3, 2): pivot, plank, balls at the seesaw's side."""
    return rng.uniform(-geometry.jitter, geometry.jitter, size=(n_scenes, 3, 2))


def paint_scenes(states: NDArray[np.uint8], jitter: Array, geometry: SeesawGeometry) -> Paints:
    """Return the paint of every pixel of every scene, shape (n, 256, 256), top row first.

    Parameters
    ----------
    states : ndarray of 0 and 1, shape (n, 4)
        Ball in the first slot, ball in the second, left side up, fourth ball in sight.
    jitter : ndarray, shape (n, 3, 2)
        As `draw_jitter` draws it.
    geometry : SeesawGeometry
    """
    scenes = np.empty((len(states), SIDE, SIDE), dtype=np.uint8)
    scenes[:] = _tray(geometry)
    # Scenes with the plank the same way round differ by their jitter only, so that each shape
    # lies inside one small window of all of them.
    for up in (0, 1):
        rows = np.flatnonzero(states[:, 2] == up)
        for first in range(0, len(rows), _SCENES_AT_ONCE):
            some = rows[first : first + _SCENES_AT_ONCE]
            _paint_seesaw(scenes, some, states[some].astype(bool), jitter[some], geometry)
    return scenes


def colours(scenes: Paints) -> NDArray[np.uint8]:
    """Return scenes in red, green and blue, shape (..., 3)."""
    return np.asarray(np.array(list(PALETTE.values()), dtype=np.uint8)[scenes])


def grays(scenes: Paints) -> NDArray[np.uint8]:
    """Return scenes in grays from 0 to 255, of the same shape."""
    return np.asarray(np.rint(np.array(list(PALETTE.values())) @ _LUMA).astype(np.uint8)[scenes])


def _paint_seesaw(
    scenes: Paints,
    rows: NDArray[np.intp],
    states: Flags,
    jitter: Array,
    geometry: SeesawGeometry,
) -> None:
    """Paint pivot, plank and balls into scenes whose plank lies the same way, farthest first."""
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
    # The fourth ball is where the left ball lies while the left side is down, behind it. With the
    # left side up it is in sight or away.
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
    """Paint the pixels of some scenes whose middles are inside a shape.

    Parameters
    ----------
    scenes : ndarray of uint8, shape (n, 256, 256)
    rows : ndarray of int, shape (m,)
        Which of them.
    paint : str
    centres : ndarray, shape (m, 2)
    reach : ndarray, shape (2,)
        How far the shape goes from its centre along x and along y.
    inside : callable
        Of x and y from the centre.
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
    """Return the picture of the tray alone: a foot, a stem, a fork, and a shelf on each prong."""
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
