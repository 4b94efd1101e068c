"""What a fit with a fixed Q leaves free: coefficients, dispersions, cutpoints and the law.

One list of parameters serves everything that asks about them: how many there are, how likely rows
change with them, how surely they are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.working import WorkingData
from hidag.explain.item_channels import Channel, channels_of
from hidag.explain.law_blocks import LawBlock, law_blocks
from hidag.free_coefficients import feature_names, item_designs, known_in_sum
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
    probabilities : ndarray, shape (S,)
    eta : ndarray, shape (R, S)
    channels : list of Channel, length C
    channel : ndarray of int, shape (P,)
        Channel of each parameter; C for the parameters of the law.
    design : ndarray, shape (S, P)
        What a parameter adds to its channel in each state; for the law, how the log probability of
        the state changes.
    blocks : list of LawBlock
    coefficient_maps : tuple of ndarray, length R
        From a response's free coefficients to its intercept and loadings, shape (1 + T, P_r).
    """

    result: FitResult
    responses: Array
    data: WorkingData
    working: MeasurementParameters
    probabilities: Array
    eta: Array
    channels: list[Channel]
    channel: Indices
    design: Array
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

    @classmethod
    def of(cls, result: FitResult, values: Array, weights: Array | None = None) -> FreeParameters:
        """Return the free parameters of a fit.

        Parameters
        ----------
        result : FitResult
        values : ndarray, shape (N, J)
        weights : ndarray, shape (N,), optional
        """
        parameters = result.parameters
        responses = result.responses.expand(values)
        data = WorkingData.around(parameters, responses, weights)
        working = data.to_working(parameters)
        states = result.law.space.states()
        eta = working.predictors(states)
        designs, maps = item_designs(result)
        channels = channels_of(working, eta)
        n_rows = data.n_counted if np.isnan(result.n_counted) else result.n_counted
        blocks = law_blocks(result.law, result.latent_names, n_rows, result.ruled_out)
        channel: list[int] = []
        parts: list[Array] = []
        for c, one in enumerate(channels):
            own = designs[one.response] if one.kind == "predictor" else np.ones((len(states), 1))
            parts.append(own)
            channel += [c] * own.shape[1]
        for block in blocks:
            parts.append(block.scores())
            channel += [len(channels)] * len(block.free)
        return cls(
            result,
            responses,
            data,
            working,
            np.asarray(result.law.probabilities),
            eta,
            channels,
            np.array(channel, dtype=np.intp),
            np.ascontiguousarray(np.hstack(parts)),
            blocks,
            maps,
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
