"""Results on disk: zip files of arrays with a JSON header. Nothing is pickled."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.rows import MissingnessPatterns
from hidag.exceptions import Advice, FileError
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters, Responses
from hidag.measurement.terms import Terms
from hidag.results.fit_result import FitResult
from hidag.strategy.observed_likelihood.edge_tests import EdgeTest, KnowledgeCost
from hidag.strategy.problem import StartRecord
from hidag.structure.graphs import CPDAG

Arrays = dict[str, NDArray[Any]]

FORMAT_VERSION = 1  # Raised when the layout of saved files changes.
FIT_FILE = "result.npz"  # Name of a saved fit in the folder that ``hidag fit --out`` writes.
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
)  # fmt: skip


def write_result(result: FitResult, path: Path) -> Path:
    """Write a result to one file and return its path."""
    facts = {name: getattr(result, name) for name in _FACTS}
    facts["knowledge_cost"] = {part: asdict(c) for part, c in result.knowledge_cost.items()}
    header: dict[str, Any] = {
        **{name: getattr(result, name) for name in _PLAIN},
        "levels": result.law.space.levels,
        "interactions": result.terms.interactions,
        "linear": result.terms.linear,
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
    """
    place = Path(path)
    header, arrays = read_archive(place / FIT_FILE if place.is_dir() else place)
    space = StateSpace(tuple(header["levels"]))
    families = tuple(header.pop("families"))
    responses = Responses.of(families)
    facts = header["facts"]
    costs = facts.pop("knowledge_cost")
    interactions = tuple(tuple((int(k), int(u)) for k, u in own) for own in header["interactions"])
    law: LatentLaw
    if "law_parents" in header:
        tables = tuple(arrays[f"law_table_{k}"] for k in range(space.n_latents))
        law = NetworkLaw(space, tuple(map(tuple, header["law_parents"])), tables)
    else:
        law = SaturatedLaw(space, arrays["law_probabilities"])
    seen = None
    if "seen_bits" in arrays:
        bits, counted, squares = (arrays[f"seen_{part}"] for part in ("bits", "counted", "squares"))
        seen = MissingnessPatterns(bits, len(header["item_names"]), counted, squares)
    return FitResult(
        **{name: _plain(header[name]) for name in _PLAIN if name != "families"},
        **{name: _plain(value) for name, value in facts.items()},
        item_families=() if responses.plain else families,
        parameters=MeasurementParameters(
            responses.families,
            arrays["intercept"],
            arrays["loadings"],
            arrays["dispersion"],
            Terms(space.levels, interactions, tuple(header.get("linear", ()))),
            arrays["cutpoints"],
        ),
        law=law,
        graph=CPDAG(arrays["graph"], tuple(header["latent_names"])),
        q_given=arrays["q_given"] if header["has_q"] else None,
        trace=arrays["trace"],
        starts=tuple(
            StartRecord(**{name: _plain(value) for name, value in record.items()})
            for record in header["starts"]
        ),
        edge_tests=tuple(
            EdgeTest(**{**test, "pair": tuple(test["pair"])}) for test in header["edge_tests"]
        ),
        settings=header["settings"],
        versions=header["versions"],
        seen_rows=seen,
        edge_probabilities=arrays.get("edge_probabilities", np.zeros((0, 0))),
        knowledge_cost={
            part: KnowledgeCost(**{**cost, "pairs": tuple(map(tuple, cost["pairs"]))})
            for part, cost in costs.items()
        },
    )


def _plain(value: Any) -> Any:
    """Return a value of the header: null stands for NaN, lists are tuples."""
    return float("nan") if value is None else tuple(value) if isinstance(value, list) else value


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
    try:
        with path.open("wb") as stream:
            np.savez_compressed(stream, **contents)
    except OSError as error:
        problem = "cannot write the result to '{path}': {reason}"
        params = {"path": path, "reason": error.strerror or error}
        raise FileError("result-not-written", problem, params) from error


def read_archive(path: Path, *, holds: str = "fit") -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file that `write_archive` wrote."""
    if not path.exists():
        writer = "result_.save(path)" if holds == "fit" else f"a {holds}'s save(path)"
        text = "no result at '{path}': expected a file written by {writer}"
        raise FileError("result-not-found", text, {"path": path, "writer": writer})
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header: dict[str, Any] = json.loads(arrays.pop("header").tobytes().decode("utf-8"))
        if header["format"] != f"hidag-{holds}" or int(header["format_version"]) < 1:
            raise KeyError("format")
        # Checksums of a zip file do not cover the names.
        if header.pop("arrays") != list(arrays):
            raise KeyError("arrays")
    except Exception as error:  # A damaged file can fail in any way a reader knows.
        text = "'{path}' is not a saved hidag {holds}, or it is truncated"
        params = {"path": path, "holds": holds}
        raise FileError("result-damaged", text, params, advice="save it again") from error
    if header["format_version"] > FORMAT_VERSION:
        raise FileError(
            "result-too-new",
            "'{path}' was written by a newer hidag (format {found}, this one reads up to {known})",
            {"path": path, "found": header["format_version"], "known": FORMAT_VERSION},
            advice=Advice("upgrade", "upgrade hidag to read it"),
        )
    return header, arrays


def without_nan(value: Any) -> Any:
    """Return a value with null in place of numbers that are not finite: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
