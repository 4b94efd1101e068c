"""hidag: hidden discrete causes in a table of mixed responses, and the causal graph among them."""

from __future__ import annotations

import logging
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hidag.causal import average_effects as average_effects
    from hidag.causal import what_if as what_if
    from hidag.data.readers import read_file as read_file
    from hidag.data.rows import survey_weights as survey_weights
    from hidag.diagnostics import classify as classify
    from hidag.diagnostics import fit_statistics as fit_statistics
    from hidag.diagnostics import person_fit as person_fit
    from hidag.diagnostics import validate_q as validate_q
    from hidag.estimator import DCRL as DCRL
    from hidag.estimator import select as select
    from hidag.identifiability import check_identifiability as check_identifiability
    from hidag.inference import BootstrapResult as BootstrapResult
    from hidag.inference import bootstrap as bootstrap
    from hidag.inference import standard_errors as standard_errors
    from hidag.metrics import evaluate as evaluate
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

#: Public names by the module they live in, which is loaded at first use, so that `import hidag`
#: costs next to nothing.
_NAMES = {
    "causal": ("average_effects", "what_if"),
    "data.readers": ("read_file",),
    "data.rows": ("survey_weights",),
    "diagnostics": ("classify", "fit_statistics", "person_fit", "validate_q"),
    "estimator": ("DCRL", "select"),
    "identifiability": ("check_identifiability",),
    "inference": ("BootstrapResult", "bootstrap", "standard_errors"),
    "metrics": ("evaluate",),
    "reporting": ("write_report",),
    "results": ("FitResult", "load"),
    "simulation": ("design", "simulate"),
    "structure": ("CPDAG", "DAG", "Knowledge", "discover"),
}
_HOMES = {name: f"hidag.{home}" for home, names in _NAMES.items() for name in names}
#: Packages that are loaded at first use too.
_PACKAGES = (
    "causal", "datasets", "diagnostics", "identifiability", "inference", "metrics",
    "model_selection", "plotting", "reporting", "simulation", "structure",
)  # fmt: skip

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
