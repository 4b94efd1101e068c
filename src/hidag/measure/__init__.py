"""Stage I from a table to a measurement: with joint states listed, or by sampling."""

from hidag.measure.exact import ExactMeasurement
from hidag.measure.record import Measurement, StageOneRecord
from hidag.measure.run import LAWS, estimate_measurement
from hidag.measure.sampled import SampledMeasurement

__all__ = [
    "LAWS",
    "ExactMeasurement",
    "Measurement",
    "SampledMeasurement",
    "StageOneRecord",
    "estimate_measurement",
]
