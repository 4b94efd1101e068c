"""Comparison of an estimate with the truth: graph, Q-matrix, latent distribution, coefficients."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError
from hidag.latent.laws import LatentLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.terms import Terms
from hidag.metrics.matching import Parts, cpdag_adjacency, match_latents, total_variation
from hidag.views import View

Array = NDArray[np.float64]
_NAN = float("nan")


def _detection(estimated: NDArray[np.bool_], true: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the entries that are set; 1 for a share of nothing."""
    hits, claims, facts = (int(a.sum()) for a in (estimated & true, estimated, true))
    return (
        hits / claims if claims else 1.0,
        hits / facts if facts else 1.0,
        2 * hits / (claims + facts) if claims + facts else 1.0,
    )


@dataclass(frozen=True)
class GraphComparison:
    """Comparison of an estimated CPDAG with the true one.

    Attributes
    ----------
    shd : int, structural Hamming distance: pairs whose status (none, ->, <-, -) differs
    n_missing, n_extra, n_misdirected : int
        Its parts: pairs adjacent only in the truth, only in the estimate, or with another
        direction.
    precision, recall, f1 : float, of the skeleton
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
    """Compare an estimated graph with the true one, variables in the same order.

    Parameters
    ----------
    estimated, true : CPDAG, DAG or array, shape (K, K)
        A DAG is replaced by its CPDAG, the part that data can identify.

    Returns
    -------
    GraphComparison
        Structural Hamming distance and counts of missed, additional and reversed edges.
    """
    a, b = cpdag_adjacency(estimated), cpdag_adjacency(true)
    if a.shape != b.shape:
        reason = (
            "graphs must have the same variables, got {n_estimated} estimated and {n_true} true "
            "ones"
        )
        raise DataError("different-variables", reason, n_estimated=len(a), n_true=len(b))
    pairs = np.triu_indices(len(a), k=1)
    in_a, in_b = (((one | one.T)[pairs] > 0) for one in (a, b))
    differs = (a[pairs] != b[pairs]) | (a.T[pairs] != b.T[pairs])
    return GraphComparison(
        int(differs.sum()),
        int((in_b & ~in_a).sum()),
        int((in_a & ~in_b).sum()),
        int((differs & in_a & in_b).sum()),
        *_detection(in_a, in_b),
    )


@dataclass(frozen=True, repr=False)
class Evaluation(
    View, title="SHD {0.shd}, wrong entries of Q {0.shd_q}", frames={"measures": "to_dict"}
):
    """Distances of an estimate from the truth, after matching latents.

    Attributes
    ----------
    permutation, flips : tuples of int and of bool, length K true
        Index of the estimated latent matched to each true one, -1 if there is none; whether its
        levels were reversed.
    n_latents_true, n_latents_estimated : int
    shd : int or None
        ``shd_graph + shd_q``, the paper's distance on the composite graph; None without a graph.
    shd_graph : int or None, pairs of latents whose status differs between the CPDAGs
    shd_q : int
        Number of entries of Q that differ. An unmatched latent counts with all its entries.
    graph : GraphComparison or None, the parts of ``shd_graph``, and detection of the skeleton
    q_precision, q_recall, q_f1 : float, detection of the entries of Q
    tv_law : float
        Total variation distance of the latent distributions; NaN if it is not defined.
    tv_law_missing : str
        Why ``tv_law`` is NaN; empty if it is a number.
    rmse_loadings, rmse_intercept : float
        Over all entries, zeros included; NaN if absent. A nominal item has a row for each category
        but the last. NaN if the categories are ordered differently in the truth.
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
    tv_law_missing: str = ""

    @property
    def skeleton_precision(self) -> float:
        """Share of the estimated latent edges that are true; NaN without a graph."""
        return _NAN if self.graph is None else self.graph.precision

    @property
    def skeleton_recall(self) -> float:
        """Share of the true latent edges that were found; NaN without a graph."""
        return _NAN if self.graph is None else self.graph.recall

    @property
    def skeleton_f1(self) -> float:
        """Harmonic mean of the precision and recall of the skeleton; NaN without a graph."""
        return _NAN if self.graph is None else self.graph.f1

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name as a flat dictionary of lists and numbers."""
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
        """Return the numbers as text."""
        matched = ", ".join(
            f"Z{k + 1}: " + ("none" if e < 0 else f"{e + 1}{' flipped' if flip else ''}")
            for k, (e, flip) in enumerate(zip(self.permutation, self.flips, strict=True))
        )
        lines = [f"wrong entries of Q      {self.shd_q} (no graph was given)"]
        if self.graph is not None:
            lines = [
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
            "latent law              total variation "
            + (
                f"not defined: {self.tv_law_missing}"
                if self.tv_law_missing
                else f"{self.tv_law:.4f}"
            ),
            f"root mean squared error loadings {self.rmse_loadings:.4f}, intercept "
            f"{self.rmse_intercept:.4f}",
            f"latents                 {self.n_latents_estimated} estimated, "
            f"{self.n_latents_true} true; {matched}",
        ]
        return "\n".join(lines)

    __str__ = summary


def evaluate(estimate: object, truth: object) -> Evaluation:
    """Compare an estimate with the truth, up to permutation and reversal of latents.

    Parameters
    ----------
    estimate : object
        A fitted estimator (``q_matrix_``, ``intercept_``, ``loadings_``, ``latent_law_``,
        ``graph_``), a result (the same without the underscore) or :class:`Parts`; only Q is
        required.
    truth : object
        With ``q_matrix``, ``intercept``, ``loadings``, ``law`` and ``cpdag``, or :class:`Parts`.

    Returns
    -------
    Evaluation
        Errors of Q, graph, coefficients and latent distribution after the matching.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> hidag.evaluate(model, skills.truth)
    Evaluation(SHD 0, wrong entries of Q 0)
    """
    ours, true = Parts.of(estimate), Parts.of(truth)
    matching = match_latents(ours, true)
    # One position per true latent, then one per unmatched estimated latent.
    order = np.array([*matching.permutation, *matching.extra], dtype=np.int64)
    flips = np.array([*matching.flips, *(False for _ in matching.extra)], dtype=bool)
    filled, in_truth = order >= 0, np.arange(len(order)) < true.n_latents
    moved = ours.relabelled(order[filled], flips[filled])

    q_ours, q_true = _columns(moved.q_matrix, filled), _columns(true.q_matrix, in_truth)
    shd_q = int((q_ours != q_true).sum())
    graph = None
    if moved.graph is not None and true.graph is not None:
        padded = np.pad(true.graph, (0, len(order) - true.n_latents))
        graph = evaluate_graph(_columns(_columns(moved.graph, filled).T, filled).T, padded)
    comparable = moved.questions == true.questions
    return Evaluation(
        matching.permutation,
        matching.flips,
        true.n_latents,
        ours.n_latents,
        None if graph is None else graph.shd + shd_q,
        None if graph is None else graph.shd,
        shd_q,
        graph,
        *_detection(q_ours.astype(bool), q_true.astype(bool)),
        tv_law=total_variation(moved.law, true.law),
        tv_law_missing=_why_no_distance(moved.law, true.law),
        rmse_loadings=_rmse_loadings(moved, true, filled) if comparable else _NAN,
        rmse_intercept=_rmse(moved.intercept, true.intercept) if comparable else _NAN,
    )


def _why_no_distance(law: LatentLaw | None, true: LatentLaw | None) -> str:
    """Return why two latent distributions have no total variation distance; empty if they have."""
    if law is None or true is None:
        return "a latent distribution is absent"
    ours, theirs = law.space.levels, true.space.levels
    if len(ours) != len(theirs):
        return f"{len(ours)} estimated and {len(theirs)} true latents"
    if ours != theirs:
        return f"the matched latents have {ours} levels, the true ones {theirs}"
    return "" if law.space.listable else "too many joint states to list"


def _rmse_loadings(moved: Parts, true: Parts, filled: NDArray[np.bool_]) -> float:
    """Return the error of the loadings by term, or of strengths if the latents' levels differ."""
    ours, theirs = moved.loadings, true.loadings
    if ours is None or theirs is None:
        return _NAN
    if moved.levels == true.levels and filled.all():
        pairs = set(moved.terms.interactions) | set(true.terms.interactions)
        union = Terms(true.levels, tuple(sorted(pairs)))
        a, b = moved.terms.rewritten(ours, union), true.terms.rewritten(theirs, union)
        return _rmse(a, b if moved.ruled_out is None else _nearest(b, a, union, moved.ruled_out))
    strengths = _columns(moved.terms.strengths(ours), filled)
    in_truth = np.arange(len(filled)) < true.n_latents
    return _rmse(strengths, _columns(true.terms.strengths(theirs), in_truth))


def _nearest(loadings: Array, to: Array, terms: Terms, ruled_out: NDArray[np.bool_]) -> Array:
    """Return the loadings (R, T) nearest to others among those equivalent in possible states."""
    features = terms.features(StateSpace(terms.levels).states()[~ruled_out])
    out = loadings.copy()
    for r, used in enumerate((loadings != 0) | (to != 0)):
        design = np.hstack([np.ones((len(features), 1)), features[:, used]])
        _, _, rotation = np.linalg.svd(design)
        null_space = rotation[np.linalg.matrix_rank(design) :, 1:]
        out[r, used] += null_space.T @ (null_space @ (to - loadings)[r, used])
    return out


def _columns(values: NDArray[Any], filled: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the columns at the filled positions, zeros elsewhere."""
    out = np.zeros((values.shape[0], len(filled)), dtype=values.dtype)
    out[:, filled] = values
    return out


def _rmse(a: Array | None, b: Array | None) -> float:
    return _NAN if a is None or b is None else float(np.sqrt(np.mean((a - b) ** 2)))
