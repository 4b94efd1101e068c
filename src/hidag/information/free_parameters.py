"""The free parameters of a fit given its Q: coefficients, dispersions, cutpoints and the law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.fitting.information_criteria import (
    coefficient_maps,
    feature_names,
    features_over,
    free_columns,
    known_in_sum,
)
from hidag.information.item_derivatives import (
    Channel,
    base_slopes,
    channels_of_response,
    response_auxiliary,
)
from hidag.information.posterior_tables import (
    ListedTables,
    RowBlock,
    StateTables,
    TreeTables,
    state_tables,
    too_many_states,
)
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms
from hidag.network_em.junction_tree import CliqueMarginals
from hidag.results import FitResult

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class LawBlock:
    """A (conditional) distribution of the law; its parameters are log ratios of probabilities."""

    subject: str  # the latent, or "profile" for the distribution over joint states
    given: str  # levels of the parents as text
    words: tuple[str, ...]  # names of the outcomes
    inside: NDArray[np.bool_]  # (S,), states with these levels of the parents, if possible
    outcome: Indices  # (S,), outcome of each state
    probabilities: Array  # (m,)
    free: Indices  # outcomes whose log ratio to the top is estimated: expected count at least 1/2
    latent: int = -1  # -1 for the distribution over joint states
    configuration: tuple[int, ...] = ()  # levels of the parents
    table: int = 0  # of inside and outcome

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Whether prerequisites leave each outcome possible, shape (m,)."""
        return np.bincount(self.outcome[self.inside], minlength=len(self.words)) > 0

    @property
    def estimated(self) -> NDArray[np.bool_]:
        """Whether the probability of each outcome has a standard error, shape (m,)."""
        estimated = [*self.free, int(np.argmax(self.probabilities))] if len(self.free) else []
        return np.isin(np.arange(len(self.words)), estimated)

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
    """Return the (conditional) distributions of a law estimated from ``n_rows`` rows."""
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
            pairs = zip(causes, configuration, strict=True)
            given = ", ".join(f"{names[a]}={level}" for a, level in pairs)
            words = tuple(str(level) for level in range(law.space.levels[k]))
            p = np.asarray(law.tables[k][configuration])
            mass = n_rows * float(shares[inside].sum())
            outcome = np.asarray(states[:, k], dtype=np.intp)
            out.append(LawBlock(names[k], given, words, inside, outcome, p, _free(mass * p),
                                k, configuration, table))  # fmt: skip
    return out


def _free(expected: Array) -> Indices:
    """Return the outcomes with large enough expected counts (m,), except the most probable."""
    occupied = np.flatnonzero(expected >= CONFIG.structural_em.occupied)
    return np.asarray(occupied[occupied != int(np.argmax(expected))])


@dataclass(frozen=True)
class FreeParameters:
    """The P free parameters of a fit on a table, and the parts of derivatives by them."""

    result: FitResult
    responses: Array  # (N, R), in the user's units; NaN if not observed
    data: WorkingData  # the same on the working scale
    working: MeasurementParameters  # the fit on the working scale
    tables: StateTables
    eta: tuple[Array, ...]  # (S_t,) predictors in the states of each response's table
    channels: list[Channel]
    channel: Indices  # (P,), channel of each parameter; C for the parameters of the law
    designs: tuple[Array, ...]  # (S_t, P_c), derivatives of each channel by its parameters
    blocks: list[LawBlock]
    coefficient_maps: tuple[Array, ...]  # (1 + T, P_r), from free coefficients to all

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
        """Derivatives of channels and log probabilities in each listed joint state, (S, P)."""
        assert self.is_listed
        return np.hstack([*self.designs, *(block.scores() for block in self.blocks)])

    def table_of(self, channel: int) -> int:
        """Return the table of the response of a channel."""
        return int(self.tables.of_response[self.channels[channel].response])

    def row_blocks(self) -> Iterator[RowBlock]:
        """Yield the posteriors of the rows in blocks."""
        return self.tables.blocks(self.data, self.working)

    @classmethod
    def of(cls, result: FitResult, values: Array, weights: Array | None = None) -> FreeParameters:
        """Return the free parameters of a fit on a table (N, J)."""
        result.refuse_nuisance("the information of the fit")
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
        pairs = enumerate(eta)
        channels = [one for r, own in pairs for one in channels_of_response(working, r, own)]
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
            own = [f"cutpoint {one.place + 2}" if one.kind == "cutpoint" else one.kind]
            own = features[one.response] if one.kind == "predictor" else own
            out += [f"{responses[one.response]}: {term}" for term in own]
        for block in self.blocks:
            given = f" | {block.given}" if block.given else ""
            out += [f"log ratio of {block.subject}={block.words[f]}{given}" for f in block.free]
        return tuple(out)


class RowChannels:
    """The channels of one table of states, their statistics padded to the same number."""

    def __init__(self, free: FreeParameters, table: int, bases: Array) -> None:
        everything = range(len(free.channels))
        self.channels = np.array([c for c in everything if free.table_of(c) == table], np.intp)
        own = [free.channels[c] for c in self.channels]
        widest = max((len(one.slope) for one in own), default=1)
        n_states = len(free.tables.shares(table))
        self.slopes = np.zeros((widest, n_states, len(own)))
        self.places = np.full((widest, len(own)), -1, dtype=np.intp)
        self.falls = np.zeros((n_states, len(own)))
        for c, one in enumerate(own):
            width = len(one.slope)
            self.slopes[:width, :, c] = one.slope
            self.places[:width, c] = free.data.columns.starts[one.response] + np.arange(width)
            self.falls[:, c] = one.fall
        self.owner = np.array([one.response for one in own], dtype=np.intp)
        self.bases = bases[:, self.channels]
        self.data = free.data

    def columns(self, rows: slice) -> Array:
        """Return the statistics of the rows for each channel, zero-padded, shape (D, n, C)."""
        x = self.data.x[rows]
        return np.stack([np.where(place >= 0, x[:, place], 0.0) for place in self.places])

    def seen(self, rows: slice) -> Array:
        """Return whether the response of each channel was observed, shape (n, C)."""
        if self.data.observed is None:
            return np.ones((rows.stop - rows.start, len(self.owner)))
        return self.data.observed[rows][:, self.owner].astype(np.float64)


class _CoefficientScores:
    """Derivatives of log densities by coefficients with channels (m,) and designs (S_t, m)."""

    def __init__(self, channels: RowChannels, channel: NDArray[np.intp], design: Array) -> None:
        self.channels, self.channel = channels, channel
        self.falling = channels.falls[:, channel] * design
        self.rising = channels.slopes[:, :, channel] * design

    def of(self, rows: slice, posterior: Array) -> Array:
        """Return the derivatives for rows with posteriors (n, S_t), shape (n, m)."""
        channels, channel = self.channels, self.channel
        columns = channels.columns(rows)
        part = channels.bases[rows][:, channel] - posterior @ self.falling
        for d, table in enumerate(self.rising):
            used = np.flatnonzero(channels.places[d, channel] >= 0)
            part[:, used] += columns[d][:, channel[used]] * (posterior @ table[:, used])
        return part * channels.seen(rows)[:, channel]


def row_bases(free: FreeParameters) -> Array:
    """Return the parts of the derivatives that do not depend on the latents, shape (N, C)."""
    data = free.data
    out = np.zeros((data.n_samples, len(free.channels)))
    for c, one in enumerate(free.channels):
        if one.kind != "predictor":
            seen, cells = observed_responses(free, one.response)
            family = family_named(free.working.families[one.response])
            own = response_auxiliary(free.working, one.response)
            out[seen, c] = base_slopes(family, own, cells)[:, one.place]
    return out


def observed_responses(free: FreeParameters, response: int) -> tuple[NDArray[np.bool_], Array]:
    """Return which rows have a response, and the values that ``base_term`` needs."""
    column = free.responses[:, response]
    seen = ~np.isnan(column)
    if family_named(free.working.families[response]).is_location_scale:
        return seen, free.data.x[seen, free.data.columns.starts[response]]
    return seen, column[seen]


def item_scores(free: FreeParameters, channel: NDArray[np.intp], design: Array) -> Array:
    """Return scores (N, m) of coefficients on channels (m,), also outside the model."""
    scores = _CoefficientScores(RowChannels(free, 0, row_bases(free)), channel, design)
    out = np.empty((free.data.n_samples, len(channel)))
    for block in free.row_blocks():
        out[block.rows] = scores.of(block.rows, block.posteriors[0])
    return out


def row_scores(free: FreeParameters) -> Array:
    """Return the derivatives of the log density of each row by each parameter, shape (N, P)."""
    out = np.empty((free.data.n_samples, free.n_parameters))
    for rows, scores in iterate_scores(free):
        out[rows] = scores
    return out


def iterate_scores(free: FreeParameters) -> Iterator[tuple[slice, Array]]:
    """Yield ranges of rows with the derivatives of their log densities, shape (n, P)."""
    bases = row_bases(free)
    of_items: list[tuple[int, NDArray[np.intp], _CoefficientScores]] = []
    of_law: list[tuple[int, NDArray[np.intp], Array]] = []
    ends = free.n_of_items + np.cumsum([0, *(len(block.free) for block in free.blocks)])
    for t in range(free.tables.n_tables):
        channels = RowChannels(free, t, bases)
        if len(channels.channels):
            own = np.concatenate([free.of_channel(c) for c in channels.channels])
            place = np.searchsorted(channels.channels, free.channel[own])
            design = np.hstack([free.designs[c] for c in channels.channels])
            of_items.append((t, own, _CoefficientScores(channels, place, design)))
        held = [b for b, block in enumerate(free.blocks) if block.table == t]
        if held:
            own = np.concatenate([np.arange(ends[b], ends[b + 1]) for b in held])
            of_law.append((t, own, np.hstack([free.blocks[b].scores() for b in held])))
    for block in free.row_blocks():
        out = np.empty((len(block.log_density), free.n_parameters))
        for t, own, scores in of_items:
            out[:, own] = scores.of(block.rows, block.posteriors[t])
        for t, own, design in of_law:
            out[:, own] = block.posteriors[t] @ design
        yield block.rows, out


def iterate_loading_scores(free: FreeParameters) -> Iterator[tuple[int, Array]]:
    """Yield each response with scores (N, T) of all main loadings, also outside the model."""
    tables, data = free.tables, free.data
    assert isinstance(tables, TreeTables)
    bases = row_bases(free)
    density = tables.tree.working_densities(data, free.working)
    for table in np.unique(tables.of_response).tolist():
        channels = RowChannels(free, table, bases)
        kinds = [free.channels[c].kind for c in channels.channels]
        own = [c for c, kind in enumerate(kinds) if kind == "predictor"]
        found = np.zeros((len(own), data.n_samples, free.result.terms.n_main))
        scope = tables.scopes[table]
        for place, state in enumerate(tables.states(table)[:, list(scope)]):
            known = tables.tree.condition_on(scope, state) if scope else tables.tree
            for rows, groups in known.iterate_marginals(data, free.working):
                share = np.exp(groups.log_density - density[rows])
                slope = (channels.columns(rows) * channels.slopes[:, place][:, None]).sum(axis=0)
                residual = (slope - channels.falls[place]) * channels.seen(rows)
                expected = _term_probabilities(groups, free.result.terms) * share[:, None]
                for c, out in zip(own, found, strict=True):
                    out[rows] += residual[:, c, None] * expected
        for c, out in zip(own, found, strict=True):
            yield free.channels[channels.channels[c]].response, out


def _term_probabilities(groups: CliqueMarginals, terms: Terms) -> Array:
    """Return the posterior probability of each main term for a block of n rows, shape (n, T)."""
    out = np.empty((len(groups.log_density), terms.n_main))
    for t, (latent, level) in enumerate(zip(terms.main_latents, terms.main_levels, strict=True)):
        shares = groups.by_state((int(latent),))
        out[:, t] = shares[level:].sum(axis=0) / shares.sum(axis=0)
    return out
