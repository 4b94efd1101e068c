"""The free parameters of a fit given its Q: coefficients, dispersions, cutpoints and the law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
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

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class LawBlock:
    """One (conditional) distribution of the law; its parameters are log ratios of probabilities.

    Attributes
    ----------
    subject : str
        The latent, or "profile" for the distribution over joint states.
    given : str
        Levels of the parents as text; empty without parents.
    words : tuple of str, length m
        Names of the outcomes.
    inside : ndarray of bool, shape (S,)
        States of the table with these levels of the parents, without those ruled out.
    outcome : ndarray of int, shape (S,)
        Outcome of each state.
    probabilities : ndarray, shape (m,)
    free : ndarray of int
        Outcomes whose log ratio to the most probable one is estimated. Outcomes with an expected
        count below one half are on the boundary and not estimated.
    latent : int
        -1 for the distribution over joint states.
    configuration : tuple of int
        Levels of the parents.
    table : int
        The table of ``inside`` and ``outcome``.
    """

    subject: str
    given: str
    words: tuple[str, ...]
    inside: NDArray[np.bool_]
    outcome: Indices
    probabilities: Array
    free: Indices
    latent: int = -1
    configuration: tuple[int, ...] = ()
    table: int = 0

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Whether prerequisites leave each outcome possible, shape (m,)."""
        return np.bincount(self.outcome[self.inside], minlength=len(self.words)) > 0

    @property
    def estimated(self) -> NDArray[np.bool_]:
        """Whether the probability of each outcome has a standard error, shape (m,)."""
        out = np.zeros(len(self.words), dtype=bool)
        out[self.free] = True
        if len(self.free):
            out[int(np.argmax(self.probabilities))] = True
        return out

    def scores(self) -> Array:
        """Return derivatives of the log probabilities of states by the free parameters, (S, L)."""
        here = self.outcome[:, None] == self.free
        return np.asarray(self.inside[:, None] * (here - self.probabilities[self.free]))

    def curvature(self, counts: Array) -> Array:
        """Return the negative second derivatives for counts of states (S,), shape (L, L)."""
        p = self.probabilities[self.free]
        return float(counts[self.inside].sum()) * (np.diag(p) - np.outer(p, p))

    def moved(self, parameter: int, by: float) -> Array:
        """Return the probabilities with one of the free log ratios changed, shape (m,)."""
        out = self.probabilities.copy()
        out[self.free[parameter]] *= np.exp(by)
        return np.asarray(out / out.sum())

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
    """Return the (conditional) distributions of a law.

    Parameters
    ----------
    law : LatentLaw
    names : sequence of str, length K
    n_rows : float
        Number of rows that the law was estimated from.
    ruled_out : ndarray of bool, shape (S,), optional
        Joint states that prerequisites rule out.
    tables : StateTables, optional
        Default: one table over all joint states.
    """
    over = ListedTables(law, 0) if tables is None else tables
    if not isinstance(law, NetworkLaw):
        states = over.states(0)
        possible = np.ones(len(states), dtype=bool) if ruled_out is None else ~ruled_out
        words = tuple("".join(map(str, state)) for state in states.tolist())
        p = np.asarray(law.probabilities)
        outcome = np.arange(len(states))
        return [LawBlock("profile", "", words, possible, outcome, p, _free(n_rows * p))]
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
            block = LawBlock(names[k], given, words, inside, outcome, p, _free(mass * p),
                             k, configuration, table)  # fmt: skip
            out.append(block)
    return out


def _free(expected: Array) -> Indices:
    """Return the outcomes with large enough expected counts (m,), except the most probable."""
    occupied = np.flatnonzero(expected >= OCCUPIED)
    return np.asarray(occupied[occupied != int(np.argmax(expected))])


@dataclass(frozen=True)
class FreeParameters:
    """The P free parameters of a fit on a table, and the parts of derivatives by them.

    Attributes
    ----------
    result : FitResult
    responses : ndarray, shape (N, R)
        In the user's units; NaN if not observed.
    data : WorkingData
        The same on the working scale.
    working : MeasurementParameters
        The fit on the working scale.
    tables : StateTables
        Tables over all joint states, or over those of few latents.
    eta : tuple of ndarray, length R, shape (S_t,)
        Predictors in the states of each response's table.
    channels : list of Channel, length C
    channel : ndarray of int, shape (P,)
        Channel of each parameter; C for the parameters of the law.
    designs : tuple of ndarray, length C, shape (S_t, P_c)
        Derivative of a channel by its parameters in each state of the response's table.
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
        """Whether joint states are listed in one table."""
        return isinstance(self.tables, ListedTables)

    @property
    def probabilities(self) -> Array:
        """Probabilities of joint states, shape (S,); only if they are listed."""
        assert self.is_listed
        return self.tables.shares(0)

    @cached_property
    def design(self) -> Array:
        """Derivatives of channels and log probabilities in each joint state, shape (S, P).

        Only if joint states are listed.
        """
        assert self.is_listed
        parts = [*self.designs, *(block.scores() for block in self.blocks)]
        return np.ascontiguousarray(np.hstack(parts))

    def table_of(self, channel: int) -> int:
        """Return the table of the response of a channel."""
        return int(self.tables.of_response[self.channels[channel].response])

    def row_blocks(self) -> Iterator[RowBlock]:
        """Yield the posteriors of the rows in blocks."""
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
            raise too_many_states(result, "the information of the fit")
        return cls.over(tables, result, values, weights)

    @classmethod
    def over(
        cls, tables: StateTables, result: FitResult, values: Array, weights: Array | None = None
    ) -> FreeParameters:
        """Return the free parameters of a fit, with given tables over states."""
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
        """Return which parameters are, because of prerequisites, identified in sums only, (P,)."""
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
