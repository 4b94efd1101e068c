"""The studies there are, and plans: a study with all that decides the contents of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hidag.exceptions import SettingError
from hidag.fitting.settings import checked_count
from hidag.simulation.designs import COEFFICIENTS, Design
from hidag_paper.studies.cells import (
    PAPER_ITEMS,
    Address,
    Cell,
    RunSeeds,
    Task,
    cell_grid,
    select_cells,
)
from hidag_paper.studies.methods import (
    CALIBRATED,
    FITTED_METHODS,
    OURS,
    RESEARCH,
    SATURATED,
    baselines,
)
from hidag_paper.studies.runs import recover, rules_run

#: Carries out one run of one method: rows from a cell, a design, estimator settings and seeds.
Run = Callable[[Cell, Design, Mapping[str, Any], RunSeeds, str], list[dict[str, Any]]]

#: Rows have their seed in a column of signed whole numbers of 64 bits.
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Study:
    """A table of the paper: factors whose combinations are its cells, and how a run is made.

    Attributes
    ----------
    name, title : str
    models, q, families : tuple of str
    n : tuple of int
    items : tuple of str
        Kinds of items, the paper's and others.
    run : callable
        What a run does; workers find it by the study's name.
    rules : tuple of str
        Rules for f(N) that a run of ours gives a row each.
    shows : {"distance", "rate"}
        What reports show: mean distances to the truth, or how often there is none.
    methods : tuple of str
        What is run unless the user says otherwise.
    with_baselines : bool
        Whether baselines may be run on its tables, and are unless the user says otherwise.
    replicates : int
        Of a cell, unless the user says otherwise.
    quick : mapping
        Levels and replicates in place of the study's own that take a minute or two.
    published : str or None
        File with the published numbers of this table.
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
        """Return the methods that can be run on its tables, those of the study itself first."""
        if len(self.rules) > 1:
            return FITTED_METHODS
        return (OURS, *baselines())

    def default_methods(self) -> tuple[str, ...]:
        """Return the methods that are run unless the user says otherwise."""
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
            "Table S.1: rows drawn from the fitted law, f(N) = N, 2N, 3N",
            run=rules_run(*_SIZES),
            rules=_SIZES,
            methods=(OURS, RESEARCH),
            quick={"models": ("Chain-10", "Model-7"), "q": ("Q1",), "n": (3000,), "replicates": 2},
            **_TABLE_2,
        ),
        Study(
            "consistency",
            "Consistency: how often the graph and Q are found without error, by f(N)",
            models=("Chain-5", "Model-5"),
            q=("Q1",),
            families=("gaussian", "bernoulli"),
            n=(250, 500, 1000, 2000, 4000, 8000),
            run=rules_run(*_GROWTHS),
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
        Settings of our estimator that are not its defaults.
    methods : tuple of str
        Each sees the same tables.
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
            raise SettingError(f"design must be 'text' or 'research-code', got {self.design!r}")
        if self.seed < 0:
            raise SettingError(f"seed must not be negative, got {self.seed}")
        if self.seed > LARGEST_SEED:
            raise SettingError(f"seed must be at most {LARGEST_SEED}, got {self.seed}")
        if not self.cells:
            raise SettingError("a study needs at least one cell")
        if not self.methods:
            raise SettingError("a study needs at least one method")
        for method in self.methods:
            if method not in study.known_methods():
                raise SettingError(
                    f"method of {self.study} must be one of {', '.join(study.known_methods())}, "
                    f"got {method!r}"
                )

    def addresses(self) -> tuple[Address, ...]:
        """Return all tables; a replicate of every cell comes before the next replicate of any.

        So a study that is stopped half-way tells something about each of its cells.
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
    """Return the study of that name, or say which ones there are."""
    if name not in STUDIES:
        raise SettingError(f"study must be one of {', '.join(STUDIES)}, got {name!r}")
    return STUDIES[name]


def plan_study(
    name: str,
    *,
    cells: Sequence[str] = (),
    quick: bool = False,
    replicates: int | None = None,
    methods: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    q: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
    n: Sequence[int] | None = None,
    items: Sequence[str] | None = None,
    **settings: Any,
) -> Plan:
    """Return a plan for a study of the catalogue.

    Parameters
    ----------
    name : str
        "table1", "table2", "table-s1" or "consistency".
    cells : sequence of str
        Parts of names or patterns; see `select_cells`. Empty for all cells.
    quick : bool
        A few small cells with few replicates, to see the study work in a minute or two.
    replicates : int, optional
        Of each cell; the study's own number unless given.
    methods : sequence of str, optional
        The study's own unless given.
    models, q, families, n, items : sequence, optional
        Levels in place of the study's own; cells that the paper does not have are fine.
    **settings
        ``design``, ``seed`` and ``estimator`` of the `Plan`.
    """
    study = study_named(name)
    small = dict(study.quick) if quick else {}
    asked = {"models": models, "q": q, "families": families, "n": n, "items": items}
    levels: dict[str, Any] = {
        factor: small.get(factor, getattr(study, factor)) if given is None else given
        for factor, given in asked.items()
    }
    usual = small.get("replicates", study.replicates)
    return Plan(
        name,
        select_cells(cell_grid(**levels), cells),
        replicates=usual if replicates is None else replicates,
        methods=study.default_methods() if methods is None else tuple(dict.fromkeys(methods)),
        **settings,
    )
