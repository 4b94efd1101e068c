"""What was found out about an earlier fit, in a folder that a new fit is written into."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hidag.cli.evaluate import load_result
from hidag.errors import HidagError
from hidag.explain.item_fit import COLUMNS as ITEM_COLUMNS
from hidag.explain.pairs import COLUMNS as PAIR_COLUMNS
from hidag.explain.person_fit import COLUMNS as PERSON_COLUMNS
from hidag.explain.predictive import COLUMNS as CHECK_COLUMNS
from hidag.explain.refit_store import remove_refits
from hidag.result import FitResult

#: What `hidag bootstrap` writes beside a fit; the last tells that the others are its own.
BOOTSTRAP_FILES = (
    "edge_support.csv", "q_support.csv", "intervals.csv", "law_intervals.csv",
    "effect_intervals.csv", "bootstrap.npz",
)  # fmt: skip
#: Refits stay in a folder of their own, so that more can be added.
RESAMPLES = "resamples"

#: What `hidag goodness` writes, with the first lines that tell its files from somebody else's;
#: the last one tells that the others are there.
GOODNESS_FILES = {
    "pairs.csv": PAIR_COLUMNS,
    "items.csv": ITEM_COLUMNS,
    "checks.csv": CHECK_COLUMNS,
    "persons.csv": PERSON_COLUMNS,
}


def is_another_fit(folder: Path, result: FitResult) -> bool:
    """Return whether a folder holds a fit whose refits are none of this one's."""
    try:
        old = load_result(folder)
    except HidagError:
        return True
    pairs = [
        (getattr(old, name), getattr(result, name))
        for name in ("intercept", "loadings", "q_matrix")
    ]
    return not all(np.array_equal(one, other) for one, other in pairs)


def remove_bootstrap(folder: Path, *, refits: bool) -> list[str]:
    """Remove what a bootstrap left beside a fit, and return the names of what is gone.

    Parameters
    ----------
    folder : Path
    refits : bool
        Whether its refits go as well: they take long, and are as good for the same fit made again.
    """
    gone = []
    # Without it, files of these names are somebody else's.
    if (folder / BOOTSTRAP_FILES[-1]).is_file():
        for name in BOOTSTRAP_FILES:
            if (folder / name).is_file():
                (folder / name).unlink()
                gone.append(name)
    if refits and remove_refits(folder / RESAMPLES):
        gone.append(RESAMPLES)
    return gone


def remove_goodness(folder: Path) -> list[str]:
    """Remove what `hidag goodness` wrote into a folder, and return the names of what is gone."""
    gone = goodness_files(folder)
    for name in gone:
        (folder / name).unlink()
    return gone


def goodness_files(folder: Path) -> list[str]:
    """Return the names of what `hidag goodness` wrote into a folder."""
    lines = {name: _first_line(folder / name) for name in GOODNESS_FILES}
    own = {name for name, columns in GOODNESS_FILES.items() if lines[name] == ",".join(columns)}
    # Earlier versions wrote what cannot be said about many latents as a table without columns.
    if list(GOODNESS_FILES)[-1] in own:
        own |= {name for name in GOODNESS_FILES if lines[name] == ""}
    return [name for name in GOODNESS_FILES if name in own]


def _first_line(file: Path) -> str | None:
    """Return the first line of a file; None if there is no such file, or it is no text."""
    try:
        with file.open(encoding="utf-8") as stream:
            return stream.readline().rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None
