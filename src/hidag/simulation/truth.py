"""What a simulation is drawn from, and what it returns."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Advice, FileError, HidagError, SettingError
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import Family
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms
from hidag.structure.graphs import CPDAG, DAG

# --- Which means a simulated item can have: what fitting never meets, drawing must refuse

Floats = NDArray[np.float64]


def refuse_impossible_means(
    families: tuple[str, ...], lowest: Floats, highest: Floats, names: tuple[str, ...]
) -> None:
    """Raise unless every state gives every item a mean its family can have.

    Parameters
    ----------
    families : tuple of str, length J
    lowest, highest : ndarray, shape (J,)
        Smallest and largest linear predictor over the latent states.
    names : tuple of str, length J
    """
    kinds = [family_named(name) for name in families]
    bounded = np.isfinite([kind.lowest_predictor for kind in kinds])
    bad = np.flatnonzero(bounded & (lowest <= 0))
    if len(bad):
        raise SettingError(
            "nonpositive-mean",
            "family={family!r} needs a mean > 0 in every latent state, but item {item!r} has mean "
            "{mean:.6g} in one ({n_bad} of {n_items} items)",
            advice=Advice("raise-intercept", "raise the intercept or use a family with a log link"),
            family=families[bad[0]],
            item=names[bad[0]],
            mean=lowest[bad[0]],
            n_bad=len(bad),
            n_items=len(names),
        )
    largest = np.array([kind.largest_simulated_predictor for kind in kinds])
    bad = np.flatnonzero(highest > largest)
    if len(bad):
        raise SettingError(
            "predictor-too-large",
            "family={family!r} can be simulated with a linear predictor of at most {largest:g}, "
            "but item {item!r} reaches {highest:.6g} ({n_bad} of {n_items} items)",
            advice=Advice("lower-intercept", "lower the intercept or the slopes"),
            family=families[bad[0]],
            largest=largest[bad[0]],
            item=names[bad[0]],
            highest=highest[bad[0]],
            n_bad=len(bad),
            n_items=len(names),
        )


# ---


def _numbers(values: object, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    out = np.array(values, dtype=np.float64)
    if out.shape != shape:
        raise SettingError(f"{name} must have shape {shape}, got {out.shape}")
    return out


def _cutpoints(given: object, kinds: list[Family], items: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the cutpoints of ordered grades, (J, C), NaN where an item has none."""
    size = max(kind.n_cutpoints for kind in kinds)
    out = np.full((len(kinds), size), np.nan)
    if size == 0:
        return out
    asked = _numbers(np.zeros((len(kinds), 0)) if given is None else given, (len(kinds), size),
                     "cutpoints")  # fmt: skip
    for j, kind in enumerate(kinds):
        own = asked[j, : kind.n_cutpoints]
        if not (np.isfinite(own).all() and (np.diff(own, prepend=0.0) > 0).all()):
            raise SettingError(
                f"family={kind.name!r} needs {kind.n_cutpoints} rising cutpoints > 0, but item "
                f"{items[j]!r} has {', '.join(f'{value:g}' for value in own)}"
            )
        out[j, : kind.n_cutpoints] = own
    return out


@dataclass(frozen=True)
class Truth:
    """A latent network and the items that measure it, complete enough to draw data from.

    Item j has linear predictor ``intercept[j] + loadings[j] @ phi(z)``, where phi holds the values
    of the terms: the latents themselves when they are binary and act by themselves.

    Parameters
    ----------
    q_matrix : array of 0 and 1, shape (J, K)
    intercept : array, shape (J,)
    loadings : array, shape (J, T)
        On the terms, zero wherever ``q_matrix`` is zero; shape (J, K) gives every level of a latent
        the same step.
    dispersion : array, shape (J,)
        Variance of gaussian items and of the logarithm of lognormal ones, and what else a family
        calls its dispersion; whatever is given for families that have none is stored as NaN.
    families : sequence of str, length J
        Names of families, such as "bernoulli", "poisson" (log link), "gaussian" or "ordinal(5)";
        nominal items cannot be drawn.
    law : NetworkLaw
        The latents' graph and conditional tables.
    item_names, latent_names : sequence of str, optional
        X1, X2, ... and Z1, Z2, ... unless given.
    terms : Terms, optional
        What the loadings multiply; the latents' main terms unless given.
    cutpoints : array, shape (J, C), optional
        Rising positive cutpoints of ordered grades beyond the first, which is zero; NaN or
        anything else where an item has fewer.
    """

    q_matrix: NDArray[np.int8]
    intercept: NDArray[np.float64]
    loadings: NDArray[np.float64]
    dispersion: NDArray[np.float64]
    families: tuple[str, ...]
    law: NetworkLaw
    item_names: tuple[str, ...] = ()
    latent_names: tuple[str, ...] = ()
    terms: Terms = None  # type: ignore[assignment]
    cutpoints: NDArray[np.float64] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        q = np.array(self.q_matrix)
        if q.ndim != 2 or not np.isin(q, (0, 1)).all():
            raise SettingError("q_matrix must be a two-dimensional array of 0 and 1")
        n_items, n_latents = q.shape
        if self.law.space.n_latents != n_latents:
            raise SettingError(
                f"q_matrix has {n_latents} columns, but the law has "
                f"{self.law.space.n_latents} latents"
            )
        intercept = _numbers(self.intercept, (n_items,), "intercept")
        terms = Terms.main(self.law.space.levels) if self.terms is None else self.terms
        if terms.levels != self.law.space.levels:
            raise SettingError(
                f"terms are of latents with levels {terms.levels}, but the law's have "
                f"{self.law.space.levels}"
            )
        given = np.array(self.loadings, dtype=np.float64)
        if given.shape == (n_items, n_latents):
            given = terms.even_steps(given)
        loadings = _numbers(given, (n_items, terms.n_terms), "loadings")
        if not (np.isfinite(intercept).all() and np.isfinite(loadings).all()):
            raise SettingError("intercept and loadings must be finite")
        families = tuple(self.families)
        if len(families) != n_items:
            raise SettingError(f"{n_items} items need as many families, got {len(families)}")
        kinds = [family_named(name) for name in families]
        items = tuple(self.item_names) or tuple(f"X{j + 1}" for j in range(n_items))
        latents = tuple(self.latent_names) or tuple(f"Z{k + 1}" for k in range(n_latents))
        for names, size, what in ((items, n_items, "item"), (latents, n_latents, "latent")):
            if len(names) != size:
                raise SettingError(f"{size} {what}s need as many names, got {len(names)}")
        stray = np.argwhere(~terms.support(q) & (loadings != 0))
        if len(stray):
            j, t = stray[0]
            raise SettingError(
                f"loadings must be 0 where q_matrix is 0, but item {items[j]!r} has loading "
                f"{loadings[j, t]:.6g} on {terms.names(latents)[t]!r} ({len(stray)} entries)"
            )
        has_variance = np.array([kind.has_dispersion for kind in kinds], dtype=bool)
        dispersion = _numbers(self.dispersion, (n_items,), "dispersion")
        bad = np.flatnonzero(has_variance & ~((dispersion > 0) & np.isfinite(dispersion)))
        if len(bad):
            raise SettingError(
                f"dispersion must be a finite variance > 0, but item {items[bad[0]]!r} has "
                f"{dispersion[bad[0]]:.6g} ({len(bad)} of {n_items} items)"
            )
        for j in np.flatnonzero(has_variance):
            if dispersion[j] > kinds[j].dispersion_bounds[1]:
                raise SettingError(
                    f"family={families[j]!r} needs a dispersion ({kinds[j].dispersion_meaning}) of "
                    f"at most {kinds[j].dispersion_bounds[1]:g}, but item {items[j]!r} has "
                    f"{dispersion[j]:.6g}"
                )
        dispersion[~has_variance] = np.nan
        cutpoints = _cutpoints(self.cutpoints, kinds, items)
        plain = MeasurementParameters(families, intercept, loadings, np.ones(n_items), terms)
        mirrored = replace(plain, intercept=-intercept, loadings=-loadings)
        lowest, highest = plain.lowest_predictors(), -mirrored.lowest_predictors()
        refuse_impossible_means(families, lowest, highest, items)
        fields: dict[str, NDArray[Any]] = {
            "q_matrix": q.astype(np.int8),
            "intercept": intercept,
            "loadings": loadings,
            "dispersion": dispersion,
            "cutpoints": cutpoints,
        }
        for name, values in fields.items():
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        object.__setattr__(self, "families", families)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "item_names", items)
        object.__setattr__(self, "latent_names", latents)

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return int(self.q_matrix.shape[0])

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return int(self.q_matrix.shape[1])

    @property
    def dag(self) -> DAG:
        """The latents' graph, read off the law so that the two cannot disagree."""
        return DAG.from_parents(self.law.parents, self.latent_names)

    @property
    def cpdag(self) -> CPDAG:
        """All that data can tell of the latents' graph: its Markov equivalence class."""
        return self.dag.to_cpdag()

    @property
    def n_edges(self) -> int:
        """Number of edges among the latents and from latents to items."""
        return sum(len(parents) for parents in self.law.parents) + int(self.q_matrix.sum())

    def predictor(self, states: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the items' linear predictors at rows of latent levels, shape (n, J)."""
        return np.asarray(self.intercept + self.terms.features(states) @ self.loadings.T)

    def means(self, states: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the items' expectations at rows of latent levels, shape (n, J)."""
        return self.items.response_means(states)

    @property
    def items(self) -> MeasurementParameters:
        """The items given the latents, as a fit has them."""
        return MeasurementParameters(
            self.families,
            self.intercept,
            self.loadings,
            np.where(np.isnan(self.dispersion), 1.0, self.dispersion),
            self.terms,
            self.cutpoints,
        )


@dataclass(frozen=True)
class Simulation:
    """Data drawn from a truth.

    Attributes
    ----------
    X : ndarray of float64, shape (N, J)
        The items; NaN where a cell is missing.
    states : ndarray of uint8, shape (N, K)
        The latents that no estimator may see.
    truth : Truth
    """

    X: NDArray[np.float64]
    states: NDArray[np.uint8]
    truth: Truth


# --- A simulation's truth as a JSON file, and back

_FORMAT = "hidag-truth"
_VERSION = 1


def write_truth(truth: Truth, path: Path) -> None:
    """Write all of a truth; numbers read back exactly."""
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
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_truth(path: Path) -> Truth:
    """Return the truth of a file that `write_truth` wrote, or of the folder that holds it."""
    file = path / "truth.json" if path.is_dir() else path
    if not file.is_file():
        raise FileError(f"no truth at {file}: expected a truth.json written by hidag simulate")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise KeyError("format")
        return _truth_of(content)
    except (OSError, ValueError, KeyError, TypeError, IndexError, HidagError) as error:
        raise FileError(
            f"{file} is not a truth written by hidag simulate, or it is cut off; write it again"
        ) from error


def _truth_of(content: dict[str, Any]) -> Truth:
    law = NetworkLaw(
        StateSpace(tuple(content["levels"])),
        tuple(tuple(parents) for parents in content["parents"]),
        tuple(np.array(table, dtype=np.float64) for table in content["tables"]),
    )
    return Truth(
        np.array(content["q_matrix"], dtype=np.int8),
        np.array(content["intercept"], dtype=np.float64),
        np.array(content["loadings"], dtype=np.float64),
        np.array(content["dispersion"], dtype=np.float64),
        tuple(content["families"]),
        law,
        item_names=tuple(content["item_names"]),
        latent_names=tuple(content["latent_names"]),
        terms=Terms(
            law.space.levels,
            tuple(
                tuple((int(k), int(u)) for k, u in pairs)
                for pairs in content.get("interactions", ())
            ),
        ),
        cutpoints=np.array(
            content.get("cutpoints", [[]] * len(content["families"])), dtype=np.float64
        ),
    )


# --- Drawing data from a truth

#: What every function here that draws accepts: a seed, a seed sequence, a generator, or nothing.
Seed = int | np.random.SeedSequence | np.random.Generator | None


def simulate(truth: Truth, n_samples: int, *, rng: Seed = None, missing: float = 0.0) -> Simulation:
    """Return data drawn from a truth.

    Parameters
    ----------
    truth : Truth
    n_samples : int
        Number of rows, N.
    rng : int, SeedSequence, Generator or None
        The same seed gives the same bits; None draws afresh.
    missing : float
        Probability that a cell is missing, independently of everything (missing completely at
        random). The cells that stay are the ones that ``missing=0`` would have drawn.

    Returns
    -------
    Simulation
    """
    if n_samples < 1:
        raise SettingError(f"n_samples must be at least 1, got {n_samples}")
    if not 0.0 <= missing < 1.0:
        raise SettingError(f"missing must be a probability from 0 to below 1, got {missing}")
    generator = np.random.default_rng(rng)
    states = truth.law.sample(n_samples, generator)
    eta = truth.predictor(states)
    X = np.empty(eta.shape)
    items = truth.items
    for j, name in enumerate(truth.families):
        family = family_named(name)
        auxiliary = items.auxiliary(family, np.array([j]))[0]
        X[:, j] = family.sample(eta[:, j], auxiliary, generator)
    # The mask is drawn last, so that asking for missing cells changes no other draw.
    if missing > 0.0:
        X[generator.random(X.shape) < missing] = np.nan
    X.setflags(write=False)
    states.setflags(write=False)
    return Simulation(X, states, truth)
