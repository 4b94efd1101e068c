"""What a fit with a fixed Q leaves free: coefficients, dispersions, cutpoints and the law.

One list of parameters serves everything that asks about them: how many there are, how likely rows
change with them, how surely they are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError
from hidag.estimate.working import WorkingData
from hidag.explain.item_channels import Channel, channels_of_response
from hidag.explain.law_blocks import LawBlock, law_blocks
from hidag.explain.state_tables import (
    ListedTables,
    RowBlock,
    StateTables,
    state_tables,
    too_many_states,
)
from hidag.free_coefficients import (
    coefficient_maps,
    feature_names,
    features_over,
    free_columns,
    known_in_sum,
)
from hidag.measurement import MeasurementParameters
from hidag.result import FitResult

Array = NDArray[np.float64]
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
