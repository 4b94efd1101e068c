"""What a fitted model holds, and does with rows: posteriors, states, likelihoods, draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from hidag.errors import DataError
from hidag.observations import Observations, read_table
from hidag.result import FitResult
from hidag.row_weights import rows_with_answers
from hidag.settings import checked_count, root_seed

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
        answered = rows_with_answers(rows.values)
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
