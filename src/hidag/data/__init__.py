"""Read and check tables: arrays, data frames and files, item types, Q-matrices and weights."""

from hidag.data.item_types import FamilyChoice, resolve_families
from hidag.data.q_matrix import QSpec, read_q_matrix
from hidag.data.readers import TableSource, read_file, read_folder
from hidag.data.table import Observations, read_table
from hidag.data.value_checks import check_values

__all__ = [
    "FamilyChoice", "Observations", "QSpec", "TableSource", "check_values", "read_file",
    "read_folder", "read_q_matrix", "read_table", "resolve_families",
]  # fmt: skip
