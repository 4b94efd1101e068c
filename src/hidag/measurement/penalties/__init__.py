"""Sparsity penalties on loadings. A new penalty is a new file and one entry of ``SHAPES``."""

from hidag.measurement.penalties.penalty import (
    NO_SPARSITY,
    SHAPES,
    Penalty,
    PenaltyShape,
    default_penalty,
)

__all__ = ["NO_SPARSITY", "Penalty", "PenaltyShape", "SHAPES", "default_penalty"]
