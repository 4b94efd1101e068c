"""What is known beforehand, as options of `hidag fit`."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import load
from hidag.cli.output_files import write_csv
from hidag.simulation import chain_dag, make_truth, random_law, simulate


def test_prior_knowledge_is_obeyed_and_reported(tmp_path, hidag):
    q = np.vstack([np.eye(3, dtype=int)] * 3)
    truth = make_truth(random_law(chain_dag(3), rng=0), q, "gaussian")
    folder = tmp_path / "study"
    folder.mkdir()
    rows = simulate(truth, 300, rng=np.random.default_rng(0)).X
    names = [f"X{j + 1}" for j in range(9)]
    write_csv(folder / "responses.csv", names, rows.tolist())
    latents = ["item", "one", "two", "three"]
    pairs = zip(names, q, strict=True)
    write_csv(folder / "q.csv", latents, [[n, *r] for n, r in pairs])
    reported = tmp_path / "known.json"
    reported.write_text('{"forbidden": [["one", "two"], ["two", "one"]]}')
    options = ["--knowledge", reported, "--hierarchy", "three->one", "--no-plots", "--starts", "1"]
    done = hidag("fit", folder, *options, "--out", tmp_path / "fit")
    assert done.exit_code == 0
    result = load(tmp_path / "fit" / "result.npz")
    assert ("three", "one") in result.graph.directed_edges
    assert result.graph.skeleton[0, 1] == 0
    probabilities = result.law.probabilities.reshape(2, 2, 2)
    assert probabilities[1, :, 0].max() == 0.0
    page = (tmp_path / "fit" / "report.html").read_text("utf-8")
    assert "Prior knowledge, not estimated from the data" in page
    assert "under the model and the prior knowledge" in page
    assert "three -&gt; one" in page


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--require", "Z1"], "--require takes CAUSE->EFFECT, such as 'Z1->Z2', got 'Z1'"),
        (
            ["--require", "Z1->Z2,Z2->Z1"],
            "the required edges form a cycle: Z1 -> Z2 -> Z1; remove or reverse one of them",
        ),
        (
            ["--tiers", "Z1;Z2", "--require", "Z2->Z1"],
            "Z2 -> Z1 is required, but Z2 is in tier 2 and Z1 in the earlier tier 1",
        ),
        (
            ["--forbid", "Z1->Z9"],
            "the knowledge names the variable 'Z9'; expected one of Z1, Z2",
        ),
        (
            ["--hierarchy", "Z1->Z2"],
            "a hierarchy is about latents with a meaning, but without a Q-matrix the fit decides "
            "which latent is which; give --q (-1 where it is to be estimated)",
        ),
    ],
)
def test_contradictions_in_options_are_refused_in_words(tmp_path, options, sentence, hidag):
    rows = np.random.default_rng(0).integers(0, 2, (40, 6)).tolist()
    write_csv(tmp_path / "t.csv", [f"X{j}" for j in range(6)], rows)
    done = hidag("fit", tmp_path / "t.csv", "-k", "2", *options)
    assert done.exit_code == 1
    assert done.stderr.strip() == f"hidag: {sentence}"
