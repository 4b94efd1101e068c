"""The studies there are, and plans: a study with all that decides the contents of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hidag.errors import SettingError
from hidag.settings import checked_count
from hidag.simulate.designs import COEFFICIENTS, Design
from hidag.studies.addresses import Address, RunSeeds
from hidag.studies.cells import Cell, cell_grid, select_cells
from hidag.studies.recovery import recover

#: Carries out one run: the numbers of a row from a cell, a design, estimator settings and seeds.
Run = Callable[[Cell, Design, Mapping[str, Any], RunSeeds], dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """A table of the paper: factors whose combinations are its cells, and how a run is made.

    Attributes
    ----------
    name, title : str
    models, q, families : tuple of str
    n : tuple of int
    run : callable
        What a run does; a module's function, as workers find it by the study's name.
    published : str or None
        File with the published numbers of this table.
    """

    name: str
    title: str
    models: tuple[str, ...]
    q: tuple[str, ...]
    families: tuple[str, ...]
    n: tuple[int, ...]
    run: Run = recover
    published: str | None = None


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            "table1",
            "five latents, Gaussian items",
            models=("Chain-5", "Tree-5", "Model-5"),
            q=("Q1",),
            families=("gaussian",),
            n=(1000, 5000, 10000),
            published="study1_shd.csv",
        ),
        Study(
            "table2",
            "seven to thirteen latents, three families",
            models=("Chain-10", "Tree-10", "Model-7", "Model-8", "Model-13"),
            q=("Q1", "Q2"),
            families=("bernoulli", "poisson", "gaussian"),
            n=(3000, 5000, 7000),
            published="study2_shd.csv",
        ),
    )
}


@dataclass(frozen=True)
class Plan:
    """What is to be run.

    Attributes
    ----------
    study : str
        A key of ``STUDIES``.
    cells : tuple of Cell
    replicates : int
        Of each cell.
    design : {"text", "research-code"}
    seed : int
        Root of all random numbers.
    estimator : mapping
        Settings of the estimator that are not its defaults.
    """

    study: str
    cells: tuple[Cell, ...]
    replicates: int = 20
    design: Design = "research-code"
    seed: int = 0
    estimator: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        study_named(self.study)
        checked_count("replicates", self.replicates)
        if self.design not in COEFFICIENTS:
            raise SettingError(f"design must be 'text' or 'research-code', got {self.design!r}")
        if self.seed < 0:
            raise SettingError(f"seed must not be negative, got {self.seed}")
        if not self.cells:
            raise SettingError("a study needs at least one cell")

    def addresses(self) -> tuple[Address, ...]:
        """Return all runs; a replicate of every cell comes before the next replicate of any.

        So a study that is stopped half-way tells something about each of its cells.
        """
        return tuple(
            Address(self.study, cell, replicate)
            for replicate in range(self.replicates)
            for cell in self.cells
        )


def study_named(name: str) -> Study:
    """Return the study of that name, or say which ones there are."""
    if name not in STUDIES:
        raise SettingError(f"study must be one of {', '.join(STUDIES)}, got {name!r}")
    return STUDIES[name]


def plan_study(
    name: str,
    *,
    cells: Sequence[str] = (),
    models: Sequence[str] | None = None,
    q: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
    n: Sequence[int] | None = None,
    **settings: Any,
) -> Plan:
    """Return a plan for a study of the catalogue.

    Parameters
    ----------
    name : str
        "table1" or "table2".
    cells : sequence of str
        Parts of names or patterns; see `select_cells`. Empty for all cells.
    models, q, families, n : sequence, optional
        Levels in place of the study's own; cells that the paper does not have are fine.
    **settings
        ``replicates``, ``design``, ``seed`` and ``estimator`` of the `Plan`.
    """
    study = study_named(name)
    grid = cell_grid(
        study.models if models is None else models,
        study.q if q is None else q,
        study.families if families is None else families,
        study.n if n is None else n,
    )
    return Plan(name, select_cells(grid, cells), **settings)
