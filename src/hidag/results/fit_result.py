"""FitResult: the fitted model, how it was estimated, and what it says about rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hidag.data.cells import CategoryLabels, parse_words
from hidag.data.rows import MissingnessPatterns, canonical_order
from hidag.data.value_checks import read_known_items
from hidag.exceptions import Advice, SettingError, not_fitted
from hidag.identifiability.certificate import Certificate, certify_q_matrix, certify_result
from hidag.latent.laws import LatentLaw, SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families import item_type
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters, Responses
from hidag.measurement.terms import MAIN_EFFECTS, Effects, Terms
from hidag.network_em.posterior import (
    level_probabilities,
    posterior_modes,
    row_log_densities,
    upper_level_probabilities,
)
from hidag.parallel import one_blas_thread
from hidag.results.claims import Claim, claim_level_of, claims_of
from hidag.results.findings import Finding
from hidag.results.methods import FitMethods
from hidag.results.nuisance_factor import NuisanceFactor
from hidag.strategy.observed_likelihood.edge_tests import EdgeTest, KnowledgeCost
from hidag.strategy.problem import StartRecord
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import Knowledge
from hidag.views import Content, View, svg_of

if TYPE_CHECKING:
    from hidag.estimator import DCRL

Array = NDArray[np.float64]
#: What functions after a fit take; see :func:`as_result`.
AnyFit: TypeAlias = "FitResult | DCRL"


@dataclass(frozen=True, repr=False)
class FitResult(
    FitMethods,
    View,
    title="{0.n_latents} latents, {0.n_items} items, {0.n_samples} rows",
    frames={
        "latents": "_latents",
        "edges": "_edges",
        "q": "_q",
        "loadings": "_loadings",
        "items": "_states",
        "law": "_law",
    },
):
    """A fitted model, frozen.

    Attributes
    ----------
    item_names, latent_names : tuple of str
    parameters : MeasurementParameters
    law : LatentLaw
        Joint distribution of the latents.
    graph : CPDAG
    q_given : ndarray of int8, shape (J, K), or None
        The Q-matrix the fit was given: 1, 0, or -1 where it was to be estimated.
    log_likelihood, objective : float
        Observed-data log-likelihood under ``law``, and the same minus the penalty; NaN when the
        latents were sampled and the treewidth is too large to sum over their joint states.
    n_samples : int
        Rows of the table, including rows without answers or weight; see ``n_counted``.
    missing_share : float
        Share of missing cells in the rows that count.
    n_iter, converged, method : int, bool, str
    trace : ndarray, shape (n_iter, 2)
        Objective and largest coefficient change per step.
    starts : tuple of StartRecord
        Objectives are under the initial penalty and on ``n_rows`` rows; the final support may be
        selected under another penalty (``penalty_strength_used``). Under a network law starts are
        compared by the objective minus the complexity of the law.
    n_reached : int
        Number of starts that reached the best objective.
    graph_rows : float
        Effective sample size used by the graph score.
    information_ratio : float
        Share of the latents' pairwise information that the items carry.
    edge_tests : tuple of EdgeTest
        Observed-data likelihood-ratio tests of the weakest edges.
    family_reasons : tuple of str, length J
        Why each item has its family.
    settings : mapping
        The settings of the estimator, and nothing else.
    versions : mapping
        Versions of hidag, Python and the numerical packages.
    item_families : tuple of str
        Families of the items if some are nominal, so that ``parameters`` has several rows for
        them; empty otherwise.
    seen_rows : MissingnessPatterns or None
        Patterns of observed cells with their weights; None if unknown.
    seed : int
        Root of all random numbers of the fit.
    penalty_strength_used, penalty_threshold_used : float
        lambda and tau of the final support selection.
    weighted : bool
        Whether rows had weights.
    n_counted : float
        Number of rows that count, or the sum of their weights; NaN if unknown.
    n_unanswered : int
        Rows without any answer.
    n_latents_reason : str
        Why this number of latents was chosen; empty if it was given.
    overdispersed : mapping from item to float
        Poisson items with their ratio of observed to model variance, where significant.
    noiseless : tuple of str
        Items whose dispersion is at its lower bound.
    interacting : tuple of str
        Items in which score tests find interactions that a fit with main effects leaves out.
    knowledge_cost : mapping from {"graph", "hierarchy"} to KnowledgeCost
        Log-likelihood lost by prior knowledge that the data contradict.
    graph_by_likelihood : bool
        Whether the graph was searched by the observed-data likelihood (low information ratio).
    answer_words : mapping from item to sequence of str
        Labels of answers, the first one for 0.
    reading : mapping
        Options with which the command line read the table.
    edge_probabilities : ndarray, shape (K, K)
        Probability that the row's latent causes the column's directly; NaN if not computed.
    uncertainty_note : str
        Why there are no probabilities; empty if there are.
    levels_reason : str
        Which levels were selected, and by how much; empty if they were given.
    nuisance : tuple of NuisanceFactor
        Response styles and dependent pairs, which are summed out.
    rival_gap : float
        How much worse, in units of log-likelihood, the best converged start with other latents is;
        NaN if there is none.
    findings : tuple of Finding
        Evidence against the model from the checks after the fit, most serious first.
    checks_note : str
        Why the checks were not made; empty if they were.
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
    seen_rows: MissingnessPatterns | None = None
    seed: int = 0
    penalty_strength_used: float = np.nan
    penalty_threshold_used: float = np.nan
    weighted: bool = False
    n_counted: float = np.nan
    n_unanswered: int = 0
    n_latents_reason: str = ""
    overdispersed: Mapping[str, float] = field(default_factory=dict)
    noiseless: tuple[str, ...] = ()
    interacting: tuple[str, ...] = ()
    knowledge_cost: Mapping[str, KnowledgeCost] = field(default_factory=dict)
    graph_by_likelihood: bool = False
    answer_words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    edge_probabilities: Array = field(default_factory=lambda: np.zeros((0, 0)))
    uncertainty_note: str = ""
    levels_reason: str = ""
    nuisance: tuple[NuisanceFactor, ...] = ()
    rival_gap: float = np.nan
    findings: tuple[Finding, ...] = ()
    checks_note: str = ""

    def __post_init__(self) -> None:
        n_latents = len(self.latent_names)
        if self.edge_probabilities.shape != (n_latents, n_latents):
            object.__setattr__(self, "edge_probabilities", np.full((n_latents, n_latents), np.nan))
        if np.isnan(self.n_counted) and not self.weighted:
            object.__setattr__(self, "n_counted", float(self.n_samples))

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return len(self.item_names)

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return len(self.latent_names)

    def _drawing(self) -> str:
        return svg_of(self) if self.n_latents > 1 else ""

    def _latents(self) -> Content:
        columns = ("latent", "items", *(f"P(={u})" for u in range(max(self.terms.levels))))
        shares, counts = np.asarray(self.law.marginals()), self.q_matrix.sum(axis=0)
        own = zip(self.latent_names, counts, shares, strict=True)
        return columns, [(name, count, *row) for name, count, row in own]

    def _edges(self) -> Content:
        columns = ("one", "mark", "other", "arrow", "adjacency")
        kinds = {True: "->", False: "-"}
        rows = [
            (c.one, "..." if c.weak and not c.directed else kinds[c.directed], c.other, c.arrow,
             c.adjacency)
            for c in self.claims()
        ]  # fmt: skip
        return columns, rows

    def _q(self) -> Content:
        rows = zip(self.item_names, self.q_matrix.tolist(), strict=True)
        return ("item", *self.latent_names), [(name, *row) for name, row in rows]

    def _loadings(self) -> Content:
        columns = ("item", "intercept", *self.terms.names(self.latent_names))
        rows = zip(self.response_names, self.intercept, self.loadings, strict=True)
        return columns, [(name, first, *row) for name, first, row in rows]

    def _law(self) -> Content:
        return self.law.table(self.latent_names)

    def _states(self) -> Any:
        # By name, because expectations given a latent are computed from the fit and its law.
        return import_module("hidag.causal").expected_responses(self)

    @cached_property
    def digest(self) -> str:
        """A hash of names and estimates: files about another fit are refused."""
        found = hashlib.sha256("\0".join((*self.item_names, *self.latent_names)).encode())
        for array in (self.intercept, self.loadings, self.q_matrix):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:16]

    @cached_property
    def identifiability(self) -> Certificate:
        """Identifiability conditions of this Q-matrix, one by one (print it)."""
        return certify_q_matrix(self)

    def certify(self, *, information: bool = True) -> Certificate:
        """Return the certificate of the fitted coefficients and law, not of Q alone.

        Checks monotone items, a positive law and distinguishable states; with ``information`` also
        the rank and the null space of the Fisher information, up to 2^13 joint states. Beyond,
        states are compared item by item only.
        """
        return certify_result(self, information=information)

    def claims(self, probabilities: Array | None = None) -> tuple[Claim, ...]:
        """Return the statements about edges at the claim level of the settings.

        ``probabilities``, shape (K, K), replace those of the fit, for instance by a bootstrap's.
        """
        known = self.settings.get("knowledge")
        required = None
        if isinstance(known, Mapping):
            required = Knowledge.from_dict(known).required_adjacency(self.latent_names)
        own = self.edge_probabilities if probabilities is None else probabilities
        level, rejected = claim_level_of(self.settings), bool(self.misfits)
        return claims_of(self.graph, own, level, required, rejected=rejected)

    @property
    def misfits(self) -> tuple[str, ...]:
        """Codes of the serious findings against the model, which lower all claims."""
        out = [one.code for one in self.findings if one.serious]
        out += ["overdispersed-counts"] * bool(self.overdispersed)
        return (*out, *["interactions-left-out"] * bool(self.interacting))

    @property
    def all_starts_stopped(self) -> bool:
        """Whether ``max_iter`` ended every start before it converged."""
        most = self.settings.get("max_iter")
        stopped = [isinstance(most, int) and one.n_iter >= most for one in self.starts]
        return bool(stopped) and all(stopped) and not any(one.converged for one in self.starts)

    @property
    def n_finished(self) -> int:
        """Number of starts that were run to convergence; others were dropped early."""
        return max(self.n_reached, sum(record.converged for record in self.starts))

    @property
    def q_matrix(self) -> NDArray[np.int8]:
        """The Q-matrix: which latent drives which item, shape (J, K)."""
        if self.q_given is not None and (self.q_given >= 0).all():
            return self.q_given.copy()
        return np.asarray(self.responses.any_response(self.parameters.support), dtype=np.int8)

    @property
    def effects(self) -> Effects:
        """How the latents of an item combine; main effects if no interaction was selected."""
        given = Effects.of(self.settings.get("effects", "main"))
        return MAIN_EFFECTS if given.selected and not self.terms.interactions else given

    @cached_property
    def responses(self) -> Responses:
        """Rows of coefficients per item; only nominal items have several."""
        return Responses.of(self.families)

    @property
    def response_names(self) -> tuple[str, ...]:
        """Names of the rows of coefficients: items, or item and category for nominal items."""
        return self.responses.names(self.item_names, self.answer_words)

    @property
    def intercept(self) -> Array:
        """Intercepts, shape (J,); nominal items have one for each category but the last."""
        return self.parameters.intercept

    @property
    def loadings(self) -> Array:
        """Loadings on the terms, (J, T); nominal items have several rows (``response_names``)."""
        return self.parameters.loadings

    @property
    def terms(self) -> Terms:
        """The terms that the loadings multiply."""
        return self.parameters.terms

    @property
    def strengths(self) -> Array:
        """Total effect of each latent on each item, (J, K); for nominal ones the largest."""
        return self.responses.largest(self.response_strengths)

    @property
    def response_strengths(self) -> Array:
        """Total effect of each latent on each response over all its levels, shape (R, K).

        With interactions, the average over patterns of the other latents; under a hierarchy, over
        the possible patterns (:meth:`Terms.strengths_among`).
        """
        if self.ruled_out is None:
            return self.parameters.strengths
        states = self.law.space.states()[~self.ruled_out]
        return self.terms.strengths_among(self.loadings, states)

    @property
    def dispersion(self) -> Array:
        """Dispersion (of Gaussian items the variance), NaN for families without one, (J,)."""
        known = [family_named(name).has_dispersion for name in self.parameters.families]
        return np.where(known, self.parameters.dispersion, np.nan)[self.responses.starts]

    @property
    def cutpoints(self) -> Array:
        """Cutpoints of ordinal items beyond the first, NaN where there are fewer, (J, C)."""
        return self.parameters.cutpoints[self.responses.starts]

    @property
    def has_prerequisites(self) -> bool:
        """Whether the fit was given a hierarchy of latents."""
        known = self.settings.get("knowledge")
        return isinstance(known, Mapping) and bool(known.get("hierarchy"))

    @cached_property
    def ruled_out(self) -> NDArray[np.bool_] | None:
        """Joint states excluded by the hierarchy, shape (S,); None without a hierarchy."""
        if not self.has_prerequisites:
            return None
        known = Knowledge.from_dict({"hierarchy": self.settings["knowledge"]["hierarchy"]})
        return ~known.possible_states(self.latent_names, self.law.space.levels).ravel()

    @property
    def latent_law(self) -> LatentLaw:
        """The joint distribution of the latents."""
        return self.law

    @property
    def families(self) -> tuple[str, ...]:
        """Response family of each item."""
        return self.item_families or self.parameters.families

    @cached_property
    def labels(self) -> dict[str, CategoryLabels]:
        """The labels of items whose answers are words, by item."""
        declared = parse_words(self.settings.get("words"), self.item_names)
        known = {name: tuple(words) for name, words in self.answer_words.items()}
        return {name: CategoryLabels(words, True) for name, words in known.items()} | declared

    def rename(self, names: Mapping[str, str]) -> FitResult:
        """Return the result with other ``names`` of latents, such as {"Z1": "depression"}."""
        known = self.latent_names
        for name in names:
            if name not in known:
                text = "{name!r} is not a latent; the latents are {latents}"
                params = {"name": name, "latents": ", ".join(known)}
                raise SettingError("unknown-latent", text, params)
        chosen = tuple(names.get(name, name) for name in known)
        if len({*chosen, *self.item_names}) < len(chosen) + len(self.item_names):
            text = "names of latents must differ from each other and from the items, got {names}"
            raise SettingError("repeated-names", text, names=", ".join(chosen))
        settings = dict(self.settings)
        if settings.get("latent_names") is not None:
            settings["latent_names"] = list(chosen)
        if isinstance(settings.get("knowledge"), Mapping):
            settings["knowledge"] = _with_names(settings["knowledge"], names)
        tests = (replace(one, pair=_with_names(one.pair, names)) for one in self.edge_tests)
        graph = self.graph.rename(chosen)
        found = replace(
            self, latent_names=chosen, graph=graph, settings=settings, edge_tests=tuple(tests)
        )
        return found.like(self)

    def rows(self, X: Any) -> Array:
        """Return the fit's items in ``X`` (frames by name, arrays by position), shape (N, J)."""
        return read_known_items(X, self.item_names, self.families, self.labels).values

    def _expanded(self, X: Any) -> Array:
        """Return the rows of a table with a column for each response, shape (N, R)."""
        return self.responses.expand(self.rows(X))

    @cached_property
    def whole_model(self) -> tuple[MeasurementParameters, LatentLaw]:
        """Items and law of the latents and, after them, of the nuisances."""
        own, law = self.parameters, self.law
        if not self.nuisance:
            return own, law
        levels = own.terms.levels + tuple(one.n_levels for one in self.nuisance)
        terms = Terms.main(levels, (*own.terms.linear, *range(own.n_latents, len(levels))))
        more = np.column_stack([one.loadings for one in self.nuisance])
        # Coefficients of nuisances follow the main terms.
        loadings = np.hstack([own.loadings, more])
        lowest = own.intercept - 0.5 * more.sum(axis=1)
        space = law.space.widened(levels)
        joint = space.with_nuisances(np.asarray(law.probabilities))
        return replace(own, intercept=lowest, loadings=loadings, terms=terms), SaturatedLaw(
            StateSpace(levels), joint / joint.sum()
        )

    @one_blas_thread()
    def _above_zero(self, X: Any) -> Array:
        """Return the probability of each level above 0, shape (N, F), latent by latent."""
        found = upper_level_probabilities(*self.whole_model, self._expanded(X), seed=self.seed)
        return found[:, : sum(self.terms.levels) - len(self.terms.levels)]

    def posterior(self, X: Any) -> Array:
        """Return the expected level of each latent given rows of ``X``, (N, K): P(1) if binary."""
        return self.terms.expected_levels(self._above_zero(X))

    def posterior_levels(self, X: Any) -> list[Array]:
        """Return probabilities of the latents' levels given rows of ``X``: K arrays (N, M_k)."""
        return level_probabilities(self._above_zero(X), self.terms)

    @one_blas_thread()
    def most_probable_states(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable joint latent state of each row of ``X``, shape (N, K)."""
        found = posterior_modes(*self.whole_model, self._expanded(X), seed=self.seed)
        return found[:, : len(self.latent_names)]

    @one_blas_thread()
    def row_log_likelihood(self, X: Any) -> Array:
        """Return the log density of each row of ``X``, shape (N,)."""
        return row_log_densities(*self.whole_model, self._expanded(X))

    def item_means(self, states: NDArray[np.integer]) -> Array:
        """Return the expected response of each item in the given latent states, shape (n, J).

        In the items' own units: probabilities, mean counts, mean grades, mean times (up to the
        limit of a censored item). Nominal items have a column for each category but the last
        (``response_names``): its probability given that it is none of the earlier ones.
        """
        if not self.nuisance:
            return self.parameters.response_means(states)
        items, _ = self.whole_model
        wide = self.law.space.widened(items.terms.levels)
        shares, others = wide.nuisance_law(), wide.states()[:, self.law.space.n_latents :]
        every = [
            share * items.response_means(np.hstack([states, np.tile(other, (len(states), 1))]))
            for share, other in zip(shares, others, strict=False)
        ]
        return np.asarray(sum(every))

    def refuse_nuisance(self, what: str) -> None:
        """Raise if the fit has nuisances, which ``what`` does not sum out."""
        if self.nuisance:
            raise SettingError(
                "nuisance-not-supported",
                "{what} cannot be computed for a fit with nuisances ({names})",
                advice=Advice(
                    "fit-without-nuisance",
                    "compute it for a fit without nuisances, or use posteriors, graph and "
                    "edge probabilities, which sum them out",
                ),
                what=what,
                names=", ".join(one.name for one in self.nuisance),
            )

    def sample_items(self, states: NDArray[np.integer], rng: np.random.Generator) -> Array:
        """Return items drawn by ``rng`` in the latent ``states``, (n, K), shape (n, J)."""
        items, _ = self.whole_model
        if self.nuisance:
            drawn = [rng.binomial(one.n_levels - 1, 0.5, len(states)) for one in self.nuisance]
            states = np.column_stack([states, *drawn])
        return self.responses.collapse(items.sample(states, rng))

    def save(self, path: str | Path) -> Path:
        """Write the result to one file (a zip of arrays with a JSON header) and return its path."""
        from hidag.results.saved_result import write_result

        return write_result(self, Path(path))


def _with_names(part: Any, names: Mapping[str, str]) -> Any:
    """Return prior knowledge, or a part of it, with other names of latents."""
    if isinstance(part, str):
        return names.get(part, part)
    if isinstance(part, Mapping):
        return {key: _with_names(value, names) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return type(part)(_with_names(one, names) for one in part)
    return part


def as_result(fit: Any, needed: str = "this function needs") -> FitResult:
    """Return the result of a fitted ``DCRL``, or the result itself; ``needed`` begins the error."""
    found = fit if isinstance(fit, FitResult) else getattr(fit, "result_", None)
    if not isinstance(found, FitResult):
        raise not_fitted(fit, needed)
    return found


def reorder_items(result: FitResult, order: NDArray[np.intp]) -> FitResult:
    """Return the same fit with the item ``order[j]`` in position j, as sums round by order."""
    places = order.tolist()
    rows = np.concatenate([np.flatnonzero(result.responses.item == j) for j in places])
    return replace(
        result,
        item_names=tuple(result.item_names[j] for j in places),
        parameters=result.parameters.reordered(items=rows),
        q_given=None if result.q_given is None else result.q_given[order],
        family_reasons=tuple(result.family_reasons[j] for j in places),
        item_families=tuple(result.item_families[j] for j in places if result.item_families),
        seen_rows=None if result.seen_rows is None else result.seen_rows.with_items_in_order(order),
    )


def observable(result: FitResult, values: Array) -> Array:
    """Return a table (N, J) with times beyond the limit of a censored item set to the limit."""
    out = values
    for j, name in enumerate(result.families):
        column = values[:, j]
        observed = item_type(name).as_observed(column)
        if observed is not column:
            # Copied only if needed: the table belongs to the caller.
            out = values.copy() if out is values else out
            out[:, j] = observed
    return out


def canonical_rows(
    result: FitResult, values: Array, weights: Array | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return an order of the rows (N,) and the ranks of items (J,), by content, weight and fit."""
    ranks = None if weights is None else np.unique(weights, return_inverse=True)[1].astype(float)
    rows, columns = canonical_order(values, result.families, ranks, rank_items(result))
    return rows, np.argsort(columns)


def rank_items(result: FitResult) -> NDArray[np.intp]:
    """Return the rank of each item by its fitted parameters, shape (J,), equal for equal ones."""
    parameters, item = result.parameters, result.responses.item
    cutpoints = np.nan_to_num(parameters.cutpoints, nan=np.inf)
    numbers = np.hstack([parameters.coefficients, parameters.dispersion[:, None], cutpoints])
    keys = [numbers[item == j].tobytes() for j in range(len(result.item_names))]
    place = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], dtype=np.intp)
