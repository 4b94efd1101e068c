"""Items given latents: families, penalties, parameters."""

from hidag.measurement.families import FAMILIES, Family, family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY, Penalty, default_penalty

__all__ = [
    "FAMILIES",
    "Family",
    "MeasurementParameters",
    "NO_SPARSITY",
    "Penalty",
    "default_penalty",
    "family_named",
]
