"""scikit-learn's checks of data validation, on an estimator that only reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from hidag.data import check_values, read_table, resolve_families


class OnlyReads(TransformerMixin, BaseEstimator):
    """Reads the table, guesses the types and gives the numbers back."""

    def fit(self, X: Any, y: Any = None) -> OnlyReads:
        table = read_table(X, min_rows=2)
        self.families_ = resolve_families(table, "auto").families
        check_values(table, self.families_)
        _check_feature_names(self, X, reset=True)
        self.n_features_in_ = table.n_items
        return self

    def transform(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        table = read_table(X, allow_empty_items=True)
        _check_n_features(self, table.values, reset=False)
        return table.values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


NOT_GUESSED = {
    "check_estimators_dtypes": "its whole numbers 0, 1, 2 may be grades or counts: not guessed"
}


@parametrize_with_checks([OnlyReads()], expected_failed_checks=lambda _: NOT_GUESSED)
def test_scikit_learn_checks(estimator: OnlyReads, check: Any) -> None:
    check(estimator)
