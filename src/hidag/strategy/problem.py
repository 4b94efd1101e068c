"""The search problem of Stage I, and the records that its algorithms leave."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.cells import CellModel
from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, Observer, Problem, Schedule
from hidag.exceptions import Setting, SettingError
from hidag.latent.laws import Parents
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import MAIN_EFFECTS, Effects, Terms

Array = NDArray[np.float64]
#: Called with (start, n_starts, iteration, max_iter, objective) after every EM step.
StartProgress = Callable[[int, int, int, int, float], None]
#: (parameters, unconstrained law, data, EM steps since the law was unconstrained) -> parents.
LearnParents = Callable[[MeasurementParameters, Array, WorkingData, int], Parents]


@dataclass(frozen=True, kw_only=True)
class SearchProblem(Problem):
    """A penalised likelihood to maximise over Q, coefficients, latent law and its graph."""

    terms: Terms  # The terms that ``basis`` has the values of.
    q_entries: NDArray[np.int8]  # 1 (loads), 0 (does not load), -1 (to be estimated), shape (J, K).
    learn_parents: LearnParents  # Structure learning step of structural EM.
    effects: Effects = MAIN_EFFECTS  # Interactions that items may have.
    adapt: bool = True  # Whether the penalty's strength is estimated from the data.
    seed: int = 0  # Start ``i`` draws from ``SeedSequence(seed, spawn_key=(i,))``.
    n_starts: int | str = "auto"
    law: str = "auto"  # {"auto", "network", "saturated"}.
    progress: StartProgress | None = None
    cells: CellModel | None = None  # The items in a form that EM runs compiled, if they have one.

    @property
    def q_given(self) -> bool:
        """Whether all of Q is given."""
        return bool((self.q_entries >= 0).all())

    @property
    def levels_unassigned(self) -> bool:
        """Whether the data alone say which latent has which number of levels."""
        return len(set(self.space.levels)) > 1 and bool((self.q_entries < 0).all())

    def tolerating(self, factor: float, max_iter: int | None = None) -> Schedule:
        """Return the schedule with ``factor`` times its tolerance and at most ``max_iter`` steps.

        With the factor 0 all steps are taken.
        """
        last = self.schedule.max_iter
        return replace(
            self.schedule,
            tolerance=factor * self.schedule.tolerance,
            max_iter=last if max_iter is None else min(max_iter, last),
        )

    def starts(self, search: str) -> Starts:
        """Return how many starts a search of `STARTS` makes."""
        if isinstance(self.n_starts, str):
            return STARTS[search](self)
        return Starts(self.n_starts, adaptive=False)

    def observer_of(self, index: int, count: int) -> Observer:
        """Return the observer of one of several starts."""

        def observer(iteration: int, last: int, value: float) -> None:
            if self.progress is not None:
                self.progress(index, count, iteration, last, value)

        return observer


@dataclass(frozen=True)
class Starts:
    """How many starts a search makes at most."""

    most: int
    adaptive: bool = True  # Whether fewer suffice if the first ones agree; not for a given number.

    @property
    def replaces_others(self) -> bool:
        """Whether the policy makes this start in place of others that the user did not ask for."""
        return self.adaptive and self.most > 0


def _starts_within_work(problem: SearchProblem) -> Starts:
    """Return as many starts as the cost of their E-steps allows."""
    config = CONFIG.confirmatory
    work = float(problem.data.n_samples) * problem.data.n_items * problem.space.n_states
    number = np.clip(config.work_for_starts // work, config.fewest_starts, config.most_starts)
    return Starts(int(number))


#: The policy of ``n_starts="auto"``, by the search that makes the starts.
STARTS: dict[str, Callable[[SearchProblem], Starts]] = {
    "exploratory": lambda problem: Starts(CONFIG.exploratory.starts_on_disagreement),
    "confirmatory": _starts_within_work,
    "interactions": lambda problem: Starts(CONFIG.interactions.starts_with_interactions),
    "saturated SAEM": lambda problem: Starts(CONFIG.saturated_saem.saem_starts),
    # In place of other starts where they would cost more; none where starts were asked for.
    "sampled": lambda problem: Starts(
        int(problem.space.n_states >= CONFIG.saturated_saem.states_for_sampled_start)
    ),
}


@dataclass(frozen=True)
class StartRecord:
    """The end of one start; a start that was dropped early has not converged."""

    label: str
    objective: float
    log_likelihood: float
    n_iter: int
    converged: bool
    n_rows: int = 0  # Number of rows on which starts were compared, 0 for all of them.

    @classmethod
    def of(cls, label: str, estimate: Estimate, n_rows: int = 0) -> StartRecord:
        """Return the record of a start that ended at an estimate."""
        return cls(
            label,
            estimate.objective,
            estimate.log_likelihood,
            estimate.n_iter,
            estimate.converged,
            n_rows,
        )


@dataclass(frozen=True)
class NetworkEstimate:
    """An estimate under a network law."""

    estimate: Estimate  # Its probabilities factorise over ``parents``.
    parents: Parents
    # The law after a few unconstrained updates, for the graph search, shape (S,).
    unconstrained: Array
    penalty: Penalty
    preferred: bool  # Whether its information criterion is better than that of the saturated law.


@dataclass(frozen=True)
class Nuisance:
    """A person-level factor of some items, independent of all latents, with a normal-like law.

    Its coefficients have fixed ratios: one for all items, in units of their scales.
    """

    name: str
    signs: NDArray[np.int8]  # (R,): 1 or -1 for responses that have it, else 0
    n_levels: int
    paired: bool = False  # Whether it is of two items, whose dependence may be negative.


@dataclass(frozen=True)
class LevelTest:
    """The selected levels of a latent, the best others, and their difference in criterion."""

    chosen: tuple[int, bool]  # Number of levels, and whether their steps are linear.
    other: tuple[int, bool]
    margin: float  # Units of log-likelihood, each parameter counted as half log N.


@dataclass(frozen=True)
class StageOne:
    """The best estimate of Stage I and the records of all starts."""

    best: Estimate  # Under the saturated law.
    records: tuple[StartRecord, ...]
    n_reached: int  # Starts that reached the best objective.
    method: str  # {"em", "saem"}.
    penalty: Penalty  # Of the final support selection.
    # The estimate under a network law, if that is the one to report.
    network: NetworkEstimate | None = None
    # Log-likelihood lost by excluding states; NaN without a hierarchy.
    hierarchy_loss: float = math.nan
    # Items whose latents interact, by score tests, although the model has main effects only.
    interacting: tuple[int, ...] = ()
    level_tests: tuple[LevelTest, ...] = ()  # With selected levels, latent by latent.
    # Smallest loss in the criterion of an end with other latents; NaN if all ends are the same.
    rival_gap: float = math.nan

    @property
    def estimate(self) -> Estimate:
        """The estimate to report."""
        return self.best if self.network is None else self.network.estimate


def choose_method(
    method: str, n_samples: int, n_items: int, space: StateSpace, *, saturated: bool
) -> str:
    """Return "em" or "saem"; "auto" depends on the cost of enumerating all joint states."""
    if method not in ("auto", "em", "saem"):
        raise SettingError(
            "method",
            "{setting} must be 'auto', 'em' or 'saem', got {value!r}",
            setting=Setting("method"),
            value=method,
        )
    if space.n_states > CONFIG.enumeration.largest_states and (saturated or method == "em"):
        raise SettingError(
            "too-many-states",
            "{n_latents} means {states} joint states; {limited} is limited to 2^{most}",
            advice="use {law} and {method}, or fewer latents",
            n_latents=Setting("n_latents", space.n_latents),
            states=space.n_states_text(),
            limited=Setting("law", "saturated") if saturated else Setting("method", "em"),
            most=CONFIG.enumeration.largest_states.bit_length() - 1,
            law=Setting("law", "auto"),
            method=Setting("method", "auto"),
        )
    if method != "auto":
        return method
    work = float(n_samples) * n_items * space.n_states
    small = (
        space.n_states <= CONFIG.enumeration.largest_exact_states
        and work <= CONFIG.enumeration.largest_exact_work
    )
    return "em" if small else "saem"
