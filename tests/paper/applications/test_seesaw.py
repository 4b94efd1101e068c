"""The application to seesaw images."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hidag as package
from hidag.exceptions import DataError
from hidag.files.writing import write_file
from hidag_paper.applications.seesaw import fit_pixels, match_to_truth, run_seesaw
from hidag_paper.commands.application import report_files
from hidag_paper.seesaw import simulate_seesaw, true_effects


@pytest.fixture(scope="module")
def report():
    """Fewer images than the paper's, so that tests are quick; the seed is nobody's choice."""
    return run_seesaw(seed=20, n_images=4000)


@pytest.fixture(scope="module")
def few():
    """A quick fit as it comes out, with its images."""
    images = simulate_seesaw(1500, rng=3)
    return images, fit_pixels(images.pooled, 4, seed=0)


def test_the_graph_is_found_exactly_from_pixels(report):
    summary = report.summary()
    assert summary["latent_names"] == ["Z1", "Z2", "Z3", "Z4"]
    assert summary["adjacency"] == [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert summary["shd_graph"] == 0


def test_constant_pixels_come_back_without_effects(report):
    q = np.array(report.summary()["q_matrix"])
    assert q.shape == (256, 4)
    fitted = set(report.result.item_names)
    names = report.summary()["item_names"]
    constant = np.array([name not in fitted for name in names])
    assert constant.sum() == report.summary()["n_constant_pixels"] == 256 - len(fitted)
    assert not q[constant].any()
    assert f"{constant.sum()} of 256 pixels are constant in all 4,000 images." in " ".join(
        report.findings
    )


def test_q_is_sparse_and_the_one_of_the_scenes(report):
    q = np.array(report.summary()["q_matrix"])
    assert (q.sum(axis=1) == 0).mean() > 0.8
    assert report.summary()["shd_q"] <= 4
    assert (
        np.abs(q - np.array(report.summary()["true_q_matrix"])).sum() == (report.summary()["shd_q"])
    )


def test_effect_maps_are_mid_gray_but_where_balls_are(few):
    found, _, _ = match_to_truth(few[1], true_effects())
    maps = found.effect_maps()
    assert maps.shape == (4, 16, 16)
    effects = true_effects().T.reshape(4, 16, 16)
    assert (maps[:2][effects[:2] == 0] == 0.5).all()
    assert (maps[:3][effects[:3] == -1] < 0.01).all()
    assert (maps[2][effects[2] == 1] > 0.99).mean() > 0.3


def test_everything_is_written_and_can_be_read_again(report, tmp_path):
    for name, write in report_files(report).items():
        write_file(tmp_path / name, write)
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"{p}.{e}" for p in ("scenes", "graph", "effects", "q") for e in ("png", "svg")} < names
    assert {"law.csv", "latents.csv", "pixels.csv", "page.html", "result.npz"} < names
    again = package.load(tmp_path / "result.npz")
    assert again.graph == report.result.graph
    assert json.loads((tmp_path / "summary.json").read_text("utf-8"))["seed"] == 20
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "they were matched with the true latents afterwards" in page
    law = (tmp_path / "law.csv").read_text("utf-8")
    assert '"Z3 = 1 | Z1 = 1, Z2 = 1",0.8,' in law


def test_relabelling_leaves_the_likelihood_as_it_is(few):
    images, found = few
    renamed, matching, _ = match_to_truth(found, true_effects())
    assert any(matching.flips)
    values = images.pooled.reshape(len(images.pooled), -1)[:, found.varies].astype(float)
    np.testing.assert_allclose(
        renamed.result.row_log_likelihood(values),
        found.result.row_log_likelihood(values),
        atol=1e-9,
    )


def test_constant_images_raise():
    with pytest.raises(DataError) as caught:
        fit_pixels(np.ones((20, 16, 16), np.uint8), 4, seed=0)
    assert str(caught.value) == (
        "only 0 pixels differ between the 20 images, too few for 4 latents; use more images"
    )
