"""The grammar section of the ECPE: three skills with a known Q, fitted with all effects.

Examination for the Certificate of Proficiency in English, 2922 examinees, 28 items. Templin and
Hoffman (2013, Educational Measurement: Issues and Practice 32, 37-50) published the data; Templin
and Bradshaw (2014, Psychometrika 79, 317-339) tested on them whether the skills are a hierarchy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hidag.applications.ecpe_page import ecpe_outcome
from hidag.applications.ecpe_tables import HIERARCHY, SKILLS, EcpeFits, HierarchyFit
from hidag.applications.outcome import Outcome
from hidag.criteria import count_parameters
from hidag.discover import Knowledge
from hidag.errors import DataError
from hidag.estimator import DCRL
from hidag.observations import read_folder
from hidag.progress import Progress
from hidag.result import FitResult

#: What an item's skills do together, in words, by the estimator's name for it. The first is what
#: the page is about; it holds the others.
MODELS: Mapping[str, str] = {
    "all": "all effects (G-DINA, LCDM)",
    "main": "main effects only",
    "dina": "DINA: all of an item's skills are needed",
    "dino": "DINO: one of an item's skills is enough",
}

#: The hierarchy as prerequisites: nobody has the second without the first.
LINE = (("Lexical", "Cohesive"), ("Cohesive", "Morphosyntactic"))


@dataclass(frozen=True)
class EcpeData:
    """Answers and the experts' Q.

    Attributes
    ----------
    table : pyarrow.Table
        Answers, 0 and 1.
    q : pyarrow.Table
        Items and skills.
    """

    table: Any
    q: Any


def read_ecpe(folder: Path) -> EcpeData:
    """Return the test in a folder with responses.csv and q.csv.

    Raises
    ------
    DataError
        If there is no Q-matrix, or one with other skills.
    """
    found = read_folder(folder)
    if found.q is None:
        raise DataError(
            f"the grammar test needs its Q-matrix, but {folder} has no q.csv; put it beside "
            "responses.csv, with a line for each item and a column for each skill"
        )
    skills = tuple(found.q.column_names[1:])
    if skills != SKILLS:
        raise DataError(
            f"the Q-matrix of the grammar test has the skills {', '.join(SKILLS)}, in this order, "
            f"but {folder / 'q.csv'} has {', '.join(skills)}; for another test use hidag fit"
        )
    return EcpeData(found.table, found.q)


def run_ecpe(
    folder: Path, *, seed: int = 1, observer: Callable[[Progress], None] | None = None
) -> Outcome:
    """Return what is found in the grammar test.

    Parameters
    ----------
    folder : Path
        With responses.csv and q.csv.
    seed : int
    observer : callable, optional
        Told of the fits' progress.
    """
    data = read_ecpe(folder)

    def fit(effects: str, known: Knowledge | None = None, tol: float = 1e-4) -> FitResult:
        model = DCRL(
            len(SKILLS),
            effects=effects,
            family="bernoulli",
            law="saturated",
            q_matrix=data.q,
            knowledge=known,
            tol=tol,
            random_state=seed,
            observer=observer,
        )
        return model.fit(data.table).result_

    fits = {effects: fit(effects) for effects in MODELS}
    # Shares of the four profiles settle later than the likelihood does.
    of_line = fit("all", Knowledge(hierarchy=LINE), tol=1e-6)
    hierarchy = HierarchyFit(
        np.asarray(of_line.law.probabilities)[of_line.law.space.number(np.array(HIERARCHY))],
        of_line.log_likelihood,
        count_parameters(of_line),
    )
    return ecpe_outcome(EcpeFits(fits, MODELS, hierarchy), seed)
