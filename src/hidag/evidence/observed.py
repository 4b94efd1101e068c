"""The items' side of a fit, held while laws over graphs are compared on the observed data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG
from hidag.estimate.fixed_items import fit_law
from hidag.estimate.held_items import HeldItems
from hidag.estimate.working import WorkingData
from hidag.latent import Parents, StateSpace
from hidag.latent.factorise import factorised
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: EM for a restricted law ends when a step gains less than this, in units of log-likelihood.
LAW_TOLERANCE = 0.05
MAX_LAW_STEPS = 40


@dataclass(frozen=True)
class ObservedFit:
    """The items' side of the fit, held while laws are compared.

    Attributes
    ----------
    data : WorkingData
    parameters : MeasurementParameters
        On the working scale.
    space : StateSpace
    law : ndarray, shape (S,)
        Where laws restricted to a graph start from.
    n_threads : int
    possible : ndarray of bool, shape (S,), or None
        Joint states that prerequisites leave possible, the only ones that ``law`` has mass on;
        None where all may occur.
    """

    data: WorkingData
    parameters: MeasurementParameters
    space: StateSpace
    law: Array
    n_threads: int = 1
    possible: NDArray[np.bool_] | None = None

    def law_under(self, graph: CPDAG) -> tuple[Array, float]:
        """Return the best law over the graph and its log-likelihood."""
        return self.law_over(graph.to_dag().parents, self.law)

    def law_over(self, parents: Parents, begin: Array) -> tuple[Array, float]:
        """Return the best law over a graph by EM from another law, and its log-likelihood."""
        law_step = partial(factorised, parents=parents, space=self.space)
        return fit_law(
            self._items.expect_states,
            law_step(begin),
            law_step,
            tolerance=LAW_TOLERANCE,
            max_steps=MAX_LAW_STEPS,
        )

    @cached_property
    def _items(self) -> HeldItems:
        features = self.parameters.terms.features(self.space.states())
        return HeldItems(self.parameters, self.data, features, self.n_threads)

    def work(self) -> float:
        """Return about how many multiplications an E-step takes."""
        return float(self.data.n_samples) * self.data.n_items * self.space.n_states
