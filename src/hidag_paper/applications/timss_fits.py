"""TIMSS: the fits that the page rests on, over seeds, laws and rival explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.q_matrix import read_q_matrix
from hidag.data.readers import existing_file, read_folder, read_q
from hidag.data.table import read_table
from hidag.estimator import DCRL
from hidag.exceptions import DataError, FileError, SettingError
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.refit import begun_at
from hidag.latent.laws import NetworkLaw
from hidag.reporting.fit_description import edges_in_words
from hidag.reporting.sections import Table
from hidag.results import FitResult
from hidag.simulation.generators import dag_from_parents, random_law
from hidag.simulation.truth import Truth, simulate
from hidag.strategy.moves.recombination import SAME_PLACE, loading_similarity
from hidag.structure.graphs import CPDAG

# --- TIMSS 2019 response times: the tables as they lie in a folder, the two Q-matrices, a

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


# ---

#: Starts of the fits that look for rivals: few, so that they end in different places.
_FEW_STARTS = 24
#: Fits that look for rivals, and how far below the best one still is a rival.
N_RIVAL_FITS, RIVAL_WITHIN = 10, 5.0
#: Log-likelihoods that differ by less are the same optimum.
SAME_VALUE = 0.05


def fitted(
    table: TimssTable, seed: int, *, law: str = "saturated", n_starts: int | str = "auto"
) -> DCRL:
    """Return the model with the table's Q fitted to it."""
    model = DCRL(**_settings(table, seed), law=law, n_starts=n_starts).fit(table.values)
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


def log_seconds_likelihood(result: FitResult, table: TimssTable) -> float:
    """Return the log-likelihood as a density of log seconds, where values are easier to read."""
    return result.log_likelihood + table.log_scale


@dataclass(frozen=True)
class Rival:
    """An explanation that fits nearly as well as the best one.

    Attributes
    ----------
    result : FitResult
    below : float
        Units of log-likelihood below the best.
    n_fits : int
        How many of the fits that were looked at ended there.
    """

    result: FitResult
    below: float
    n_fits: int


def over_seeds(
    table: TimssTable, first: FitResult, seeds: Sequence[int], tell: Callable[[str], None]
) -> list[FitResult]:
    """Return the fits from several seeds, the first of which has been fitted already."""
    out = [first]
    for count, seed in enumerate(seeds[1:], start=2):
        tell(f"seed {count} of {len(seeds)}")
        out.append(fitted(table, seed).result_)
    return out


def rivals_of(
    best: FitResult,
    table: TimssTable,
    boot: BootstrapResult | None,
    seed: int,
    tell: Callable[[str], None],
) -> list[Rival]:
    """Return explanations that differ from the best and fit nearly as well, best first.

    Refits to resampled students that measure some skill otherwise are held against all students:
    the model is fitted to the whole table from where they ended. Without refits, fits with few
    starts are looked at, which end in many places.
    """
    groups: list[list[FitResult]] = []
    for found in _elsewhere(best, table, boot, seed, tell):
        if best.log_likelihood - found.log_likelihood > RIVAL_WITHIN or _same(found, best):
            continue
        home = next((group for group in groups if _same(group[0], found)), None)
        if home is None:
            groups.append([found])
        else:
            home.append(found)
    out = []
    for group in groups:
        top = max(group, key=lambda one: one.log_likelihood)
        out.append(Rival(top, best.log_likelihood - top.log_likelihood, len(group)))
    return sorted(out, key=lambda rival: rival.below)


def _elsewhere(
    best: FitResult,
    table: TimssTable,
    boot: BootstrapResult | None,
    seed: int,
    tell: Callable[[str], None],
) -> Iterator[FitResult]:
    """Yield fits to the whole table that may have ended in other places."""
    if boot is None:
        for index in range(N_RIVAL_FITS):
            tell(f"rival explanations, {index + 1} of {N_RIVAL_FITS}")
            own = int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1)[0])
            yield fitted(table, own, n_starts=_FEW_STARTS).result_
        return
    refits = [
        one for one, same in zip(boot.replicates(best), boot.same_latents, strict=True) if not same
    ]
    for index, refit in enumerate(refits):
        tell(f"rival explanations, {index + 1} of {len(refits)}")
        model = begun_at(refit, {**_settings(table, seed), "law": "saturated"}).fit(table.values)
        yield replace(model.result_, item_names=table.item_names)


def _same(one: FitResult, other: FitResult) -> bool:
    return loading_similarity(one.parameters, other.parameters) >= SAME_PLACE


def mark(graph: CPDAG, one: int, other: int) -> str:
    """Return how two latents are joined: '->', '<-', '-' or ''."""
    a = graph.adjacency
    marks = {(0, 0): "", (1, 0): "->", (0, 1): "<-", (1, 1): "-"}
    return marks[int(a[one, other]), int(a[other, one])]


def joined_share(results: Sequence[FitResult]) -> NDArray[np.float64]:
    """Return the share of fits in which two latents are joined, shape (K, K)."""
    found = [(r.graph.adjacency + r.graph.adjacency.T) > 0 for r in results]
    return np.asarray(np.mean(found, axis=0))


# --- TIMSS: the tables and the sentences of the page, all from numbers of this run

#: Shares of refits from which an edge is called stable, and below which it is not settled.
STABLE, UNSETTLED = 0.8, 0.5


def edge_table(best: FitResult, seeds: Sequence[FitResult], boot: BootstrapResult | None) -> Table:
    """Return each edge of the paper's figure or of ours, with how stable it is."""
    theirs, share = printed_graph(), joined_share(seeds)
    rows: list[tuple[object, ...]] = []
    for i, j in combinations(range(len(SKILLS)), 2):
        printed, ours = mark(theirs, i, j), mark(best.graph, i, j)
        if not printed and not ours and (boot is None or boot.adjacent[i, j] < UNSETTLED):
            continue
        row: tuple[object, ...] = (SKILLS[i], SKILLS[j], printed, ours, float(share[i, j]))
        if boot is not None:
            as_printed = _same_mark(boot, i, j, printed) if printed else None
            joined = float(boot.adjacent[i, j])
            row += (joined, as_printed, in_words(joined))
        rows.append(row)
    rows.sort(key=lambda row: (row[2] == "", row[3] == ""))
    header: tuple[str, ...] = ("one", "other", "in the paper", "in our fit", "joined, over seeds")
    if boot is not None:
        header += ("joined, over refits", "marked as in the paper", "in words")
    caption = (
        "Edges of the paper's figure first, then others. -> and <- are arrows from left to right "
        "and from right to left, - an edge without direction."
    )
    return Table("edges", caption, header, tuple(rows), decimals=2)


def _same_mark(boot: BootstrapResult, i: int, j: int, printed: str) -> float:
    forward, backward = boot.directed[i, j], boot.directed[j, i]
    shares = {"->": forward, "<-": backward, "-": boot.adjacent[i, j] - forward - backward}
    return float(shares[printed])


def in_words(share: float) -> str:
    """Return how stable an edge is that so large a share of refits has."""
    if share >= STABLE:
        return "stable"
    return "leaning" if share >= UNSETTLED else "not settled"


def seed_table(table: TimssTable, seeds: Sequence[int], fits: Sequence[FitResult]) -> Table:
    """Return where the fit ended from each seed."""
    best = max(fit.log_likelihood for fit in fits)
    rows = tuple(
        (
            seed,
            log_seconds_likelihood(fit, table),
            fit.log_likelihood >= best - SAME_VALUE,
            len(edges_in_words(fit.graph)),
            "; ".join(edges_in_words(fit.graph)),
        )
        for seed, fit in zip(seeds, fits, strict=True)
    )
    header = ("seed", "log-likelihood", "the best", "edges", "graph")
    return Table("seeds", "The same fit from several seeds.", header, rows)


def law_table(table: TimssTable, fits: dict[str, FitResult]) -> Table:
    """Return what each kind of law gives."""
    rows = tuple(
        (
            words,
            "over a graph" if isinstance(fit.law, NetworkLaw) else "saturated",
            log_seconds_likelihood(fit, table),
            len(edges_in_words(fit.graph)),
            "; ".join(edges_in_words(fit.graph)),
        )
        for words, fit in fits.items()
    )
    return Table(
        "laws",
        "Other laws of the skills, and the other Q-matrix; log-likelihoods of different Q-matrices "
        "and laws have different numbers of parameters behind them.",
        ("asked for", "law kept", "log-likelihood", "edges", "graph"),
        rows,
        decimals=1,
    )


def rival_table(table: TimssTable, best: FitResult, rivals: Sequence[Rival]) -> Table:
    """Return the best explanation and its rivals, with who is slow in each."""
    rows = []
    for words, fit, below in [
        ("best", best, 0.0),
        *((f"rival {n}", rival.result, rival.below) for n, rival in enumerate(rivals, start=1)),
    ]:
        slow = fit.law.marginals()[:, 1]
        rows.append((words, log_seconds_likelihood(fit, table), below, *map(float, slow)))
    return Table(
        "rivals",
        "Explanations within a few units of log-likelihood, and the share of students in the "
        "slower state of each skill.",
        ("explanation", "log-likelihood", "below the best", *SKILLS),
        tuple(rows),
        decimals=2,
    )


def shared_edges(one: FitResult, other: FitResult) -> int:
    """Return how many pairs of skills are joined in both graphs."""
    joined = [(fit.graph.adjacency + fit.graph.adjacency.T) > 0 for fit in (one, other)]
    return int(np.triu(joined[0] & joined[1]).sum())


def findings(
    table: TimssTable,
    best: FitResult,
    seeds: Sequence[FitResult],
    boot: BootstrapResult | None,
    rivals: Sequence[Rival],
) -> tuple[str, ...]:
    """Return what was found, most important first."""
    theirs, out = printed_graph(), []
    pairs = list(combinations(range(len(SKILLS)), 2))
    printed = [(i, j) for i, j in pairs if mark(theirs, i, j)]
    ours = [(i, j) for i, j in pairs if mark(best.graph, i, j)]
    common = [pair for pair in printed if pair in ours]
    alike = [pair for pair in common if mark(theirs, *pair) == mark(best.graph, *pair)]
    extra = len(ours) - len(common)
    out.append(
        f"Of the {len(printed)} edges of the paper's figure {len(common)} are in our graph, "
        f"{len(alike)} of them with the same direction or lack of one; our graph has "
        f"{extra or 'no'} other edge{'' if extra == 1 else 's'}."
    )
    top = max(fit.log_likelihood for fit in seeds)
    reached = sum(fit.log_likelihood >= top - SAME_VALUE for fit in seeds)
    out.append(
        f"{reached} of {len(seeds)} seeds reach the highest log-likelihood that was seen, "
        f"{top + table.log_scale:,.2f} as a density of log seconds."
    )
    if boot is not None:
        stable = [(i, j) for i, j in pairs if boot.adjacent[i, j] >= STABLE]
        named = ", ".join(f"{SKILLS[i]} and {SKILLS[j]}" for i, j in stable)
        out.append(
            f"When the students are drawn again, {boot.n_refits} times, {len(stable)} pairs of "
            f"skills are joined in at least {STABLE:.0%} of the refits{': ' if stable else ''}"
            f"{named}; all skills are measured in the same way as in the fit in "
            f"{boot.same_latents.mean():.0%} of the refits."
        )
    if rivals:
        near = rivals[0]
        out.append(
            f"Another explanation of the times is {near.below:.2f} units of log-likelihood below "
            f"the best one, has {len(edges_in_words(near.result.graph))} edges and shares "
            f"{shared_edges(best, near.result)} of them with it."
        )
    return tuple(out)


def what_can_be_told(
    table: TimssTable, best: FitResult, boot: BootstrapResult | None, rivals: Sequence[Rival]
) -> tuple[str, ...]:
    """Return paragraphs on what these data can tell and what they cannot."""
    states = int((best.law.probabilities * best.n_samples >= 0.5).sum())
    n_states = best.law.space.n_states
    out = [
        f"{best.n_samples} students are few for {len(SKILLS)} skills: they have {n_states} joint "
        f"states, and only {states} of them have an expected count of half a student or more. Each "
        "item needs one content skill and one cognitive skill, so that what the two do can be "
        "shifted from the one to the other at little cost.",
        "A skill's upper state means longer times. It need not mean more skill: a student who "
        "hurries through the screens is in the lower state of everything.",
        "Lines without an arrow have no direction that data of this kind could show, however many "
        "students there were. Arrows follow from the pattern of independences, and are the first "
        "to change when an edge does.",
    ]
    if boot is not None:
        weak = sum(
            1
            for i, j in combinations(range(len(SKILLS)), 2)
            if mark(best.graph, i, j) and boot.adjacent[i, j] < STABLE
        )
        out.append(
            f"{weak} of the {len(edges_in_words(best.graph))} edges of the fit are missing in more "
            f"than {1 - STABLE:.0%} of the refits: those are suggestions, not findings. Refits "
            "that measure a skill otherwise are counted like all others."
        )
    if rivals and rivals[0].below < 3.0:
        out.append(
            f"A difference of {rivals[0].below:.2f} units of log-likelihood is no evidence between "
            "two explanations. The table of rivals says in which skills they differ; the choice "
            "between them needs other data, or knowledge from outside."
        )
    return tuple(out)
