"""What a bootstrap found: how often each edge and entry came back, and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import HidagError, SettingError
from hidag.fitting.information_criteria import coefficients_in_sum
from hidag.formatting import plural
from hidag.inference.intervals import LEVEL, interval_cautions, percentile_interval
from hidag.inference.refit import (
    MOST_JOINT_STATES,
    SAME_LATENT,
    Refit,
    Task,
    aligned,
    network_of,
    no_cells,
    no_edges,
    stacked,
)
from hidag.latent.laws import LatentLaw, SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.results import FitResult, read_archive, write_archive
from hidag.structure.graphs import CPDAG

# --- A BootstrapResult on disk: arrays and a JSON header in one file

_HOLDS = "bootstrap"
#: Before the names of the first fit's arrays, which are those of the refits.
_OF_FIT = "fitted_"


def write_bootstrap(found: BootstrapResult, path: Path) -> Path:
    """Write a result to one file (a zip of arrays with a JSON header) and return its path."""
    header: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for one in fields(found):
        value = getattr(found, one.name)
        if isinstance(value, np.ndarray):
            arrays[one.name] = value
        elif one.name != "fitted":
            header[one.name] = value
    for name, array in found.fitted.arrays().items():
        arrays[f"{_OF_FIT}{name}"] = array
    write_archive(path, header, arrays, holds=_HOLDS)
    return path


def read_fields(path: Path, known: set[str]) -> dict[str, Any]:
    """Return the fields of the result that :func:`write_bootstrap` wrote, by name.

    Parameters
    ----------
    path : Path
    known : set of str
        Fields that a result has; what else the header holds is left out.
    """
    header, arrays = read_archive(path, holds=_HOLDS)
    first = {
        name.removeprefix(_OF_FIT): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(_OF_FIT)
    }
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in header.items()
        if name in known
    }
    for name, array in arrays.items():
        array.setflags(write=False)
        values[name] = array
    return {**values, "fitted": Refit.of(first)}


# --- What a bootstrap found, in words

#: Coefficients that are named one by one.
_NAMED = 5


def sums_in_words(found: BootstrapResult) -> list[str]:
    """Return which coefficients prerequisites leave without an interval, without a full stop."""
    terms = ("intercept", *found.term_names)
    names = [f"{found.response_names[r]}: {terms[t]}" for r, t in np.argwhere(found.in_sum)]
    if not names:
        return []
    more = ", ..." if len(names) > _NAMED else ""
    return [
        f"prerequisites leave {plural(len(names), 'parameter')} known in sum only, and so without "
        f"an interval: {', '.join(names[:_NAMED])}{more}"
    ]


def in_words(found: BootstrapResult) -> list[str]:
    """Return a few lines to read: refits, what went wrong, whether latents came back, edges."""
    rows = "rows drawn again" if found.kind == "nonparametric" else "rows drawn from the fit"
    lines = [f"{plural(found.n_refits, 'refit')} of {found.n_rows:,} {rows}"]
    if found.failures:
        lines.append(
            f"{len(found.failures)} of {found.n_resamples} resamples could not be fitted, for "
            f"instance: {found.failures[0]}"
        )
    unsettled = int((~found.converged).sum())
    if unsettled:
        lines.append(f"{plural(unsettled, 'refit')} had not settled")
    if found.start == "fitted":
        lines.append("refits began at the fit: other optima were not looked for")
    lines += interval_cautions(found.n_refits, found.q_given)
    lines += sums_in_words(found)
    lines.append(
        f"all latents are those of the fit (cosine of loadings at least {SAME_LATENT:g}) in "
        f"{found.same_latents.mean():.0%} of refits; {plural(int(found.moved.sum()), 'refit')} "
        "had latents renamed or reversed to match"
    )
    others = int((~found.same_latents).sum())
    if found.knowing and others:
        lines.append(
            f"in {others} of {found.n_refits} refits some latents are others than the fit's, and "
            "what is known about the fit's was held of these"
        )
    lines += [
        f"  {row['latent']}: the same in {row['share_same']:.0%}, median cosine "
        f"{row['median_cosine']:.2f}"
        for row in found.agreement_table()
    ]
    lines.append("edges, by how often two latents are joined")
    shown = [r for r in found.edge_table() if r["fit"] or r["joined"] >= 0.5]
    lines += [
        f"  {r['one']}, {r['other']}: {r['joined']:.0%} (-> {r['one_causes_other']:.0%}, "
        f"<- {r['other_causes_one']:.0%}, - {r['undirected']:.0%}); in the fit: "
        f"{r['fit'] or 'not joined'}"
        for r in shown
    ]
    if not shown:
        lines.append("  no pair in the fit or in half of the refits")
    return lines


# ---

Array = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True)
class BootstrapResult:
    """How a fit varies over resampled tables; arrays have a first axis over the B refits.

    Attributes
    ----------
    latent_names, item_names, response_names, term_names : tuple of str
    levels : tuple of int
    kind, start : str
        As in `hidag.bootstrap`.
    seed, n_resamples, n_rows : int
    q_given, knowing : bool
        Whether all of Q was given, so that it was the same in every refit; whether something was
        known about the latents, which every refit obeyed.
    failures : tuple of str
        Why resamples could not be fitted; they are in no number below.
    fitted : Refit
        The first fit.
    adjacency : ndarray of int8, shape (B, K, K)
    q_matrix : ndarray of int8, shape (B, J, K)
    intercept, dispersion : ndarray, shape (B, R)
    loadings : ndarray, shape (B, R, T)
        On the terms that the fit or some refit has.
    cutpoints : ndarray, shape (B, R, C)
    margins : ndarray, shape (B, K, max levels)
    joint : ndarray, shape (B, S)
        S is 0 where joint states are too many to keep.
    agreement : ndarray, shape (B, K)
        Cosine of each latent's strengths with the first fit's.
    moved, converged : ndarray of bool, shape (B,)
        Whether latents were renamed or reversed to be matched; whether the refit had settled.
    log_likelihood : ndarray, shape (B,)
    edges, cells : ndarray, shapes (B, K, K) and (B, C)
        Parents and conditional tables of the refits' laws, see `hidag.inference.refit`, where
        joint states are too many to keep; else empty.
    in_sum : ndarray of bool, shape (R, 1 + T)
        Intercepts and loadings that prerequisites leave known in sum only: each refit has them
        anywhere, so that they have no intervals. Empty in files of earlier versions.
    """

    latent_names: tuple[str, ...]
    item_names: tuple[str, ...]
    response_names: tuple[str, ...]
    term_names: tuple[str, ...]
    levels: tuple[int, ...]
    kind: str
    start: str
    seed: int
    n_resamples: int
    n_rows: int
    q_given: bool
    failures: tuple[str, ...]
    fitted: Refit
    adjacency: NDArray[np.int8]
    q_matrix: NDArray[np.int8]
    intercept: Array
    dispersion: Array
    loadings: Array
    cutpoints: Array
    margins: Array
    joint: Array
    agreement: Array
    moved: NDArray[np.bool_]
    converged: NDArray[np.bool_]
    log_likelihood: Array
    knowing: bool = False
    edges: NDArray[np.int8] = field(default_factory=no_edges)
    cells: Array = field(default_factory=no_cells)
    in_sum: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    @classmethod
    def of(cls, task: Task, found: list[Refit | str]) -> BootstrapResult:
        """Return the result of resamples that are all done."""
        refits = [one for one in found if isinstance(one, Refit)]
        failures = tuple(one for one in found if isinstance(one, str))
        if not refits:
            raise HidagError(f"no resample could be fitted; the first said: {failures[0]}")
        fit, given = task.fit, task.fit.q_given
        terms = fit.terms.joined(one.terms(fit.terms.levels) or fit.terms for one in refits)
        fitted, arrays = aligned(fit, fit).on(terms), stacked(refits, terms)
        ever = (arrays["loadings"] != 0).any(axis=0) | (fitted.loadings != 0)
        widest = replace(fit.parameters, loadings=ever, terms=terms)
        return cls(
            latent_names=fit.latent_names,
            item_names=fit.item_names,
            response_names=fit.response_names,
            term_names=tuple(terms.names(fit.latent_names)),
            levels=fit.law.space.levels,
            kind=task.kind,
            start=task.start,
            seed=task.seed,
            n_resamples=len(found),
            n_rows=len(task.values),
            q_given=given is not None and bool((given >= 0).all()),
            failures=failures,
            fitted=fitted,
            knowing=task.settings.get("knowledge") is not None,
            in_sum=coefficients_in_sum(replace(fit, parameters=widest)),
            **arrays,
        )

    @property
    def n_refits(self) -> int:
        """How many resamples were fitted, B."""
        return len(self.adjacency)

    @property
    def adjacent(self) -> Array:
        """Share of refits in which two latents are joined, shape (K, K)."""
        return np.asarray(((self.adjacency + self.adjacency.transpose(0, 2, 1)) > 0).mean(axis=0))

    @property
    def directed(self) -> Array:
        """Share of refits in which the row's latent causes the column's, shape (K, K)."""
        return np.asarray(
            ((self.adjacency == 1) & (self.adjacency.transpose(0, 2, 1) == 0)).mean(axis=0)
        )

    @property
    def undirected(self) -> Array:
        """Share of refits in which two latents are joined without a direction, shape (K, K)."""
        return np.asarray(
            ((self.adjacency == 1) & (self.adjacency.transpose(0, 2, 1) == 1)).mean(axis=0)
        )

    @property
    def q_probability(self) -> Array:
        """Share of refits in which an item loads on a latent, shape (J, K)."""
        return np.asarray(self.q_matrix.mean(axis=0))

    @property
    def same_latents(self) -> NDArray[np.bool_]:
        """Whether all latents of a refit are those of the first fit, shape (B,)."""
        return np.asarray((self.agreement >= SAME_LATENT).all(axis=1))

    def replicates(self, fit: FitResult) -> Iterator[FitResult]:
        """Yield the refits as results in the first fit's names, for intervals of anything else.

        Parameters
        ----------
        fit : FitResult
            The first fit: items and latents are as in it; terms are those of any refit.

        Raises
        ------
        SettingError
            If it is another fit, or if the refits' laws were not kept.
        """
        if fit.item_names != self.item_names or fit.latent_names != self.latent_names:
            raise SettingError("replicates need the fit that was bootstrapped, this is another one")
        if not self.joint.shape[1] and not self.edges.size:
            raise SettingError(
                "replicates need the latents' law, but this bootstrap did not keep it: beyond "
                f"{MOST_JOINT_STATES:,} joint states only a network is kept, and files of earlier "
                "versions lack it; bootstrap a fit with law='network' with this version"
            )
        terms = self.fitted.terms(self.levels) or fit.terms
        for b in range(self.n_refits):
            yield replace(
                fit,
                parameters=replace(
                    fit.parameters,
                    intercept=self.intercept[b],
                    loadings=self.loadings[b],
                    dispersion=self.dispersion[b],
                    cutpoints=self.cutpoints[b],
                    terms=terms,
                ),
                law=self._law(b),
                graph=CPDAG(self.adjacency[b], self.latent_names),
                q_given=self.q_matrix[b],
                log_likelihood=float(self.log_likelihood[b]),
                converged=bool(self.converged[b]),
            )

    def _law(self, b: int) -> LatentLaw:
        if not self.joint.shape[1]:
            return network_of(self.levels, self.edges[b], self.cells[b])
        return SaturatedLaw(StateSpace(self.levels), self.joint[b] / self.joint[b].sum())

    def edge_table(self) -> list[Row]:
        """Return a row for each pair of latents: in the fit, joined, each direction, undirected."""
        joined, directed, undirected = self.adjacent, self.directed, self.undirected
        first = self.fitted.adjacency
        out = []
        for i, j in combinations(range(len(self.latent_names)), 2):
            marks = {(0, 0): "", (1, 0): "->", (0, 1): "<-", (1, 1): "-"}
            out.append(
                {
                    "one": self.latent_names[i],
                    "other": self.latent_names[j],
                    "fit": marks[int(first[i, j]), int(first[j, i])],
                    "joined": float(joined[i, j]),
                    "one_causes_other": float(directed[i, j]),
                    "other_causes_one": float(directed[j, i]),
                    "undirected": float(undirected[i, j]),
                }
            )
        return sorted(out, key=lambda row: -row["joined"])

    def q_table(self) -> list[Row]:
        """Return a row for each entry of Q: whether the fit has it, and how often refits do."""
        share = self.q_probability
        return [
            {"item": item, "latent": latent, "fit": int(self.fitted.q_matrix[j, k]),
             "probability": float(share[j, k])}
            for j, item in enumerate(self.item_names)
            for k, latent in enumerate(self.latent_names)
        ]  # fmt: skip

    def coefficient_table(self, level: float = LEVEL) -> list[Row]:
        """Return intercepts and the loadings that the fit or some refit has, with intervals.

        Ends are NaN for those that are known in sum only.
        """
        every = np.concatenate([self.intercept[:, :, None], self.loadings], axis=2)
        first = np.hstack([self.fitted.intercept[:, None], self.fitted.loadings])
        lows, highs = percentile_interval(every, level)
        if self.in_sum.any():
            lows[self.in_sum] = highs[self.in_sum] = np.nan
        ever = (every != 0).any(axis=0) | (first != 0)
        ever[:, 0] = True
        names = ("intercept", *self.term_names)
        return [
            _row(response, names[t], first[j, t], lows[j, t], highs[j, t])
            for j, response in enumerate(self.response_names)
            for t in np.flatnonzero(ever[j])
        ]

    def law_table(self, level: float = LEVEL) -> list[Row]:
        """Return the probability of each level of each latent, with intervals."""
        lows, highs = percentile_interval(self.margins, level)
        return [
            {"latent": name, "level": u, "fit": float(self.fitted.margins[k, u]),
             "low": float(lows[k, u]), "high": float(highs[k, u])}
            for k, name in enumerate(self.latent_names)
            for u in range(self.levels[k])
        ]  # fmt: skip

    def agreement_table(self) -> list[Row]:
        """Return for each latent how well refits agree with the fit about what it is."""
        return [
            {"latent": name, "median_cosine": float(np.median(self.agreement[:, k])),
             "share_same": float((self.agreement[:, k] >= SAME_LATENT).mean())}
            for k, name in enumerate(self.latent_names)
        ]  # fmt: skip

    def summary(self) -> str:
        """Return what was found in a few lines to read."""
        return "\n".join(in_words(self))

    def __str__(self) -> str:
        return self.summary()

    def save(self, path: str | Path) -> Path:
        """Write the result to one file (a zip of arrays with a JSON header) and return its path."""
        return write_bootstrap(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> BootstrapResult:
        """Return the result that ``save`` wrote."""
        return cls(**read_fields(Path(path), {field.name for field in fields(cls)}))


def _row(item: str, term: str, value: float, low: float, high: float) -> Row:
    numbers = {"fit": float(value), "low": float(low), "high": float(high)}
    return {"item": item, "term": term, **numbers}
