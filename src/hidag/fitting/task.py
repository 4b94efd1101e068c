"""What a fit is to do: its table and settings, read and checked before they cost any time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.column_checks import warn_of_dates, warn_of_duplicate_columns, warn_of_row_ids
from hidag.data.item_types import FamilyChoice, resolve_families
from hidag.data.q_matrix import QSpec, read_q_matrix
from hidag.data.sample_weights import nonempty_rows, select_weighted_rows, warn_of_empty_rows
from hidag.data.table import Observations
from hidag.data.value_checks import check_values, warn_of_codes, warn_of_values
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
from hidag.fitting.graph_stage import effective_share
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
from hidag.measurement.penalties import Penalty
from hidag.measurement.responses import Responses
from hidag.measurement.terms import Effects
from hidag.strategy.estimation import LAWS
from hidag.structure.knowledge import Knowledge

#: From the caller of ``fit``: the check, ``read_task``, ``fit``, the caller.
_STACK = 4


@dataclass(frozen=True, eq=False)
class FitTask:
    """A table and settings that go together.

    Attributes
    ----------
    table : Observations
        All N rows.
    counted : Observations
        The rows with an answer and a weight above zero, n of them.
    weights : ndarray, shape (n,), or None
        None when all are one.
    n_rows : float
        How many rows the table stands for.
    levels : tuple of int, length K
    effects : Effects
    families : FamilyChoice
    q_spec : QSpec or None
    latent_names : tuple of str, length K
    penalty : Penalty
        That estimation begins with.
    adapt : bool
        Whether the penalty's strength is learned.
    schedule : Schedule
    seed, n_threads : int
    method, law, n_starts, resample, effective_size
        As the estimator takes them, like all that follow.
    score, equivalent_sample_size, search, knowledge
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
    seed: int
    n_threads: int
    method: str
    law: str
    n_starts: int | str
    resample: Any
    effective_size: str | float
    score: Any
    equivalent_sample_size: float | str
    search: Any
    knowledge: Knowledge | None

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return len(self.levels)

    @property
    def responses(self) -> Responses:
        """What the items are to estimation."""
        return Responses.of(self.families.families)

    @property
    def n_unanswered(self) -> int:
        """Number of rows without any answer."""
        return int((~nonempty_rows(self.table.values)).sum())

    @property
    def enough_items(self) -> bool:
        """Whether there are as many items as so many latents need at the very least."""
        return self.table.n_items >= least_items(self.n_latents)


def least_items(n_latents: int) -> int:
    """Return how many items K latents need: two blocks of K, and one more."""
    return 2 * n_latents + 1


def read_task(table: Observations, sample_weight: Any, settings: Mapping[str, Any]) -> FitTask:
    """Return what the estimator's settings ask of a table, or refuse it in a sentence."""
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
        settings["score"],
        settings["equivalent_sample_size"],
        settings["knowledge"],
        names,
    )
    _warn_of_nameless(settings["knowledge"], names, q_spec)
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
        seed=root_seed(settings["random_state"]),
        n_threads=thread_count(settings["n_jobs"]),
        method=settings["method"],
        law=settings["law"],
        n_starts=settings["n_starts"],
        resample=settings["resample"],
        effective_size=settings["effective_size"],
        score=settings["score"],
        equivalent_sample_size=settings["equivalent_sample_size"],
        search=settings["search"],
        knowledge=settings["knowledge"],
    )


def _check_number(n_latents: int, n_items: int) -> None:
    """Refuse more latents than items, warn of more than the items can identify."""
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
            least=least_items(1),
        )
    if n_items < least_items(n_latents):
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
                least=least_items(n_latents),
            ),
            stacklevel=_STACK,
        )


def _warn_of_nameless(
    knowledge: Knowledge | None, names: tuple[str, ...], q_spec: QSpec | None
) -> None:
    """Warn of knowledge about latents that have no meaning before the fit gives them one.

    A hierarchy is refused there, as it changes what is estimated; what is said of all pairs alike
    holds whichever latent is which.
    """
    if knowledge is None or knowledge.hierarchy or len(names) < 2:
        return
    rules = knowledge.constraints(names)
    pairs = rules[~np.eye(len(names), dtype=bool)]
    if (pairs == pairs[0]).all():
        return
    told = rules.any(axis=0) | rules.any(axis=1)
    unknown = told if q_spec is None else told & (q_spec.entries < 0).all(axis=0)
    if unknown.any():
        name = names[int(np.flatnonzero(unknown)[0])]
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
    """Refuse settings of Stages I and II that could not be used."""
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
            # Stage II says it once more, and then it is shown.
            warnings.simplefilter("ignore", HidagWarning)
            resample_size(rule, n_samples)
