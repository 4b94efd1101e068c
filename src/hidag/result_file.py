"""A FitResult on disk: arrays and a JSON header in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.archive import number, read_archive, write_archive
from hidag.discover import CPDAG
from hidag.evidence import EdgeTest
from hidag.latent import LatentLaw, NetworkLaw, SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters, Responses, Terms
from hidag.seen_rows import SeenRows
from hidag.start.records import StartRecord

if TYPE_CHECKING:
    from hidag.result import FitResult


def write_result(result: FitResult, path: Path) -> Path:
    """Write a result to one file (a zip of arrays with a JSON header) and return its path."""
    header: dict[str, Any] = {
        "item_names": result.item_names,
        "latent_names": result.latent_names,
        "families": result.families,
        "levels": result.law.space.levels,
        "interactions": result.terms.interactions,
        "log_likelihood": result.log_likelihood,
        "objective": result.objective,
        "n_samples": result.n_samples,
        "missing_share": result.missing_share,
        "n_iter": result.n_iter,
        "converged": result.converged,
        "method": result.method,
        "starts": [vars(record) for record in result.starts],
        "n_reached": result.n_reached,
        "graph_rows": result.graph_rows,
        "information_ratio": result.information_ratio,
        "edge_tests": [vars(test) for test in result.edge_tests],
        "family_reasons": result.family_reasons,
        "settings": dict(result.settings),
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


def read_fields(path: Path) -> dict[str, Any]:
    """Return the fields of the result that :func:`write_result` wrote, by name."""
    header, arrays = read_archive(path)
    space = StateSpace(tuple(header["levels"]))
    latent_names = tuple(header["latent_names"])
    families = tuple(header["families"])
    return dict(
        item_names=tuple(header["item_names"]),
        latent_names=latent_names,
        item_families=() if Responses.of(families).plain else families,
        parameters=_parameters(space, families, header, arrays),
        law=_law(space, header, arrays),
        graph=CPDAG(arrays["graph"], latent_names),
        q_given=arrays["q_given"] if header["has_q"] else None,
        log_likelihood=number(header["log_likelihood"]),
        objective=number(header["objective"]),
        n_samples=header["n_samples"],
        missing_share=header["missing_share"],
        n_iter=header["n_iter"],
        converged=header["converged"],
        method=header["method"],
        trace=arrays["trace"],
        starts=tuple(_start(record) for record in header["starts"]),
        n_reached=header["n_reached"],
        graph_rows=header["graph_rows"],
        information_ratio=header["information_ratio"],
        edge_tests=tuple(
            EdgeTest(**{**test, "pair": tuple(test["pair"])}) for test in header["edge_tests"]
        ),
        family_reasons=tuple(header["family_reasons"]),
        settings=header["settings"],
        versions=header["versions"],
        seen_rows=_seen_rows(len(header["item_names"]), arrays),
    )


def _parameters(
    space: StateSpace,
    families: tuple[str, ...],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> MeasurementParameters:
    """Return the items' coefficients, with rows for each response of nominal items."""
    interactions = tuple(
        tuple((int(k), int(u)) for k, u in pairs) for pairs in header.get("interactions", ())
    )
    return MeasurementParameters(
        Responses.of(families).families,
        arrays["intercept"],
        arrays["loadings"],
        arrays["dispersion"],
        Terms(space.levels, interactions),
        arrays.get("cutpoints", np.zeros((len(arrays["intercept"]), 0))),
    )


def _law(
    space: StateSpace, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> LatentLaw:
    """Return the law over a graph where the header has one, else the saturated one."""
    if "law_parents" not in header:
        return SaturatedLaw(space, arrays["law_probabilities"])
    parents = tuple(tuple(pa) for pa in header["law_parents"])
    tables = tuple(arrays[f"law_table_{k}"] for k in range(space.n_latents))
    return NetworkLaw(space, parents, tables)


def _seen_rows(n_items: int, arrays: Mapping[str, NDArray[Any]]) -> SeenRows | None:
    """Return which cells rows had; None in files of versions that did not keep it."""
    if "seen_bits" not in arrays:
        return None
    counts = arrays["seen_counted"], arrays["seen_squares"]
    return SeenRows(arrays["seen_bits"], n_items, *counts)


def _start(record: Mapping[str, Any]) -> StartRecord:
    values = {name: number(record[name]) for name in ("objective", "log_likelihood")}
    return StartRecord(**{**record, **values})
