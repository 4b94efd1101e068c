"""The layout stays small enough to find one's way in."""

from __future__ import annotations

import pytest

from .pages import ROOT

SOURCE = ROOT / "src"
#: Most modules at the top of the library, and most files in any folder.
MOST_AT_THE_TOP, MOST_IN_A_FOLDER = 8, 12
LONGEST_MODULE = 620
FOLDERS = sorted({path.parent for path in SOURCE.rglob("*.py")})


def test_the_library_has_few_modules_at_the_top() -> None:
    assert len(list((SOURCE / "hidag").glob("*.py"))) <= MOST_AT_THE_TOP


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_folder_has_few_modules(folder) -> None:
    assert len(list(folder.glob("*.py"))) <= MOST_IN_A_FOLDER


def test_no_module_is_too_long_to_read() -> None:
    lengths = {path: path.read_text("utf-8").count("\n") for path in SOURCE.rglob("*.py")}
    assert [path.name for path, length in lengths.items() if length > LONGEST_MODULE] == []
