"""Items given latents: families, penalties, parameters."""

from hidag.measurement.columns import Columns, columns_of
from hidag.measurement.families import Family, MeanFamily, family_named, shown_names
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY, Penalty, default_penalty
from hidag.measurement.responses import Responses, categorical_named
from hidag.measurement.terms import Terms

__all__ = [
    "Columns",
    "Responses",
    "categorical_named",
    "columns_of",
    "Family",
    "MeanFamily",
    "MeasurementParameters",
    "NO_SPARSITY",
    "Penalty",
    "Terms",
    "default_penalty",
    "family_named",
    "shown_names",
]
