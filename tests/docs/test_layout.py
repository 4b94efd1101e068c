"""The source has few modules at the top, few files in a folder and no long modules."""

from __future__ import annotations

import pytest

from .pages import ROOT

SOURCE = ROOT / "src"
MAX_TOP_MODULES, MAX_FOLDER_FILES, MAX_LINES = 8, 12, 600
FOLDERS = sorted({path.parent for path in SOURCE.rglob("*.py")})


def test_the_library_has_few_modules_at_the_top() -> None:
    assert len(list((SOURCE / "hidag").glob("*.py"))) <= MAX_TOP_MODULES


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_folder_has_few_files(folder) -> None:
    files = [path.name for path in folder.iterdir() if path.is_file()]
    assert len(files) <= MAX_FOLDER_FILES, sorted(files)


def test_no_module_is_long() -> None:
    lengths = {path: path.read_text("utf-8").count("\n") for path in SOURCE.rglob("*.py")}
    # A table of constants, one dataclass per stage.
    del lengths[SOURCE / "hidag" / "config.py"]
    assert {path.name: n for path, n in lengths.items() if n > MAX_LINES} == {}
