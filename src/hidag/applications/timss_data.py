"""TIMSS 2019 response times: the tables as they lie in a folder, the two Q-matrices, a stand-in.

The data belong to the IEA and are never part of this package; the Q-matrix and the graph are those
that the paper on discrete causal representation learning prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG
from hidag.errors import DataError, FileError, SettingError
from hidag.observations import read_folder, read_q_matrix, read_table
from hidag.observations.folders import read_q
from hidag.observations.paths import existing_file
from hidag.simulate import Truth, dag_from_parents, random_law, simulate

CONTENT = ("Number", "Algebra", "Geometry", "DataProb")
COGNITIVE = ("Knowing", "Applying", "Reasoning")
SKILLS = (*CONTENT, *COGNITIVE)

#: Content skill and cognitive skill of each item, by first letters, as the paper's table prints
#: them (its items 3 and 21 differ from the official sheet).
_PRINTED_WORDS = (
    "NK NA NA NK AA AK AR AA GR GA GA DA DA NK NK NR NA AK AK AA AA AA GK GR GR GA DA DA DR"
)
_PRINTED = tuple(_PRINTED_WORDS.split(" "))
#: Causes that the stand-in has; its CPDAG is the paper's figure.
_STAND_IN_PARENTS = ((1, 3), (), (1,), (2,), (3,), (4,), (5,))
#: Log seconds that an item of the stand-in takes, what a skill adds, the variance, gaps.
_LOG_SECONDS, _SKILL_ADDS = (2.5, 4.0), (0.5, 1.2)
_NOISE, _MISSING = 0.3, 0.018
N_STUDENTS = 620

#: Files of the two Q-matrices in the folder of the times.
Q_FILES = {"official": "q.csv", "printed": "q_paper_table.csv"}


def printed_q() -> NDArray[np.int8]:
    """Return the Q-matrix of the paper's table, shape (29, 7)."""
    content, cognitive = "NAGD", "KAR"
    out = np.zeros((len(_PRINTED), len(SKILLS)), dtype=np.int8)
    for j, letters in enumerate(_PRINTED):
        out[j, [content.index(letters[0]), len(content) + cognitive.index(letters[1])]] = 1
    return out


def printed_graph() -> CPDAG:
    """Return the graph of the paper's figure."""
    adjacency = np.zeros((7, 7), dtype=np.int8)
    for one, other in ((1, 2), (2, 3), (4, 5), (5, 6), (3, 4)):
        adjacency[one, other] = adjacency[other, one] = 1
    for cause, effect in ((3, 0), (1, 0)):
        adjacency[cause, effect] = 1
    return CPDAG(adjacency, SKILLS)


@dataclass(frozen=True, eq=False)
class TimssTable:
    """Responses with the skills that each needs.

    Attributes
    ----------
    values : ndarray, shape (N, J)
    item_names : tuple of str
    families : tuple of str
    q_matrix : ndarray of int8, shape (J, 7)
    source : str
        In words.
    """

    values: NDArray[np.float64]
    item_names: tuple[str, ...]
    families: tuple[str, ...]
    q_matrix: NDArray[np.int8]
    source: str

    @property
    def log_scale(self) -> float:
        """What turns densities of seconds into densities of log seconds."""
        times = self.values[:, [f == "lognormal" for f in self.families]]
        return float(np.nansum(np.log(times)))


def files_of(folder: Path) -> list[Path]:
    """Return the files that may be read from a folder, none of which may be overwritten."""
    places = (folder, folder / "timss2019_rt", *_mixed_places(folder))
    return [file for place in places if place.is_dir() for file in sorted(place.glob("*.csv"))]


def _mixed_places(folder: Path) -> tuple[Path, Path]:
    return folder / "timss2019_mixed", folder.resolve().parent / "timss2019_mixed"


def read_times(folder: Path, q: str) -> TimssTable:
    """Return the response times in seconds, 29 items.

    Parameters
    ----------
    folder : Path
        With responses.csv and the Q-matrices, or the folder above it.
    q : {"official", "printed"}
        q.csv, or q_paper_table.csv; without that file the paper's table itself.
    """
    if q not in Q_FILES:
        raise SettingError(f"q must be 'official' or 'printed', got {q!r}")
    inside = folder / "timss2019_rt"
    place = inside if inside.is_dir() else folder
    found = read_folder(place)
    file = place / Q_FILES[q]
    if q == "printed" and not file.exists():
        matrix: Any = printed_q()
    else:
        matrix = read_q(existing_file(file))
    table = _table(found.table, "lognormal", matrix, place)
    if (table.values <= 0).any():
        raise DataError(f"response times in {place} must be seconds above 0")
    return table


def read_accuracy_and_times(folder: Path, q: str) -> TimssTable | None:
    """Return answers (right or wrong) beside log seconds, 58 columns; None if they are not there.

    Parameters
    ----------
    folder : Path
        As in `read_times`; the table is looked for in timss2019_mixed inside it or beside it.
    q : {"official", "printed"}
        The printed Q is taken for both halves.
    """
    place = next((p for p in _mixed_places(folder) if p.is_dir()), None)
    if place is None:
        return None
    found = read_folder(place)
    if found.q is None or found.types is None:
        raise FileError(f"the folder {place} must hold q.csv and types.csv beside the responses")
    matrix: Any = found.q
    if q == "printed":
        matrix = np.vstack([printed_q(), printed_q()])
    return _table(found.table, found.types, matrix, place)


def stand_in(seed: int) -> TimssTable:
    """Return simulated times with the printed Q, causes that give the printed graph, and gaps."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2019,)))
    q, names = printed_q(), tuple(f"item {j + 1}" for j in range(len(_PRINTED)))
    truth = Truth(
        q_matrix=q,
        intercept=rng.uniform(*_LOG_SECONDS, size=len(q)),
        loadings=q * rng.uniform(*_SKILL_ADDS, size=q.shape),
        dispersion=np.full(len(q), _NOISE),
        families=("lognormal",) * len(q),
        law=random_law(dag_from_parents(_STAND_IN_PARENTS), rng=rng),
    )
    drawn = simulate(truth, N_STUDENTS, rng=rng, missing=_MISSING)
    return TimssTable(drawn.X, names, truth.families, q, "a simulated stand-in")


def _table(responses: Any, families: str | Mapping[str, str], q: Any, place: Path) -> TimssTable:
    table = read_table(responses)
    if table.n_items % len(_PRINTED):
        raise DataError(
            f"{place} must hold the {len(_PRINTED)} items of booklet 14, got {table.n_items}"
        )
    spec = read_q_matrix(q, table.names, len(SKILLS))
    if isinstance(families, str):
        kinds = (families,) * table.n_items
    else:
        kinds = tuple(families[name] for name in table.names)
    return TimssTable(
        table.values,
        table.names,
        kinds,
        np.asarray(spec.entries, dtype=np.int8),
        f"the folder {place.name}",
    )
