"""Columns of a file that are named alike: told apart, so that single ones can be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from hidag.errors import FileError

#: The last words of the sentence, in place of which commands that leave columns out name them.
TAKE_OUT = "or take them out"


class AlikeNamesError(FileError):
    """Columns of a table are named alike, some of which may be left out.

    Attributes
    ----------
    last : str
        By which the last of them can be.
    """

    def __init__(self, sentence: str, last: str) -> None:
        super().__init__(sentence)
        self.last = last


def told_apart(names: Sequence[str]) -> list[str]:
    """Return names of which none comes twice: the second 'score' is 'score#2', and so on.

    The first keeps its name, as columns of another file that are no question have it, too.
    """
    own = set(names)
    seen: Counter[str] = Counter()
    out = []
    for name in names:
        seen[name] += 1
        marked = name if seen[name] == 1 else f"{name}#{seen[name]}"
        while marked != name and marked in own:
            marked += "'"
        out.append(marked)
    return out


def refuse_alike(file: Path, names: Sequence[str], left_out: Collection[str] | None) -> None:
    """Raise the sentence about columns of a file that are named alike, unless one of them is left.

    Parameters
    ----------
    file : Path
    names : sequence of str
        As they stand in the file.
    left_out : collection of str, or None
        Columns that nobody wants, as `told_apart` has them; None where all are wanted.
    """
    marked = told_apart(names)
    gone = left_out or ()
    kept = Counter(name for name, own in zip(names, marked, strict=True) if own not in gone)
    twice = [name for name, count in kept.items() if count > 1]
    if not twice:
        return
    sentence = (
        f"the column names of {file} must be unique, but {twice[0]!r} occurs {kept[twice[0]]} "
        f"times ({len(twice)} of {len(kept)} names occur more than once); rename the columns in "
        f"the file, {TAKE_OUT}"
    )
    if left_out is None:
        raise FileError(sentence)
    alike = [own for name, own in zip(names, marked, strict=True) if name == twice[0]]
    raise AlikeNamesError(sentence, [own for own in alike if own not in left_out][-1])
