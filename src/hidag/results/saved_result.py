"""Results on disk: zip files of arrays with a JSON header. Nothing is pickled."""

from __future__ import annotations

import json
import math
import platform
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hidag.data.rows import MissingnessPatterns
from hidag.exceptions import Advice, FileError
from hidag.files import complete_folder, describe_damage, read_json, write_file
from hidag.files.schema import (
    Numbers,
    check_arrays,
    check_distinct,
    check_sizes,
    read_as,
    read_fields,
)
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters, Responses
from hidag.measurement.terms import Effects, Interaction, Terms
from hidag.results.fit_result import FitResult
from hidag.results.nuisance_factor import NuisanceFactor
from hidag.strategy.observed_likelihood.edge_tests import EdgeTest
from hidag.strategy.problem import StartRecord
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import Knowledge

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")

FORMAT_VERSION = 1  # Raised when the layout of saved files changes.
_PACKAGES = ("hidag", "numpy", "scipy", "numba", "scikit-learn", "networkx")
FIT_FILE = "result.npz"  # Name of a saved fit in the folder that ``hidag fit --out`` writes.
#: What the arrays of a fit hold: J items with R responses, K latents, T terms.
_ARRAYS = {
    "intercept": Numbers("f", "R"), "loadings": Numbers("f", "RT"),
    "dispersion": Numbers("f", "R", 0, missing=True), "cutpoints": Numbers("f", "RC", missing=True),
    "trace": Numbers("f", "n2", missing=True), "graph": Numbers("i", "KK", 0, 1),
    "edge_probabilities": Numbers("f", "KK", 0, 1 + 1e-9, missing=True),
    "q_given": Numbers("i", "JK", -1, 1), "law_probabilities": Numbers("f", "S", 0, 1 + 1e-9),
    "seen_bits": Numbers("u", "M8"), "seen_counted": Numbers("f", "M", 0),
    "seen_squares": Numbers("f", "M", 0),
}  # fmt: skip
#: Fields of a result that the header holds as they are.
_PLAIN = (
    "item_names", "latent_names", "families", "log_likelihood", "objective", "n_samples",
    "missing_share", "n_iter", "converged", "method", "n_reached", "graph_rows",
    "information_ratio", "family_reasons",
)  # fmt: skip
#: Facts about a fit, other than its estimates and settings.
_FACTS = (
    "seed", "penalty_strength_used", "penalty_threshold_used", "weighted", "n_counted",
    "n_unanswered", "n_latents_reason", "overdispersed", "noiseless", "interacting",
    "knowledge_cost", "graph_by_likelihood", "answer_words", "reading", "uncertainty_note",
    "levels_reason",
    "findings", "checks_note", "rival_gap",
)  # fmt: skip


def write_result(result: FitResult, path: Path) -> Path:
    """Write a result to one file and return its path."""
    facts = {name: getattr(result, name) for name in _FACTS}
    facts["findings"] = [asdict(one) for one in result.findings]
    facts["knowledge_cost"] = {part: asdict(c) for part, c in result.knowledge_cost.items()}
    header: dict[str, Any] = {
        **{name: getattr(result, name) for name in _PLAIN},
        "levels": result.law.space.levels,
        "interactions": result.terms.interactions,
        "linear": result.terms.linear,
        "nuisance": [(one.name, one.n_levels) for one in result.nuisance],
        "starts": [vars(record) for record in result.starts],
        "edge_tests": [vars(test) for test in result.edge_tests],
        "settings": dict(result.settings),
        "facts": facts,
        "versions": dict(result.versions),
        "has_q": result.q_given is not None,
    }
    arrays: dict[str, NDArray[Any]] = {
        "intercept": result.intercept,
        "loadings": result.loadings,
        "dispersion": result.parameters.dispersion,
        "cutpoints": result.parameters.cutpoints,
        "trace": result.trace,
        "graph": np.asarray(result.graph.adjacency),
        "edge_probabilities": result.edge_probabilities,
    }
    for k, one in enumerate(result.nuisance):
        arrays[f"nuisance_{k}"] = one.loadings
    if result.q_given is not None:
        arrays["q_given"] = result.q_given
    if result.seen_rows is not None:
        arrays["seen_bits"] = result.seen_rows.bits
        arrays["seen_counted"] = result.seen_rows.counted
        arrays["seen_squares"] = result.seen_rows.squares
    if isinstance(result.law, NetworkLaw):
        header["law_parents"] = result.law.parents
        for k, table in enumerate(result.law.tables):
            arrays[f"law_table_{k}"] = table
    else:
        arrays["law_probabilities"] = np.asarray(result.law.probabilities)
    write_archive(path, header, arrays)
    return path


def load(path: str | Path) -> FitResult:
    """Return the FitResult that ``FitResult.save`` or ``hidag fit`` wrote.

    Parameters
    ----------
    path : str or Path
        The file, or the folder that ``hidag fit --out`` wrote.

    Returns
    -------
    FitResult

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hidag.load(model.result_.save(pathlib.Path(folder) / "fit.npz"))
    FitResult(3 latents, 15 items, 800 rows)
    """
    place = Path(path)
    if place.is_dir():
        complete_folder(place)
        place = place / FIT_FILE
    return read_archive(place, _fit_of)


def _fit_of(header: dict[str, Any], arrays: Arrays) -> FitResult:
    """Return the fit of a header and arrays, after checks of both."""
    plain = {name: header[name] for name in _PLAIN if name != "families"}
    plain = read_fields(plain, FitResult, "the header", tuple(plain))
    facts = read_fields(header["facts"], FitResult, "facts", _FACTS)
    items, latents = plain["item_names"], plain["latent_names"]
    families = read_as(header["families"], tuple[str, ...], "families")
    check_distinct((*items, *latents), "names of items and latents")
    levels = read_as(header["levels"], tuple[int, ...], "levels")
    interactions = read_as(header["interactions"], tuple[Interaction, ...], "interactions")
    parents = read_as(header.get("law_parents"), tuple[tuple[int, ...], ...] | None, "law_parents")
    linear = read_as(header["linear"], tuple[int, ...], "linear")
    if not {k for own in interactions for k, _ in own} | {*linear} <= {*range(len(levels))}:
        raise ValueError("interactions or linear terms are not of the latents")
    space, terms = StateSpace(levels), Terms(levels, interactions, linear)
    responses = Responses.of(families)
    sizes = {"J": len(items), "K": len(latents), "R": len(responses.item), "T": terms.n_terms}
    sizes |= {"2": 2, "8": (len(items) + 7) // 8}
    if (len(families), len(levels), plain["n_samples"] >= 0) != (len(items), len(latents), True):
        raise ValueError("families, levels or the number of rows are wrong")
    tables: list[NDArray[Any]] = []
    if parents is not None:
        if not all(0 <= a < len(levels) for own in parents for a in own):
            raise ValueError("parents are not latents")
        tables = [arrays.pop(f"law_table_{k}") for k in range(len(levels))]
    named = read_as(header["nuisance"], tuple[tuple[str, int], ...], "nuisance")
    factors = tuple(
        NuisanceFactor(name, arrays.pop(f"nuisance_{k}"), m) for k, (name, m) in enumerate(named)
    )
    if not all(one.loadings.shape == (sizes["R"],) and one.n_levels > 1 for one in factors):
        raise ValueError("nuisances must have a loading for each response, and two levels or more")
    check_arrays(arrays, _ARRAYS, sizes)
    law: LatentLaw
    if parents is None:
        law = SaturatedLaw(space, arrays["law_probabilities"])
    else:
        law = NetworkLaw(space, parents, tuple(tables))
    seen = None
    if "seen_bits" in arrays:
        bits, counted, squares = (arrays[f"seen_{part}"] for part in ("bits", "counted", "squares"))
        seen = MissingnessPatterns(bits, len(items), counted, squares)
    settings = read_as(header["settings"], Mapping[str, Any], "settings")
    Effects.of(settings.get("effects", "main"))
    if not 0.5 < read_as(settings.get("claim_level", 1.0), float, "settings.claim_level") <= 1:
        raise ValueError("settings.claim_level must be a probability above .5")
    known = settings.get("knowledge")
    if isinstance(known, Mapping) and "not stored" not in known:
        Knowledge.from_dict(known).constraints(latents)
    own = {name: arrays[name] for name in ("intercept", "loadings", "dispersion", "cutpoints")}
    parameters = MeasurementParameters(responses.families, **own, terms=terms)
    needed = np.array([family_named(name).has_dispersion for name in responses.families])
    if not (arrays["dispersion"][needed] > 0).all():
        raise ValueError("dispersion must be above 0")
    return FitResult(
        **plain,
        **facts,
        item_families=() if responses.plain else families,
        parameters=parameters,
        law=law,
        graph=CPDAG(arrays["graph"], latents),
        q_given=arrays["q_given"] if header["has_q"] else None,
        nuisance=factors,
        trace=arrays["trace"],
        starts=read_as(header["starts"], tuple[StartRecord, ...], "starts"),
        edge_tests=read_as(header["edge_tests"], tuple[EdgeTest, ...], "edge_tests"),
        settings=settings,
        versions=read_as(header["versions"], Mapping[str, str], "versions"),
        seen_rows=seen,
        edge_probabilities=arrays["edge_probabilities"],
    )


def write_archive(
    path: Path, header: Mapping[str, Any], arrays: Arrays, *, holds: str = "fit"
) -> None:
    """Write a zip file of arrays and a JSON header, NaN as null; ``holds`` names the contents."""
    about = {"format": f"hidag-{holds}", "format_version": FORMAT_VERSION, "arrays": list(arrays)}
    full = {**about, **header}
    text = json.dumps(without_nan(full), ensure_ascii=False, allow_nan=False).encode("utf-8")
    # numpy before 2 takes `allow_pickle` as one more array to save, so the check is made here.
    pickled = [name for name, array in arrays.items() if np.asarray(array).dtype.hasobject]
    if pickled:
        raise ValueError(f"arrays of objects would have to be pickled: {', '.join(pickled)}")
    contents: dict[str, Any] = {"header": np.frombuffer(text, dtype=np.uint8), **arrays}

    def write(part: Path) -> None:
        with part.open("wb") as stream:
            np.savez_compressed(stream, **contents)

    write_file(path, write)


def read_archive(
    path: Path, build: Callable[[dict[str, Any], Arrays], T], *, holds: str = "fit"
) -> T:
    """Return what ``build`` makes of the header and the arrays that `write_archive` wrote.

    Whatever is wrong with the file or refused by ``build`` is one error.
    """
    if not path.exists():
        writer = "result_.save(path)" if holds == "fit" else f"a {holds}'s save(path)"
        text = "no result at '{path}': expected a file written by {writer}"
        raise FileError("result-not-found", text, {"path": path, "writer": writer})
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no zip archive")
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            check_sizes(stored.zip)
            arrays = {name: stored[name] for name in stored.files}
        header: dict[str, Any] = read_json(arrays.pop("header").tobytes())
        if header.pop("format") != f"hidag-{holds}":
            raise ValueError(f"it holds no {holds}")
        version = read_as(header.pop("format_version"), int, "format_version")
        # Checksums of a zip file do not cover the names.
        if header.pop("arrays") != list(arrays):
            raise ValueError("names of arrays are damaged")
        if 1 <= version <= FORMAT_VERSION:
            return build(header, arrays)
        if version < 1:
            raise ValueError("unknown format")
    except Exception as error:  # A damaged file can fail in any way a reader knows.
        text = "'{path}' is not a saved hidag {holds}, or it is truncated or damaged ({reason})"
        params = {"path": path, "holds": holds, "reason": describe_damage(error)}
        raise FileError("result-damaged", text, params, advice="save it again") from error
    raise FileError(
        "result-too-new",
        "'{path}' was written by a newer hidag (format {found}, this one reads up to {known})",
        {"path": path, "found": version, "known": FORMAT_VERSION},
        advice=Advice("upgrade", "upgrade hidag to read it"),
    )


def without_nan(value: Any) -> Any:
    """Return a value with null in place of numbers that are not finite: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions_used() -> dict[str, str]:
    """Return the versions of hidag, Python and the numerical packages."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


@cache  # Reading package metadata takes milliseconds, and every fit asks for it.
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
