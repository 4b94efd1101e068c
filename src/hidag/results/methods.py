"""What follows a fit, as methods of fitted estimators and of results."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hidag.causal import AverageEffects, WhatIfResult
    from hidag.diagnostics import Classification, FitStatistics, PersonFit, QValidation
    from hidag.inference import BootstrapResult, StandardErrors


def _public(name: str) -> Any:
    """Return a public function by name: the packages that have them are built on results."""
    return getattr(import_module("hidag"), name)


class FitMethods:
    """The functions that take a fit, as methods; options are those of the functions."""

    def summary(self) -> str:
        """Return what was found, how certain it is and what to beware of, as text."""
        text: str = _public("reporting").summarize(self)
        return text

    def report(self, path: str | Path, X: Any = None, **options: Any) -> Path:
        """Write the report to ``path`` as an HTML page: `hidag.write_report` of this fit and ``X``.

        Without the table ``X`` of the fit there is no section on goodness of fit.
        """
        found: Path = _public("write_report")(self, path, X, **options)
        return found

    def bootstrap(self, X: Any, **options: Any) -> BootstrapResult:
        """Return `hidag.bootstrap` of this fit and its table ``X``."""
        found: BootstrapResult = _public("bootstrap")(self, X, **options)
        return found

    def what_if(
        self,
        do: Mapping[Any, Any] | None = None,
        given: Mapping[Any, Any] | None = None,
        **options: Any,
    ) -> WhatIfResult:
        """Return `hidag.what_if`: predictions after ``do``, such as {"Z1": 1}, ``given`` values."""
        found: WhatIfResult = _public("what_if")(self, do, given, **options)
        return found

    def average_effects(self, **options: Any) -> AverageEffects:
        """Return `hidag.average_effects`: effects of each latent on latents and items."""
        found: AverageEffects = _public("average_effects")(self, **options)
        return found

    def classify(self, X: Any, **options: Any) -> Classification:
        """Return `hidag.classify`: the latents of each row of ``X``, and how reliable they are."""
        found: Classification = _public("classify")(self, X, **options)
        return found

    def fit_statistics(self, X: Any, **options: Any) -> FitStatistics:
        """Return `hidag.fit_statistics`: how well the model reproduces its table ``X``."""
        found: FitStatistics = _public("fit_statistics")(self, X, **options)
        return found

    def person_fit(self, X: Any, **options: Any) -> PersonFit:
        """Return `hidag.person_fit`: how well the model reproduces each row of ``X``."""
        found: PersonFit = _public("person_fit")(self, X, **options)
        return found

    def standard_errors(self, X: Any, **options: Any) -> StandardErrors:
        """Return `hidag.standard_errors` of this fit, whose table is ``X``."""
        found: StandardErrors = _public("standard_errors")(self, X, **options)
        return found

    def validate_q(self, X: Any, **options: Any) -> QValidation:
        """Return `hidag.validate_q`: a test of each entry of the given Q on its table ``X``."""
        found: QValidation = _public("validate_q")(self, X, **options)
        return found
