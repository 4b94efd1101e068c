"""An estimator whose `score` names two things: a setting, and scikit-learn's method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator


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
