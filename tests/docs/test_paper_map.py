"""Every name and command on the page that maps the paper to the program exists."""

from __future__ import annotations

import importlib
import re
from functools import reduce

import pytest

from hidag_paper.commands import options
from hidag_paper.studies import STUDIES

from .pages import ROOT

PAGE = (ROOT / "docs" / "paper_map.md").read_text("utf-8")
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| ")]
NAMES = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[2])})


def resolve(name: str) -> object:
    """Return the object of a dotted name: attributes of the longest module in it."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[end:], module)
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("generic", "strict", "levels=")])
def test_the_name_exists(name: str) -> None:
    if name.startswith("hidag study "):
        assert name.split()[2] in STUDIES
    elif name.startswith("hidag app "):
        assert callable(getattr(options, name.split()[2]))
    elif name.startswith("tests/"):
        assert (ROOT / name).is_file()
    else:
        assert resolve(name) is not None


def test_certificates_use_the_printed_numbers() -> None:
    from hidag.identifiability import check_identifiability

    numbers = " ".join(row[0] for row in ROWS)
    q = [[1, 0], [0, 1]] * 3 + [[1, 1]]
    sources = {
        f.source for effects, levels in (("main", 2), ("all", 2), ("main", 3))
        for f in check_identifiability(q, effects=effects, levels=levels).findings
    }  # fmt: skip
    stated = [re.match(r"(Theorem|Corollary|Assumption) ([S.]*\d'?)", source) for source in sources]
    for found in filter(None, stated):
        assert re.search(rf"{found[1]}[^|]* {re.escape(found[2])}", numbers), found[0]
