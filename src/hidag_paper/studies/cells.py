"""Cells of a study: what one line of a table is about, and which of them are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

import numpy as np

from hidag.exceptions import SettingError
from hidag.simulation.designs import BANDWIDTHS, COEFFICIENTS, GRAPHS, ITEM_VARIANTS

#: Families that a cell can have: those the designs have coefficients for.
FAMILIES = tuple(COEFFICIENTS["text"])
#: The kind of items that the paper's tables have.
PAPER_ITEMS = "paper"
_GLOB = "*?["


@dataclass(frozen=True, order=True)
class Cell:
    """One condition of a study, of which there are many replicates.

    Attributes
    ----------
    model : str
        Latent graph, a key of the designs' ``GRAPHS``.
    q : str
        Measurement matrix, "Q1" or "Q2".
    family : str
        As the paper names it: "poisson" has the link that the design gives it.
    n : int
        Number of rows, N.
    items : str
        "paper", or another kind of items, a key of the designs' ``ITEM_VARIANTS``.
    """

    model: str
    q: str
    family: str
    n: int
    items: str = PAPER_ITEMS

    @property
    def name(self) -> str:
        """What the cell is called everywhere, for instance "Chain-10/Q1/bernoulli/3000".

        Items other than the paper's are named at the end: "Chain-5/Q1/gaussian/1000/distinct".
        """
        name = f"{self.model}/{self.q}/{self.family}/{self.n}"
        return name if self.items == PAPER_ITEMS else f"{name}/{self.items}"

    @classmethod
    def named(cls, name: str) -> Cell:
        """Return the cell of that name."""
        model, q, family, n, *items = name.split("/")
        return cls(model, q, family, int(n), *items)


def cell_grid(
    models: Sequence[str],
    q: Sequence[str],
    families: Sequence[str],
    n: Sequence[int],
    items: Sequence[str] = (PAPER_ITEMS,),
) -> tuple[Cell, ...]:
    """Return the cells of all combinations, each checked; n changes fastest, then the family."""
    for what, values, known in (
        ("model", models, tuple(GRAPHS)),
        ("q", q, tuple(BANDWIDTHS)),
        ("family", families, FAMILIES),
        ("items", items, tuple(ITEM_VARIANTS)),
    ):
        for value in values:
            if value not in known:
                raise SettingError(f"{what} must be one of {', '.join(known)}, got {value!r}")
    for rows in n:
        if rows < 2:
            raise SettingError(f"n must be at least 2 rows, got {rows}")
    cells = (
        Cell(model, bands, family, rows, kind)
        for kind, model, bands, family, rows in product(items, models, q, families, n)
    )
    return tuple(dict.fromkeys(cells))


def select_cells(cells: Iterable[Cell], patterns: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells whose names match any of the patterns; all of them without patterns.

    Parameters
    ----------
    cells : iterable of Cell
    patterns : sequence of str
        A part of a name ("Chain-10", "Q2/poisson"), or a pattern for a whole one
        ("Chain-*/Q1/*/3000"). A whole name is that cell alone, also where others hold it.

    Raises
    ------
    SettingError
        If a pattern matches nothing: a typing error must not shrink a study.
    """
    everything = tuple(cells)
    wanted: set[Cell] = set()
    for pattern in patterns:
        # Who writes out .../1000 does not ask for .../10000 and .../1000/distinct beside it.
        found = [cell for cell in everything if cell.name == pattern] or [
            cell for cell in everything if _matches(cell.name, pattern)
        ]
        if not found:
            raise SettingError(
                f"no cell is called anything like {pattern!r}; the {len(everything)} cells have "
                f"names such as {everything[0].name!r} and {everything[-1].name!r}"
            )
        wanted.update(found)
    return tuple(cell for cell in everything if cell in wanted) if patterns else everything


def _matches(name: str, pattern: str) -> bool:
    if any(letter in pattern for letter in _GLOB):
        return fnmatchcase(name, pattern)
    return pattern in name


# --- Addresses of runs: a run's random numbers come from where it stands, not from when it ran


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
