"""Simulation studies of the paper: resumable runs, stored rows, and comparison with the paper.

A study is a list of cells. A simulated table is identified by its address (study, cell, replicate),
from which its seed is derived. A run applies a method to a table; its rows are stored as Parquet
when it ends, and reports read only these files.
"""

from hidag_paper.studies.catalogue import STUDIES, Plan, Study, plan_study, study_named
from hidag_paper.studies.cells import Address, Cell, RunSeeds, Task, cell_grid, select_cells
from hidag_paper.studies.execution import StudyProgress, run_plan, run_study, run_task
from hidag_paper.studies.methods import (
    CALIBRATED,
    FITTED_METHODS,
    OURS,
    RULES,
    Rule,
    search_true_latents,
    truth_started,
    truth_started_fit,
)
from hidag_paper.studies.rows import VARYING, column_types
from hidag_paper.studies.study_folder import StudyFolder, read_folder
from hidag_paper.studies.summary import (
    Comparison,
    Estimate,
    Published,
    Summary,
    compare_with_paper,
    read_published,
    summarise,
)

__all__ = [
    "Address",
    "CALIBRATED",
    "Cell",
    "Comparison",
    "Estimate",
    "FITTED_METHODS",
    "OURS",
    "Plan",
    "Published",
    "RULES",
    "Rule",
    "RunSeeds",
    "STUDIES",
    "Study",
    "StudyFolder",
    "StudyProgress",
    "Summary",
    "Task",
    "VARYING",
    "cell_grid",
    "compare_with_paper",
    "column_types",
    "plan_study",
    "read_folder",
    "read_published",
    "run_plan",
    "run_study",
    "run_task",
    "search_true_latents",
    "select_cells",
    "study_named",
    "summarise",
    "truth_started",
    "truth_started_fit",
]
