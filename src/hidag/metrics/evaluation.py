"""An estimate held against the truth it should have found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError
from hidag.latent.laws import LatentLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.terms import Terms
from hidag.metrics.matching import Matching, match_latents, total_variation
from hidag.metrics.model_parts import Parts, cpdag_adjacency
from hidag.structure.graphs import CPDAG

# --- How far two graphs are apart


@dataclass(frozen=True)
class Detection:
    """How well a set of claims (edges, entries of Q) covers a true set.

    A share of nothing is 1: who claims nothing claims nothing false.
    """

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, estimated: NDArray[np.bool_], true: NDArray[np.bool_]) -> Detection:
        """Return the detection of the entries that are set, two arrays of the same shape."""
        hits = int((estimated & true).sum())
        claims, facts = int(estimated.sum()), int(true.sum())
        return cls(
            precision=hits / claims if claims else 1.0,
            recall=hits / facts if facts else 1.0,
            f1=2 * hits / (claims + facts) if claims + facts else 1.0,
        )


@dataclass(frozen=True)
class GraphComparison:
    """An estimated CPDAG held against a true one.

    Attributes
    ----------
    shd : int
        Structural Hamming distance: pairs whose status (none, ->, <-, -) differs.
    n_missing, n_extra, n_misdirected : int
        The pairs that make up ``shd``: joined only in truth, joined only in the estimate, joined
        in both but not in the same way.
    precision, recall, f1 : float
        Of the skeleton.
    """

    shd: int
    n_missing: int
    n_extra: int
    n_misdirected: int
    precision: float
    recall: float
    f1: float

    def to_dict(self) -> dict[str, int | float]:
        """Return the numbers by name."""
        return asdict(self)


def evaluate_graph(estimated: Any, true: Any) -> GraphComparison:
    """Return how far an estimated graph is from a true one, variables in the same order.

    Parameters
    ----------
    estimated, true : CPDAG, DAG or array, shape (K, K)
        A DAG stands for its CPDAG, since no more than that can be told from data.
    """
    a, b = cpdag_adjacency(estimated), cpdag_adjacency(true)
    if a.shape != b.shape:
        raise DataError(
            f"graphs must have the same variables, got {len(a)} estimated and {len(b)} true ones"
        )
    pairs = np.triu_indices(len(a), k=1)
    forward = (a[pairs], b[pairs])
    backward = (a.T[pairs], b.T[pairs])
    in_a, in_b = ((forward[i] | backward[i]).astype(bool) for i in (0, 1))
    differs = (forward[0] != forward[1]) | (backward[0] != backward[1])
    skeleton = Detection.of(in_a, in_b)
    return GraphComparison(
        shd=int(differs.sum()),
        n_missing=int((in_b & ~in_a).sum()),
        n_extra=int((in_a & ~in_b).sum()),
        n_misdirected=int((differs & in_a & in_b).sum()),
        precision=skeleton.precision,
        recall=skeleton.recall,
        f1=skeleton.f1,
    )


# ---


class TruthLike(Protocol):
    """What a truth has to offer to be held against an estimate."""

    @property
    def q_matrix(self) -> NDArray[np.int8]:
        """Which item measures which latent, shape (J, K)."""
        ...

    @property
    def intercept(self) -> NDArray[np.float64]:
        """Intercepts, shape (J,)."""
        ...

    @property
    def loadings(self) -> NDArray[np.float64]:
        """Slopes, shape (J, K)."""
        ...

    @property
    def law(self) -> LatentLaw:
        """The latents' law."""
        ...

    @property
    def cpdag(self) -> CPDAG:
        """The latents' graph up to Markov equivalence."""
        ...


@dataclass(frozen=True)
class Evaluation:
    """How far an estimate is from the truth, after matching latents.

    Attributes
    ----------
    permutation : tuple of int, length K true
        Estimated latent of each true one; -1 where there is none.
    flips : tuple of bool, length K true
        Whether that latent's levels were reversed.
    n_latents_true, n_latents_estimated : int
    shd : int or None
        ``shd_graph + shd_q``, the paper's distance on the composite graph; None without a graph.
    shd_graph : int or None
        Pairs of latents whose status in the two CPDAGs differs.
    shd_q : int
        Entries of Q that differ. A latent too many or too few counts with all its entries.
    graph : GraphComparison or None
        What ``shd_graph`` is made of, and detection of the latents' skeleton.
    q_precision, q_recall, q_f1 : float
        Detection of the entries of Q.
    tv_law : float
        Total variation distance of the latent laws; NaN when a law is absent, the numbers of
        latents differ or the joint states are too many to list.
    rmse_loadings : float
        Over all J x K entries, zeros included; NaN without loadings. A nominal item has a row for
        each category but the last; NaN where categories are asked about in another order than the
        truth's, because some of the rows are not about the same then.
    rmse_intercept : float
        Likewise; NaN without intercepts.
    """

    permutation: tuple[int, ...]
    flips: tuple[bool, ...]
    n_latents_true: int
    n_latents_estimated: int
    shd: int | None
    shd_graph: int | None
    shd_q: int
    graph: GraphComparison | None
    q_precision: float
    q_recall: float
    q_f1: float
    tv_law: float
    rmse_loadings: float
    rmse_intercept: float

    @property
    def skeleton_precision(self) -> float:
        """Share of the estimated latent edges that exist; NaN without a graph."""
        return float("nan") if self.graph is None else self.graph.precision

    @property
    def skeleton_recall(self) -> float:
        """Share of the latent edges that were found; NaN without a graph."""
        return float("nan") if self.graph is None else self.graph.recall

    @property
    def skeleton_f1(self) -> float:
        """Harmonic mean of the skeleton's precision and recall; NaN without a graph."""
        return float("nan") if self.graph is None else self.graph.f1

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, flat, as lists and numbers: a row of a study."""
        out: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if name != "graph"
        }
        for name in ("n_missing", "n_extra", "n_misdirected"):
            out[f"graph_{name}"] = None if self.graph is None else getattr(self.graph, name)
        for name in ("skeleton_precision", "skeleton_recall", "skeleton_f1"):
            out[name] = getattr(self, name)
        return out

    def summary(self) -> str:
        """Return the numbers in a few lines to read."""
        matched = ", ".join(
            f"Z{k + 1}: " + ("none" if e < 0 else f"{e + 1}{' flipped' if flip else ''}")
            for k, (e, flip) in enumerate(zip(self.permutation, self.flips, strict=True))
        )
        lines = []
        if self.graph is None:
            lines.append(f"wrong entries of Q      {self.shd_q} (no graph was given)")
        else:
            lines += [
                f"SHD                     {self.shd} ({self.shd_graph} latent pairs, "
                f"{self.shd_q} entries of Q)",
                f"latent pairs            {self.graph.n_missing} missing, {self.graph.n_extra} "
                f"extra, {self.graph.n_misdirected} misdirected",
                f"skeleton                precision {self.graph.precision:.3f}, recall "
                f"{self.graph.recall:.3f}, F1 {self.graph.f1:.3f}",
            ]
        lines += [
            f"Q                       precision {self.q_precision:.3f}, recall "
            f"{self.q_recall:.3f}, F1 {self.q_f1:.3f}",
            f"latent law              total variation {self.tv_law:.4f}",
            f"root mean squared error loadings {self.rmse_loadings:.4f}, intercept "
            f"{self.rmse_intercept:.4f}",
            f"latents                 {self.n_latents_estimated} estimated, "
            f"{self.n_latents_true} true; {matched}",
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def evaluate(estimate: object, truth: TruthLike | Parts) -> Evaluation:
    """Return how far an estimate is from the truth, whatever it calls its latents.

    Parameters
    ----------
    estimate : object
        A fitted estimator (``q_matrix_``, ``intercept_``, ``loadings_``, ``latent_law_``,
        ``graph_``), a result (the same without the underscore) or :class:`Parts`; all but Q may
        be absent.
    truth : object
        With ``q_matrix``, ``intercept``, ``loadings``, ``law`` and ``cpdag``, or :class:`Parts`.

    Returns
    -------
    Evaluation
    """
    ours, true = Parts.of(estimate), Parts.of(truth)
    matching = match_latents(ours, true)
    order, size = _padded_order(matching, ours.n_latents)
    flips = np.zeros(size, dtype=bool)
    flips[: true.n_latents] = matching.flips
    # Relabelling needs every place filled; places without an estimated latent are cut away.
    filled = order >= 0
    moved = ours.relabelled(order[filled], flips[filled])

    q_ours = _columns(moved.q_matrix, filled)
    q_true = _columns(true.q_matrix, np.arange(size) < true.n_latents)
    found = Detection.of(q_ours.astype(bool), q_true.astype(bool))
    shd_q = int((q_ours != q_true).sum())
    graph = None
    if moved.graph is not None and true.graph is not None:
        graph = evaluate_graph(
            _columns(_columns(moved.graph, filled).T, filled).T,
            np.pad(true.graph, (0, size - true.n_latents)),
        )
    rmse_loadings = rmse_intercept = float("nan")
    comparable = moved.questions == true.questions
    if comparable and moved.loadings is not None and true.loadings is not None:
        rmse_loadings = _rmse_loadings(moved, true, filled)
    if comparable and moved.intercept is not None and true.intercept is not None:
        rmse_intercept = _rmse(moved.intercept, true.intercept)
    return Evaluation(
        permutation=matching.permutation,
        flips=matching.flips,
        n_latents_true=true.n_latents,
        n_latents_estimated=ours.n_latents,
        shd=None if graph is None else graph.shd + shd_q,
        shd_graph=None if graph is None else graph.shd,
        shd_q=shd_q,
        graph=graph,
        q_precision=found.precision,
        q_recall=found.recall,
        q_f1=found.f1,
        tv_law=total_variation(moved.law, true.law),
        rmse_loadings=rmse_loadings,
        rmse_intercept=rmse_intercept,
    )


def _rmse_loadings(moved: Parts, true: Parts, filled: NDArray[np.bool_]) -> float:
    """Return the error of the coefficients, term by term when the latents have the same levels.

    Otherwise latents without a partner count as ones without effect, and latents are compared by
    what they add over all their levels.
    """
    ours, theirs = moved.loadings, true.loadings
    assert ours is not None
    assert theirs is not None
    if moved.levels == true.levels and filled.all():
        pairs = set(moved.terms.interactions) | set(true.terms.interactions)
        union = Terms(true.levels, tuple(sorted(pairs)))
        a, b = moved.terms.rewritten(ours, union), true.terms.rewritten(theirs, union)
        return _rmse(a, b if moved.ruled_out is None else _nearest(b, a, union, moved.ruled_out))
    there = np.arange(len(filled)) < true.n_latents
    return _rmse(
        _columns(moved.terms.strengths(ours), filled), _columns(true.terms.strengths(theirs), there)
    )


def _nearest(
    loadings: NDArray[np.float64],
    to: NDArray[np.float64],
    terms: Terms,
    ruled_out: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return loadings (R, T) that are the same in states that occur, as near to others as can be.

    Some are known in sum only where states are ruled out: in which of them a fit leaves the sum is
    no error.
    """
    features = terms.features(StateSpace(terms.levels).states()[~ruled_out])
    out = loadings.copy()
    for r, used in enumerate((loadings != 0) | (to != 0)):
        design = np.hstack([np.ones((len(features), 1)), features[:, used]])
        _, _, turned = np.linalg.svd(design)
        idle = turned[np.linalg.matrix_rank(design) :, 1:]
        out[r, used] += idle.T @ (idle @ (to - loadings)[r, used])
    return out


def _padded_order(matching: Matching, n_estimated: int) -> tuple[NDArray[np.int64], int]:
    """Return the estimated latent of each place (true ones first, then extra), and their number."""
    order = np.array([*matching.permutation, *matching.extra], dtype=np.int64)
    assert int((order >= 0).sum()) == n_estimated
    return order, len(order)


def _columns(values: NDArray[Any], filled: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the columns spread over the filled places, zeros elsewhere."""
    out = np.zeros((values.shape[0], len(filled)), dtype=values.dtype)
    out[:, filled] = values
    return out


def _rmse(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean((a - b) ** 2)))
