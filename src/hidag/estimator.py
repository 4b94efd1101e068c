"""DCRL: the scikit-learn face of the three stages."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from hidag.data.sample_weights import nonempty_rows
from hidag.data.table import Observations, read_table
from hidag.exceptions import DataError
from hidag.fitting.settings import checked_count, plain_settings, root_seed
from hidag.fitting.stages import fit_chosen_number, run_stages
from hidag.fitting.task import read_task
from hidag.formatting import plural
from hidag.measurement.parameters import MeasurementParameters
from hidag.parallel import Progress, make_observer
from hidag.results import FitResult
from hidag.strategy.measurement import Measurement
from hidag.structure.knowledge import Knowledge

# --- An estimator whose `score` names two things: a setting, and scikit-learn's method


class TwoScores(BaseEstimator):  # type: ignore[misc]
    """Settings by name, among them the graph's score, beside the method that rates rows.

    The setting lives in the instance's dictionary and in ``get_params``; asked for by dot, the
    method answers.
    """

    @property
    def score(self) -> Callable[..., float]:
        """Mean observed-data log-likelihood of the rows that have an answer: ``model.score(X)``."""
        method: Callable[..., float] = self._mean_log_likelihood
        return method

    @score.setter
    def score(self, value: Any) -> None:
        self.__dict__["score"] = value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""
        names = self._get_param_names()
        return {name: self.__dict__[name] for name in names}


# --- What a fitted model holds, and does with rows: posteriors, states, likelihoods, draws

Array = NDArray[np.float64]


class FittedModel(TransformerMixin):  # type: ignore[misc]
    """The methods of an estimator that need ``result_`` and nothing else.

    A transformer itself: scikit-learn makes ``transform`` obey ``set_output`` only in classes that
    define it below its mixin.
    """

    result_: FitResult

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def _store(self, result: FitResult) -> None:
        """Keep a result, and its parts under the names that scikit-learn's users look for."""
        self.result_ = result
        self.q_matrix_ = result.q_matrix
        self.intercept_ = result.intercept
        self.loadings_ = result.loadings
        self.terms_ = result.terms
        self.dispersion_ = result.dispersion
        self.cutpoints_ = result.cutpoints
        self.latent_law_ = result.law
        self.graph_ = result.graph
        self.log_likelihood_ = result.log_likelihood
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.trace_ = result.trace
        self.families_ = result.families
        self.latent_names_ = result.latent_names

    def _rows(self, X: Any) -> Observations:
        """Return a table whose columns are those of the fit, as scikit-learn understands it."""
        check_is_fitted(self)
        table = read_table(X, allow_empty_items=True)
        validate_data(self, X if table.named else table.values, skip_check_array=True, reset=False)
        return table

    def predict_proba(self, X: Any) -> Array | list[Array]:
        """Return P(Z_k = 1 | row), shape (N, K).

        When a latent has more than two levels: a list of K arrays, the probabilities of each
        latent's levels, shapes (N, M_k).
        """
        rows = self._rows(X)
        with threadpool_limits(limits=1, user_api="blas"):
            if max(self.result_.law.space.levels) > 2:
                return self.result_.posterior_levels(rows)
            return self.result_.posterior(rows)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable joint latent state of each row, shape (N, K)."""
        rows = self._rows(X)
        with threadpool_limits(limits=1, user_api="blas"):
            return self.result_.classify(rows)

    def transform(self, X: Any) -> Array:
        """Return each latent's expected level given each row, shape (N, K).

        For binary latents the same as ``predict_proba``.
        """
        rows = self._rows(X)
        with threadpool_limits(limits=1, user_api="blas"):
            return self.result_.posterior(rows)

    def score_samples(self, X: Any) -> Array:
        """Return the observed-data log density of each row, shape (N,); 0 without any answer."""
        return self._log_densities(self._rows(X))

    def _log_densities(self, rows: Observations) -> Array:
        with threadpool_limits(limits=1, user_api="blas"):
            return self.result_.row_log_likelihood(rows)

    def _mean_log_likelihood(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean observed-data log-likelihood of the rows, weighted if so wished.

        Rows without any answer count for nothing, as in a fit: their log density of 0 would make
        a table with more of them look better explained.
        """
        rows = self._rows(X)
        answered = nonempty_rows(rows.values)
        if not answered.any():
            raise DataError(
                f"none of the {len(answered):,} rows has an answer to any item of the fit, and a "
                "mean over rows that have one is the mean of none"
            )
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights is not None and weights.shape != answered.shape:
            raise DataError(
                f"sample_weight must have one weight for each of {len(answered):,} rows, got "
                f"{weights.shape}"
            )
        of_answered = None if weights is None else weights[answered]
        return float(np.average(self._log_densities(rows)[answered], weights=of_answered))

    def sample(
        self, n_samples: int = 1, *, random_state: Any = None
    ) -> tuple[Array, NDArray[np.uint8]]:
        """Return responses (n, J) and latent states (n, K) drawn from the fitted model."""
        check_is_fitted(self)
        rng = np.random.default_rng(root_seed(random_state))
        states = self.result_.law.sample(checked_count("n_samples", n_samples), rng)
        return self.result_.sample_items(states, rng), states

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the latents' names, shape (K,)."""
        check_is_fitted(self)
        return np.array(self.result_.latent_names, dtype=object)


# ---

logger = logging.getLogger("hidag")


class DCRL(FittedModel, TwoScores):
    """Discrete causal representation learning: latents, Q, the latent law and the causal graph.

    Parameters
    ----------
    n_latents : int or "auto"
        Number of latents, K. "auto" takes that of a given Q, list of levels or list of names; else
        it is read off the items' correlations, and settled by a few fits where parallel analysis
        and factor BIC disagree. ``result_.n_latents_reason`` says why;
        ``hidag.select`` compares more criteria.
    levels : int or sequence of int, length K
        How many levels each latent has, 2 for binary ones. Levels are ordered: each adds its own
        step to the items' predictors. With unequal numbers and no given Q, which latent has how
        many is found from the data, and latents come in the order of this list.
    effects : {"main", "all", "acdm", "gdina", "dina", "dino"} or int
        What an item's latents do together. "main" ("acdm"): their effects add up on the scale of
        the link. "all" ("gdina"): with every interaction; a number is their highest order. "dina":
        only all of an item's latents together have an effect; "dino": any one of them has all of
        it (levels go up with the items, else the two would be one model). With an
        estimated Q main effects find the latents, and interactions are kept that are worth their
        penalty.
    family : str, list, mapping or "auto"
        Response family of all items, of each item, or by column; "auto" infers one per column and
        refuses to guess when a column is ambiguous. Families: "bernoulli", "bernoulli-probit",
        "bernoulli-cloglog", "binomial(n)" for n trials, "poisson" (log link), "poisson-identity",
        "negative-binomial", "zero-inflated-poisson", "ordinal" (grades), "categorical" (nominal),
        "gaussian", "lognormal", "censored-lognormal(limit)", "gamma", "beta".
    q_matrix : array or frame of shape (J, K), optional
        1 (loads), 0 (does not), -1 or NaN (estimate this). Without any unknown entry the fit is
        confirmatory: no penalty, the given support.
    penalty : {"tlp", "scad", "mcp", None}
    penalty_strength, penalty_threshold : float, optional
        lambda_N and tau_N. By default estimation begins with log(N K) / 2 and sqrt(lambda / N) / 2,
        and the strength for the final choice of loadings is learned from the table.
    method : {"auto", "em", "saem"}
        Exact penalised EM over all 2^K joint states ("em", at most 16 latents), or sampled latents
        ("saem"): under a law over a graph any number of them, under a saturated law the paper's
        Gibbs-SAEM. "auto" takes EM up to 2^13 states, unless N J 2^K is more than 4e9.
    law : {"auto", "network", "saturated"}
        The latent law: one probability per joint state, as in the paper ("saturated", at most 16
        latents), or a directed graph with conditional tables, learned along with everything else
        ("network"). "auto" keeps the one with the better information criterion; where latents are
        sampled, or ``knowledge`` keeps some of them apart, it takes a graph.
    resample : "expected", multiple of N, number of rows, or function of N
        Stage II: expected counts, or this many rows drawn from the fitted law ("N", "2N", "3N", a
        number, a callable f(N)).
    effective_size : {"auto", "all"} or float
        How many rows expected counts stand for: "auto" takes as many as make an edge weigh what the
        observed data say for it, by the information ratio r (``result_.graph_rows`` rows: about r N
        where items say much, up to 4 N where they say little and the law shows little); "all" takes
        N, a number that share of N. With "auto" the weakest edges also have to be borne out by the
        observed-data likelihood, unless latents are sampled. Resampled rows are never discounted.
    score : {"auto", "bdeu", "bic", "lean"}
        "auto" is BDeu for binary latents, as in the paper, and "lean" for others: BIC whose tables
        need not be free, because free ones of several levels cost more than weak edges are worth.
    equivalent_sample_size : float or "auto"
        Of the BDeu score: "auto" is 1 for binary latents, and what makes the counts most probable
        for latents with more levels.
    search : {"xges", "ges", "exact"} or callable
    knowledge : hidag.Knowledge, optional
        Required and forbidden edges, tiers and prerequisites among the latents. With a given Q the
        latent law obeys it while it is estimated; without one, latents have no names before the
        end: it is for the final graph alone, holds for whichever latent gets the name, and a
        warning says so. States that a hierarchy rules out have
        probability zero; that needs a given Q. What the data reject is obeyed all the same, with
        a ``KnowledgeWarning`` that says what it costs.
    n_starts : int or "auto"
        Starts of Stage I; the best is kept. "auto" takes one when two starts agree about Q and four
        otherwise; with at most 6 latents or a saturated law as many as are worth their cost, up to
        four; with a given Q from 4 to 90, because its likelihood has more optima. From 12 latents
        on EM begins where a sampled estimate ends. Sampled latents have one start, whatever this
        says.
    max_iter : int
    tol : float
        EM ends when a step gains less than ``tol`` per row.
    n_sweeps : int
        Gibbs sweeps per SAEM step, the paper's C.
    n_jobs : int, optional
        Threads over rows; never changes a result.
    latent_names : sequence of str, optional
        None of them an item's. Unless given, those of ``q_matrix`` or Z1, Z2 and so on; ZZ1 and so
        on where items have such names.
    random_state : int, RandomState or None
    verbose : int
        1 writes the items' types, the method and progress to standard error.
    observer : callable, optional
        Called with a ``hidag.parallel.Progress`` after every step.

    Attributes
    ----------
    q_matrix_ : ndarray of int8, shape (J, K)
    intercept_, dispersion_ : ndarray, shape (J,)
        Dispersion is the variance of Gaussian and lognormal items and what else a family has one
        number for, NaN elsewhere. A nominal item has a row for each category but the last, here
        and in the loadings; ``result_.response_names`` names them.
    cutpoints_ : ndarray, shape (J, C)
        Cutpoints of ordered grades beyond the first, which is in the intercept; NaN elsewhere.
    loadings_ : ndarray, shape (J, T)
        On the terms: for binary latents (J, K), each column summing to a positive number; for more
        levels a column for each step of each latent.
    terms_ : Terms
        What the loadings multiply; ``terms_.names(latent_names_)`` names the columns.
    latent_law_ : LatentLaw
    graph_ : CPDAG
    log_likelihood_ : float
    n_iter_, converged_ : int, bool
    trace_ : ndarray, shape (n_iter_, 2)
        Objective and largest move of each step. The objective is NaN for steps on some of the rows
        or with sampled latents; it may fall where the law gets a graph or the penalty its strength.
    families_ : tuple of str
    latent_names_ : tuple of str
    result_ : FitResult
    """

    _place: tuple[MeasurementParameters, Array] | None = None
    #: Refits are told about latents by the names of the first fit: see ``run_stages``.
    _known_of: Callable[[Measurement], Knowledge | None] | None = None

    def __init__(  # noqa: PLR0913
        self,
        n_latents: int | str,
        *,
        levels: int | Sequence[int] = 2,
        effects: str | int = "main",
        family: str | Sequence[str] | Mapping[Any, str] = "auto",
        q_matrix: Any = None,
        penalty: str | None = "tlp",
        penalty_strength: float | None = None,
        penalty_threshold: float | None = None,
        method: str = "auto",
        law: str = "auto",
        resample: str | int | float | Callable[[int], float] = "expected",
        effective_size: str | float = "auto",
        score: str = "auto",
        equivalent_sample_size: float | str = "auto",
        search: str | Callable[..., Any] = "xges",
        knowledge: Any = None,
        n_starts: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        n_sweeps: int = 1,
        n_jobs: int | None = None,
        latent_names: Sequence[str] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        observer: Callable[[Progress], None] | None = None,
    ) -> None:
        self.n_latents = n_latents
        self.levels = levels
        self.effects = effects
        self.family = family
        self.q_matrix = q_matrix
        self.penalty = penalty
        self.penalty_strength = penalty_strength
        self.penalty_threshold = penalty_threshold
        self.method = method
        self.law = law
        self.resample = resample
        self.effective_size = effective_size
        self.score = score  # type: ignore[assignment]
        self.equivalent_sample_size = equivalent_sample_size
        self.search = search
        self.knowledge = knowledge
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.n_sweeps = n_sweeps
        self.n_jobs = n_jobs
        self.latent_names = latent_names
        self.random_state = random_state
        self.verbose = verbose
        self.observer = observer

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit all three stages to a table of responses.

        Parameters
        ----------
        X : array or frame, shape (N, J)
            NaN, None, masked or NA cells are missing at random. Rows without any answer count for
            nothing; the result still has a place for them.
        y : ignored
        sample_weight : array, shape (N,), optional
            How many rows each row counts for; 0 leaves it out. A weight of 2 is the same as the
            row twice. Weights that say how much of a population a row stands for go through
            ``hidag.survey_weights`` first: they should add up to (sum w)^2 / sum w^2, the number of
            equal rows that tell as much (Kish 1965). Divided by their mean they would add up to
            the number of rows, which unequal weights are not worth, and false edges would be found.
            ``hidag.survey_weights`` says what other weights mean to questions after the fit.
        """
        table = read_table(X, min_rows=2)
        if isinstance(self.n_latents, str) and self.n_latents == "auto":
            seed = root_seed(self.random_state)
            result = fit_chosen_number(
                table,
                sample_weight,
                self.get_params(),
                lambda k, strength, place: self._fit_number(
                    k, strength, place, seed, X, sample_weight
                ),
                tell=self._tell,
            )
        else:
            task = read_task(table, sample_weight, self.get_params())
            self._tell(f"item types\n{task.families.table()}")
            result = run_stages(
                task,
                plain_settings(self.get_params()),
                begin=self._begin(),
                known_of=self._known_of,
                progress=make_observer(self.observer, verbose=bool(self.verbose)),
            )
            self._tell(f"Stage I by method={result.method!r}, {plural(result.n_iter, 'step')}")
        validate_data(self, X if table.named else table.values, skip_check_array=True)
        self._store(result)
        return self

    def _fit_number(
        self,
        n_latents: int,
        strength: float | None,
        place: tuple[MeasurementParameters, Array] | None,
        seed: int,
        X: Any,
        sample_weight: Any,
    ) -> FitResult:
        """Return the fit with so many latents, that penalty and from that place, if any."""
        settings = {**self.get_params(), "n_latents": n_latents, "random_state": seed}
        if strength is not None:
            settings["penalty_strength"] = strength
        model: DCRL = type(self)(**settings)._begun_at(place)
        return model.fit(X, sample_weight=sample_weight).result_

    def _begin(self) -> tuple[MeasurementParameters, Array] | None:
        """Return items and a law (S,) to begin from; None looks for starts, as every user wants.

        Refits of one table to slightly others can say where the first fit ended, and fits with one
        latent more or fewer where they did.
        """
        return self._place

    def _begun_at(self, place: tuple[MeasurementParameters, Array] | None) -> Self:
        """Begin at a place, or wherever starts lead for None."""
        self._place = place
        return self

    def _tell(self, text: str) -> None:
        """Log a message, and write it to standard error when the user asked for words."""
        logger.info(text)
        if self.verbose:
            sys.stderr.write(f"hidag: {text}\n")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags
