"""Python in the pages and in examples/ runs and finds its truth."""

from __future__ import annotations

import ast
import re
import runpy
import sys

import pytest

from .pages import DOCUMENTS, ROOT, python_blocks, relative


def test_the_readme_example_finds_the_truth(readme, capsys) -> None:
    import hidag

    assert hidag.evaluate(readme["model"], readme["truth"]).shd == 0


def test_the_readme_examples_are_short() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    lengths = [len([line for line in block.splitlines() if line.strip()]) for block in blocks]
    assert lengths[0] <= 10
    assert max(lengths[1:]) <= 5


def test_the_readme_states_the_results_of_its_other_examples(readme) -> None:
    import hidag

    names = readme["steps"].terms_.names(readme["steps"].latent_names_)
    assert names == ["Z1>=1", "Z1>=2", "Z2", "Z3", "Z4", "Z5"]
    assert hidag.evaluate(readme["steps"], readme["graded"]).shd == 0
    assert (readme["pairs"].loadings_[:, 5:] != 0).sum() == 0
    assert readme["dina"].log_likelihood_ < readme["model"].log_likelihood_


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in DOCUMENTS
        if path.stem in ("baselines", "how_to_add_a_family", "identifiability", "specification")
    ],
    ids=relative,
)
def test_python_in_the_pages_runs(path, capsys) -> None:
    from hidag.measurement.families import ITEM_TYPES

    before = dict(ITEM_TYPES)
    try:
        exec(compile(python_blocks(path), path.name, "exec"), {"__name__": "page"})
    finally:
        for name in set(ITEM_TYPES) - set(before):
            del ITEM_TYPES[name]


def test_the_family_of_the_page_finds_its_effects(capsys) -> None:
    from hidag.measurement.families import ITEM_TYPES

    names: dict = {"__name__": "page"}
    page = ROOT / "docs" / "how_to_add_a_family.md"
    try:
        exec(compile(python_blocks(page), page.name, "exec"), names)
    finally:
        ITEM_TYPES.pop("geometric", None)
    assert abs(names["model"].loadings_ - 2.0).max() < 0.4


def test_the_papers_settings_give_what_the_page_says() -> None:
    from hidag.latent import SaturatedLaw

    names: dict = {"__name__": "page"}
    page = ROOT / "docs" / "specification.md"
    exec(compile(python_blocks(page), page.name, "exec"), names)
    result, wrong = names["model"].result_, names["wrong"]
    assert result.method == "saem"
    assert isinstance(names["model"].latent_law_, SaturatedLaw)
    assert result.graph_rows == 3000
    assert result.edge_tests == ()
    text = page.read_text("utf-8")
    for family in ("bernoulli", "poisson", "gaussian"):
        numbers = [wrong[family, way] for way in ("settings", "research-code", "printed")]
        assert f"| {family} | {' | '.join(map(str, numbers))} |" in text


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=relative)
def test_examples_have_a_docstring(path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def test_the_exploratory_example_finds_its_truth(capsys) -> None:
    runpy.run_path(str(ROOT / "examples" / "exploratory.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Z1" in printed
    assert "(0 latent pairs, 0 entries of Q)" in printed


def test_the_example_with_levels_finds_its_truth(capsys) -> None:
    runpy.run_path(str(ROOT / "examples" / "levels.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Z1>=1  Z1>=2  Z1>=3  Z2>=1  Z2>=2  Z3" in printed
    assert "(0 latent pairs, 0 entries of Q)" in printed


# Main effects, compared there, warn of the interactions that they leave out.
@pytest.mark.filterwarnings("ignore::hidag.exceptions.MisfitWarning")
def test_the_example_with_interactions_prefers_the_true_model(capsys) -> None:
    runpy.run_path(str(ROOT / "examples" / "interactions.py"), run_name="__main__")
    printed = capsys.readouterr().out
    rows = re.findall(r"^  (main|dina|all) +(-[\d.]+) +(\d+) +([\d.]+)$", printed, re.M)
    bic = {name: float(value) for name, _, _, value in rows}
    height = {name: float(value) for name, value, _, _ in rows}
    assert min(bic, key=bic.__getitem__) == "dina"
    assert height["main"] < height["dina"] <= height["all"]
    assert len(re.findall(r"^  item_1[2-7] ", printed, re.M)) == 6


def test_the_confirmatory_example_describes_the_graph(tmp_path, monkeypatch, capsys) -> None:
    import numpy as np

    from hidag import design, simulate

    truth = design("Chain-5", "Q1", "gaussian", rng=1)
    X = simulate(truth, 1500, rng=2).X
    np.savetxt(
        tmp_path / "responses.csv", X, "%.6g", ",", header=",".join(truth.item_names), comments=""
    )
    lines = ["item,A,B,C,D,E"]
    lines += [
        f"{name},{','.join(str(q) for q in row)}"
        for name, row in zip(truth.item_names, truth.q_matrix.tolist(), strict=True)
    ]
    (tmp_path / "q.csv").write_text("\n".join(lines) + "\n", "utf-8")
    monkeypatch.setattr(sys, "argv", ["confirmatory.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "confirmatory.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "A and B are adjacent; the data do not identify the direction.\n" in printed
