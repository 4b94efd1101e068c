"""hidag: hidden discrete causes in a table of mixed responses, and the causal graph among them."""

from __future__ import annotations

import logging
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hidag.causal import average_effects as average_effects
    from hidag.causal import what_if as what_if
    from hidag.data.rows import survey_weights as survey_weights
    from hidag.diagnostics import classify as classify
    from hidag.diagnostics import fit_statistics as fit_statistics
    from hidag.diagnostics import person_fit as person_fit
    from hidag.diagnostics import validate_q as validate_q
    from hidag.estimator import DCRL as DCRL
    from hidag.identifiability import check_identifiability as check_identifiability
    from hidag.inference import BootstrapResult as BootstrapResult
    from hidag.inference import bootstrap as bootstrap
    from hidag.inference import standard_errors as standard_errors
    from hidag.metrics import evaluate as evaluate
    from hidag.model_selection import select as select
    from hidag.reporting import write_report as write_report
    from hidag.results import FitResult as FitResult
    from hidag.results import load as load
    from hidag.simulation import design as design
    from hidag.simulation import simulate as simulate
    from hidag.structure import CPDAG as CPDAG
    from hidag.structure import DAG as DAG
    from hidag.structure import Knowledge as Knowledge
    from hidag.structure import discover as discover

try:
    __version__ = version("hidag")
except PackageNotFoundError:
    __version__ = "unknown"

logging.getLogger("hidag").addHandler(logging.NullHandler())

#: Where each public name lives; loaded at first use, so that `import hidag` costs next to nothing.
_HOMES = {
    "BootstrapResult": "hidag.inference",
    "CPDAG": "hidag.structure",
    "DAG": "hidag.structure",
    "DCRL": "hidag.estimator",
    "FitResult": "hidag.results",
    "Knowledge": "hidag.structure",
    "average_effects": "hidag.causal",
    "bootstrap": "hidag.inference",
    "check_identifiability": "hidag.identifiability",
    "classify": "hidag.diagnostics",
    "design": "hidag.simulation",
    "discover": "hidag.structure",
    "evaluate": "hidag.metrics",
    "fit_statistics": "hidag.diagnostics",
    "load": "hidag.results",
    "person_fit": "hidag.diagnostics",
    "select": "hidag.model_selection",
    "simulate": "hidag.simulation",
    "standard_errors": "hidag.inference",
    "survey_weights": "hidag.data.rows",
    "validate_q": "hidag.diagnostics",
    "what_if": "hidag.causal",
    "write_report": "hidag.reporting",
}
#: Packages that are loaded at first use too.
_PACKAGES = (
    "causal",
    "diagnostics",
    "identifiability",
    "inference",
    "metrics",
    "model_selection",
    "plotting",
    "reporting",
    "simulation",
    "structure",
)

__all__ = [*sorted(_HOMES), *_PACKAGES]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return import_module(f"hidag.{name}")
    raise AttributeError(f"module 'hidag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
