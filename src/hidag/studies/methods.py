"""Methods that a study can hold against the truth: ours, ours in other settings, and baselines."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

OURS = "ours"
#: Our Stage I with the paper's law, one free probability per joint state, as its theorem has it.
SATURATED = "saturated"
#: Our code in the settings of the research code that made the published tables.
RESEARCH = "research-code"
#: Methods that are our estimator in some settings; what they set depends on N.
FITTED_METHODS = (OURS, SATURATED, RESEARCH)


def fitted_settings(method: str, n_samples: int) -> dict[str, Any]:
    """Return the settings of our estimator that make it one of ``FITTED_METHODS``."""
    if method == SATURATED:
        return {"law": "saturated"}
    if method == RESEARCH:
        # lambda * min(|b|, tau) tops out at lambda * tau, which is what our penalty's strength is.
        threshold = 2.0 * n_samples**-0.275
        return {
            "law": "saturated",
            "method": "saem",
            "n_starts": 1,
            "max_iter": 20,
            "penalty_strength": n_samples**0.25 * threshold,
            "penalty_threshold": threshold,
        }
    return {}


def baselines() -> Mapping[str, Any]:
    """Return the baselines by name."""
    name = "hidag.studies.baselines"
    if find_spec(name) is None:
        return {}
    known: Mapping[str, Any] = import_module(name).BASELINES
    return known
