"""DCRL: the scikit-learn face of the three stages."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from hidag.auto_latents import choose_number, count_in_table, number_told
from hidag.criteria import information_criteria
from hidag.errors import ConvergenceWarning, HidagWarning, IdentifiabilityWarning, SettingError
from hidag.estimate.loop import Schedule
from hidag.fitted import FittedModel
from hidag.latent import resampled_rows
from hidag.measure import LAWS, estimate_measurement
from hidag.measurement import MeasurementParameters, Penalty, Responses
from hidag.measurement.effects import Effects
from hidag.observations import Observations, check_values, read_q_matrix, read_table
from hidag.observations import resolve_families as _resolve_families
from hidag.pipeline import effective_share, latent_graph
from hidag.progress import Progress, StderrProgress
from hidag.result import FitResult
from hidag.settings import (
    check_search,
    checked_count,
    checked_levels,
    chosen_penalty,
    latent_names_of,
    plain_value,
    root_seed,
    thread_count,
    weighted_rows,
)
from hidag.thin_evidence import warn_of_thin_evidence
from hidag.versions import versions_used

Array = NDArray[np.float64]
logger = logging.getLogger("hidag")


class DCRL(FittedModel, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Discrete causal representation learning: latents, Q, the latent law and the causal graph.

    Parameters
    ----------
    n_latents : int or "auto"
        Number of latents, K. "auto" takes that of a given Q, list of levels or list of names; else
        it is read off the items' correlations, and settled by a few fits where parallel analysis
        and factor BIC disagree. ``result_.settings["n_latents_reason"]`` says why;
        ``hidag.select`` compares more criteria.
    levels : int or sequence of int, length K
        How many levels each latent has, 2 for binary ones. Levels are ordered: each adds its own
        step to the items' predictors. With unequal numbers and no given Q, which latent has how
        many is found from the data, and latents come in the order of this list.
    effects : {"main", "all", "acdm", "gdina", "dina", "dino"} or int
        What an item's latents do together. "main" ("acdm"): their effects add up on the scale of
        the link. "all" ("gdina"): with every interaction; a number is their highest order. "dina":
        only all of an item's latents together have an effect; "dino": any one of them has all of
        it (levels go up with the items in total, else the two would be one model). With an
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
    penalty : {"tlp", "scad", None}
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
        sampled it takes a graph.
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
        end, and it is for the final graph alone. States that a hierarchy rules out have
        probability zero; that needs a given Q.
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
    random_state : int, RandomState or None
    verbose : int
        1 writes the items' types, the method and progress to standard error.
    observer : callable, optional
        Called with a ``hidag.progress.Progress`` after every step.

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

    def __init__(
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
            NaN, None, masked or NA cells are missing at random.
        y : ignored
        sample_weight : array, shape (N,), optional
            How many rows each row counts for; 0 leaves it out. A weight of 2 is the same as the
            row twice: weights that say how much of a population a row stands for should be divided
            by their mean first, or the fit will believe in more rows than there are, or in fewer.
        """
        if isinstance(self.n_latents, str) and self.n_latents == "auto":
            return self._fit_chosen_number(X, sample_weight)
        table = read_table(X, min_rows=2)
        counted, weights = weighted_rows(table, sample_weight)
        n_rows = counted.n_samples if weights is None else float(weights.sum())
        n_latents = checked_count("n_latents", self.n_latents)
        levels = checked_levels(self.levels, n_latents)
        effects = Effects.of(self.effects)
        self._check_settings(table, n_latents)
        choice = _resolve_families(counted, self.family, weights)
        check_values(counted, choice.families)
        self._tell(f"item types\n{choice.table()}")
        q_spec = None
        if self.q_matrix is not None:
            q_spec = read_q_matrix(self.q_matrix, table.names, n_latents)
        names = latent_names_of(
            self.latent_names,
            n_latents,
            q_spec.latent_names if q_spec is not None and q_spec.named else None,
        )
        check_search(
            self.search,
            self.__dict__["score"],
            self.equivalent_sample_size,
            self.knowledge,
            names,
        )
        penalty = chosen_penalty(
            self.penalty,
            n_rows,
            n_latents,
            self.penalty_strength,
            self.penalty_threshold,
        )
        seed = root_seed(self.random_state)
        responses = Responses.of(choice.families)
        with threadpool_limits(limits=1, user_api="blas"):
            measured = estimate_measurement(
                responses.expand(counted.values),
                responses.families,
                levels,
                q_entries=None if q_spec is None else responses.of_items(q_spec.entries),
                penalty=penalty,
                schedule=Schedule(
                    max_iter=self.max_iter, tolerance=self.tol, n_sweeps=self.n_sweeps
                ),
                method=self.method,
                seed=seed,
                adapt=self.penalty_strength is None,
                n_starts=self.n_starts,
                law=self.law,
                effects=effects,
                begin=self._begin(),
                knowledge=None if self.knowledge is None else self.knowledge.among(names),
                weights=weights,
                n_threads=thread_count(self.n_jobs),
                progress=self._progress(),
            )
            found = latent_graph(
                measured,
                names,
                rule=self.resample,
                effective_size=self.effective_size,
                seed=seed,
                score=self.__dict__["score"],
                equivalent_sample_size=self.equivalent_sample_size,
                search=self.search,
                knowledge=self.knowledge,
            )
        stage_one = measured.record
        self._tell(f"Stage I by method={stage_one.method!r}, {stage_one.n_iter} steps")
        if not stage_one.converged:
            advice = f"raise max_iter or tol (now {self.tol:g})"
            if stage_one.method == "saem":
                advice = "raise max_iter"
            warnings.warn(
                f"Stage I had not settled after max_iter={self.max_iter} steps; {advice}",
                ConvergenceWarning,
                stacklevel=2,
            )
        validate_data(self, X if table.named else table.values, skip_check_array=True)
        price = stage_one.log_likelihood - stage_one.objective
        result = FitResult(
            item_names=table.names,
            latent_names=names,
            parameters=measured.parameters,
            law=found.law,
            graph=found.graph,
            q_given=None if q_spec is None else np.array(q_spec.entries),
            log_likelihood=found.log_likelihood,
            objective=found.log_likelihood - price,
            n_samples=table.n_samples,
            missing_share=table.missing_share,
            n_iter=stage_one.n_iter,
            converged=stage_one.converged,
            method=stage_one.method,
            trace=stage_one.trace,
            starts=stage_one.starts,
            n_reached=stage_one.n_reached,
            graph_rows=found.n_rows,
            information_ratio=found.information_ratio,
            edge_tests=found.edge_tests,
            family_reasons=choice.reasons,
            settings=self._settings(seed, stage_one.penalty),
            versions=versions_used(),
            item_families=() if responses.plain else choice.families,
        )
        few_items = table.n_items < 2 * n_latents + 1
        warn_of_thin_evidence(
            measured.parameters,
            names,
            n_rows,
            found.information_ratio,
            None if few_items else result.identifiability,
        )
        self._store(result)
        return self

    def _fit_chosen_number(self, X: Any, sample_weight: Any) -> Self:
        """Choose the number of latents, fit with it, and keep why."""
        table = read_table(X, min_rows=2)
        counted, weights = weighted_rows(table, sample_weight)
        n_rows = counted.n_samples if weights is None else float(weights.sum())
        seed = root_seed(self.random_state)
        fits: dict[int, tuple[DCRL, list[warnings.WarningMessage]]] = {}

        def ebic_of(n_latents: int) -> float:
            settings = {**self.get_params(), "n_latents": n_latents, "random_state": seed}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = type(self)(**settings).fit(X, sample_weight=sample_weight)
            fits[n_latents] = model, caught
            return information_criteria(model.result_, n_rows).ebic

        choice = number_told(self.q_matrix, self.levels, self.latent_names, table.names)
        if choice is None:
            choice = choose_number(count_in_table(counted, self.family, weights), ebic_of)
        self._tell(f"{choice.n_latents} latents: {choice.reason}")
        if choice.n_latents not in fits:
            ebic_of(choice.n_latents)
        model, caught = fits[choice.n_latents]
        for warning in caught:
            # Only what was said of the fit that is kept.
            warnings.warn(warning.message, stacklevel=3)
        validate_data(self, X if table.named else table.values, skip_check_array=True)
        settings = {
            **model.result_.settings,
            "n_latents": "auto",
            "n_latents_chosen": choice.n_latents,
            "n_latents_reason": choice.reason,
        }
        self._store(replace(model.result_, settings=settings))
        return self

    def _check_settings(self, table: Observations, n_latents: int) -> None:
        n_items = table.n_items
        if n_latents > n_items:
            raise SettingError(
                f"n_latents={n_latents} is more than the {n_items} items of the table; each latent "
                f"needs items of its own: ask for at most {max(1, (n_items - 1) // 2)} latents"
            )
        if n_items < 2 * n_latents + 1:
            warnings.warn(
                f"{n_latents} latents cannot be identified from {n_items} items: two blocks of "
                f"{n_latents} items that each measure every latent and at least one more item are "
                f"needed, {2 * n_latents + 1} in all; ask for fewer latents or add items",
                IdentifiabilityWarning,
                stacklevel=3,
            )
        if self.law not in LAWS:
            raise SettingError(f"law must be 'auto', 'network' or 'saturated', got {self.law!r}")
        if self.observer is not None and not callable(self.observer):
            raise SettingError(f"observer must be callable, got {self.observer!r}")
        if self.n_starts != "auto":
            checked_count("n_starts", self.n_starts)
        checked_count("max_iter", self.max_iter)
        checked_count("n_sweeps", self.n_sweeps)
        if not (isinstance(self.tol, Real) and 0 < self.tol < np.inf):
            raise SettingError(f"tol must be a positive number, got {self.tol!r}")
        if isinstance(self.resample, str) and self.resample == "expected":
            effective_share(self.effective_size, 1.0)
        else:
            with warnings.catch_warnings():
                # Stage II says it once more, and then it is shown.
                warnings.simplefilter("ignore", HidagWarning)
                resampled_rows(self.resample, table.n_samples)

    def _begin(self) -> tuple[MeasurementParameters, Array] | None:
        """Return items and a law (S,) to begin from; None looks for starts, as every user wants.

        Refits of one table to slightly others can say where the first fit ended.
        """
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def _tell(self, text: str) -> None:
        """Log a message, and write it to standard error when the user asked for words."""
        logger.info(text)
        if self.verbose:
            sys.stderr.write(f"hidag: {text}\n")

    def _progress(self) -> Callable[[int, int, int, int, float], None] | None:
        observers: list[Callable[[Progress], None]] = []
        if self.observer is not None:
            observers.append(self.observer)
        if self.verbose:
            observers.append(StderrProgress())
        if not observers:
            return None

        def tell(start: int, n_starts: int, iteration: int, last: int, value: float) -> None:
            for observer in observers:
                observer(Progress(start, n_starts, iteration, last, value))

        return tell

    def _settings(self, seed: int, penalty: Penalty) -> dict[str, Any]:
        """Return the settings as plain values, enough to repeat the fit."""
        out: dict[str, Any] = {
            "seed": seed,
            "penalty_strength_used": penalty.strength,
            "penalty_threshold_used": penalty.threshold,
        }
        for name, value in self.get_params(deep=False).items():
            if name in ("observer", "q_matrix", "random_state"):
                continue
            out[name] = plain_value(value)
        return out

    def _store(self, result: FitResult) -> None:
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

    # `score` names two things: the graph's score, a setting, and scikit-learn's method. The setting
    # lives in the instance's dictionary and in get_params; asked for by dot, the method answers.
    @property
    def score(self) -> Callable[..., float]:
        """Mean observed-data log-likelihood of the rows of a table: ``model.score(X)``."""
        return self._mean_log_likelihood

    @score.setter
    def score(self, value: Any) -> None:
        self.__dict__["score"] = value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""
        names = self._get_param_names()
        return {name: self.__dict__[name] for name in names}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags
