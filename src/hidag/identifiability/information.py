"""Rank of the Fisher information at given parameters, and its null directions.

Along a direction in which the score is zero for every response pattern, the distribution of the
data does not change to first order. The singular values of the score of all response patterns, or
of a sample, give the rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr, svd

from hidag.exceptions import SettingError
from hidag.formatting import plural
from hidag.identifiability.assumptions import estimable_designs
from hidag.identifiability.design import Condition, Finding, FittedModel, MeasurementDesign
from hidag.measurement.families.base import Family, family_named

Array = NDArray[np.float64]

#: Up to this many response patterns are listed; otherwise responses are sampled.
MAX_LISTED_PATTERNS = 1 << 14
#: Step of numerical derivatives by dispersions and cutpoints; the error is about its square.
_STEP = 1e-5
#: Singular values of the scaled score below this share of the largest count as zero. Rounding
#: leaves about 1e-15 of a null direction, and 1e-10 with a numerical derivative.
FLAT = 1e-7
#: Sampled responses per parameter: the rank of the score cannot exceed the number of responses.
DRAWS_PER_PARAMETER = 8
MIN_DRAWS = 4000
#: Largest number of entries of the score matrix; larger problems are refused.
MAX_SCORE_ENTRIES = 60_000_000
#: Parameters with less than this share of a direction's largest entry are not named.
_NAMED_SHARE = 0.1
#: Null directions that the sentence names; the witness has all of them.
_MAX_DIRECTIONS = 3


@dataclass(frozen=True, eq=False)
class ResponseModel:
    """Distribution of the responses: a finite mixture over joint states."""

    eta: Array  # (J, S): linear predictor of every item in every joint state
    probabilities: Array  # (S,): latent distribution
    families: tuple[str, ...]  # length J
    auxiliary: tuple[Array, ...]  # dispersion, shape (), or cutpoints of each item

    @classmethod
    def create(
        cls,
        eta: ArrayLike,
        probabilities: ArrayLike,
        families: Sequence[str],
        dispersion: Array | None = None,
        cutpoints: Array | None = None,
    ) -> ResponseModel:
        """Return the model of joint states with these ``probabilities`` and predictors ``eta``.

        One of the ``families`` for each item; ``dispersion`` is 1 (or 0.5), shape (J,), and
        ``cutpoints`` are equally spaced, shape (J, C), by default.
        """
        auxiliary = []
        for j, name in enumerate(families):
            family = family_named(name)
            if family.n_cutpoints:
                even = np.arange(1.0, 1.0 + family.n_cutpoints)
                own = even if cutpoints is None else cutpoints[j, : family.n_cutpoints]
            elif dispersion is None:
                own = np.asarray(1.0 if family.dispersion_bounds[1] > 1.0 else 0.5)
            else:
                own = np.asarray(dispersion[j])
            auxiliary.append(np.asarray(own, dtype=np.float64))
        predictors, law = (np.asarray(a, dtype=np.float64) for a in (eta, probabilities))
        return cls(predictors, law, tuple(families), tuple(auxiliary))

    def log_joint(self, rows: Array) -> Array:
        """Return the log joint probability of each of the ``rows`` and each state, shape (n, S)."""
        with np.errstate(divide="ignore"):
            total = np.log(self.probabilities)[None, :]
        for j, name in enumerate(self.families):
            family, own = family_named(name), self.auxiliary[j]
            total = total + _log_density(family, rows[:, j], self.eta[j], own)
        return np.asarray(total)

    def sample(self, n_draws: int, random_state: int) -> Array:
        """Return sampled responses, shape (n_draws, J); ``random_state`` is the seed."""
        rng = np.random.default_rng(random_state)
        law = self.probabilities / self.probabilities.sum()
        # In an order that does not depend on the names of latents and levels.
        order = np.lexsort([*self.eta, law])
        states = order[rng.choice(len(order), size=n_draws, p=law[order])]
        drawn = []
        for j, name in enumerate(self.families):
            own = np.broadcast_to(self.auxiliary[j], (n_draws, *self.auxiliary[j].shape))
            drawn.append(family_named(name).sample(self.eta[j, states], own, rng))
        return np.column_stack(drawn)

    def response_patterns(self, n_draws: int, random_state: int) -> tuple[Array, Array, bool]:
        """Return responses, shape (n, J), their weights, and whether all patterns are listed.

        Where they are too many, ``n_draws`` are sampled with the seed ``random_state``.
        """
        n_items = len(self.eta)
        binary = all(family_named(name).is_binary for name in self.families)
        if binary and 2**n_items <= MAX_LISTED_PATTERNS:
            rows = ((np.arange(2**n_items)[:, None] >> np.arange(n_items)) & 1).astype(np.float64)
            return rows, np.exp(self.log_joint(rows)).sum(axis=1), True
        return self.sample(n_draws, random_state), np.full(n_draws, 1.0 / n_draws), False

    def scores(self, rows: Array, designs: Sequence[Array]) -> Array:
        """Return the derivative of each row's log probability by each parameter, shape (n, P).

        Parameters are the items' coefficients, each item's followed by its dispersion or cutpoints,
        then the log ratios of the states' probabilities to the largest. Missing responses in
        ``rows`` are NaN; ``designs`` are the features that each item's coefficients multiply, shape
        (S, P_j).
        """
        joint = self.log_joint(rows)
        posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        parts = []
        for j, name in enumerate(self.families):
            family, x, eta, own = family_named(name), rows[:, j], self.eta[j], self.auxiliary[j]
            slope, mean, _ = family.slopes(eta, _with_state_axis(family, own))
            by_state = np.zeros_like(posterior)
            observed = ~np.isnan(x)
            by_state[observed] = _combine_columns(family, x[observed], slope) - mean
            parts.append((posterior * by_state) @ np.asarray(designs[j], dtype=np.float64))
            for up, down in _perturbed(family, own):
                change = _log_density(family, x, eta, up) - _log_density(family, x, eta, down)
                parts.append((posterior * change).sum(axis=1, keepdims=True) / (2 * _STEP))
        reference = int(np.argmax(self.probabilities))
        parts.append(np.delete(posterior - self.probabilities, reference, axis=1))
        return np.hstack(parts)

    def coefficient_blocks(self, designs: Sequence[Array]) -> list[slice]:
        """Return the columns of each item's coefficients in :meth:`scores`, by its ``designs``."""
        blocks, end = [], 0
        for name, own, x in zip(self.families, self.auxiliary, designs, strict=True):
            blocks.append(slice(end, end + x.shape[1]))
            end += x.shape[1] + sum(1 for _ in _perturbed(family_named(name), own))
        return blocks

    def parameter_names(
        self,
        item_names: Sequence[str],
        feature_names: Sequence[Sequence[str]],
        state_names: Sequence[str],
    ) -> list[str]:
        """Return the names of the parameters, in the order of :meth:`scores`.

        They combine ``item_names`` with the ``feature_names`` of each item, and ``state_names``.
        """
        out = []
        for item, features, name in zip(item_names, feature_names, self.families, strict=True):
            out += [f"b[{item}, {feature}]" for feature in features]
            family = family_named(name)
            out += [f"cutpoint {c + 2}[{item}]" for c in range(family.n_cutpoints)]
            if family.has_dispersion and not family.n_cutpoints:
                out.append(f"dispersion[{item}]")
        reference = int(np.argmax(self.probabilities))
        return out + [f"log p({word})" for s, word in enumerate(state_names) if s != reference]


def _log_density(family: Family, x: Array, eta: Array, auxiliary: Array) -> Array:
    """Return the log density of one item, shape (n, S); zero for a missing response."""
    own = _with_state_axis(family, auxiliary)
    theta, partition = family.natural(eta, own)
    observed = ~np.isnan(x)
    out = np.zeros((len(x), len(eta)))
    x = x[observed]
    out[observed] = _combine_columns(family, x, theta) - partition + family.base(x, own)[:, None]
    return out


def _combine_columns(family: Family, x: Array, factors: Array) -> Array:
    """Return the working columns of responses (n,) times factors by state, summed, (n, S)."""
    columns = family.to_working(x)
    if family.n_columns == 1:
        columns, factors = columns[None], factors[None]
    return np.asarray(np.einsum("dn,ds->ns", columns, factors))


def _with_state_axis(family: Family, auxiliary: Array) -> Array:
    return auxiliary[None] if family.n_cutpoints else auxiliary


def _perturbed(family: Family, auxiliary: Array) -> Iterator[tuple[Array, Array]]:
    """Yield an item's auxiliary parameters one step up and down, one parameter at a time."""
    if family.n_cutpoints:
        for step in _STEP * np.eye(family.n_cutpoints):
            yield auxiliary + step, auxiliary - step
    elif family.has_dispersion:
        free = family.to_unbounded(auxiliary)
        yield family.from_unbounded(free + _STEP), family.from_unbounded(free - _STEP)


@dataclass(frozen=True)
class FlatDirection:
    """A direction along which the distribution of the data does not change, to first order."""

    names: tuple[str, ...]  # parameters that change, the largest change first
    amounts: tuple[float, ...]  # changes, scaled so that the largest is 1 or -1

    def __str__(self) -> str:
        return ", ".join(
            f"{a:+.2g} {name}" for name, a in zip(self.names, self.amounts, strict=True)
        )


@dataclass(frozen=True)
class InformationRank:
    """``rank`` of the information matrix of ``n_parameters``."""

    n_parameters: int
    rank: int
    flat: tuple[FlatDirection, ...]  # ``n_parameters - rank`` null directions
    # smallest nonzero singular value of the score as a share of the largest, with items'
    # coefficients in an orthonormal basis and parameters scaled to unit information. Small values
    # mean that much data is needed.
    weakest: float
    n_patterns: int  # response patterns for which the score was computed
    exact: bool  # whether these are all response patterns

    @property
    def full(self) -> bool:
        """Whether there is no null direction."""
        return self.rank == self.n_parameters


def information_rank(
    model: ResponseModel,
    designs: Sequence[Array],
    parameter_names: Sequence[str],
    *,
    random_state: int = 0,
) -> InformationRank:
    """Return the rank of the information about coefficients, dispersions and latent distribution.

    A SettingError is raised if the score is too large.

    Parameters
    ----------
    model : ResponseModel
    designs : sequence of ndarray, shape (S, P_j)
        Features of each item, as in :meth:`ResponseModel.scores`.
    parameter_names : sequence of str, as :meth:`ResponseModel.parameter_names` returns them
    random_state : int, seed of the responses, if they cannot be listed
    """
    n, n_states = len(parameter_names), model.eta.shape[1]
    rows, weights, exact = model.response_patterns(
        max(MIN_DRAWS, DRAWS_PER_PARAMETER * n), random_state
    )
    if len(rows) * max(n, n_states) > MAX_SCORE_ENTRIES:
        sentence = "the information of {n} parameters in {n_states} states is too large to compute"
        size = {"n": n, "n_states": n_states}
        raise SettingError("information-too-large", sentence, size, advice="check a smaller model")
    # Another naming of levels gives items' features another basis; singular values in an
    # orthonormal one, with one scale for each item, do not depend on it.
    bases = [qr(x, mode="economic") for x in designs]
    score = model.scores(rows, [np.asarray(basis, dtype=np.float64) for basis, _ in bases])
    score *= np.sqrt(weights)[:, None]
    scale = np.sqrt((score**2).sum(axis=0))
    blocks = list(zip(model.coefficient_blocks(designs), bases, strict=True))
    for own, _ in blocks:
        scale[own] = np.sqrt((scale[own] ** 2).mean())
    scale[scale == 0] = 1.0
    triangle = qr(score / scale, mode="r")[0][:n]
    _, values, right = svd(triangle, full_matrices=True)
    values = np.concatenate([values, np.zeros(n - len(values))])
    rank = int((values > FLAT * values[0]).sum())
    null = right[rank:] / scale
    for own, (_, upper) in blocks:
        null[:, own] = null[:, own] @ np.linalg.pinv(upper).T
    flat = _sparse_directions(null, parameter_names)
    weakest = float(values[rank - 1] / values[0]) if rank else 0.0
    return InformationRank(n, rank, flat, weakest, len(rows), exact)


def _sparse_directions(null: Array, names: Sequence[str]) -> tuple[FlatDirection, ...]:
    """Return a basis of the null space, shape (d, P), in which few parameters change."""
    if not len(null):
        return ()
    # Pivoting gives each direction one parameter that no other direction changes.
    _, upper, order = qr(null, mode="economic", pivoting=True)
    basis = np.empty_like(null)
    basis[:, order] = np.linalg.solve(upper[:, : len(null)], upper)
    out = []
    for row in basis:
        row = row / row[np.argmax(np.abs(row))]
        moved = np.flatnonzero(np.abs(row) >= _NAMED_SHARE)
        moved = moved[np.argsort(-np.abs(row[moved]), kind="stable")]
        out.append(FlatDirection(tuple(names[int(i)] for i in moved), tuple(row[moved].tolist())))
    return tuple(out)


def full_rank(design: MeasurementDesign, fitted: FittedModel, *, random_state: int = 0) -> Finding:
    """Check whether the information about all parameters has full rank at the fit."""
    condition = Condition("information", "numerical check", required=False)
    if fitted.eta is None:
        states = fitted.law.space.n_states_text()
        return condition.undecided(
            f"the information over {states} joint states is too large to compute"
        )
    designs, feature_names = estimable_designs(design)
    possible = design.possible()
    law = np.asarray(fitted.law.probabilities)[possible]
    auxiliary = fitted.dispersion, fitted.cutpoints
    families = design.families or ()
    model = ResponseModel.create(fitted.eta[:, possible], law, families, *auxiliary)
    names = model.parameter_names(design.item_names, feature_names, design.state_names(possible))
    try:
        found = information_rank(model, designs, names, random_state=random_state)
    except SettingError as error:
        return condition.undecided(str(error), {"code": error.code})
    witness: dict[str, Any] = {"rank": found.rank, "parameters": found.n_parameters}
    if found.full:
        return condition.holds(
            f"the Fisher information has full rank: all {found.n_parameters} parameters are "
            f"locally identified (smallest singular value {found.weakest:.1g} of the largest)",
            witness,
        )
    n_flat = found.n_parameters - found.rank
    directions = [str(direction) for direction in found.flat[:_MAX_DIRECTIONS]]
    if n_flat > _MAX_DIRECTIONS:
        directions.append(f"and {n_flat - _MAX_DIRECTIONS} more")
    return condition.fails(
        f"the Fisher information has rank {found.rank} for {found.n_parameters} parameters: the "
        "distribution of the data does not change, to first order, along "
        f"{plural(n_flat, 'direction')}: {'; '.join(directions)}",
        {**witness, "flat": [dict(zip(d.names, d.amounts, strict=True)) for d in found.flat]},
        "fix one parameter of each direction, or add items on the latents they name",
    )
