"""hidag: hidden discrete causes in a table of mixed responses, and the causal graph among them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from hidag.versions import versions_used

if TYPE_CHECKING:
    from hidag import discover as discover
    from hidag import evaluate as evaluate
    from hidag import explain as explain
    from hidag import plots as plots
    from hidag import report as report
    from hidag import select as select
    from hidag import simulate as simulate
    from hidag.discover import CPDAG as CPDAG
    from hidag.discover import DAG as DAG
    from hidag.discover import Knowledge as Knowledge
    from hidag.estimator import DCRL as DCRL
    from hidag.explain import BootstrapResult as BootstrapResult
    from hidag.explain import average_effects as average_effects
    from hidag.explain import bootstrap as bootstrap
    from hidag.explain import classify as classify
    from hidag.explain import fit_statistics as fit_statistics
    from hidag.explain import person_fit as person_fit
    from hidag.explain import standard_errors as standard_errors
    from hidag.explain import validate_q as validate_q
    from hidag.explain import what_if as what_if
    from hidag.identify import check_identifiability as check_identifiability
    from hidag.report import write_report as write_report
    from hidag.result import FitResult as FitResult
    from hidag.result import load as load
    from hidag.row_weights import survey_weights as survey_weights
    from hidag.simulate import design as design

__version__ = versions_used()["hidag"]

logging.getLogger("hidag").addHandler(logging.NullHandler())

#: Where each public name lives; loaded at first use, so that `import hidag` costs next to nothing.
_HOMES = {
    "BootstrapResult": "hidag.explain",
    "CPDAG": "hidag.discover",
    "DAG": "hidag.discover",
    "DCRL": "hidag.estimator",
    "FitResult": "hidag.result",
    "Knowledge": "hidag.discover",
    "average_effects": "hidag.explain",
    "bootstrap": "hidag.explain",
    "check_identifiability": "hidag.identify",
    "classify": "hidag.explain",
    "design": "hidag.simulate",
    "fit_statistics": "hidag.explain",
    "load": "hidag.result",
    "person_fit": "hidag.explain",
    "standard_errors": "hidag.explain",
    "survey_weights": "hidag.row_weights",
    "validate_q": "hidag.explain",
    "what_if": "hidag.explain",
    "write_report": "hidag.report",
}
#: Rooms. Four can be called: `hidag.discover(rows)` is `hidag.discover.discover(rows)`.
_ROOMS = ("discover", "evaluate", "explain", "plots", "report", "select", "simulate")

__all__ = [*sorted(_HOMES), *_ROOMS]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"hidag.{name}")
    raise AttributeError(f"module 'hidag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
