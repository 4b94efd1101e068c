"""The result of a bootstrap: frequencies of edges and entries of Q, intervals, and its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import HidagError, Setting, SettingError
from hidag.files.schema import Numbers, check_arrays, check_distinct, read_fields
from hidag.fitting.information_criteria import coefficients_in_sum
from hidag.formatting import first_names, plural
from hidag.inference.intervals import LEVEL, interval_notes, percentile_interval
from hidag.inference.refit import (
    MAX_JOINT_STATES,
    REFIT_ARRAYS,
    SAME_LATENT,
    BootstrapTask,
    Failure,
    Refit,
    align_refit,
    network_from_arrays,
    stack_refits,
)
from hidag.inference.result_tables import Table
from hidag.latent.laws import LatentLaw, SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.results import FitResult, read_archive, write_archive
from hidag.structure.graphs import CPDAG
from hidag.views import View

Array = NDArray[np.float64]
Row = dict[str, Any]

_HOLDS = "bootstrap"
#: Prefix of the arrays of the first fit, which have the names of those of the refits.
_OF_FIT = "fitted_"


@dataclass(frozen=True, repr=False)
class BootstrapResult(
    View,
    title="{0.n_refits} refits of {0.n_rows} rows, {0.kind}",
    frames={
        "edges": "edge_table",
        "q": "q_table",
        "coefficients": "coefficient_table",
        "law": "law_table",
        "agreement": "agreement_table",
    },
):
    """The variation of a fit over resampled tables; the first axis of arrays is over B refits.

    Attributes
    ----------
    latent_names, item_names, response_names, term_names : tuple of str
    levels : tuple of int
    kind, start : str, as in `hidag.bootstrap`
    seed, n_resamples, n_rows : int
    q_given, knowing : bool
        Whether all of Q was given, and so the same in every refit; whether prior knowledge was
        used.
    failures : tuple of Failure, of resamples that could not be fitted and are not among the refits
    fitted : Refit, the first fit
    adjacency : int8 array (B, K, K)
    q_matrix : int8 array (B, J, K)
    intercept, dispersion : arrays (B, R)
    loadings : array (B, R, T), on the terms of the fit and of all refits
    cutpoints : array (B, R, C)
    margins : array (B, K, max levels)
    joint : array (B, S), empty if there are too many joint states to store
    agreement : array (B, K), cosine of each latent's strengths with those of the first fit
    moved, converged : bool arrays (B,)
        Whether latents were permuted or reversed for the match; whether the refit converged.
    log_likelihood : array (B,)
    edges, cells : arrays (B, K, K) and (B, C)
        Parents and conditional tables of the refits, see
        :func:`hidag.inference.refit.network_arrays`; empty if ``joint`` is not.
    arrows : array (B, K, K)
        Probabilities of direct causes (rows) and effects in the refits.
    in_sum : bool array (R, 1 + T)
        Intercepts and loadings of which, because of prerequisites, only sums are identified; they
        have no intervals.
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
    failures: tuple[Failure, ...]
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
    knowing: bool
    edges: NDArray[np.int8]
    cells: Array
    arrows: Array
    in_sum: NDArray[np.bool_]

    @classmethod
    def of(cls, task: BootstrapTask, found: list[Refit | Failure]) -> BootstrapResult:
        """Return the result of the resamples ``found`` for a ``task``."""
        refits = [one for one in found if isinstance(one, Refit)]
        failures = tuple(one for one in found if isinstance(one, Failure))
        if not refits:
            reason = "no resample could be fitted; the first error was: {reason}"
            raise HidagError("no-refits", reason, reason=failures[0].reason)
        fit, given = task.fit, task.fit.q_given
        terms = fit.terms.joined(fit.terms.with_thresholds(one.asked) for one in refits)
        fitted, arrays = align_refit(fit, fit).on(terms), stack_refits(refits, terms)
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
        """Number of resamples that were fitted, B."""
        return len(self.adjacency)

    @property
    def adjacent(self) -> Array:
        """Share of refits in which two latents are adjacent, shape (K, K)."""
        return np.asarray(((self.adjacency | self.adjacency.transpose(0, 2, 1)) > 0).mean(axis=0))

    @property
    def directed(self) -> Array:
        """Share of refits with an edge from the row's to the column's latent, shape (K, K)."""
        return np.asarray(((self.adjacency & ~self.adjacency.transpose(0, 2, 1)) > 0).mean(axis=0))

    @property
    def undirected(self) -> Array:
        """Share of refits with an undirected edge, shape (K, K)."""
        return np.asarray(((self.adjacency & self.adjacency.transpose(0, 2, 1)) > 0).mean(axis=0))

    @property
    def q_probability(self) -> Array:
        """Share of refits in which an item loads on a latent, shape (J, K)."""
        return np.asarray(self.q_matrix.mean(axis=0))

    @property
    def same_latents(self) -> NDArray[np.bool_]:
        """Whether all latents of a refit match those of the first fit, shape (B,)."""
        return np.asarray((self.agreement >= SAME_LATENT).all(axis=1))

    def replicates(self, fit: FitResult) -> Iterator[FitResult]:
        """Yield the refits as results, for intervals of any function of a result.

        Raises SettingError for another fit than the first, and if the laws were not stored.
        """
        names = fit.item_names, fit.latent_names
        same = names == (self.item_names, self.latent_names)
        if not same or not np.array_equal(fit.intercept, self.fitted.intercept):
            reason = "replicates need the fit that was bootstrapped, this is another one"
            raise SettingError("other-fit", reason)
        if not self.joint.shape[1] and not self.edges.size:
            raise SettingError(
                "law-not-stored",
                "replicates need the latent distribution, but this bootstrap did not store it: "
                "beyond {limit:,} joint states only networks are stored",
                {"limit": MAX_JOINT_STATES, "law": Setting("law", "network")},
                advice="bootstrap a fit with {law}",
            )
        terms = fit.terms.with_thresholds(self.fitted.asked)
        law: LatentLaw
        for b in range(self.n_refits):
            if self.joint.shape[1]:
                law = SaturatedLaw(StateSpace(self.levels), self.joint[b] / self.joint[b].sum())
            else:
                law = network_from_arrays(self.levels, self.edges[b], self.cells[b])
            own = ("intercept", "loadings", "dispersion", "cutpoints")
            items = {name: getattr(self, name)[b] for name in own}
            yield replace(
                fit,
                parameters=replace(fit.parameters, **items, terms=terms),
                law=law,
                graph=CPDAG(self.adjacency[b], self.latent_names),
                q_given=self.q_matrix[b],
                log_likelihood=float(self.log_likelihood[b]),
                converged=bool(self.converged[b]),
            )

    @property
    def edge_probabilities(self) -> Array:
        """Probability of direct causes (rows) and effects, averaged over refits, shape (K, K).

        As `FitResult.edge_probabilities`, with the uncertainty about Q and about the optimum.
        """
        return np.asarray(self.arrows.mean(axis=0))

    def edge_table(self) -> list[Row]:
        """Return the edge in the fit and the probabilities of edges, by pair of latents."""
        marks = {(0, 0): "", (1, 0): "->", (0, 1): "<-", (1, 1): "-"}
        arrows, first = self.edge_probabilities, self.fitted.adjacency
        columns = "one", "other", "fit", "joined", "one_causes_other", "other_causes_one"
        names = self.latent_names
        rows = (
            (names[i], names[j], marks[first[i, j], first[j, i]], arrows[i, j] + arrows[j, i],
             arrows[i, j], arrows[j, i])
            for i, j in combinations(range(len(names)), 2)
        )  # fmt: skip
        found = Table.of(columns, rows).to_dicts()
        return sorted(found, key=lambda row: -row["joined"])

    def q_table(self) -> list[Row]:
        """Return for each entry of Q whether the fit has it and its frequency in the refits."""
        names = product(self.item_names, self.latent_names)
        shares = zip(self.fitted.q_matrix.ravel(), self.q_probability.ravel(), strict=True)
        rows = ((*pair, *cells) for pair, cells in zip(names, shares, strict=True))
        return Table.of(("item", "latent", "fit", "probability"), rows).to_dicts()

    def coefficient_table(self, level: float = LEVEL) -> list[Row]:
        """Return coefficients with intervals of a ``level``; NaN if only a sum is identified."""
        every = np.concatenate([self.intercept[:, :, None], self.loadings], axis=2)
        first = np.hstack([self.fitted.intercept[:, None], self.fitted.loadings])
        lows, highs = percentile_interval(every, level)
        lows[self.in_sum] = highs[self.in_sum] = np.nan
        ever = (every != 0).any(axis=0) | (first != 0)
        ever[:, 0] = True
        names = ("intercept", *self.term_names)
        return [
            {"item": response, "term": names[t], "fit": float(first[j, t]),
             "low": float(lows[j, t]), "high": float(highs[j, t])}
            for j, response in enumerate(self.response_names)
            for t in np.flatnonzero(ever[j])
        ]  # fmt: skip

    def law_table(self, level: float = LEVEL) -> list[Row]:
        """Return the probabilities of the latents' levels, with intervals of a ``level``."""
        lows, highs = percentile_interval(self.margins, level)
        return [
            {"latent": name, "level": u, "fit": float(self.fitted.margins[k, u]),
             "low": float(lows[k, u]), "high": float(highs[k, u])}
            for k, name in enumerate(self.latent_names)
            for u in range(self.levels[k])
        ]  # fmt: skip

    def agreement_table(self) -> list[Row]:
        """Return for each latent its agreement with the matched latents of the refits."""
        return [
            {"latent": name, "median_cosine": float(np.median(self.agreement[:, k])),
             "share_same": float((self.agreement[:, k] >= SAME_LATENT).mean())}
            for k, name in enumerate(self.latent_names)
        ]  # fmt: skip

    def summary(self) -> str:
        """Return refits, failures, limitations, agreement of latents and edges as text."""
        source = "resampled rows" if self.kind == "nonparametric" else "rows drawn from the fit"
        lines = [f"{plural(self.n_refits, 'refit')} of {self.n_rows:,} {source}"]
        if self.failures:
            lines.append(
                f"{len(self.failures)} of {self.n_resamples} resamples could not be fitted, for "
                f"instance: {self.failures[0].reason}"
            )
        n_open = int((~self.converged).sum())
        if n_open:
            lines.append(f"{plural(n_open, 'refit')} did not converge")
        if self.start == "fitted":
            lines.append("refits started at the fit: other optima were not searched for")
        lines += interval_notes(self.n_refits, self.q_given)
        lines += unidentified_notes(self)
        lines.append(
            f"all latents match those of the fit (cosine of loadings at least {SAME_LATENT:g}) in "
            f"{self.same_latents.mean():.0%} of refits; latents were permuted or reversed for the "
            f"match in {plural(int(self.moved.sum()), 'refit')}"
        )
        n_other = int((~self.same_latents).sum())
        if self.knowing and n_other:
            lines.append(
                f"in {n_other} of {self.n_refits} refits some latents do not match those of the "
                "fit, and the prior knowledge was applied to them all the same"
            )
        lines += [
            f"  {row['latent']}: matched in {row['share_same']:.0%}, median cosine "
            f"{row['median_cosine']:.2f}"
            for row in self.agreement_table()
        ]
        lines.append("probabilities of edges, averaged over refits")
        edges = [r for r in self.edge_table() if r["fit"] or r["joined"] >= 0.5]
        lines += [
            f"  {r['one']}, {r['other']}: {r['joined']:.2f} (-> {r['one_causes_other']:.2f}, "
            f"<- {r['other_causes_one']:.2f}); in the fit: {r['fit'] or 'not adjacent'}"
            for r in edges
        ]
        if not edges:
            lines.append("  no pair is adjacent in the fit or with a probability of .5")
        return "\n".join(lines)

    __str__ = summary

    def save(self, path: str | Path) -> Path:
        """Write the result to one file, ``path`` (a zip of arrays and a JSON header); return it."""
        header: dict[str, Any] = {}
        arrays = {f"{_OF_FIT}{name}": array for name, array in self.fitted.arrays().items()}
        for name, value in ((one.name, getattr(self, one.name)) for one in fields(self)):
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif name != "fitted":
                header[name] = value
        write_archive(Path(path), header, arrays, holds=_HOLDS)
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> BootstrapResult:
        """Return the result that :meth:`save` wrote to ``path``."""
        return read_archive(Path(path), cls._of_file, holds=_HOLDS)

    @classmethod
    def _of_file(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> BootstrapResult:
        """Return the result of a header and arrays, after checks of both."""
        plain = {one.name for one in fields(cls)} - arrays.keys() - {"fitted"}
        values = read_fields(header, cls, "the header", sorted(plain))
        if missing := plain - values.keys():
            raise KeyError(min(missing))
        names = (*values["item_names"], *values["latent_names"])
        check_distinct(names, "names of items and latents")
        sizes = {"K": len(values["latent_names"]), "J": len(values["item_names"])}
        sizes |= {"R": len(values["response_names"]), "T": len(values["term_names"])}
        first = {name: arrays.pop(name) for name in tuple(arrays) if name.startswith(_OF_FIT)}
        first = {name.removeprefix(_OF_FIT): one for name, one in first.items()}
        check_arrays(first, REFIT_ARRAYS, sizes)
        each = {n: a._replace(shape="B" + a.shape) for n, a in REFIT_ARRAYS.items() if n != "asked"}
        check_arrays(arrays, {**each, "in_sum": Numbers("b", "RG")}, sizes)
        for array in arrays.values():
            array.setflags(write=False)
        return cls(**{**values, **arrays, "fitted": Refit.of(first)})


def unidentified_notes(found: BootstrapResult) -> list[str]:
    """Return a note on the coefficients without intervals; empty if there are none."""
    terms = ("intercept", *found.term_names)
    names = [f"{found.response_names[r]}: {terms[t]}" for r, t in np.argwhere(found.in_sum)]
    number = plural(len(names), "parameter")
    note = f"no interval for {number} of which prerequisites leave only sums identified"
    return [f"{note}: {first_names(names)}"] if names else []
