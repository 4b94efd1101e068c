"""What a fit with a fixed Q leaves free: coefficients, dispersions, cutpoints and the law.

One list of parameters serves everything that asks about them: how many there are, how likely rows
change with them, how surely they are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.exceptions import SettingError
from hidag.fitting.information_criteria import (
    coefficient_maps,
    feature_names,
    features_over,
    free_columns,
    known_in_sum,
)
from hidag.inference.information.item_derivatives import Channel, channels_of_response
from hidag.inference.information.posterior_tables import (
    ListedTables,
    RowBlock,
    StateTables,
    state_tables,
    too_many_states,
)
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.parameters import MeasurementParameters
from hidag.results import FitResult
from hidag.strategy.structural_em import OCCUPIED

# --- Free parameters of a latent law: log ratios inside each distribution that it is made of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LawBlock:
    """One distribution of the law.

    Attributes
    ----------
    subject : str
        The latent, or "profile" for the distribution over joint states.
    given : str
        The parents' levels in words; empty without parents.
    words : tuple of str, length m
        The outcomes.
    inside : ndarray of bool, shape (S,)
        The states that the distribution is about, without those that prerequisites rule out: joint
        states, or those of a smaller table.
    outcome : ndarray of int, shape (S,)
        The outcome that each state is.
    probabilities : ndarray, shape (m,)
    free : ndarray of int
        Outcomes whose log ratio to the most probable one is estimated. Those that less than half
        a row is expected in are at the edge, where there is nothing to estimate.
    latent : int
        Whose distribution it is; -1 for one over joint states.
    configuration : tuple of int
        The parents' levels.
    table : int
        Whose states ``inside`` and ``outcome`` are about.
    """

    subject: str
    given: str
    words: tuple[str, ...]
    inside: NDArray[np.bool_]
    outcome: NDArray[np.intp]
    probabilities: Array
    free: NDArray[np.intp]
    latent: int = -1
    configuration: tuple[int, ...] = ()
    table: int = 0

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Outcomes that prerequisites leave possible, whatever was estimated, shape (m,)."""
        return np.bincount(self.outcome[self.inside], minlength=len(self.words)) > 0

    @property
    def estimated(self) -> NDArray[np.bool_]:
        """Outcomes whose probability has a standard error, shape (m,)."""
        out = np.zeros(len(self.words), dtype=bool)
        out[self.free] = True
        if len(self.free):
            out[int(np.argmax(self.probabilities))] = True
        return out

    def scores(self) -> Array:
        """Return derivatives of a state's log probability by the free parameters, (S, L)."""
        here = self.outcome[:, None] == self.free
        return np.asarray(self.inside[:, None] * (here - self.probabilities[self.free]))

    def curvature(self, counts: Array) -> Array:
        """Return minus the second derivatives, summed over counts of states (S,), (L, L)."""
        p = self.probabilities[self.free]
        return float(counts[self.inside].sum()) * (np.diag(p) - np.outer(p, p))

    def moved(self, parameter: int, by: float) -> Array:
        """Return the probabilities with one of the free log ratios moved, shape (m,)."""
        turned = self.probabilities.copy()
        turned[self.free[parameter]] *= np.exp(by)
        return np.asarray(turned / turned.sum())

    def slopes(self) -> Array:
        """Return derivatives of the probabilities by the free parameters, shape (m, L)."""
        p = self.probabilities
        chosen = np.eye(len(p))[:, self.free]
        return np.asarray(p[:, None] * (chosen - p[self.free]))


def law_blocks(
    law: LatentLaw,
    names: Sequence[str],
    n_rows: float,
    ruled_out: NDArray[np.bool_] | None = None,
    tables: StateTables | None = None,
) -> list[LawBlock]:
    """Return the distributions that a law is made of.

    Parameters
    ----------
    law : LatentLaw
    names : sequence of str, length K
    n_rows : float
        Rows that the law was estimated from.
    ruled_out : ndarray of bool, shape (S,), optional
        Joint states that prerequisites rule out.
    tables : StateTables, optional
        Whose states blocks are about; all joint states unless given.
    """
    over = ListedTables(law, 0) if tables is None else tables
    if not isinstance(law, NetworkLaw):
        states = over.states(0)
        may_occur = np.ones(len(states), dtype=bool) if ruled_out is None else ~ruled_out
        words = tuple("".join(map(str, state)) for state in states.tolist())
        p = np.asarray(law.probabilities)
        return [
            LawBlock("profile", "", words, may_occur, np.arange(len(states)), p, _free(n_rows * p))
        ]
    out = []
    for k, causes in enumerate(law.parents):
        table = int(over.of_latent[k])
        states, shares = over.states(table), over.shares(table)
        levels = [law.space.levels[a] for a in causes]
        for configuration in product(*(range(m) for m in levels)):
            inside = np.all(states[:, list(causes)] == np.array(configuration, dtype=int), axis=1)
            if ruled_out is not None:
                inside &= ~ruled_out
            given = ", ".join(
                f"{names[a]}={level}" for a, level in zip(causes, configuration, strict=True)
            )
            words = tuple(str(level) for level in range(law.space.levels[k]))
            p = np.asarray(law.tables[k][configuration])
            mass = n_rows * float(shares[inside].sum())
            outcome = np.asarray(states[:, k], dtype=np.intp)
            out.append(
                LawBlock(
                    names[k],
                    given,
                    words,
                    inside,
                    outcome,
                    p,
                    _free(mass * p),
                    k,
                    configuration,
                    table,
                )
            )
    return out


def _free(expected: Array) -> NDArray[np.intp]:
    """Return the outcomes that enough rows are expected in, (m,), but for the most probable."""
    occupied = np.flatnonzero(expected >= OCCUPIED)
    return np.asarray(occupied[occupied != int(np.argmax(expected))])


# ---

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class FreeParameters:
    """The P free parameters of a fit on a table, and what derivatives by them are made of.

    Attributes
    ----------
    result : FitResult
    responses : ndarray, shape (N, R)
        The rows in the user's units; NaN where nothing was observed.
    data : WorkingData
        The same on the working scale.
    working : MeasurementParameters
        The fit on the working scale.
    tables : StateTables
        Over whose states everything below is told: all joint states, or those of few latents.
    eta : tuple of ndarray, length R, shape (S_t,)
        Predictors in the states of each response's table.
    channels : list of Channel, length C
    channel : ndarray of int, shape (P,)
        Channel of each parameter; C for the parameters of the law.
    designs : tuple of ndarray, length C, shape (S_t, P_c)
        What a channel's parameters add to it in each state of its response's table.
    blocks : list of LawBlock
    coefficient_maps : tuple of ndarray, length R
        From a response's free coefficients to its intercept and loadings, shape (1 + T, P_r).
    """

    result: FitResult
    responses: Array
    data: WorkingData
    working: MeasurementParameters
    tables: StateTables
    eta: tuple[Array, ...]
    channels: list[Channel]
    channel: Indices
    designs: tuple[Array, ...]
    blocks: list[LawBlock]
    coefficient_maps: tuple[Array, ...]

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, P."""
        return len(self.channel)

    @property
    def n_of_items(self) -> int:
        """Number of the items' free parameters; those of the law come after them."""
        return int((self.channel < len(self.channels)).sum())

    def of_channel(self, channel: int) -> Indices:
        """Return the parameters of a channel."""
        return np.flatnonzero(self.channel == channel)

    @property
    def is_listed(self) -> bool:
        """Whether there is one table, over all joint states."""
        return isinstance(self.tables, ListedTables)

    @property
    def probabilities(self) -> Array:
        """The law of joint states, shape (S,); only where these are listed."""
        assert self.is_listed
        return self.tables.shares(0)

    @cached_property
    def design(self) -> Array:
        """What a parameter adds to its channel in each joint state, shape (S, P).

        For the law, how the log probability of the state changes. Only where states are listed.
        """
        assert self.is_listed
        parts = [*self.designs, *(block.scores() for block in self.blocks)]
        return np.ascontiguousarray(np.hstack(parts))

    def table_of(self, channel: int) -> int:
        """Return the table over whose states a channel is told."""
        return int(self.tables.of_response[self.channels[channel].response])

    def row_blocks(self) -> Iterator[RowBlock]:
        """Yield what rows say of the tables' states, a block of them at a time."""
        return self.tables.blocks(self.data, self.working)

    @classmethod
    def of(cls, result: FitResult, values: Array, weights: Array | None = None) -> FreeParameters:
        """Return the free parameters of a fit.

        Parameters
        ----------
        result : FitResult
        values : ndarray, shape (N, J)
        weights : ndarray, shape (N,), optional
        """
        tables = state_tables(result)
        if tables is None:
            raise SettingError(too_many_states(result, "what is free in the fit"))
        return cls.over(tables, result, values, weights)

    @classmethod
    def over(
        cls, tables: StateTables, result: FitResult, values: Array, weights: Array | None = None
    ) -> FreeParameters:
        """Return the free parameters of a fit, told over the states of some tables."""
        parameters = result.parameters
        responses = result.responses.expand(values)
        data = WorkingData.around(parameters, responses, weights)
        working = data.to_working(parameters)
        states = [tables.states(t) for t in range(tables.n_tables)]
        predictors = [working.predictors(own) for own in states]
        eta = tuple(predictors[t][r] for r, t in enumerate(tables.of_response))
        channels = [
            one for r, own in enumerate(eta) for one in channels_of_response(working, r, own)
        ]
        n_rows = data.n_counted if np.isnan(result.n_counted) else result.n_counted
        blocks = law_blocks(result.law, result.latent_names, n_rows, result.ruled_out, tables)
        features = [features_over(result, own) for own in states]
        chosen = free_columns(result)
        designs = tuple(
            features[tables.of_response[one.response]][:, chosen[one.response]]
            if one.kind == "predictor"
            else np.ones((len(eta[one.response]), 1))
            for one in channels
        )
        sizes = [own.shape[1] for own in designs] + [sum(len(block.free) for block in blocks)]
        channel = np.repeat(np.arange(len(channels) + 1), sizes)
        maps = coefficient_maps(result)
        return cls(
            result, responses, data, working, tables, eta, channels, channel, designs, blocks, maps
        )

    def known_in_sum(self) -> NDArray[np.bool_]:
        """Return which parameters prerequisites leave known in sum only, shape (P,)."""
        out = np.zeros(self.n_parameters, dtype=bool)
        of_responses = known_in_sum(self.result)
        for c, one in enumerate(self.channels):
            if one.kind == "predictor":
                out[self.of_channel(c)] = of_responses[one.response]
        return out

    def names(self) -> tuple[str, ...]:
        """Return a name for each parameter."""
        responses = self.result.response_names
        features = feature_names(self.result)
        out: list[str] = []
        for one in self.channels:
            name = responses[one.response]
            if one.kind == "predictor":
                out += [f"{name}: {feature}" for feature in features[one.response]]
            elif one.kind == "cutpoint":
                out.append(f"{name}: cutpoint {one.place + 2}")
            else:
                out.append(f"{name}: {one.kind}")
        for block in self.blocks:
            given = f" | {block.given}" if block.given else ""
            out += [f"log ratio of {block.subject}={block.words[f]}{given}" for f in block.free]
        return tuple(out)
