"""Addresses of runs: a run's random numbers come from where it stands, not from when it ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hidag.studies.cells import Cell


@dataclass(frozen=True, order=True)
class Address:
    """Where a run stands.

    Attributes
    ----------
    study : str
    cell : Cell
    replicate : int
        From 0.
    """

    study: str
    cell: Cell
    replicate: int

    @property
    def name(self) -> str:
        """The address in one line, for instance "table2/Chain-10/Q1/bernoulli/3000/7"."""
        return f"{self.study}/{self.cell.name}/{self.replicate}"

    def seeds(self, root: int) -> RunSeeds:
        """Return the seeds of this run under a root seed.

        They depend on the root and the address alone: neither the order of execution, nor the
        number of workers, nor which other cells are run can change them.
        """
        key = (*f"{self.study}/{self.cell.name}".encode(), self.replicate)
        for_truth, for_rows, for_fit = np.random.SeedSequence(root, spawn_key=key).spawn(3)
        return RunSeeds(for_truth, for_rows, int(for_fit.generate_state(1)[0]))


@dataclass(frozen=True)
class RunSeeds:
    """Seeds of one run.

    Attributes
    ----------
    truth, rows : SeedSequence
        For the tables of the design, and for the data drawn from it.
    fit : int
        ``random_state`` of the estimator.
    """

    truth: np.random.SeedSequence
    rows: np.random.SeedSequence
    fit: int
