"""The true model of a simulation, data drawn from it, and its JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import FileError, HidagError, Setting, SettingError, invalid_setting
from hidag.files import describe_damage, read_json
from hidag.files.schema import Numbers, check_arrays, check_distinct, read_as
from hidag.fitting.settings import checked_count
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import Family, family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Interaction, Terms
from hidag.structure.graphs import CPDAG, DAG
from hidag.views import Content, View

Floats = NDArray[np.float64]

#: Accepted wherever random numbers are drawn; None draws a fresh seed.
Seed = int | np.random.SeedSequence | np.random.Generator | None

_FORMAT = "hidag-truth"
_VERSION = 1
#: What the arrays of a file hold: J items, K latents, T terms.
_ARRAYS = {
    "q_matrix": Numbers("f", "JK", 0, 1), "intercept": Numbers("f", "J"),
    "loadings": Numbers("f", "JT"), "dispersion": Numbers("f", "J", 0, missing=True),
    "cutpoints": Numbers("f", "JC", missing=True),
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Truth(
    View,
    title="{0.n_items} items, {0.n_latents} latents",
    frames={"q": "_q", "loadings": "_loadings"},
):
    """A latent network and the items that measure it: a complete model to draw data from.

    Item j has linear predictor ``intercept[j] + loadings[j] @ phi(z)``, where phi holds the values
    of the terms. Binary latents without interactions are their own terms.

    Parameters
    ----------
    q_matrix : array of 0 and 1, shape (J, K)
    intercept : array, shape (J,)
    loadings : array, shape (J, T)
        On the terms, zero wherever ``q_matrix`` is zero. Shape (J, K) is also accepted and gives
        every level of a latent the same step.
    dispersion : array, shape (J,)
        Variance of gaussian items and of the logarithm of lognormal items, or the dispersion
        parameter of other families. Stored as NaN for families without one.
    families : sequence of str, length J
        Names such as "bernoulli", "poisson" (log link), "gaussian" or "ordinal(5)"; nominal items
        are not supported.
    law : NetworkLaw
        Graph and conditional tables of the latents.
    item_names, latent_names : sequence of str, optional
        Default X1, X2, ... and Z1, Z2, ...
    terms : Terms, optional
        Default: the main terms of the latents.
    cutpoints : array, shape (J, C), optional
        Increasing positive cutpoints of ordinal items, without the first, which is zero. Entries
        beyond an item's number of cutpoints are ignored.
    """

    q_matrix: NDArray[np.int8]
    intercept: Floats
    loadings: Floats
    dispersion: Floats
    families: tuple[str, ...]
    law: NetworkLaw
    item_names: tuple[str, ...] = ()
    latent_names: tuple[str, ...] = ()
    terms: Terms = None  # type: ignore[assignment]
    cutpoints: Floats = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        q = np.array(self.q_matrix)
        if q.ndim != 2 or not np.isin(q, (0, 1)).all():
            text = "q_matrix must be a two-dimensional array of 0 and 1"
            raise SettingError("invalid-q-matrix", text)
        n_items, n_latents = q.shape
        space = self.law.space
        if space.n_latents != n_latents:
            text = "q_matrix has {q} columns, but the law has {law} latents"
            raise SettingError("size-mismatch", text, {"q": n_latents, "law": space.n_latents})
        terms = Terms.main(space.levels) if self.terms is None else self.terms
        if terms.levels != space.levels:
            text = "terms are for latents with levels {terms}, but those of the law have {law}"
            raise SettingError("size-mismatch", text, {"terms": terms.levels, "law": space.levels})
        intercept = _check_shape("intercept", self.intercept, (n_items,))
        loadings = np.array(self.loadings, dtype=np.float64)
        if loadings.shape == (n_items, n_latents):
            loadings = terms.even_steps(loadings)
        loadings = _check_shape("loadings", loadings, (n_items, terms.n_terms))
        if not (np.isfinite(intercept).all() and np.isfinite(loadings).all()):
            raise SettingError("not-finite", "intercept and loadings must be finite")
        families = tuple(self.families)
        check_length(families, n_items, "items", "families")
        kinds = [family_named(name) for name in families]
        items = tuple(self.item_names) or tuple(f"X{j + 1}" for j in range(n_items))
        latents = tuple(self.latent_names) or tuple(f"Z{k + 1}" for k in range(n_latents))
        check_length(items, n_items, "items", "names")
        check_length(latents, n_latents, "latents", "names")
        outside = np.argwhere(~terms.support(q) & (loadings != 0))
        if len(outside):
            j, t = outside[0]
            text = "loadings must be 0 where q_matrix is 0, but item {item!r} has loading "
            text += "{value:.6g} on {term!r} ({n} entries)"
            params = {"item": items[j], "value": loadings[j, t], "n": len(outside)}
            raise SettingError("loading-outside-q", text, params, term=terms.names(latents)[t])
        dispersion = _check_dispersion(self.dispersion, kinds, items)
        cutpoints = _check_cutpoints(self.cutpoints, kinds, items)
        parameters = MeasurementParameters(families, intercept, loadings, np.ones(n_items), terms)
        _check_means(parameters, kinds, items)
        fields: dict[str, Any] = {
            "q_matrix": q.astype(np.int8),
            "intercept": intercept,
            "loadings": loadings,
            "dispersion": dispersion,
            "cutpoints": cutpoints,
            "families": families,
            "terms": terms,
            "item_names": items,
            "latent_names": latents,
        }
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return int(self.q_matrix.shape[0])

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return int(self.q_matrix.shape[1])

    def _q(self) -> Content:
        rows = zip(self.item_names, self.q_matrix.tolist(), strict=True)
        return ("item", *self.latent_names), [(name, *row) for name, row in rows]

    def _loadings(self) -> Content:
        columns = ("item", "intercept", *self.terms.names(self.latent_names))
        rows = zip(self.item_names, self.intercept, self.loadings, strict=True)
        return columns, [(name, first, *row) for name, first, row in rows]

    @property
    def dag(self) -> DAG:
        """The graph of the latents, taken from the law."""
        return DAG.from_parents(self.law.parents, self.latent_names)

    @property
    def cpdag(self) -> CPDAG:
        """The Markov equivalence class of the graph, the part that data can identify."""
        return self.dag.to_cpdag()

    @property
    def n_edges(self) -> int:
        """Number of edges among the latents and from latents to items."""
        return sum(len(parents) for parents in self.law.parents) + int(self.q_matrix.sum())

    def predictor(self, states: NDArray[np.integer]) -> Floats:
        """Return the linear predictors of the items for latent states (n, K), shape (n, J)."""
        return np.asarray(self.intercept + self.terms.features(states) @ self.loadings.T)

    def means(self, states: NDArray[np.integer]) -> Floats:
        """Return the expectations of the items for latent states (n, K), shape (n, J)."""
        return self.items.response_means(states)

    @property
    def items(self) -> MeasurementParameters:
        """The measurement parameters, in the class that fits use."""
        return MeasurementParameters(
            self.families,
            self.intercept,
            self.loadings,
            np.where(np.isnan(self.dispersion), 1.0, self.dispersion),
            self.terms,
            self.cutpoints,
        )


def check_length(values: Sequence[object], expected: int, of: str, what: str) -> None:
    """Raise unless there is one value for each of ``expected`` items or latents."""
    if len(values) != expected:
        params = {"expected": expected, "of": of, "what": what, "got": len(values)}
        text = "{expected} {of} need as many {what}, got {got}"
        raise SettingError("size-mismatch", text, params)


def _check_shape(name: str, values: object, shape: tuple[int, ...]) -> Floats:
    out = np.array(values, dtype=np.float64)
    if out.shape != shape:
        text = "{name} must have shape {shape}, got {got}"
        raise SettingError("wrong-shape", text, {"name": name, "shape": shape, "got": out.shape})
    return out


def _item_error(
    code: str, text: str, names: Sequence[str], bad: Any, **params: Any
) -> SettingError:
    """Return the error about the first of some items."""
    params |= {"item": names[bad[0]], "share": f"{len(bad)} of {len(names)} items"}
    return SettingError(code, text, **params)


def _check_dispersion(given: object, kinds: list[Family], items: tuple[str, ...]) -> Floats:
    """Return the dispersions, NaN for families without one; raise if one is out of bounds."""
    dispersion = _check_shape("dispersion", given, (len(kinds),))
    used = np.array([kind.has_dispersion for kind in kinds], dtype=bool)
    bad = np.flatnonzero(used & ~((dispersion > 0) & np.isfinite(dispersion)))
    code = "invalid-dispersion"
    if len(bad):
        text = (
            "dispersion must be a finite variance > 0, but item {item!r} has {value:.6g} ({share})"
        )
        raise _item_error(code, text, items, bad, value=dispersion[bad[0]])
    for j in np.flatnonzero(used):
        family, bound = Setting("family", kinds[j].name), kinds[j].dispersion_bounds[1]
        if dispersion[j] > bound:
            text = "{family} needs a dispersion ({meaning}) of at most {bound:g}, but item "
            text += "{item!r} has {value:.6g}"
            params = {"family": family, "meaning": kinds[j].dispersion_meaning, "bound": bound}
            raise _item_error(code, text, items, [j], value=dispersion[j], **params)
    dispersion[~used] = np.nan
    return dispersion


def _check_cutpoints(given: object, kinds: list[Family], items: tuple[str, ...]) -> Floats:
    """Return the cutpoints of ordinal items, shape (J, C), NaN where an item has none."""
    shape = (len(kinds), max(kind.n_cutpoints for kind in kinds))
    out = np.full(shape, np.nan)
    if shape[1] == 0:
        return out
    cutpoints = _check_shape("cutpoints", np.zeros((len(kinds), 0)) if given is None else given,
                             shape)  # fmt: skip
    for j, family in enumerate(kinds):
        own = cutpoints[j, : family.n_cutpoints]
        if not (np.isfinite(own).all() and (np.diff(own, prepend=0.0) > 0).all()):
            text = "{family} needs {n} increasing cutpoints > 0, but item {item!r} has {values}"
            values = {"values": ", ".join(f"{value:g}" for value in own), "n": family.n_cutpoints}
            name = Setting("family", family.name)
            raise _item_error("invalid-cutpoints", text, items, [j], family=name, **values)
        out[j, : family.n_cutpoints] = own
    return out


def _check_means(
    parameters: MeasurementParameters, kinds: list[Family], items: tuple[str, ...]
) -> None:
    """Raise unless every latent state gives every item a mean that its family can have."""
    negated = replace(parameters, intercept=-parameters.intercept, loadings=-parameters.loadings)
    lowest, highest = parameters.lowest_predictors(), -negated.lowest_predictors()
    largest = np.array([kind.largest_simulated_predictor for kind in kinds])
    bounded = np.isfinite([kind.lowest_predictor for kind in kinds])
    params: dict[str, Any]
    bad = np.flatnonzero(bounded & (lowest <= 0))
    if len(bad):
        text = "{family} needs a mean > 0 in every latent state, but item {item!r} has mean "
        text += "{mean:.6g} in one ({share})"
        params = {"mean": lowest[bad[0]], "family": Setting("family", kinds[bad[0]].name)}
        params["advice"] = "raise the intercept or use a family with a log link"
        raise _item_error("nonpositive-mean", text, items, bad, **params)
    bad = np.flatnonzero(highest > largest)
    if len(bad):
        text = "{family} can be simulated with a linear predictor of at most {largest:g}, but item "
        text += "{item!r} reaches {highest:.6g} ({share})"
        params = {"largest": largest[bad[0]], "highest": highest[bad[0]]}
        params["family"] = Setting("family", kinds[bad[0]].name)
        params["advice"] = "lower the intercept or the slopes"
        raise _item_error("predictor-too-large", text, items, bad, **params)


@dataclass(frozen=True, repr=False)
class Simulation(
    View,
    title="{0.X.shape[0]} rows, {0.X.shape[1]} items",
    frames={"items": "_items", "states": "_states"},
):
    """Data drawn from a truth."""

    X: Floats  # (N, J), items, NaN where a cell is missing
    states: NDArray[np.uint8]  # (N, K), levels of the latents
    truth: Truth  # that they were drawn from

    def _items(self) -> Content:
        return self.truth.item_names, list(map(tuple, self.X.tolist()))

    def _states(self) -> Content:
        return self.truth.latent_names, list(map(tuple, self.states.tolist()))


def simulate(truth: Truth, n_samples: int, *, rng: Seed = None, missing: float = 0.0) -> Simulation:
    """Draw data from a truth.

    Parameters
    ----------
    truth : Truth
    n_samples : int
        Number of rows, N.
    rng : int, SeedSequence, Generator or None
        The same seed gives the same bits.
    missing : float
        Probability that a cell is missing completely at random. The observed cells are the same
        as those drawn with ``missing=0``.

    Returns
    -------
    Simulation
        Items, shape (N, J), NaN where a cell is missing, and latent states, shape (N, K).

    Examples
    --------
    >>> import hidag
    >>> truth = hidag.design("Tree-5", "Q1", "gaussian", rng=1)
    >>> hidag.simulate(truth, 100, rng=2).X.shape
    (100, 15)
    """
    checked_count("n_samples", n_samples)
    if not 0.0 <= missing < 1.0:
        raise invalid_setting("missing", "a probability from 0 to below 1", missing)
    generator = np.random.default_rng(rng)
    states = truth.law.sample(n_samples, generator)
    eta = truth.predictor(states)
    X = np.empty(eta.shape)
    items = truth.items
    for j, name in enumerate(truth.families):
        family = family_named(name)
        X[:, j] = family.sample(eta[:, j], items.auxiliary(family, np.array([j]))[0], generator)
    # The mask is drawn last, so that it changes no other draw.
    if missing > 0.0:
        X[generator.random(X.shape) < missing] = np.nan
    X.setflags(write=False)
    states.setflags(write=False)
    return Simulation(X, states, truth)


def truth_json(truth: Truth) -> str:
    """Return a truth as JSON; numbers are read back exactly."""
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "item_names": truth.item_names,
        "latent_names": truth.latent_names,
        "families": truth.families,
        "q_matrix": truth.q_matrix.tolist(),
        "intercept": truth.intercept.tolist(),
        "loadings": truth.loadings.tolist(),
        "dispersion": [None if np.isnan(v) else v for v in truth.dispersion.tolist()],
        "cutpoints": [[None if np.isnan(v) else v for v in row] for row in truth.cutpoints],
        "levels": truth.law.space.levels,
        "interactions": truth.terms.interactions,
        "parents": truth.law.parents,
        "tables": [table.tolist() for table in truth.law.tables],
        "graph": json.loads(truth.cpdag.to_json()),
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def read_truth(path: Path) -> Truth:
    """Return the truth from a file that :func:`truth_json` wrote, or from its folder."""
    file = path / "truth.json" if path.is_dir() else path
    if not file.is_file():
        text = "no truth at {file}: expected a truth.json written by hidag simulate"
        raise FileError("missing-file", text, file=str(file))
    try:
        content = read_json(file)
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise KeyError("format")
        return _parse_truth(content)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, HidagError) as error:
        text = "{file} is not a truth written by hidag simulate, or it is truncated ({reason})"
        params = {"file": str(file), "reason": describe_damage(error)}
        raise FileError("invalid-file", text, params, advice="write it again") from error


def _parse_truth(content: dict[str, Any]) -> Truth:
    items = read_as(content["item_names"], tuple[str, ...], "item_names")
    latents = read_as(content["latent_names"], tuple[str, ...], "latent_names")
    check_distinct((*items, *latents), "names of items and latents")
    space = StateSpace(read_as(content["levels"], tuple[int, ...], "levels"))
    parents = read_as(content["parents"], tuple[tuple[int, ...], ...], "parents")
    tables = tuple(np.array(table, dtype=np.float64) for table in content["tables"])
    interactions = read_as(content["interactions"], tuple[Interaction, ...], "interactions")
    terms = Terms(space.levels, interactions)
    families = read_as(content["families"], tuple[str, ...], "families")
    arrays = {name: np.array(content[name], dtype=np.float64) for name in _ARRAYS}
    sizes = {"J": len(families), "K": len(latents), "T": terms.n_terms}
    check_arrays(arrays, _ARRAYS, sizes)
    law = NetworkLaw(space, parents, tables)
    q_matrix = arrays.pop("q_matrix").astype(np.int8)
    if q_matrix.shape[0] != len(items):
        raise ValueError("names and numbers of items differ")
    return Truth(
        q_matrix,
        **arrays,
        families=families,
        law=law,
        item_names=items,
        latent_names=latents,
        terms=terms,
    )
