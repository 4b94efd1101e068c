"""Seesaw images: the law, the scenes, and the way from a scene to 256 pixels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.exceptions import SettingError
from hidag_paper.seesaw import (
    PALETTE,
    SeesawGeometry,
    ball_masks,
    pixel_names,
    pool,
    render_scenes,
    seesaw_graph,
    seesaw_law,
    simulate_seesaw,
    to_gray,
    to_rgb,
    true_effects,
)

GEOMETRY = SeesawGeometry()
PAINTS = list(PALETTE)


def scene(*state: int, jitter=((0, 0), (0, 0), (0, 0)), geometry=GEOMETRY) -> np.ndarray:
    return render_scenes(np.array([state], np.uint8), np.array([jitter], float), geometry)[0]


def has(picture: np.ndarray, paint: str) -> bool:
    return bool((picture == PAINTS.index(paint)).any())


def middle(picture: np.ndarray, paint: str) -> np.ndarray:
    """Return x and y of a thing's centre, in units of the picture's side."""
    rows, columns = np.nonzero(picture == PAINTS.index(paint))
    return np.array([columns.mean() + 0.5, 256 - rows.mean() - 0.5]) / 256


def test_the_law_is_the_papers():
    states = simulate_seesaw(200, rng=1).states
    many = seesaw_law().sample(200_000, np.random.default_rng(0)).astype(bool)
    both = many[:, 0] & many[:, 1]
    assert states.shape == (200, 4)
    assert many[:, 0].mean() == pytest.approx(0.5, abs=0.005)
    assert many[both, 2].mean() == pytest.approx(0.8, abs=0.005)
    assert many[~both, 2].mean() == pytest.approx(0.2, abs=0.005)
    assert many[many[:, 2], 3].mean() == pytest.approx(0.99, abs=0.002)
    assert not many[~many[:, 2], 3].any()
    assert seesaw_graph().directed_edges == [("Z1", "Z3"), ("Z2", "Z3"), ("Z3", "Z4")]


def test_only_balls_are_darker_than_the_threshold():
    gray = to_gray(np.arange(len(PAINTS), dtype=np.uint8))
    assert {name for name, value in zip(PAINTS, gray, strict=True) if value <= 80} == {
        "tray ball 1",
        "tray ball 2",
        "hidden ball",
        "left ball",
    }


def test_grays_weigh_red_green_and_blue_as_eyes_do():
    picture = scene(1, 1, 1, 1)
    red, green, blue = np.moveaxis(to_rgb(picture).astype(float), -1, 0)
    np.testing.assert_array_equal(
        to_gray(picture), np.rint(0.299 * red + 0.587 * green + 0.114 * blue)
    )


def test_each_latent_moves_its_ball():
    assert not has(scene(0, 0, 0, 0), "tray ball 1")
    assert has(scene(1, 0, 0, 0), "tray ball 1")
    assert not has(scene(1, 0, 0, 0), "tray ball 2")
    up, down = scene(0, 0, 1, 0), scene(0, 0, 0, 0)
    assert middle(up, "left ball")[1] > middle(down, "left ball")[1] + 0.15
    # The fourth ball is where the left ball lies while it is down.
    np.testing.assert_allclose(
        middle(scene(0, 0, 1, 1), "hidden ball"), middle(down, "left ball"), atol=0.005
    )
    assert not has(up, "hidden ball")


def test_the_plank_tilts_by_25_degrees_and_the_tray_stays():
    up, down = scene(0, 0, 1, 0), scene(0, 0, 0, 0)
    for picture, degrees in ((up, -25.0), (down, 25.0)):
        rows, columns = np.nonzero(picture == PAINTS.index("plank"))
        slope = np.polyfit(columns, -rows, 1)[0]
        assert np.degrees(np.arctan(slope)) == pytest.approx(degrees, abs=1.5)
    np.testing.assert_array_equal(up == PAINTS.index("tray"), down == PAINTS.index("tray"))


def test_the_left_ball_hides_the_fourth_whatever_the_jitter():
    rng = np.random.default_rng(3)
    states = np.zeros((50, 4), np.uint8)
    jitter = rng.uniform(-0.005, 0.005, (50, 3, 2))
    assert not (render_scenes(states, jitter, GEOMETRY) == PAINTS.index("hidden ball")).any()


def test_jitter_is_uniform_within_its_bounds_and_moves_the_left_ball():
    images = simulate_seesaw(500, rng=2)
    assert np.abs(images.jitter).max() <= 0.001
    np.testing.assert_allclose(images.jitter.std(axis=0), 0.001 / np.sqrt(3), rtol=0.1)
    still = middle(scene(0, 0, 0, 0), "left ball")
    moved = middle(scene(0, 0, 0, 0, jitter=((0, 0), (0.02, 0), (0, 0.03))), "left ball")
    np.testing.assert_allclose(moved - still, [0.02, 0.03], atol=0.005)


def test_masks_are_thresholded_and_pixels_are_minima_of_masks():
    images = simulate_seesaw(6, rng=4)
    scenes = images.scenes(np.arange(6))
    full = (to_gray(scenes) > 80).astype(np.uint8)
    near = [int((i + 0.5) * 256 / 96) for i in range(96)]
    masks = full[:, near][:, :, near]
    np.testing.assert_array_equal(ball_masks(scenes), masks)
    for n in range(6):
        for i in range(16):
            for j in range(16):
                cell = masks[n, 6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
                assert images.pooled[n, i, j] == cell.min()
    np.testing.assert_array_equal(pool(masks), images.pooled)
    assert len(pixel_names()) == 256


def test_a_seed_gives_the_same_images_however_many_are_painted_at_once(monkeypatch):
    whole = simulate_seesaw(40, rng=5)
    monkeypatch.setattr("hidag_paper.seesaw._IMAGES_AT_ONCE", 7)
    monkeypatch.setattr("hidag_paper.seesaw._SCENES_AT_ONCE", 3)
    parts = simulate_seesaw(40, rng=5)
    np.testing.assert_array_equal(whole.pooled, parts.pooled)
    np.testing.assert_array_equal(whole.states, parts.states)


def test_true_effects_are_those_of_the_scenes():
    effects = true_effects()
    assert effects.shape == (256, 4)
    images = simulate_seesaw(300, rng=6, geometry=replace(GEOMETRY, jitter=0.0))
    pixels = images.pooled.reshape(300, -1)
    varies = pixels.min(axis=0) != pixels.max(axis=0)
    assert not varies[(effects == 0).all(axis=1)].any()
    # A ball darkens pixels; the left ball also clears those it leaves.
    assert set(effects[:, 0]) == set(effects[:, 1]) == set(effects[:, 3]) == {-1, 0}
    assert set(effects[:, 2]) == {-1, 0, 1}
    hidden = effects[:, 3] != 0
    assert hidden.any()
    assert (effects[hidden, 2] == 1).all()


def test_no_images_are_refused():
    with pytest.raises(SettingError) as caught:
        simulate_seesaw(0)
    assert str(caught.value) == "n_images must be at least 1, got 0"
