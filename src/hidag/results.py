"""FitResult: everything a reader of a fit needs."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.missingness_patterns import SeenRows
from hidag.data.value_checks import read_known_items
from hidag.exceptions import FileError, SettingError
from hidag.identifiability.certificate import Certificate
from hidag.identifiability.fit_certificate import certify_q_matrix, certify_result
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.responses import Responses
from hidag.measurement.terms import Terms
from hidag.network_em.row_posteriors import (
    by_level,
    most_probable_levels,
    probabilities_above_zero,
    row_log_densities,
)
from hidag.strategy.multistart import StartRecord
from hidag.strategy.observed_likelihood.edge_tests import EdgeTest
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import Knowledge

# --- Which versions a result was made with

_PACKAGES = ("hidag", "numpy", "scipy", "numba", "scikit-learn", "networkx")


def versions_used() -> dict[str, str]:
    """Return the versions of hidag, Python and the numerical packages."""
    return {"python": platform.python_version(), **{name: _of(name) for name in _PACKAGES}}


# Every fit asks, and the packages' files take milliseconds to read.
@cache
def _of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


# --- One file for arrays and a JSON header: what saved fits are made of. No pickle anywhere

Arrays = dict[str, NDArray[Any]]

#: Raised when the layout of saved files changes.
FORMAT_VERSION = 1


def write_archive(
    path: Path, header: Mapping[str, Any], arrays: Arrays, *, holds: str = "fit"
) -> None:
    """Write a zip of arrays with a header that JSON can hold; NaN and infinity become null.

    ``holds`` says in a word what is saved; it must be said again to read it.
    """
    about = {"format": f"hidag-{holds}", "format_version": FORMAT_VERSION, "arrays": list(arrays)}
    full = {**about, **header}
    text = json.dumps(without_nan(full), ensure_ascii=False, allow_nan=False).encode("utf-8")
    # Not left to `allow_pickle`: older numpys take that for one more array to save.
    pickled = [name for name, array in arrays.items() if np.asarray(array).dtype.hasobject]
    if pickled:
        raise ValueError(f"arrays of objects would have to be pickled: {', '.join(pickled)}")
    contents: dict[str, Any] = {"header": np.frombuffer(text, dtype=np.uint8), **arrays}
    try:
        with path.open("wb") as stream:
            np.savez_compressed(stream, **contents)
    except OSError as error:
        raise FileError(
            f"cannot write the result to '{path}': {error.strerror or error}"
        ) from error


def read_archive(path: Path, *, holds: str = "fit") -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file that `write_archive` wrote."""
    if not path.exists():
        saver = "result_.save(path)" if holds == "fit" else f"a {holds}'s save(path)"
        raise FileError(f"no result at '{path}': expected a file written by {saver}")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header: dict[str, Any] = json.loads(arrays.pop("header").tobytes().decode("utf-8"))
        if header["format"] != f"hidag-{holds}" or int(header["format_version"]) < 1:
            raise KeyError("format")
        # Earlier files have no list. Names lie outside of what a zip checks.
        if header.pop("arrays", list(arrays)) != list(arrays):
            raise KeyError("arrays")
    except Exception as error:  # a damaged file can fail in any way a reader knows
        raise FileError(
            f"'{path}' is not a saved hidag {holds}, or it is truncated; save it again"
        ) from error
    if header["format_version"] > FORMAT_VERSION:
        raise FileError(
            f"'{path}' was written by a newer hidag (format {header['format_version']}, this one "
            f"reads up to {FORMAT_VERSION}); upgrade hidag to read it"
        )
    return header, arrays


def number(value: float | None) -> float:
    """Return a number of a header, NaN for null."""
    return float("nan") if value is None else value


def without_nan(value: Any) -> Any:
    """Return a value with null for numbers that are none: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- A FitResult on disk: arrays and a JSON header in one file


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


# ---

Array = NDArray[np.float64]

#: Name of a saved fit in the folder of a fit.
FIT_FILE = "result.npz"
#: Under which settings keep the words of items whose answers stood in words.
ANSWER_WORDS = "answer_words"


@dataclass(frozen=True)
class FitResult:
    """A fitted model, frozen.

    Attributes
    ----------
    item_names, latent_names : tuple of str
    parameters : MeasurementParameters
    law : LatentLaw
    graph : CPDAG
    q_given : ndarray of int8, shape (J, K), or None
        The Q the fit was given: 1, 0, or -1 where it was to be estimated.
    log_likelihood, objective : float
        Of the observed data under ``law``, and less the penalty; NaN when the latents were sampled
        and their joint states are too many to sum over.
    n_samples : int
        Rows of the table, also those that count for nothing; see ``n_counted``.
    missing_share : float
        Of the cells in the rows that count.
    n_iter, converged, method : int, bool, str
    trace : ndarray, shape (n_iter, 2)
        Objective and largest coefficient move per step.
    starts : tuple of StartRecord
        Their objectives are under the penalty that estimation began with; the final choice of
        loadings may have been made under another (``settings["penalty_strength_used"]``). They
        are on ``n_rows`` rows; starts under a law over a graph are compared by them less the price
        of the law's parameters.
    n_reached : int
        How many starts came as high as the best.
    graph_rows : float
        Number of rows the graph's score counted on.
    information_ratio : float
        Share of the latents' pairwise information that the items carry.
    edge_tests : tuple of EdgeTest
        What the observed data said about the weakest edges.
    family_reasons : tuple of str
    settings, versions : mapping
    item_families : tuple of str
        Families of the items where some are nominal, so that ``parameters`` has several rows for
        them; empty else.
    seen_rows : SeenRows or None
        Which cells rows had and how much they counted; None in files without it.
    """

    item_names: tuple[str, ...]
    latent_names: tuple[str, ...]
    parameters: MeasurementParameters
    law: LatentLaw
    graph: CPDAG
    q_given: NDArray[np.int8] | None
    log_likelihood: float
    objective: float
    n_samples: int
    missing_share: float
    n_iter: int
    converged: bool
    method: str
    trace: Array
    starts: tuple[StartRecord, ...]
    n_reached: int
    graph_rows: float
    information_ratio: float
    edge_tests: tuple[EdgeTest, ...]
    family_reasons: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    item_families: tuple[str, ...] = ()
    seen_rows: SeenRows | None = None

    @cached_property
    def identifiability(self) -> Certificate:
        """What this Q lets be identified, condition by condition (print it)."""
        return certify_q_matrix(self)

    def certify(self, *, information: bool = True) -> Certificate:
        """Return the certificate of the fitted coefficients and law too, not of Q alone.

        Monotone items, positive law, states that look alike; with ``information`` also the rank of
        the Fisher information and the directions that are flat, up to 2^13 joint states; beyond,
        states are compared item by item only.
        """
        return certify_result(self, information=information)

    @property
    def all_starts_stopped(self) -> bool:
        """Whether ``max_iter`` ended every start before it settled, so that none could win."""
        most = self.settings.get("max_iter")
        return (
            isinstance(most, int)
            and bool(self.starts)
            and not any(one.converged or one.n_iter < most for one in self.starts)
        )

    @property
    def n_finished(self) -> int:
        """How many starts were run to the end; the others were given up after a rough look."""
        return max(self.n_reached, sum(record.converged for record in self.starts))

    @property
    def q_matrix(self) -> NDArray[np.int8]:
        """Which latent drives which item, shape (J, K)."""
        if self.q_given is not None and (self.q_given >= 0).all():
            return self.q_given.copy()
        return np.asarray(self.responses.any_response(self.parameters.support), dtype=np.int8)

    @cached_property
    def responses(self) -> Responses:
        """Which rows of coefficients belong to which item: several for nominal items only."""
        return Responses.of(self.families)

    @property
    def response_names(self) -> tuple[str, ...]:
        """What rows of coefficients are about: the items, nominal ones category by category."""
        return self.responses.names(self.item_names, self.answer_words)

    @property
    def answer_words(self) -> Mapping[str, Sequence[str]]:
        """Words of items whose answers stood in words: the first of an item's stands for 0."""
        return dict(self.settings.get(ANSWER_WORDS, {}))

    @property
    def intercept(self) -> Array:
        """Intercepts, shape (J,); nominal items have one for each category but the last."""
        return self.parameters.intercept

    @property
    def loadings(self) -> Array:
        """Loadings on the terms, shape (J, T); (J, K) for main effects of binary latents.

        Nominal items have a row for each category but the last, as ``response_names`` says.
        """
        return self.parameters.loadings

    @property
    def terms(self) -> Terms:
        """What the loadings multiply."""
        return self.parameters.terms

    @property
    def strengths(self) -> Array:
        """How strongly each latent drives each item over all its levels, shape (J, K).

        Of a nominal item's categories, the one that is driven most. See ``response_strengths``.
        """
        return self.responses.largest(self.response_strengths)

    @property
    def response_strengths(self) -> Array:
        """How strongly each latent drives each response over all its levels, shape (R, K).

        With interactions the average over patterns of the other latents; where prerequisites rule
        states out, over those that can occur (:meth:`Terms.strengths_among`).
        """
        if self.ruled_out is None:
            return self.parameters.strengths
        states = self.law.space.states()[~self.ruled_out]
        return self.terms.strengths_among(self.loadings, states)

    @property
    def dispersion(self) -> Array:
        """The number that items have besides their predictor, NaN where they have none, (J,).

        The variance of Gaussian and lognormal items, and what else a family calls its dispersion.
        """
        known = [family_named(name).has_dispersion for name in self.parameters.families]
        return np.where(known, self.parameters.dispersion, np.nan)[self.responses.starts]

    @property
    def cutpoints(self) -> Array:
        """Cutpoints of ordered grades beyond the first, NaN where there are fewer, (J, C)."""
        return self.parameters.cutpoints[self.responses.starts]

    @property
    def has_prerequisites(self) -> bool:
        """Whether some latents were told to be prerequisites of others."""
        told = self.settings.get("knowledge")
        return isinstance(told, Mapping) and bool(told.get("hierarchy"))

    @cached_property
    def ruled_out(self) -> NDArray[np.bool_] | None:
        """Joint states that prerequisites rule out, shape (S,); None where all may occur."""
        if not self.has_prerequisites:
            return None
        known = Knowledge.from_dict({"hierarchy": self.settings["knowledge"]["hierarchy"]})
        return ~known.possible_states(self.latent_names, self.law.space.levels).ravel()

    @property
    def n_counted(self) -> float:
        """Rows that the fit counted on, or the sum of their weights; NaN in files without it."""
        known = np.nan if self.settings.get("weighted") else self.n_samples
        return float(self.settings.get("n_counted", known))

    @property
    def latent_law(self) -> LatentLaw:
        """The latents' joint law."""
        return self.law

    @property
    def families(self) -> tuple[str, ...]:
        """Response family of each item."""
        return self.item_families or self.parameters.families

    @property
    def _seed(self) -> int:
        return int(self.settings.get("seed", 0))

    def rows(self, X: Any) -> Array:
        """Return the values of the fit's items in a table, in the fit's order, shape (N, J).

        X is whatever can be fitted. A frame's columns are found by the items' names, in any order,
        and others are left out; an array has one column per item. NaN cells are missing.
        """
        return read_known_items(X, self.item_names, self.families).values

    def _expanded(self, X: Any) -> Array:
        """Return the rows of a table with a column for each response, shape (N, R)."""
        return self.responses.expand(self.rows(X))

    def _above_zero(self, X: Any) -> Array:
        """Return the probability of each level above 0, shape (N, F), latent by latent."""
        return probabilities_above_zero(
            self.parameters, self.law, self._expanded(X), seed=self._seed
        )

    def posterior(self, X: Any) -> Array:
        """Return the expected level of each latent given each row, shape (N, K).

        For binary latents that is P(Z_k = 1 | row). Rows as in `rows`.
        """
        return self.terms.expected_levels(self._above_zero(X))

    def posterior_levels(self, X: Any) -> list[Array]:
        """Return the probabilities of each latent's levels given each row: K arrays (N, M_k)."""
        return by_level(self._above_zero(X), self.terms)

    def classify(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable joint latent state of each row, shape (N, K)."""
        return most_probable_levels(self.parameters, self.law, self._expanded(X), seed=self._seed)

    def row_log_likelihood(self, X: Any) -> Array:
        """Return the log density of each row, shape (N,)."""
        return row_log_densities(self.parameters, self.law, self._expanded(X))

    def item_means(self, states: NDArray[np.integer]) -> Array:
        """Return what is expected of each response in latent states given by rows, shape (n, J).

        In the items' own units: probabilities of a yes, mean counts, mean grades, mean times (up to
        the limit, if they end at one).
        Nominal items have a column for each category but the last, as ``response_names`` says: the
        probability of the category, given that it is none of the earlier ones.
        """
        return self.parameters.response_means(states)

    def sample_items(self, states: NDArray[np.integer], rng: np.random.Generator) -> Array:
        """Return items drawn in latent states given by rows, shape (n, J)."""
        return self.responses.collapse(self.parameters.sample(states, rng))

    def save(self, path: str | Path) -> Path:
        """Write the result to one file (a zip of arrays with a JSON header) and return its path."""
        return write_result(self, Path(path))


def as_result(fit: Any, needed: str = "this function needs") -> FitResult:
    """Return the result of a fit: of a fitted ``DCRL``, or the result itself.

    Parameters
    ----------
    fit : DCRL or FitResult
    needed : str
        How an error sentence begins.
    """
    found = fit if isinstance(fit, FitResult) else getattr(fit, "result_", None)
    if not isinstance(found, FitResult):
        hint = "; call fit first" if hasattr(fit, "get_params") else ""
        raise SettingError(f"{needed} a fitted DCRL or a FitResult, got {type(fit).__name__}{hint}")
    return found


def load(path: str | Path) -> FitResult:
    """Return the FitResult that ``FitResult.save`` or ``hidag fit`` wrote.

    Parameters
    ----------
    path : str or Path
        Of the file, or of the folder that ``hidag fit --out`` wrote.
    """
    place = Path(path)
    return FitResult(**read_fields(place / FIT_FILE if place.is_dir() else place))


# --- A fit told with its items in another order: the same model, and the same bits


def with_items_in_order(result: FitResult, order: NDArray[np.intp]) -> FitResult:
    """Return the fit with its items in an order that says which one comes where.

    What rounds differently in another order of items is to be computed in one that depends on
    contents alone (:func:`hidag.data.missingness_patterns.canonical_order`): then the order of a
    table's columns has no say in it.

    Parameters
    ----------
    result : FitResult
    order : ndarray of int, shape (J,)
    """
    places = order.tolist()
    rows = np.concatenate([np.flatnonzero(result.responses.item == j) for j in places])
    return replace(
        result,
        item_names=tuple(result.item_names[j] for j in places),
        parameters=result.parameters.reordered(items=rows),
        q_given=None if result.q_given is None else result.q_given[order],
        family_reasons=tuple(result.family_reasons[j] for j in places),
        item_families=tuple(result.item_families[j] for j in places)
        if result.item_families
        else (),
        seen_rows=None if result.seen_rows is None else result.seen_rows.with_items_in_order(order),
    )
