"""Studies: the paper's simulation tables, run by address, resumed from rows, reported beside them.

A study is a list of cells. A table is an address (study, cell, replicate), and its seed comes from
the address. A run is a method at work on a table; its rows go to Parquet as it ends, and reports
read these files and nothing else.
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
    Estimate,
    Published,
    Standing,
    Summary,
    read_published,
    stand,
    summarise,
)

__all__ = [
    "Address",
    "CALIBRATED",
    "Cell",
    "Estimate",
    "FITTED_METHODS",
    "OURS",
    "Plan",
    "Published",
    "RULES",
    "Rule",
    "RunSeeds",
    "STUDIES",
    "Standing",
    "Study",
    "StudyFolder",
    "StudyProgress",
    "Summary",
    "Task",
    "VARYING",
    "cell_grid",
    "column_types",
    "plan_study",
    "read_folder",
    "read_published",
    "run_plan",
    "run_study",
    "run_task",
    "search_true_latents",
    "select_cells",
    "stand",
    "study_named",
    "summarise",
    "truth_started",
    "truth_started_fit",
]
