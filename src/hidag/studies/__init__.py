"""Studies: the paper's simulation tables, run by address, resumed from rows, reported beside them.

A study is a list of cells. A table is an address (study, cell, replicate), and its seed comes from
the address. A run is a method at work on a table; its rows go to Parquet as it ends, and reports
read these files and nothing else.
"""

from hidag.studies.addresses import Address, RunSeeds, Task
from hidag.studies.catalogue import STUDIES, Plan, Study, plan_study, study_named
from hidag.studies.cells import Cell, cell_grid, select_cells
from hidag.studies.columns import VARYING, column_types
from hidag.studies.execute import StudyProgress, run_plan, run_study, run_task
from hidag.studies.folder import StudyFolder, read_folder
from hidag.studies.methods import FITTED_METHODS, OURS
from hidag.studies.published import Published, read_published
from hidag.studies.rules import CALIBRATED, RULES, Rule
from hidag.studies.summary import Estimate, Standing, Summary, stand, summarise
from hidag.studies.yardsticks import search_true_latents, truth_started, truth_started_fit

__all__ = [
    "CALIBRATED",
    "FITTED_METHODS",
    "OURS",
    "RULES",
    "STUDIES",
    "VARYING",
    "Address",
    "Cell",
    "Estimate",
    "Plan",
    "Published",
    "Rule",
    "RunSeeds",
    "Standing",
    "Study",
    "StudyFolder",
    "StudyProgress",
    "Summary",
    "Task",
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
