"""How Stage I searches for the best optimum: choice of algorithm, multistart, structural EM."""

from hidag.strategy.estimation import LAWS, estimate_measurement
from hidag.strategy.measurement import (
    ExactMeasurement,
    Measurement,
    SampledMeasurement,
    StageOneRecord,
)

__all__ = [
    "ExactMeasurement",
    "LAWS",
    "Measurement",
    "SampledMeasurement",
    "StageOneRecord",
    "estimate_measurement",
]
