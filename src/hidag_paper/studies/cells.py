"""Cells of a study, and the addresses and seeds of their runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

import numpy as np

from hidag.exceptions import Setting, SettingError
from hidag.simulation.designs import BANDWIDTHS, COEFFICIENTS, GRAPHS, ITEM_VARIANTS

#: Families for which the designs have coefficients.
FAMILIES = tuple(COEFFICIENTS["text"])
#: The item design of the paper.
PAPER_ITEMS = "paper"
_GLOB = "*?["


@dataclass(frozen=True, order=True)
class Cell:
    """One condition of a study.

    Attributes
    ----------
    model : str
        Latent graph, a key of the designs' ``GRAPHS``.
    q : str
        Measurement matrix, "Q1" or "Q2".
    family : str
        As named in the paper; the link of "poisson" depends on the design.
    n : int
        Number of rows, N.
    items : str
        "paper", or another item design, a key of the designs' ``ITEM_VARIANTS``.
    """

    model: str
    q: str
    family: str
    n: int
    items: str = PAPER_ITEMS

    @property
    def name(self) -> str:
        """Unique name, such as "Chain-10/Q1/bernoulli/3000" or "Chain-5/Q1/gaussian/1000/distinct".

        The item design is part of the name unless it is that of the paper.
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
    """Return the cells of all combinations after validation; n varies fastest."""
    for name, values, known in (
        ("models", models, tuple(GRAPHS)),
        ("q", q, tuple(BANDWIDTHS)),
        ("families", families, FAMILIES),
        ("items", items, tuple(ITEM_VARIANTS)),
    ):
        for value in values:
            if value not in known:
                raise unknown_value(name, value, known)
    for rows in n:
        if rows < 2:
            raise SettingError(
                "out-of-range",
                "{setting} must be at least 2 rows, got {value}",
                setting=Setting("n"),
                value=rows,
            )
    cells = (
        Cell(model, bands, family, rows, kind)
        for kind, model, bands, family, rows in product(items, models, q, families, n)
    )
    return tuple(dict.fromkeys(cells))


def unknown_value(name: str, value: object, known: Sequence[str]) -> SettingError:
    """Return the error of a setting that is none of the known values."""
    return SettingError(
        "unknown-value",
        "{setting} must be one of {known}, got {value!r}",
        setting=Setting(name),
        known=", ".join(known),
        value=value,
    )


def select_cells(cells: Iterable[Cell], patterns: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells whose names match any of the patterns; all cells without patterns.

    Parameters
    ----------
    cells : iterable of Cell
    patterns : sequence of str
        A part of a name ("Chain-10", "Q2/poisson"), or a pattern for the whole name
        ("Chain-*/Q1/*/3000"). A complete name selects only that cell.

    Raises
    ------
    SettingError
        If a pattern matches no cell.
    """
    everything = tuple(cells)
    wanted: set[Cell] = set()
    for pattern in patterns:
        # A complete name, .../1000, does not select .../10000 and .../1000/distinct.
        found = [cell for cell in everything if cell.name == pattern] or [
            cell for cell in everything if _matches(cell.name, pattern)
        ]
        if not found:
            raise SettingError(
                "unknown-cell",
                "no cell matches {pattern!r}; the {n} cells have names such as {first!r} and "
                "{last!r}",
                pattern=pattern,
                n=len(everything),
                first=everything[0].name,
                last=everything[-1].name,
            )
        wanted.update(found)
    return tuple(cell for cell in everything if cell in wanted) if patterns else everything


def _matches(name: str, pattern: str) -> bool:
    if any(letter in pattern for letter in _GLOB):
        return fnmatchcase(name, pattern)
    return pattern in name


@dataclass(frozen=True, order=True)
class Address:
    """Identifies a simulated table, which all methods of a study share.

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
        """The address as text, such as "table2/Chain-10/Q1/bernoulli/3000/7"."""
        return f"{self.study}/{self.cell.name}/{self.replicate}"

    def seeds(self, root: int) -> RunSeeds:
        """Return the seeds of this table and of fits to it.

        They depend only on the root seed and the address, not on the order of execution, the number
        of workers or the other cells.
        """
        key = (*f"{self.study}/{self.cell.name}".encode(), self.replicate)
        truth, rows, fit = np.random.SeedSequence(root, spawn_key=key).spawn(3)
        return RunSeeds(truth, rows, int(fit.generate_state(1)[0]))


@dataclass(frozen=True, order=True)
class Task:
    """One run: a method applied to the table of an address; it has one or more rows.

    Attributes
    ----------
    address : Address
    method : str
    """

    address: Address
    method: str

    @property
    def name(self) -> str:
        """The run as text, such as "table1/Chain-5/Q1/gaussian/1000/7/ours"."""
        return f"{self.address.name}/{self.method}"


@dataclass(frozen=True)
class RunSeeds:
    """Seeds of one address.

    Attributes
    ----------
    truth, rows : SeedSequence
        For the parameters, and for the data.
    fit : int
        ``random_state`` of the estimator.
    """

    truth: np.random.SeedSequence
    rows: np.random.SeedSequence
    fit: int
