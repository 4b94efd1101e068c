"""Small tables to try hidag on: simulated ones with their truth, and openly licensed real ones."""

from hidag.datasets.loaders import (
    Dataset,
    load_clinic,
    load_election,
    load_skills,
    load_tumours,
    load_wine,
)

__all__ = [
    "Dataset", "load_clinic", "load_election", "load_skills", "load_tumours", "load_wine",
]  # fmt: skip
