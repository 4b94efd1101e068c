from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import hidag
from hidag import plotting as plots
from hidag.exceptions import MissingPackageError, import_extra
from hidag.structure import DAG

ROOT = Path(__file__).parents[1]
PICTURES = "drawing figures needs matplotlib, which is not installed; use pip install 'hidag[plot]'"


@pytest.fixture(scope="module")
def fitted():
    truth = hidag.design("Chain-5", "Q1", "gaussian", rng=1)
    rows = hidag.simulate(truth, 300, rng=2).X
    return hidag.DCRL(5, family="gaussian", random_state=0).fit(rows).result_, rows


def test_a_missing_package_is_one_sentence_with_its_extra():
    with pytest.raises(MissingPackageError) as caught:
        import_extra("no_such_package.part", "juggling", "circus")
    assert str(caught.value) == (
        "juggling needs no_such_package, which is not installed; use pip install 'hidag[circus]'"
    )
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize(
    "draw",
    [
        lambda result, rows: plots.plot_q(result),
        lambda result, rows: plots.plot_graph(result.graph),
        lambda result, rows: plots.plot_trace(result),
        lambda result, rows: plots.plot_law(result),
        lambda result, rows: plots.plot_loadings(result),
        lambda result, rows: plots.plot_effects(hidag.average_effects(result)),
        lambda result, rows: plots.plot_selection(
            hidag.select(rows, [2, 3], family="gaussian", fits="none")
        ),
        lambda result, rows: plots.size_of_graph(DAG.from_parents([(), (0,)])),
        lambda result, rows: plots.render_png(np.size, (1.0, 1.0)),
    ],
)
def test_pictures_without_matplotlib_name_the_extra(draw, fitted, monkeypatch):
    block(monkeypatch, "matplotlib")
    with pytest.raises(MissingPackageError) as caught:
        draw(*fitted)
    assert str(caught.value) == PICTURES


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_report_without_its_packages_names_the_extra(package, fitted, monkeypatch, tmp_path):
    block(monkeypatch, package)
    with pytest.raises(MissingPackageError) as caught:
        hidag.write_report(fitted[0], tmp_path / "report.html")
    assert f"needs {package}, which is not installed; use pip install 'hidag[" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["typer", "rich", "pyarrow", "matplotlib", "jinja2"])
def test_the_command_line_asks_for_its_packages_before_it_works(package, tmp_path):
    program = (
        f"import sys; sys.modules['{package}'] = None; sys.argv = ['hidag', 'info']\n"
        "from hidag.cli import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr == (
        f"hidag: the command line needs {package}, which is not installed; "
        "use pip install 'hidag[cli]'\n"
    )


def test_the_extra_of_the_command_line_has_all_that_its_commands_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert set(extras["report"]) | set(extras["io"]) <= set(extras["cli"])


def block(monkeypatch, package):
    """Let a package be as if it were not installed, parts of it that are loaded included."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
