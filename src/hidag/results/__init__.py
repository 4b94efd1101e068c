"""The result of a fit, and the files it is saved in."""

from hidag.results.checkpoints import resumable, resumed_fit
from hidag.results.fit_result import (
    AnyFit,
    FitResult,
    as_result,
    canonical_rows,
    observable,
    rank_items,
    reorder_items,
)
from hidag.results.nuisance_factor import NuisanceFactor
from hidag.results.saved_result import (
    FIT_FILE,
    load,
    read_archive,
    versions_used,
    without_nan,
    write_archive,
)

__all__ = [
    "AnyFit", "FIT_FILE", "FitResult", "NuisanceFactor", "as_result", "canonical_rows", "load",
    "observable", "rank_items", "read_archive", "reorder_items", "resumable", "resumed_fit",
    "versions_used", "without_nan", "write_archive",
]  # fmt: skip
