"""Items given latents: families, penalties, parameters."""

from hidag.measurement.families.base import Family, MeanFamily
from hidag.measurement.families.registry import family_named, shown_names
from hidag.measurement.nominal import Responses, categorical_named
from hidag.measurement.parameters import Columns, MeasurementParameters, columns_of
from hidag.measurement.penalties import NO_SPARSITY, Penalty, default_penalty
from hidag.measurement.terms import Terms

__all__ = [
    "Columns",
    "Family",
    "MeanFamily",
    "MeasurementParameters",
    "NO_SPARSITY",
    "Penalty",
    "Responses",
    "Terms",
    "categorical_named",
    "columns_of",
    "default_penalty",
    "family_named",
    "shown_names",
]
