"""Studies: the paper's simulation tables, run by address, resumed from rows, reported beside them.

A study is a list of cells. A run is an address (study, cell, replicate), and its seed comes from
the address. Rows are appended to a file as runs finish; reports read that file and nothing else.
"""

from hidag.studies.addresses import Address, RunSeeds
from hidag.studies.catalogue import STUDIES, Plan, Study, plan_study
from hidag.studies.cells import Cell, cell_grid, select_cells
from hidag.studies.execute import StudyProgress, run_address, run_plan, run_study
from hidag.studies.folder import StudyFolder, read_folder
from hidag.studies.published import read_published
from hidag.studies.summary import CellSummary, Standing, stand, summarise
from hidag.studies.yardsticks import search_true_latents, truth_started

__all__ = [
    "STUDIES",
    "Address",
    "Cell",
    "CellSummary",
    "Plan",
    "RunSeeds",
    "Standing",
    "Study",
    "StudyFolder",
    "StudyProgress",
    "cell_grid",
    "plan_study",
    "read_folder",
    "read_published",
    "run_address",
    "run_plan",
    "run_study",
    "search_true_latents",
    "select_cells",
    "stand",
    "summarise",
    "truth_started",
]
