"""Methods that a study can hold against the truth: ours, ours in other settings, and baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.measurement import MeasurementParameters
from hidag.studies.baselines import BASELINES, Baseline
from hidag.studies.baselines.research_code import THIRD_STAGE, first_stage, whole_loadings

OURS = "ours"
#: Our Stage I with the paper's law, one free probability per joint state, as its theorem has it.
SATURATED = "saturated"
#: Our code in the settings of the research code that made the published tables.
RESEARCH = "research-code"
#: Methods that are our estimator in some settings; what they set depends on N.
FITTED_METHODS = (OURS, SATURATED, RESEARCH)


def first_stage_of(method: str, n_samples: int) -> dict[str, Any]:
    """Return the settings of our Stage I that make it one of ``FITTED_METHODS``."""
    if method == RESEARCH:
        return first_stage(n_samples)
    return {"law": "saturated"} if method == SATURATED else {}


def q_of(method: str, items: MeasurementParameters, n_samples: int) -> NDArray[np.int8]:
    """Return the Q that one of ``FITTED_METHODS`` reads off its items, shape (J, K)."""
    if method == RESEARCH:
        return whole_loadings(items.loadings, n_samples)
    return items.q_matrix


def third_stage_of(method: str) -> dict[str, Any]:
    """Return the settings of our Stage III that make it one of ``FITTED_METHODS``."""
    return THIRD_STAGE if method == RESEARCH else {}


def baselines() -> Mapping[str, Baseline]:
    """Return the baselines by name."""
    return BASELINES
