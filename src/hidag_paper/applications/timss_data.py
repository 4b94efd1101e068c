"""TIMSS 2019 response times: the tables, the two Q-matrices, simulated data, and the fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.q_matrix import read_q_matrix
from hidag.data.readers import check_file_exists, read_folder, read_q
from hidag.data.table import read_table
from hidag.estimator import DCRL
from hidag.exceptions import DataError, FileError, Setting, SettingError
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.refit import make_warm_started
from hidag.results import FitResult
from hidag.simulation.designs import random_law
from hidag.simulation.truth import Truth, simulate
from hidag.strategy.moves.optima import loading_similarity
from hidag.structure.graphs import CPDAG, DAG

Notify = Callable[[str], None]

CONTENT = ("Number", "Algebra", "Geometry", "DataProb")
COGNITIVE = ("Knowing", "Applying", "Reasoning")
SKILLS = (*CONTENT, *COGNITIVE)
#: Initials of the content skill and the cognitive skill of each item in the table of the paper; its
#: items 3 and 21 differ from the official sheet.
_PRINTED_INITIALS = (
    "NK NA NA NK AA AK AR AA GR GA GA DA DA NK NK NR NA AK AK AA AA AA GK GR GR GA DA DA DR"
)
_PRINTED = tuple(_PRINTED_INITIALS.split())
#: Files of the two Q-matrices in the folder of the times.
Q_FILES = {"official": "q.csv", "printed": "q_paper_table.csv"}

#: Simulated data: parents of the skills, whose CPDAG is the figure of the paper; ranges of the
#: intercepts and loadings in log seconds; variance; share of missing cells; students.
_PARENTS = ((1, 3), (), (1,), (2,), (3,), (4,), (5,))
_INTERCEPTS, _LOADINGS = (2.5, 4.0), (0.5, 1.2)
_VARIANCE, _MISSING = 0.3, 0.018
N_STUDENTS = 620
SIMULATED = "simulated data"

#: Number of fits in the search for alternative optima, and their few starts, which let them
#: converge to different optima.
N_RIVAL_FITS, _FEW_STARTS = 10, 24
#: Largest difference in log-likelihood from the best fit of an alternative optimum.
RIVAL_WITHIN = 5.0
#: Log-likelihoods that differ by less are the same optimum.
SAME_VALUE = 0.05


def printed_q() -> NDArray[np.int8]:
    """Return the Q-matrix in the table of the paper, shape (29, 7)."""
    q = np.zeros((len(_PRINTED), len(SKILLS)), dtype=np.int8)
    for j, initials in enumerate(_PRINTED):
        q[j, ["NAGD".index(initials[0]), len(CONTENT) + "KAR".index(initials[1])]] = 1
    return q


def printed_graph() -> CPDAG:
    """Return the graph in the figure of the paper."""
    return DAG.from_parents(_PARENTS, SKILLS).to_cpdag()


@dataclass(frozen=True, eq=False)
class TimssTable:
    """Responses and the Q-matrix.

    Attributes
    ----------
    values : ndarray, shape (N, J)
    item_names : tuple of str
    families : tuple of str
    q_matrix : ndarray of int8, shape (J, 7)
    source : str
        Description of the origin.
    """

    values: NDArray[np.float64]
    item_names: tuple[str, ...]
    families: tuple[str, ...]
    q_matrix: NDArray[np.int8]
    source: str

    def log_likelihood(self, result: FitResult) -> float:
        """Return the log-likelihood of a fit as a density of log seconds."""
        times = self.values[:, [f == "lognormal" for f in self.families]]
        return result.log_likelihood + float(np.nansum(np.log(times)))


def input_files(folder: Path) -> list[Path]:
    """Return the files that may be read."""
    places = (folder, folder / "timss2019_rt", *_mixed_folders(folder))
    return [file for place in places if place.is_dir() for file in sorted(place.glob("*.csv"))]


def _mixed_folders(folder: Path) -> tuple[Path, Path]:
    return folder / "timss2019_mixed", folder.resolve().parent / "timss2019_mixed"


def read_times(folder: Path, q: str) -> TimssTable:
    """Read the response times in seconds of 29 items.

    Parameters
    ----------
    folder : Path
        With responses.csv and the Q-matrices, or its parent.
    q : {"official", "printed"}
        q.csv, or q_paper_table.csv; if that file is missing, the table of the paper.
    """
    if q not in Q_FILES:
        raise SettingError(
            "unknown-value",
            "{setting} must be 'official' or 'printed', got {value!r}",
            setting=Setting("q"),
            value=q,
        )
    inside = folder / "timss2019_rt"
    place = inside if inside.is_dir() else folder
    responses, file = read_folder(place).table, place / Q_FILES[q]
    has_file = q == "official" or file.exists()
    matrix = read_q(check_file_exists(file)) if has_file else printed_q()
    table = _make_table(responses, "lognormal", matrix, place)
    if (table.values <= 0).any():
        raise DataError(
            "nonpositive-time", "response times in {place} must be positive seconds", place=place
        )
    return table


def read_accuracy_and_times(folder: Path, q: str) -> TimssTable | None:
    """Read responses (correct or not) and log seconds, 58 columns; None if they are missing.

    Parameters
    ----------
    folder : Path
        As in `read_times`; the table is in timss2019_mixed inside it or beside it.
    q : {"official", "printed"}
        The printed Q applies to both halves.
    """
    place = next((p for p in _mixed_folders(folder) if p.is_dir()), None)
    if place is None:
        return None
    found = read_folder(place)
    if found.q is None or found.types is None:
        raise FileError(
            "missing-file", "the folder {place} must contain q.csv and types.csv", place=place
        )
    matrix = np.vstack([printed_q(), printed_q()]) if q == "printed" else found.q
    return _make_table(found.table, found.types, matrix, place)


def simulate_times(seed: int) -> TimssTable:
    """Simulate times with the printed Q and graph, and missing cells."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2019,)))
    q, names = printed_q(), tuple(f"item {j + 1}" for j in range(len(_PRINTED)))
    truth = Truth(
        q_matrix=q,
        intercept=rng.uniform(*_INTERCEPTS, size=len(q)),
        loadings=q * rng.uniform(*_LOADINGS, size=q.shape),
        dispersion=np.full(len(q), _VARIANCE),
        families=("lognormal",) * len(q),
        law=random_law(DAG.from_parents(_PARENTS), rng=rng),
    )
    drawn = simulate(truth, N_STUDENTS, rng=rng, missing=_MISSING)
    return TimssTable(drawn.X, names, truth.families, q, SIMULATED)


def _make_table(
    responses: Any, families: str | Mapping[str, str], q: Any, place: Path
) -> TimssTable:
    table = read_table(responses)
    if table.n_items % len(_PRINTED):
        raise DataError(
            "item-count",
            "{place} must contain the {expected} items of booklet 14, got {n} items",
            place=place,
            expected=len(_PRINTED),
            n=table.n_items,
        )
    entries = np.asarray(read_q_matrix(q, table.names, len(SKILLS)).entries, dtype=np.int8)
    kinds = tuple(families if isinstance(families, str) else families[n] for n in table.names)
    return TimssTable(table.values, table.names, kinds, entries, f"the folder {place.name}")


def fit_timss(
    table: TimssTable, seed: int, *, law: str = "saturated", n_starts: int | str = "auto"
) -> DCRL:
    """Fit the skills with the Q-matrix of the table."""
    settings = _settings(table, seed) | {"law": law, "n_starts": n_starts}
    model = DCRL(**settings).fit(table.values)
    model.result_ = replace(model.result_, item_names=table.item_names)
    return model


def _settings(table: TimssTable, seed: int) -> dict[str, Any]:
    return {
        "n_latents": len(SKILLS),
        "family": list(table.families),
        "q_matrix": table.q_matrix,
        "latent_names": SKILLS,
        "random_state": seed,
    }


@dataclass(frozen=True)
class Rival:
    """An alternative optimum with nearly the same likelihood.

    Attributes
    ----------
    result : FitResult
    below : float
        Log-likelihood of the best fit minus its own.
    n_fits : int
        Number of fits that converged to it.
    """

    result: FitResult
    below: float
    n_fits: int


@dataclass(frozen=True)
class TimssFits:
    """The fits to response times.

    Attributes
    ----------
    table : TimssTable
    seeds : sequence of int
    by_seed : sequence of FitResult
    best : FitResult
        The highest log-likelihood of them.
    boot : BootstrapResult or None
    rivals : sequence of Rival
        In descending order of log-likelihood.
    """

    table: TimssTable
    seeds: Sequence[int]
    by_seed: Sequence[FitResult]
    best: FitResult
    boot: BootstrapResult | None
    rivals: Sequence[Rival]

    @property
    def n_optimal(self) -> int:
        """How many seeds reach the highest log-likelihood."""
        bound = self.best.log_likelihood - SAME_VALUE
        return sum(fit.log_likelihood >= bound for fit in self.by_seed)


def find_rivals(
    best: FitResult,
    table: TimssTable,
    boot: BootstrapResult | None,
    seed: int,
    notify: Notify,
) -> list[Rival]:
    """Return alternative optima with nearly the likelihood of the best fit, best first.

    Candidates are bootstrap refits with other skills, refitted to all students from where they
    converged; without a bootstrap, fits with few starts.
    """
    groups: list[list[FitResult]] = []
    for found in _candidates(best, table, boot, seed, notify):
        if best.log_likelihood - found.log_likelihood > RIVAL_WITHIN or _same(found, best):
            continue
        group = next((group for group in groups if _same(group[0], found)), None)
        if group is None:
            groups.append([found])
        else:
            group.append(found)
    rivals = []
    for group in groups:
        top = max(group, key=lambda one: one.log_likelihood)
        rivals.append(Rival(top, best.log_likelihood - top.log_likelihood, len(group)))
    return sorted(rivals, key=lambda rival: rival.below)


def _candidates(
    best: FitResult,
    table: TimssTable,
    boot: BootstrapResult | None,
    seed: int,
    notify: Notify,
) -> Iterator[FitResult]:
    """Yield fits to the whole table that may have converged to other optima."""
    if boot is None:
        for index in range(N_RIVAL_FITS):
            notify(f"alternative optima, {index + 1} of {N_RIVAL_FITS}")
            own = int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1)[0])
            yield fit_timss(table, own, n_starts=_FEW_STARTS).result_
        return
    replicates = zip(boot.replicates(best), boot.same_latents, strict=True)
    refits = [refit for refit, same in replicates if not same]
    for index, refit in enumerate(refits):
        notify(f"alternative optima, {index + 1} of {len(refits)}")
        model = make_warm_started(refit, {**_settings(table, seed), "law": "saturated"}).fit(
            table.values
        )
        yield replace(model.result_, item_names=table.item_names)


def _same(one: FitResult, other: FitResult) -> bool:
    return loading_similarity(one.parameters, other.parameters) >= CONFIG.optima.same_optimum_cosine
