"""A fit of which only the numbers that are compared are known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Numbers:
    """Stands for a `hidag.model_selection.Candidate`."""

    bic: float
    strength: float
    n_parameters: int = 0
    information_ratio: float = 1.0
    n_active: int = 1
    aic: float = float("-inf")
    n_shared: int = 0
    result: object = None
