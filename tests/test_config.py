"""Tuning constants: changed for an experiment, restored, and read when they are used."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import hidag
from hidag import DCRL
from hidag.config import CONFIG, override
from hidag.em.block_e_step import choose_split
from hidag.em.em import Schedule
from hidag.exceptions import SettingError

SOURCE = Path(hidag.__file__).parent
ROOT = SOURCE.parents[1]


def test_constants_are_changed_and_restored():
    before, other = CONFIG.em, CONFIG.support
    with override({"em.gain_window": 5, "em.max_relaxation": 2.0}):
        assert (CONFIG.em.gain_window, CONFIG.em.max_relaxation) == (5, 2.0)
        assert CONFIG.em.relaxation_growth == before.relaxation_growth
        assert CONFIG.support is other
        with override({"em.gain_window": 7}):
            assert (CONFIG.em.gain_window, CONFIG.em.max_relaxation) == (7, 2.0)
        assert CONFIG.em.gain_window == 5
    assert CONFIG.em is before


def test_constants_are_restored_after_an_error():
    before = CONFIG.em
    with pytest.raises(ZeroDivisionError), override({"em.gain_window": 5}):
        raise ZeroDivisionError
    assert CONFIG.em is before


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("em.gain_windo", "did you mean 'em.gain_window'?"),
        ("gain_window", "em.gain_window"),
        ("em.unconstrained_steps", ""),
        ("no such stage", "STAGE.CONSTANT"),
    ],
)
def test_unknown_constants_are_refused_and_nothing_changes(name, advice):
    before = dict(vars(CONFIG))
    changes = override({"em.gain_window": 5, name: 1})
    with pytest.raises(SettingError, match="no tuning constant") as caught, changes:
        pass
    assert caught.value.code == "unknown-constant"
    assert advice in str(caught.value)
    assert vars(CONFIG) == before


def test_a_changed_constant_changes_a_fit():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 2, size=(300, 1))
    X = (rng.random((300, 6)) < 0.2 + 0.6 * level).astype(float)

    def fit() -> DCRL:
        return DCRL(1, family="bernoulli", random_state=0).fit(X)

    default = fit().log_likelihood_
    # A gain below this per row ends EM: with one row counted it ends later.
    with override({"em.max_tolerance_rows": 1, "em.max_relaxation": 1.0}):
        assert fit().log_likelihood_ != default
    assert fit().log_likelihood_ == default


def test_schedules_and_cached_choices_follow_the_constants():
    with override({"em.saem_burn_in": 3, "em.saem_decay": 0.6, "m_step.newton_steps": 1}):
        assert Schedule() == Schedule(burn_in=3, decay=0.6, n_newton=1)
    assert Schedule().burn_in == CONFIG.em.saem_burn_in
    scopes = (0b11, 0b110, 0b1100)
    assert choose_split((2,) * 4, scopes) is not None
    with override({"e_step.exponential_cost": 1}):
        assert choose_split((2,) * 4, scopes) is None
    assert choose_split((2,) * 4, scopes) is not None


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that are evaluated when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            parts = [*child.args.defaults, *filter(None, child.args.kw_defaults)]
            for part in [*parts, *getattr(child, "decorator_list", [])]:
                yield part
                yield from at_import(part)
        else:
            yield child
            yield from at_import(child)


def reads_at_import(text: str) -> list[int]:
    """Return the lines of a module that read ``CONFIG`` when it is imported."""
    tree = ast.parse(text)
    return [n.lineno for n in at_import(tree) if isinstance(n, ast.Name) and n.id == "CONFIG"]


def test_the_scan_finds_constants_that_are_read_at_import():
    text = (
        "A = 2 * CONFIG.em.gain_window\n"
        "def f(x=CONFIG.em, *, y=[CONFIG.em]):\n"
        "    return CONFIG.em\n"
        "class C:\n"
        "    size: int = CONFIG.em.gain_window\n"
        "    late: int = field(default_factory=lambda: CONFIG.em)\n"
        "    def f(self, x=lambda y=CONFIG.em: y): ...\n"
    )
    assert reads_at_import(text) == [1, 2, 2, 5, 7]


def test_no_module_reads_constants_at_import():
    files = [path for path in SOURCE.rglob("*.py") if path.name != "config.py"]
    found = {path.name: reads_at_import(path.read_text("utf-8")) for path in files}
    assert len(files) > 100
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_every_stage_is_frozen():
    for stage in vars(CONFIG).values():
        with pytest.raises(AttributeError):
            setattr(stage, fields(stage)[0].name, 0)


def stage_classes() -> list[ast.ClassDef]:
    """Return the classes of ``hidag.config`` that hold the constants of a stage."""
    tree = ast.parse((SOURCE / "config.py").read_text("utf-8"))
    return [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name != "Config"]


def without_reason(text: str) -> list[str]:
    """Return the fields of a dataclass without a comment on their line or above their group.

    A comment above a field is also the reason for the fields that follow it directly.
    """
    comments = {
        token.start[0]: token.line.strip().startswith("#")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith("# fmt:")
    }
    (one,) = ast.parse(text).body
    assert isinstance(one, ast.ClassDef)
    out, last = [], 0  # The last line of the group that a comment above it explains.
    for node in one.body:
        if not isinstance(node, ast.AnnAssign):
            continue
        end = node.end_lineno or node.lineno
        if any(line in comments for line in range(node.lineno, end + 1)):
            continue
        if comments.get(node.lineno - 1, False) or last == node.lineno - 1:
            last = end
        else:
            out.append(ast.unparse(node.target))
    return out


def test_a_constant_without_a_reason_is_found():
    text = (
        "class C:\n"
        "    alone: int = 1\n"
        "    # Reason of two.\n"
        "    first: int = 1\n"
        "    second: int = 1\n"
        "    own: int = 1  # Reason.\n"
        "    after: int = 1\n"
    )
    assert without_reason(text) == ["alone", "after"]


@pytest.mark.parametrize("stage", stage_classes(), ids=lambda one: one.name)
def test_a_stage_names_its_benchmark_and_the_reason_of_every_constant(stage):
    described = ast.get_docstring(stage) or ""
    named = re.findall(r"\bbenchmarks/\w+\.py", described)
    assert named
    assert all((ROOT / name).is_file() for name in named)
    # The general benchmark takes the name of the stage.
    classes = {name: type(value).__name__ for name, value in vars(CONFIG).items()}
    for name in re.findall(r"benchmarks/constants\.py (\w+)", described):
        assert classes[name] == stage.name
    lines = (SOURCE / "config.py").read_text("utf-8").splitlines()
    assert without_reason("\n".join(lines[stage.lineno - 1 : stage.end_lineno])) == []


def test_all_stages_are_in_the_configuration():
    classes = {type(value).__name__ for value in vars(CONFIG).values()}
    assert classes == {one.name for one in stage_classes()}
