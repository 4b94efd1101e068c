"""Documents name no machine or work log, pictures are small, hooks run the checks."""

from __future__ import annotations

import re

import pytest

from .pages import DOCUMENTS, ROOT, relative

LARGEST_PICTURE = 150_000
#: Written in two parts, so that this file does not name them itself.
PRIVATE = [
    re.compile(pattern, re.I)
    for pattern in (
        r"(?<![\w.])/" + r"(?:work|home|root|Users|tmp|mnt)/",
        r"[A-Z]:\\" + r"Users",
        r"\bses" + r"sions?\b",
        r"\bissue" + r"s? #?\d",
        r"\bissue" + r" #",
        r"\bTO" + r"DO\b",
    )
]


@pytest.mark.parametrize(
    "path",
    [
        *DOCUMENTS,
        ROOT / "LICENSE",
        ROOT / ".pre-commit-config.yaml",
        *sorted((ROOT / "examples").glob("*.py")),
    ],
    ids=relative,
)
def test_documents_name_no_machine_or_work_log(path) -> None:
    text = path.read_text("utf-8")
    assert [found[0] for pattern in PRIVATE if (found := pattern.search(text))] == []


def test_pictures_are_small() -> None:
    pictures = sorted((ROOT / "docs" / "images").glob("*.png"))
    assert pictures
    assert [p.name for p in pictures if p.stat().st_size >= LARGEST_PICTURE] == []


def test_hooks_run_the_checks_of_the_makefile() -> None:
    hooks = re.findall(r"entry: \.venv/bin/(.+)", (ROOT / ".pre-commit-config.yaml").read_text())
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert len(hooks) == 5
    assert [hook for hook in hooks if f"$(BIN)/{hook}\n" not in makefile] == []
