"""Files and folders are old or new after an interruption at any moment."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from hidag.exceptions import FileError
from hidag.files import complete_folder, fill_folder, write_file

OLD, NEW = ({name: f"{age} {name}" for name in "abc"} for age in ("old", "new"))


class Killed(BaseException):
    pass


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def kill_at(monkeypatch, calls: int) -> None:
    """End everything at a call that changes the disk, also what would clean up after it."""
    count = 0

    def counted(original):
        def call(*args, **kwargs):
            nonlocal count
            count += 1
            if count >= calls:
                raise Killed
            return original(*args, **kwargs)

        return call

    for name in ("os.replace", "shutil.rmtree", "pathlib.Path.unlink"):
        place, _, attribute = name.rpartition(".")
        module = {"os": os, "shutil": __import__("shutil"), "pathlib.Path": Path}[place]
        monkeypatch.setattr(module, attribute, counted(getattr(module, attribute)))


@pytest.mark.parametrize("calls", range(1, 12))
def test_a_folder_is_replaced_as_a_whole(tmp_path, monkeypatch, calls):
    folder = tmp_path / "fit"
    fill_folder(folder, {**OLD, "extra": "old"})
    (folder / "notes.txt").write_text("of the user")
    with monkeypatch.context() as patched:
        kill_at(patched, calls)
        with suppress(Killed):
            fill_folder(folder, NEW, known=["extra"])
    complete_folder(folder)
    found = contents(folder)
    assert found.pop("notes.txt") == "of the user"
    assert found in ({**OLD, "extra": "old"}, NEW)
    # The next run is not disturbed by what the killed one left.
    fill_folder(folder, NEW, known=["extra"])
    assert contents(folder) == {**NEW, "notes.txt": "of the user"}


def test_a_signal_while_files_are_moved_does_not_leave_half_of_them(tmp_path, monkeypatch):
    fill_folder(tmp_path, OLD)
    replace, calls = os.replace, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return replace(*args)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fill_folder(tmp_path, NEW)
    assert contents(tmp_path) == NEW


def test_a_damaged_list_of_moved_files_is_refused(tmp_path):
    swap = tmp_path / ".hidag-swap"
    swap.mkdir()
    (swap / ".obsolete.json").write_text('{"moved": 3}')
    with pytest.raises(FileError, match="was being replaced when a command was interrupted"):
        complete_folder(tmp_path)


def test_only_files_of_the_folder_itself_are_removed(tmp_path):
    (tmp_path / "other").write_text("kept")
    swap = tmp_path / "fit" / ".hidag-swap"
    swap.mkdir(parents=True)
    (swap / ".obsolete.json").write_text('{"moved": [], "removed": ["../other"]}')
    complete_folder(tmp_path / "fit")
    assert (tmp_path / "other").exists()


def test_a_failing_writer_leaves_the_older_file(tmp_path):
    path = write_file(tmp_path / "people.csv", "old")

    def full(part: Path) -> None:
        part.write_text("new, but the disk is")
        raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match=r"people\.csv: No space left on device"):
        write_file(path, full)
    assert contents(tmp_path) == {"people.csv": "old"}
    assert not [p for p in tmp_path.iterdir() if p.is_dir()]


def test_links_are_followed_permissions_kept_and_devices_written_directly(tmp_path):
    path = write_file(tmp_path / "real", b"old")
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
    assert write_file(os.devnull, "x") == Path(os.devnull)
    with pytest.raises(FileError, match="/dev/full: No space left on device"):
        write_file("/dev/full", "x")
