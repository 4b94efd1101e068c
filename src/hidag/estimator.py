"""DCRL, the estimator with a scikit-learn interface, and `select`, which compares its fits."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hidag.data.rows import nonempty_rows, select_weighted_rows
from hidag.data.table import Observations, declared_labels, read_table
from hidag.exceptions import DataError, ModelCheckWarning, Setting, SettingError
from hidag.fitting.settings import (
    checked_count,
    plain_settings,
    read_task,
    refuse_arrays,
    root_seed,
)
from hidag.fitting.stages import InitialValues, run_stages
from hidag.formatting import plural
from hidag.model_checks import check_model
from hidag.model_selection.automatic_number import fit_selected_number
from hidag.model_selection.number_search import compare_numbers
from hidag.model_selection.selection import Selection
from hidag.parallel import Progress, make_observer
from hidag.results import FitResult
from hidag.results.methods import FitMethods
from hidag.strategy.measurement import Measurement
from hidag.structure.knowledge import Knowledge
from hidag.views import Library

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.latent.laws import LatentLaw
    from hidag.measurement.terms import Terms
    from hidag.structure.graphs import CPDAG

Array = NDArray[np.float64]
Auto = Literal["auto"]
Effect = Literal["main", "auto", "all", "acdm", "gdina", "dina", "dino"]
PenaltyName = Literal["tlp", "scad", "mcp"]
logger = logging.getLogger("hidag")
#: Attributes of a fitted estimator that are those of its result, with an underscore at the end.
_FITTED = (
    "q_matrix", "intercept", "loadings", "terms", "dispersion", "cutpoints", "graph",
    "edge_probabilities", "log_likelihood", "n_iter", "converged", "trace", "families",
    "latent_names",
)  # fmt: skip


class FittedModel(FitMethods, TransformerMixin):  # type: ignore[misc]
    """Methods of a fitted estimator, which only need ``result_``.

    scikit-learn wraps ``transform`` for ``set_output`` only in subclasses of its mixin.
    """

    result_: FitResult
    q_matrix_: NDArray[np.int8]
    intercept_: Array
    loadings_: Array
    terms_: Terms
    dispersion_: Array
    cutpoints_: Array
    latent_law_: LatentLaw
    graph_: CPDAG
    edge_probabilities_: Array
    log_likelihood_: float
    n_iter_: int
    converged_: bool
    trace_: Array
    families_: tuple[str, ...]
    latent_names_: tuple[str, ...]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def _store(self, result: FitResult) -> None:
        """Set ``result_`` and the fitted attributes."""
        self.result_ = result
        self.latent_law_ = result.law
        for name in _FITTED:
            setattr(self, f"{name}_", getattr(result, name))

    def _rows(self, X: Any) -> Observations:
        """Return a table with the columns of the fit."""
        check_is_fitted(self)
        table = read_table(X, allow_empty_items=True, labels=self.result_.labels)
        validate_data(self, X if table.named else table.values, skip_check_array=True, reset=False)
        return table

    def predict_proba(self, X: Any) -> Array | list[Array]:
        """Return P(Z_k = 1 | row), (N, K), or with more than two levels K arrays (N, M_k)."""
        rows = self._rows(X)
        if max(self.result_.law.space.levels) > 2:
            return self.result_.posterior_levels(rows)
        return self.result_.posterior(rows)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable joint latent state of each row, shape (N, K)."""
        rows = self._rows(X)
        return self.result_.most_probable_states(rows)

    def transform(self, X: Any) -> Array:
        """Return the posterior mean level of each latent, (N, K): ``predict_proba`` if binary."""
        rows = self._rows(X)
        return self.result_.posterior(rows)

    def score_samples(self, X: Any) -> Array:
        """Return the observed-data log density of each row, shape (N,); 0 for empty rows."""
        rows = self._rows(X)
        return self.result_.row_log_likelihood(rows)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean observed-data log-likelihood of the rows with an observed cell.

        Empty rows are excluded, as in a fit: their log density is 0.

        Parameters
        ----------
        X : array or frame, shape (N, J)
        y : ignored
        sample_weight : array, shape (N,), optional
        """
        rows = self._rows(X)
        answered = nonempty_rows(rows.values)
        if not answered.any():
            text = "score needs a row with an observed cell, but all {n:,} rows are empty"
            raise DataError("no-observed-rows", text, n=len(answered))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights is not None and weights.shape != answered.shape:
            raise DataError(
                "weights-shape",
                "{weights} must have one weight for each of the {n:,} rows, got shape {shape}",
                {"weights": Setting("sample_weight"), "n": len(answered), "shape": weights.shape},
            )
        of_answered = None if weights is None else weights[answered]
        return float(
            np.average(self.result_.row_log_likelihood(rows)[answered], weights=of_answered)
        )

    def sample(
        self, n_samples: int = 1, *, random_state: Any = None
    ) -> tuple[Array, NDArray[np.uint8]]:
        """Return responses (n, J) and latent states (n, K) drawn from the fitted model."""
        check_is_fitted(self)
        rng = np.random.default_rng(root_seed(random_state))
        states = self.result_.law.sample(checked_count("n_samples", n_samples), rng)
        return self.result_.sample_items(states, rng), states

    @property
    def q_frame_(self) -> Any:
        """The Q-matrix as a data frame of the library of the data: items by latents."""
        return self.to_frame("q")

    @property
    def loadings_frame_(self) -> Any:
        """Intercepts and loadings as a data frame with the names of items and terms."""
        return self.to_frame("loadings")

    def to_frame(self, table: str | None = None, *, library: Library | None = None) -> Any:
        """Return a table of the fit as a data frame, as `FitResult.to_frame` does.

        Parameters
        ----------
        table : {"latents", "edges", "q", "loadings", "items", "law"}, optional
        library : {"pandas", "polars", "pyarrow"}, optional
        """
        check_is_fitted(self)
        return self.result_.to_frame(table, library=library)

    def rename(self, names: Mapping[str, str]) -> FitResult:
        """Give latents other ``names``, such as {"Z1": "depression"}, and return the result."""
        check_is_fitted(self)
        self._store(self.result_.rename(names))
        return self.result_

    def plot(self, kind: str | None = None, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw one figure of the fit, as `hidag.plotting.plot`, and return its axes.

        Parameters
        ----------
        kind : {"graph", "items", "q", "law", "profiles", "loadings", "trace", "item"}, optional
        ax : matplotlib Axes, optional
        **options
        """
        check_is_fitted(self)
        return self.result_.plot(kind, ax, **options)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the views in notebooks: that of the result, or of the settings before a fit."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if hasattr(self, "result_"):
            bundle["text/html"] = self.result_._repr_html_()
        return bundle

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the latents' names, shape (K,)."""
        check_is_fitted(self)
        return np.array(self.result_.latent_names, dtype=object)


class DCRL(FittedModel, BaseEstimator):  # type: ignore[misc]
    """Discrete causal representation learning.

    Estimates discrete latent variables, the Q-matrix, the joint distribution of the latents and
    the causal graph (CPDAG) among them from a table of mixed responses. Stage I is penalised EM,
    Stage II computes counts of the latent states, Stage III searches for the graph.

    Parameters
    ----------
    n_latents : int or "auto"
        Number of latents, K. "auto" uses the length of ``q_matrix``, ``levels`` or
        ``latent_names``; otherwise parallel analysis and factor BIC, and fits if these disagree.
        Independent items, which support no latent, raise a `DataError` ("independent-items").
        See ``result_.n_latents_reason`` and `hidag.select`.
    levels : int, str or sequence, length K, default 2
        Number of ordered levels of each latent. "4-linear" is a trait in 4 equal steps, with one
        coefficient per item. "auto" selects 2 to 5 levels and their steps by an information
        criterion; ``result_.levels_reason`` says which and why. If the numbers differ and Q is not
        given, their assignment to latents is estimated, and latents are reported in the order of
        this list.
    effects : {"main", "auto", "all", "acdm", "gdina", "dina", "dino"} or int, default "main"
        Effects of an item's latents on the link scale: additive ("main", "acdm"), with all
        interactions ("all", "gdina") or up to an order (int), conjunctive ("dina") or disjunctive
        ("dino"). If Q is estimated, interactions are selected by the penalty. "auto" fits main
        effects, tests interactions within the items' latents, and estimates them only if they are
        significant and improve BIC, also with a given Q. "main" warns if they are significant.
    nuisance : "style", list or mapping, optional
        Person-level factor of all items, of a list of items, or of several lists by name: a
        response style. It is independent of the latents, with one coefficient for all its items (in
        units of their scales), and summed out: no node of the graph and no column of Q. See
        ``result_.nuisance``.
    doublets : list of pairs of items, optional
        Pairs that depend on each other beyond the latents; each has a nuisance of its own.
    family : str, list, mapping or "auto", default "auto"
        Response family of all items, one per item, or by column. "auto" infers it and raises an
        error for ambiguous columns. Available: "bernoulli", "bernoulli-probit",
        "bernoulli-cloglog", "binomial(n)", "poisson", "poisson-identity", "negative-binomial",
        "zero-inflated-poisson", "ordinal", "categorical", "gaussian", "lognormal",
        "censored-lognormal(limit)", "gamma", "beta".
    q_matrix : array or frame of shape (J, K), optional
        1 (the item loads on the latent), 0 (it does not), -1 or NaN (to be estimated). If no entry
        is to be estimated, the fit is confirmatory and has no penalty.
    penalty : {"tlp", "scad", "mcp", None}, default "tlp"
        Penalty on the loadings.
    penalty_strength, penalty_threshold : float, optional
        lambda_N, the log-likelihood that a loading must gain, and tau_N. By default the initial
        values are log(N K) / 2 and sqrt(lambda_N / N) / 2, and the final strength is estimated.
    method : {"auto", "em", "saem"}, default "auto"
        Exact EM over all joint states (at most 16 binary latents), or stochastic approximation EM
        with Gibbs sampling. "auto" uses EM up to 2^13 states, unless N J 2^K exceeds 4e9.
    law : {"auto", "network", "saturated"}, default "auto"
        Joint distribution of the latents: one probability per state ("saturated", at most 16
        binary latents) or a Bayesian network learned by structural EM. "auto" selects by an
        information criterion, and uses a network with SAEM or if ``knowledge`` forbids pairs.
    resample : "expected", int, str or callable, default "expected"
        Stage II: expected counts, or counts of rows drawn from the fitted distribution. The number
        of rows is an integer, a multiple such as "2N", or a function f(N).
    effective_size : {"auto", "all"} or float, default "auto"
        Sample size of expected counts: N ("all"), a share of N, or an estimate of the effective
        sample size from the information ratio ("auto"), at most 4 N. With "auto" the weakest edges
        must also be supported by the observed-data likelihood. Not used for resampled rows.
    graph_score : {"auto", "bdeu", "bic", "lean"} or local score, default "auto"
        Score of the graph search. "auto" is BDeu for binary latents, and "lean", a BIC with
        parsimonious conditional tables, for more levels.
    equivalent_sample_size : float or "auto", default "auto"
        Of BDeu. "auto" is 1 for binary latents, and maximises the marginal likelihood otherwise.
    search : {"xges", "ges", "exact", "pc", "boss"} or callable, default "xges"
        Graph search.
    uncertainty : {"quick", "full", "none"}, default "quick"
        Whether probabilities of edges are computed, and from the likelihood of how many graphs.
    checks : {"quick", "none"}, default "quick"
        Whether the fit is tested for traits that are no levels, response styles, dependent items
        and a wrong number of latents. Findings are warnings and ``result_.findings``; serious ones
        lower what is stated about edges.
    claim_level : float, default .8
        Probability from which arrows and edges are stated in summaries, reports and figures.
    knowledge : hidag.Knowledge, optional
        Required and forbidden edges, tiers and a hierarchy (which needs a given Q). If Q is given,
        the distribution obeys it in all stages, otherwise only the final graph does. A
        `KnowledgeWarning` reports the likelihood lost by knowledge that the data contradict.
    n_starts : int or "auto", default "auto"
        Number of starts of Stage I. With an unknown Q "auto" is 1 or 2 if starts of different kinds
        agree, else 8; with a given Q, whose likelihood has more local maxima, 4 to 100, as their
        cost allows. SAEM under a network law uses one start.
    max_iter : int, default 300
        Largest number of iterations of EM or SAEM.
    tol : float, default 1e-4
        EM converges when the objective per row increases by less than this.
    n_sweeps : int, default 1
        Gibbs sweeps per SAEM iteration, C in the paper.
    n_jobs : int, optional
        Number of threads, -1 for all. Results do not depend on it.
    latent_names : sequence of str, optional
        Must differ from the items' names. By default the columns of ``q_matrix``, or Z1, Z2, ...
    words : mapping from item or pattern to str, optional
        Labels of columns of text, such as {"mood": "low<middle<high", "region": "north,south"}:
        ordered ones are grades, others categories, two are 0 and 1. "Female=F" adds another word
        for a label, "NA=unknown" one for a missing answer. Categorical columns of pandas, polars
        and pyarrow need no declaration.
    random_state : int, numpy.random.Generator, RandomState or None
        Seed of the starts and of all sampling.
    verbose : int, default 0
        1 writes item types, the method and progress to standard error.
    observer : callable, optional
        Called with a ``hidag.parallel.Progress`` after each iteration.

    Attributes
    ----------
    q_matrix_ : ndarray of int8, shape (J, K)
    intercept_, dispersion_ : ndarray, shape (J,)
        The dispersion is the variance of Gaussian and lognormal items or the family's dispersion
        parameter, NaN otherwise. A nominal item has a row for each category except the last, also
        in the loadings; see ``result_.response_names``.
    cutpoints_ : ndarray, shape (J, C)
        Cutpoints of ordinal items after the first, which is the intercept; NaN otherwise.
    loadings_ : ndarray, shape (J, T)
        Coefficients of the terms. For binary latents with main effects T = K, and each column has
        a positive sum; a latent with M levels has M - 1 columns.
    terms_ : Terms
        Terms of the predictors; ``terms_.names(latent_names_)`` names the columns.
    latent_law_ : LatentLaw
    graph_ : CPDAG
        The best graph.
    edge_probabilities_ : ndarray, shape (K, K)
        Probability that the row's latent causes the column's directly, given the observed data;
        with its transpose, that of an adjacency. NaN if the latents were sampled.
    log_likelihood_ : float
    n_iter_, converged_ : int, bool
    trace_ : ndarray, shape (n_iter_, 2)
        Objective and largest change of each iteration. The objective is NaN for iterations on a
        subset of the rows or with sampled latents; it may decrease when the structure of the
        distribution or the strength of the penalty changes.
    families_ : tuple of str
    latent_names_ : tuple of str
    result_ : FitResult

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> model.result_
    FitResult(3 latents, 15 items, 800 rows)
    >>> model.predict_proba(skills.X).shape
    (800, 3)
    """

    #: Initial values of refits, and a map of the knowledge to their latents; see ``run_stages``.
    _initial_values: InitialValues | None = None
    _map_knowledge: Callable[[Measurement], Knowledge | None] | None = None

    def __init__(  # noqa: PLR0913
        self,
        n_latents: int | Auto,
        *,
        levels: int | str | Sequence[int | str] = 2,
        effects: Effect | int = "main",
        nuisance: Any = None,
        doublets: Any = None,
        family: str | Sequence[str] | Mapping[Any, str] = "auto",
        q_matrix: Any = None,
        penalty: PenaltyName | None = "tlp",
        penalty_strength: float | None = None,
        penalty_threshold: float | None = None,
        method: Literal["auto", "em", "saem"] = "auto",
        law: Literal["auto", "network", "saturated"] = "auto",
        resample: str | int | float | Callable[[int], float] = "expected",
        effective_size: Literal["auto", "all"] | float = "auto",
        graph_score: Any = "auto",
        equivalent_sample_size: float | Auto = "auto",
        search: Literal["xges", "ges", "exact", "pc", "boss"] | Callable[..., Any] = "xges",
        uncertainty: Literal["quick", "full", "none"] = "quick",
        checks: Literal["quick", "none"] = "quick",
        claim_level: float = 0.8,
        knowledge: Any = None,
        n_starts: int | Auto = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        n_sweeps: int = 1,
        n_jobs: int | None = None,
        latent_names: Sequence[str] | None = None,
        words: Mapping[str, str] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        observer: Callable[[Progress], None] | None = None,
    ) -> None:
        self.n_latents = n_latents
        self.levels = levels
        self.effects = effects
        self.nuisance = nuisance
        self.doublets = doublets
        self.family = family
        self.q_matrix = q_matrix
        self.penalty = penalty
        self.penalty_strength = penalty_strength
        self.penalty_threshold = penalty_threshold
        self.method = method
        self.law = law
        self.resample = resample
        self.effective_size = effective_size
        self.graph_score = graph_score
        self.equivalent_sample_size = equivalent_sample_size
        self.search = search
        self.uncertainty = uncertainty
        self.checks = checks
        self.claim_level = claim_level
        self.knowledge = knowledge
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.n_sweeps = n_sweeps
        self.n_jobs = n_jobs
        self.latent_names = latent_names
        self.words = words
        self.random_state = random_state
        self.verbose = verbose
        self.observer = observer

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit all three stages to a table of responses.

        Parameters
        ----------
        X : array or frame, shape (N, J)
            NaN, None, masked or NA cells are treated as missing at random. Empty rows do not
            affect the estimates.
        y : ignored
        sample_weight : array, shape (N,), optional
            Frequency weights: a weight of 2 equals the row twice, 0 excludes it. Scale sampling
            weights with `hidag.survey_weights` first, so that they sum to the effective sample
            size (sum w)^2 / sum w^2 (Kish 1965); otherwise false edges are found.

        Returns
        -------
        DCRL
        """
        refuse_arrays(self.get_params())
        table = read_table(X, min_rows=2, labels=declared_labels(X, self.words))
        if isinstance(self.n_latents, str) and self.n_latents == "auto":
            seed = root_seed(self.random_state)

            def fit_number(
                n_latents: int, strength: float | None, start: InitialValues | None
            ) -> FitResult:
                # Only the chosen fit is checked.
                own = {"n_latents": n_latents, "random_state": seed, "checks": "none"}
                settings = {**self.get_params(), **own}
                if strength is not None:
                    settings["penalty_strength"] = strength
                model = type(self)(**settings)._start_from(start)
                return model.fit(X, sample_weight=sample_weight).result_

            result = fit_selected_number(
                table, sample_weight, self.get_params(), fit_number, log=self._log
            )
        else:
            task = read_task(table, sample_weight, self.get_params())
            self._log(f"item types\n{task.families.table()}")
            result = run_stages(
                task,
                plain_settings(self.get_params()),
                begin=self._initial_values,
                map_knowledge=self._map_knowledge,
                progress=make_observer(self.observer, verbose=bool(self.verbose)),
            )
            self._log(f"Stage I by method={result.method!r}, {plural(result.n_iter, 'iteration')}")
        result = self._checked(result, table, sample_weight)
        for finding in result.findings:
            warnings.warn(ModelCheckWarning.of(finding.message), stacklevel=2)
        validate_data(self, X if table.named else table.values, skip_check_array=True)
        self._store(result.like(X))
        return self

    def _checked(self, result: FitResult, table: Observations, sample_weight: Any) -> FitResult:
        """Return the fit with the findings of the checks, if they are requested."""
        result = replace(result, settings={**result.settings, "checks": self.checks})
        if self.checks == "none":
            return replace(result, checks_note="they were not requested")
        counted, weights = select_weighted_rows(table, sample_weight)
        return check_model(result, counted.values, weights)

    def _start_from(self, values: InitialValues | None) -> Self:
        """Set initial items and latent distribution (S,) of refits; None uses starts."""
        self._initial_values = values
        return self

    def _log(self, text: str) -> None:
        """Log a message, and write it to standard error if verbose."""
        logger.info(text)
        if self.verbose:
            sys.stderr.write(f"hidag: {text}\n")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags


#: Settings that `select` compares or derives, and that would fix the number of latents.
_SELECTED = ("n_latents", "q_matrix", "latent_names", "penalty_strength")


def select(
    X: Any,
    latents: Iterable[int] | None = None,
    *,
    penalty_strengths: Sequence[float | None] = (None,),
    fits: Literal["near", "all", "none"] = "near",
    folds: int = 3,
    sample_weight: Any = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Selection:
    """Select the number of latents by several criteria.

    Parameters
    ----------
    X : array or frame, shape (N, J)
    latents : iterable of int, optional
        Numbers to choose from; by default from 0 (independent items) to the largest number that J
        items can identify, at most 40 unless the correlations have more factors.
    penalty_strengths : sequence of float or None
        Strengths to try with each number of latents; None estimates it. A number with a stronger
        penalty than the best fit is also fitted with that fit's strength.
    fits : {"near", "all", "none"}
        Numbers to fit: the count of the correlations and its neighbours, and further ones while BIC
        improves; all numbers; or none.
    folds : int
        Folds of the cross-validation of the best number and its two neighbours; 0 or 1 for none.
    sample_weight : array, shape (N,), optional
        As in ``DCRL.fit``.
    progress : callable, optional
        Called with a sentence before each fit.
    **settings
        Settings of `DCRL` for all fits; not those that determine the number of latents.

    Returns
    -------
    Selection
        ``.recommended``, ``.margin``, ``.votes``, ``.rows()``, ``.verdict()``, ``.result``.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> hidag.select(skills.X, range(2, 6), fits="none").recommended
    3
    """
    fixed = next((name for name in _SELECTED if name in settings), None)
    if fixed is not None:
        raise SettingError(
            "fixed-number",
            "select compares numbers of latents and penalties, so that {setting} cannot be set for "
            "all fits",
            advice="omit {setting}",
            setting=Setting(fixed),
        )
    return compare_numbers(
        DCRL(1, **settings),
        X,
        latents,
        penalty_strengths=penalty_strengths,
        fits=fits,
        folds=folds,
        sample_weight=sample_weight,
        progress=progress,
    ).like(X)
