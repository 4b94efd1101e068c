"""Data in: one door for arrays, frames and files; column types; missing cells as a mask."""

from __future__ import annotations

from hidag.observations.table import Observations, read_table

__all__ = ["Observations", "read_table"]
