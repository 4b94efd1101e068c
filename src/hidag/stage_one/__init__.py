"""Stage I from a table to a measurement: with joint states listed, or by sampling."""

from hidag.stage_one.exact import ExactMeasurement
from hidag.stage_one.record import Measurement, StageOneRecord
from hidag.stage_one.run import LAWS, estimate_measurement
from hidag.stage_one.sampled import SampledMeasurement

__all__ = [
    "LAWS",
    "ExactMeasurement",
    "Measurement",
    "SampledMeasurement",
    "StageOneRecord",
    "estimate_measurement",
]
