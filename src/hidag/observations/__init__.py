"""Data in: one door for arrays, frames and files; column types; missing cells as a mask."""

from __future__ import annotations

from hidag.observations.files import read_file
from hidag.observations.folders import TableSource, read_folder
from hidag.observations.q_matrix import QSpec, read_q_matrix
from hidag.observations.table import Observations, read_table
from hidag.observations.types import FamilyChoice, resolve_families, shown_families
from hidag.observations.values import check_values

__all__ = [
    "FamilyChoice",
    "Observations",
    "QSpec",
    "TableSource",
    "check_values",
    "read_file",
    "read_folder",
    "read_q_matrix",
    "read_table",
    "resolve_families",
    "shown_families",
]
