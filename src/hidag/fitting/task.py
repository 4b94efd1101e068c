"""The estimation task: a table and validated settings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.item_types import FamilyChoice, resolve_families
from hidag.data.q_matrix import QSpec, read_q_matrix
from hidag.data.rows import nonempty_rows, select_weighted_rows, warn_of_empty_rows
from hidag.data.table import Observations
from hidag.data.value_checks import (
    check_values,
    warn_of_codes,
    warn_of_dates,
    warn_of_duplicate_columns,
    warn_of_row_ids,
    warn_of_values,
)
from hidag.em.problem import Schedule
from hidag.exceptions import (
    Choices,
    HidagWarning,
    IdentifiabilityWarning,
    KnowledgeWarning,
    Setting,
    SettingError,
    invalid_setting,
)
from hidag.fitting.graph_stage import GraphSettings, effective_share
from hidag.fitting.settings import (
    check_search,
    checked_count,
    checked_levels,
    chosen_penalty,
    latent_names_of,
    root_seed,
    thread_count,
)
from hidag.formatting import plural
from hidag.latent.counts import resample_size
from hidag.measurement.parameters import Responses
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import Effects
from hidag.strategy.estimation import LAWS
from hidag.structure.knowledge import Knowledge

#: Frames between ``warnings.warn`` and the caller of ``fit``.
_STACK = 4


@dataclass(frozen=True, eq=False)
class FitTask:
    """A table and validated settings.

    Attributes
    ----------
    table : Observations
        All N rows.
    counted : Observations
        The n rows with an observed cell and a positive weight.
    weights : ndarray, shape (n,), or None
        None if all are 1.
    n_rows : float
        Sum of the weights.
    levels : tuple of int, length K
    effects : Effects
    families : FamilyChoice
    q_spec : QSpec or None
    latent_names : tuple of str, length K
    penalty : Penalty
        Initial penalty.
    adapt : bool
        Whether the strength of the penalty is estimated.
    schedule : Schedule
    n_threads : int
    method, n_starts
        As in `DCRL`.
    graph : GraphSettings
        Settings of Stages II and III.
    """

    table: Observations
    counted: Observations
    weights: NDArray[np.float64] | None
    n_rows: float
    levels: tuple[int, ...]
    effects: Effects
    families: FamilyChoice
    q_spec: QSpec | None
    latent_names: tuple[str, ...]
    penalty: Penalty
    adapt: bool
    schedule: Schedule
    n_threads: int
    method: str
    n_starts: int | str
    graph: GraphSettings

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return self.graph.seed

    @property
    def law(self) -> str:
        """Kind of the latent distribution, as in `DCRL`."""
        return self.graph.law

    @property
    def knowledge(self) -> Knowledge | None:
        """Prior knowledge about the graph."""
        return self.graph.knowledge

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return len(self.levels)

    @property
    def responses(self) -> Responses:
        """Responses of the items; a nominal item has several."""
        return Responses.of(self.families.families)

    @property
    def n_unanswered(self) -> int:
        """Number of rows without an observed cell."""
        return int((~nonempty_rows(self.table.values)).sum())

    @property
    def enough_items(self) -> bool:
        """Whether the number of items satisfies the necessary condition for identifiability."""
        return self.table.n_items >= min_items(self.n_latents)


def min_items(n_latents: int) -> int:
    """Return the number of items that K latents need: two blocks of K, and one more."""
    return 2 * n_latents + 1


def read_task(table: Observations, sample_weight: Any, settings: Mapping[str, Any]) -> FitTask:
    """Return the task, or raise a `DataError` or `SettingError`."""
    counted, weights = select_weighted_rows(table, sample_weight)
    n_rows = counted.n_samples if weights is None else float(weights.sum())
    n_latents = checked_count("n_latents", settings["n_latents"])
    levels = checked_levels(settings["levels"], n_latents)
    effects = Effects.of(settings["effects"])
    _check_number(n_latents, table.n_items)
    _check_stages(settings, counted.n_samples)
    warn_of_empty_rows(table, stacklevel=_STACK)
    families = resolve_families(counted, settings["family"], weights)
    check_values(counted, families.families)
    warn_of_values(counted, families.families)
    warn_of_codes(counted, families.families)
    warn_of_row_ids(counted, families.families, families.inferred)
    warn_of_dates(counted)
    warn_of_duplicate_columns(counted, stacklevel=_STACK)
    q_spec = None
    if settings["q_matrix"] is not None:
        q_spec = read_q_matrix(settings["q_matrix"], table.names, n_latents)
    names = latent_names_of(
        settings["latent_names"],
        n_latents,
        q_spec.latent_names if q_spec is not None and q_spec.named else None,
        table.names,
    )
    check_search(
        settings["search"],
        settings["graph_score"],
        settings["equivalent_sample_size"],
        settings["knowledge"],
        names,
    )
    _warn_of_unnamed_latents(settings["knowledge"], names, q_spec)
    penalty = chosen_penalty(
        settings["penalty"],
        n_rows,
        n_latents,
        settings["penalty_strength"],
        settings["penalty_threshold"],
    )
    return FitTask(
        table=table,
        counted=counted,
        weights=weights,
        n_rows=n_rows,
        levels=levels,
        effects=effects,
        families=families,
        q_spec=q_spec,
        latent_names=names,
        penalty=penalty,
        adapt=settings["penalty_strength"] is None,
        schedule=Schedule(
            max_iter=settings["max_iter"],
            tolerance=settings["tol"],
            n_sweeps=settings["n_sweeps"],
        ),
        n_threads=thread_count(settings["n_jobs"]),
        method=settings["method"],
        n_starts=settings["n_starts"],
        graph=GraphSettings(
            resample=settings["resample"],
            effective_size=settings["effective_size"],
            score=settings["graph_score"],
            equivalent_sample_size=settings["equivalent_sample_size"],
            search=settings["search"],
            knowledge=settings["knowledge"],
            law=settings["law"],
            seed=root_seed(settings["random_state"]),
        ),
    )


def _check_number(n_latents: int, n_items: int) -> None:
    """Raise if there are more latents than items, warn if they cannot be identified."""
    items, fewer = plural(n_items, "item"), (n_items - 1) // 2
    if n_latents > n_items:
        raise SettingError(
            "more-latents-than-items",
            "{n_latents} is more than the {items} of the table, and each latent needs at least one "
            "item of its own",
            advice="use at most {most}, which {items} can identify"
            if fewer
            else "add items: even one latent needs {least} items to be identified",
            n_latents=Setting("n_latents", n_latents),
            items=items,
            most=Setting("n_latents", fewer),
            least=min_items(1),
        )
    if n_items < min_items(n_latents):
        warnings.warn(
            IdentifiabilityWarning(
                "too-few-items",
                "{latents} cannot be identified from {items}: two blocks of {n_latents} items that "
                "each measure every latent and at least one more item are needed, {least} in all"
                if n_latents > 1
                else "{latents} cannot be identified from {items}: at least {least} are needed",
                advice="use fewer latents or add items" if fewer else "add items",
                latents=plural(n_latents, "latent"),
                items=items,
                n_latents=n_latents,
                least=min_items(n_latents),
            ),
            stacklevel=_STACK,
        )


def _warn_of_unnamed_latents(
    knowledge: Knowledge | None, names: tuple[str, ...], q_spec: QSpec | None
) -> None:
    """Warn about knowledge that names latents without a given column of Q.

    A hierarchy without Q is an error, raised elsewhere. Knowledge that treats all pairs equally
    does not depend on the labels.
    """
    if knowledge is None or knowledge.hierarchy or len(names) < 2:
        return
    rules = knowledge.constraints(names)
    pairs = rules[~np.eye(len(names), dtype=bool)]
    if (pairs == pairs[0]).all():
        return
    named = rules.any(axis=0) | rules.any(axis=1)
    if q_spec is not None:
        named &= (q_spec.entries < 0).all(axis=0)
    if named.any():
        name = names[int(np.flatnonzero(named)[0])]
        warnings.warn(
            KnowledgeWarning(
                "knowledge-without-q",
                "the prior knowledge names the latent {name}, but without a Q-matrix the fit "
                "orders the latents by the strength of their loadings, and the knowledge applies "
                "to whichever latent is called {name}",
                advice="fit without it, inspect the estimated Q, and give {q_matrix} with names "
                "for its latents",
                name=name,
                q_matrix=Setting("q_matrix"),
            ),
            stacklevel=_STACK,
        )


def _check_stages(settings: Mapping[str, Any], n_samples: int) -> None:
    """Check the settings of Stages I and II."""
    law, observer, tol = settings["law"], settings["observer"], settings["tol"]
    if law not in LAWS:
        raise invalid_setting("law", Choices(LAWS), law)
    if observer is not None and not callable(observer):
        raise invalid_setting("observer", "callable", observer)
    if settings["n_starts"] != "auto":
        checked_count("n_starts", settings["n_starts"])
    for name in ("max_iter", "n_sweeps"):
        checked_count(name, settings[name])
    if not (isinstance(tol, Real) and 0 < float(tol) < np.inf):
        raise invalid_setting("tol", "a positive number", tol)
    rule = settings["resample"]
    if isinstance(rule, str) and rule == "expected":
        effective_share(settings["effective_size"], 1.0)
    else:
        with warnings.catch_warnings():
            # Stage II warns again.
            warnings.simplefilter("ignore", HidagWarning)
            resample_size(rule, n_samples)
