"""The estimation problem that EM, SAEM and support selection solve, and how long they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.m_step import Basis
from hidag.latent.state_space import StateSpace
from hidag.measurement.penalties import Penalty

#: Called after every iteration with (iteration, max_iter, objective).
Observer = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Schedule:
    """Number of iterations, convergence criterion and step sizes."""

    max_iter: int = 200
    # EM converges when an iteration, and by extrapolation all further iterations together,
    # raise the penalised log-likelihood by less than ``tolerance`` per row, counting at most
    # 3000 rows. SAEM converges when coefficients drift by less than 2/sqrt(N) of their scale in
    # 20 iterations.
    tolerance: float = 1e-4
    # SAEM iterations of step size 1 before the Robbins-Monro average
    burn_in: int = field(default_factory=lambda: CONFIG.em.saem_burn_in)
    # iteration ``t`` after the burn-in has step size ``t ** -decay``; between 1/2 and 1
    decay: float = field(default_factory=lambda: CONFIG.em.saem_decay)
    n_sweeps: int = 1  # Gibbs sweeps per SAEM iteration, the paper's C
    n_newton: int = field(default_factory=lambda: CONFIG.m_step.newton_steps)  # of an M-step


@dataclass(frozen=True)
class Problem:
    """A penalised likelihood to maximise over item parameters and the latent distribution."""

    data: WorkingData
    space: StateSpace
    basis: Basis  # the joint states as regressors
    # (J, 1 + T): ZERO, PENALISED, FREE or NONNEGATIVE for each coefficient; the intercept,
    # column 0, is free
    allowed: NDArray[np.uint8]
    penalty: Penalty
    schedule: Schedule
    n_threads: int = 1  # changes the running time, never the result
    observer: Observer | None = None
