"""Measurement model: distribution of the items given the latents."""

from hidag.measurement.families import Family, MeanFamily, family_named, family_names, item_type
from hidag.measurement.parameters import (
    Columns,
    MeasurementParameters,
    Responses,
    columns_of,
    nominal_item,
)
from hidag.measurement.penalties import NO_SPARSITY, Penalty, default_penalty
from hidag.measurement.terms import Terms

__all__ = [
    "Columns", "Family", "MeanFamily", "MeasurementParameters", "NO_SPARSITY", "Penalty",
    "Responses", "Terms", "columns_of", "default_penalty", "family_named", "family_names",
    "item_type", "nominal_item",
]  # fmt: skip
