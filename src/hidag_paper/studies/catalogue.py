"""Catalogue of the studies, and plans: a study with all settings that determine its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from hidag.exceptions import Setting, SettingError
from hidag.fitting.settings import checked_count
from hidag.simulation.designs import COEFFICIENTS, Design
from hidag_paper.baselines import BASELINES
from hidag_paper.studies.cells import (
    PAPER_ITEMS,
    Address,
    Cell,
    RunSeeds,
    Task,
    cell_grid,
    select_cells,
    unknown_value,
)
from hidag_paper.studies.methods import (
    CALIBRATED,
    FITTED_METHODS,
    OURS,
    PAPER_METHODS,
    SATURATED,
)
from hidag_paper.studies.runs import recover, recover_by_rules

#: Runs one method: rows from a cell, a design, estimator settings, seeds and the method.
Run = Callable[[Cell, Design, Mapping[str, Any], RunSeeds, str], list[dict[str, Any]]]

#: Seeds are stored as signed 64-bit integers.
MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class Study:
    """A simulation study: factors whose combinations are its cells, and the function of a run.

    Attributes
    ----------
    name, title : str
    models, q, families : tuple of str
    n : tuple of int
    items : tuple of str
        Item designs: that of the paper and others.
    run : callable
        Performs one run.
    rules : tuple of str
        Rules for f(N); a run has one row for each.
    shows : {"distance", "rate"}
        Whether reports show mean distances from the truth or the share of exact results.
    methods : tuple of str
        Default methods.
    with_baselines : bool
        Whether all baselines are run by default.
    replicates : int
        Default number per cell.
    quick : mapping
        Levels and replicates of a short trial of a minute or two.
    published : str or None
        File with the published numbers.
    """

    name: str
    title: str
    models: tuple[str, ...]
    q: tuple[str, ...]
    families: tuple[str, ...]
    n: tuple[int, ...]
    items: tuple[str, ...] = (PAPER_ITEMS,)
    run: Run = recover
    rules: tuple[str, ...] = (CALIBRATED,)
    shows: Literal["distance", "rate"] = "distance"
    methods: tuple[str, ...] = (OURS,)
    with_baselines: bool = False
    replicates: int = 20
    quick: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None

    def known_methods(self) -> tuple[str, ...]:
        """Return the methods that can be run."""
        if len(self.rules) > 1:
            return (*FITTED_METHODS, *PAPER_METHODS)
        return (OURS, *BASELINES)

    def default_methods(self) -> tuple[str, ...]:
        """Return the methods that are run by default."""
        return self.known_methods() if self.with_baselines else self.methods


_TABLE_2: dict[str, Any] = {
    "models": ("Chain-10", "Tree-10", "Model-7", "Model-8", "Model-13"),
    "q": ("Q1", "Q2"),
    "families": ("bernoulli", "poisson", "gaussian"),
    "n": (3000, 5000, 7000),
    "published": "study2_shd.csv",
}
_SIZES = ("N", "2N", "3N", CALIBRATED)
_GROWTHS = ("sqrt N", "N", "N log N", "N^1.5", "N^2", CALIBRATED)

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            "table1",
            "Table 1: five latents, Gaussian items",
            models=("Chain-5", "Tree-5", "Model-5"),
            q=("Q1",),
            families=("gaussian",),
            n=(1000, 5000, 10000),
            items=(PAPER_ITEMS, "distinct", "distinct-quiet"),
            with_baselines=True,
            quick={"models": ("Chain-5",), "n": (1000,), "replicates": 2},
            published="study1_shd.csv",
        ),
        Study(
            "table2",
            "Table 2: seven to thirteen latents, three families",
            quick={"models": ("Chain-10", "Model-7"), "q": ("Q1",), "n": (3000,), "replicates": 2},
            **_TABLE_2,
        ),
        Study(
            "table-s1",
            "Table S.1: rows drawn from the fitted distribution, f(N) = N, 2N, 3N",
            run=partial(recover_by_rules, rules=_SIZES),
            rules=_SIZES,
            methods=(OURS, SATURATED, *PAPER_METHODS),
            quick={"models": ("Chain-10", "Model-7"), "q": ("Q1",), "n": (3000,), "replicates": 2},
            **_TABLE_2,
        ),
        Study(
            "consistency",
            "Consistency: share of exact graphs and Q, by f(N)",
            models=("Chain-5", "Model-5"),
            q=("Q1",),
            families=("gaussian", "bernoulli"),
            n=(250, 500, 1000, 2000, 4000, 8000),
            run=partial(recover_by_rules, rules=_GROWTHS),
            rules=_GROWTHS,
            shows="rate",
            methods=(SATURATED, OURS),
            quick={
                "models": ("Chain-5",),
                "families": ("gaussian",),
                "n": (250, 1000, 4000),
                "replicates": 5,
            },
        ),
    )
}


@dataclass(frozen=True)
class Plan:
    """The runs of a study and their settings.

    Attributes
    ----------
    study : str
        A key of ``STUDIES``.
    cells : tuple of Cell
    replicates : int
        Number per cell.
    design : {"text", "research-code"}
    seed : int
        Root seed.
    estimator : mapping
        Settings of the estimator other than the defaults.
    methods : tuple of str
        All use the same tables.
    """

    study: str
    cells: tuple[Cell, ...]
    replicates: int = 20
    design: Design = "research-code"
    seed: int = 0
    estimator: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = (OURS,)

    def __post_init__(self) -> None:
        study = study_named(self.study)
        checked_count("replicates", self.replicates)
        if self.design not in COEFFICIENTS:
            raise unknown_value("design", self.design, tuple(COEFFICIENTS))
        if not 0 <= self.seed <= MAX_SEED:
            raise SettingError(
                "out-of-range",
                "{setting} must be from 0 to {largest}, got {value}",
                setting=Setting("seed"),
                largest=MAX_SEED,
                value=self.seed,
            )
        for name in ("cells", "methods"):
            if not getattr(self, name):
                raise SettingError(
                    "empty-plan", "{setting} must not be empty", setting=Setting(name)
                )
        for method in self.methods:
            if method not in study.known_methods():
                raise unknown_value("methods", method, study.known_methods())

    def addresses(self) -> tuple[Address, ...]:
        """Return the addresses of all tables, by replicate, then by cell.

        An interrupted study then has results for every cell.
        """
        return tuple(
            Address(self.study, cell, replicate)
            for replicate in range(self.replicates)
            for cell in self.cells
        )

    def tasks(self) -> tuple[Task, ...]:
        """Return all runs: every method on every table."""
        return tuple(
            Task(address, method) for address in self.addresses() for method in self.methods
        )


def study_named(name: str) -> Study:
    """Return the study of that name."""
    if name not in STUDIES:
        raise unknown_value("study", name, tuple(STUDIES))
    return STUDIES[name]


def plan_study(
    name: str,
    *,
    cells: Sequence[str] = (),
    quick: bool = False,
    replicates: int | None = None,
    methods: Sequence[str] | None = None,
    **settings: Any,
) -> Plan:
    """Return a plan for a study of the catalogue.

    Parameters
    ----------
    name : str
        "table1", "table2", "table-s1" or "consistency".
    cells : sequence of str
        Parts of names or patterns; see `select_cells`. Default: all cells.
    quick : bool
        A few small cells with few replicates, for a trial of a minute or two.
    replicates : int, optional
        Number per cell. Default: that of the study.
    methods : sequence of str, optional
        Default: those of the study.
    **settings
        Levels of the factors ``models``, ``q``, ``families``, ``n`` and ``items`` other than those
        of the study (None for those of the study), and ``design``, ``seed`` and ``estimator`` of
        the `Plan`.
    """
    study = study_named(name)
    small = dict(study.quick) if quick else {}
    levels: dict[str, Any] = {}
    for factor in ("models", "q", "families", "n", "items"):
        given = settings.pop(factor, None)
        levels[factor] = small.get(factor, getattr(study, factor)) if given is None else given
    usual = small.get("replicates", study.replicates)
    return Plan(
        name,
        select_cells(cell_grid(**levels), cells),
        replicates=usual if replicates is None else replicates,
        methods=study.default_methods() if methods is None else tuple(dict.fromkeys(methods)),
        **settings,
    )
