"""Addresses of runs: a run's random numbers come from where it stands, not from when it ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hidag.studies.cells import Cell


@dataclass(frozen=True, order=True)
class Address:
    """Where a table stands, which every method of a study gets to see.

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
        """Return the seeds of this table and of fits to it under a root seed.

        They depend on the root and the address alone: neither the order of execution, nor the
        number of workers, nor which other cells are run can change them.
        """
        key = (*f"{self.study}/{self.cell.name}".encode(), self.replicate)
        for_truth, for_rows, for_fit = np.random.SeedSequence(root, spawn_key=key).spawn(3)
        return RunSeeds(for_truth, for_rows, int(for_fit.generate_state(1)[0]))


@dataclass(frozen=True, order=True)
class Task:
    """One run: a method at work on the table of an address. It ends in one row or several.

    Attributes
    ----------
    address : Address
    method : str
    """

    address: Address
    method: str

    @property
    def name(self) -> str:
        """The run in one line, for instance "table1/Chain-5/Q1/gaussian/1000/7/ours"."""
        return f"{self.address.name}/{self.method}"


@dataclass(frozen=True)
class RunSeeds:
    """Seeds of one address.

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
