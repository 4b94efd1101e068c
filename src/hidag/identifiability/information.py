"""Rank of the information at given parameters, and the directions in which it is flat.

Data that follow the model cannot tell parameters apart along a direction in which the score is
zero for every answer. The score of all parameters is computed for many answers (for all of them,
where they can be listed), and its singular values show how many directions there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd

from hidag.exceptions import SettingError
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import Family
from hidag.measurement.families.registry import family_named

# --- Scores of answers: how their log probability changes with every parameter of a model

Array = NDArray[np.float64]

#: All answers are listed up to this many; beyond, answers are drawn.
LISTED_ANSWERS = 1 << 14
#: Step of numerical derivatives by dispersions and cutpoints; the error is about its square.
_STEP = 1e-5


def auxiliaries(
    families: Sequence[str], dispersion: Array | None, cutpoints: Array | None
) -> list[Array]:
    """Return what each item has besides its predictor: a dispersion, shape (), or cutpoints."""
    out = []
    for j, name in enumerate(families):
        family = family_named(name)
        if family.n_cutpoints:
            even = np.arange(1.0, 1.0 + family.n_cutpoints)
            own = even if cutpoints is None else cutpoints[j, : family.n_cutpoints]
        elif dispersion is None:
            own = np.asarray(1.0 if family.dispersion_bounds[1] > 1.0 else 0.5)
        else:
            own = np.asarray(dispersion[j])
        out.append(np.asarray(own, dtype=np.float64))
    return out


def answers(
    eta: Array,
    probabilities: Array,
    families: Sequence[str],
    auxiliary: list[Array],
    n_draws: int,
    random_state: int,
) -> tuple[Array, Array, bool]:
    """Return answers, shape (n, J), their weights, and whether these are all there are."""
    n_items = len(eta)
    binary = all(family_named(name).is_binary for name in families)
    if binary and 2**n_items <= LISTED_ANSWERS:
        rows = ((np.arange(2**n_items)[:, None] >> np.arange(n_items)) & 1).astype(np.float64)
        weights = np.exp(_log_joint(rows, eta, probabilities, families, auxiliary)).sum(axis=1)
        return rows, weights, True
    rows = drawn_answers(eta, probabilities, families, auxiliary, n_draws, random_state)
    return rows, np.full(n_draws, 1.0 / n_draws), False


def drawn_answers(
    eta: Array,
    probabilities: Array,
    families: Sequence[str],
    auxiliary: list[Array],
    n_draws: int,
    random_state: int,
) -> Array:
    """Return answers drawn from the model, shape (n_draws, J)."""
    rng = np.random.default_rng(random_state)
    states = rng.choice(eta.shape[1], size=n_draws, p=probabilities / probabilities.sum())
    drawn = []
    for j, name in enumerate(families):
        family = family_named(name)
        own = np.broadcast_to(auxiliary[j], (n_draws, *auxiliary[j].shape))
        drawn.append(family.sample(eta[j, states], own, rng))
    return np.column_stack(drawn)


def _log_joint(
    rows: Array, eta: Array, probabilities: Array, families: Sequence[str], auxiliary: list[Array]
) -> Array:
    """Return the logarithm of each answer's joint probability with each state, shape (n, S)."""
    with np.errstate(divide="ignore"):
        total = np.log(np.asarray(probabilities, dtype=np.float64))[None, :]
    for j, name in enumerate(families):
        total = total + _log_density(family_named(name), rows[:, j], eta[j], auxiliary[j])
    return np.asarray(total)


def _log_density(family: Family, x: Array, eta: Array, auxiliary: Array) -> Array:
    """Return log f of one item, shape (n, S); zero where there is no answer."""
    own = _shaped(family, auxiliary)
    theta, partition = family.natural(eta, own)
    seen = ~np.isnan(x)
    out = np.zeros((len(x), len(eta)))
    x = x[seen]
    out[seen] = _weighted(family, x, theta) - partition + family.base(x, own)[:, None]
    return out


def _weighted(family: Family, x: Array, factors: Array) -> Array:
    """Return the columns of responses (n,) times factors over states, summed, shape (n, S)."""
    columns = family.to_working(x)
    if family.n_columns == 1:
        columns, factors = columns[None], factors[None]
    return np.asarray(np.einsum("dn,ds->ns", columns, factors))


def _shaped(family: Family, auxiliary: Array) -> Array:
    """Return an item's auxiliaries as its family takes them beside an axis of states."""
    return auxiliary[None] if family.n_cutpoints else auxiliary


def scores(
    rows: Array,
    eta: Array,
    designs: Sequence[Array],
    probabilities: Array,
    families: Sequence[str],
    auxiliary: list[Array],
) -> Array:
    """Return the derivative of each answer's log probability by each parameter, shape (n, P).

    An answer (J,) may have NaN for items that were not answered.
    """
    joint = _log_joint(rows, eta, probabilities, families, auxiliary)
    posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    parts = []
    for j, name in enumerate(families):
        family, x = family_named(name), rows[:, j]
        slope, mean, _ = family.slopes(eta[j], _shaped(family, auxiliary[j]))
        by_state = np.zeros_like(posterior)
        seen = ~np.isnan(x)
        by_state[seen] = _weighted(family, x[seen], slope) - mean
        parts.append((posterior * by_state) @ np.asarray(designs[j], dtype=np.float64))
        for up, down in _nudged(family, auxiliary[j]):
            change = _log_density(family, x, eta[j], up) - _log_density(family, x, eta[j], down)
            parts.append((posterior * change).sum(axis=1, keepdims=True) / (2 * _STEP))
    law = posterior - probabilities
    parts.append(np.delete(law, int(np.argmax(probabilities)), axis=1))
    return np.hstack(parts)


def _nudged(family: Family, auxiliary: Array) -> Iterator[tuple[Array, Array]]:
    """Yield an item's auxiliaries moved a step up and down, one after the other."""
    if family.n_cutpoints:
        for step in _STEP * np.eye(family.n_cutpoints):
            yield auxiliary + step, auxiliary - step
    elif family.has_dispersion:
        free = family.to_unbounded(auxiliary)
        yield family.from_unbounded(free + _STEP), family.from_unbounded(free - _STEP)


# ---

#: Singular values of the scaled score below this share of the largest count as zero. Rounding
#: leaves about 1e-15 of a direction that is flat, and 1e-10 where a derivative is numerical.
FLAT = 1e-7
#: Answers drawn per parameter: the rank of the scores cannot pass the number of answers.
DRAWS_PER_PARAMETER = 8
FEWEST_DRAWS = 4000
#: Larger problems are refused: they need a matrix of scores of this many numbers.
LARGEST_SCORE = 60_000_000
#: Parameters with less than this share of a direction's largest entry are not named.
_NAMED_SHARE = 0.1


@dataclass(frozen=True)
class FlatDirection:
    """A direction in which the distribution of the data does not change, to first order.

    Attributes
    ----------
    names : tuple of str
        Parameters that move, the one that moves most first.
    amounts : tuple of float
        How much each moves, the largest by 1 or -1.
    """

    names: tuple[str, ...]
    amounts: tuple[float, ...]

    def __str__(self) -> str:
        return ", ".join(
            f"{a:+.2g} {name}" for name, a in zip(self.names, self.amounts, strict=True)
        )


@dataclass(frozen=True)
class InformationRank:
    """Rank of the information matrix.

    Attributes
    ----------
    n_parameters, rank : int
    flat : tuple of FlatDirection
        ``n_parameters - rank`` directions.
    weakest : float
        Smallest singular value that is not zero, as a share of the largest; parameters are scaled
        to unit information each. Small values mean that much data is needed.
    n_answers : int
        Answers that the scores were computed for.
    exact : bool
        Whether these are all answers there are.
    """

    n_parameters: int
    rank: int
    flat: tuple[FlatDirection, ...]
    weakest: float
    n_answers: int
    exact: bool

    @property
    def full(self) -> bool:
        """Whether no direction is flat."""
        return self.rank == self.n_parameters


def information_rank(
    eta: Array,
    designs: Sequence[Array],
    probabilities: Array,
    *,
    levels: Sequence[int],
    families: Sequence[str],
    dispersion: Array | None = None,
    cutpoints: Array | None = None,
    item_names: Sequence[str] | None = None,
    feature_names: Sequence[Sequence[str]] | None = None,
    state_names: Sequence[str] | None = None,
    random_state: int = 0,
) -> InformationRank:
    """Return the rank of the information about all coefficients, dispersions and the law.

    Parameters
    ----------
    eta : ndarray, shape (J, S)
        Predictor of every item in every joint state.
    designs : sequence of J arrays, shape (S, P_j)
        The features that the coefficients of each item multiply, intercept included.
    probabilities : ndarray, shape (S,)
        Joint law; its free parameters are log ratios to the most probable state.
    levels : sequence of int, length K
    families : sequence of str, length J
    dispersion : ndarray, shape (J,), optional
        1 by default, or one half where it must be below 1; used by families that have one.
    cutpoints : ndarray, shape (J, C), optional
        Cutpoints of ordered grades beyond the first; evenly spaced by default.
    item_names : sequence of str, optional
    feature_names : sequence of J sequences of P_j str, optional
    state_names : sequence of S str, optional
        Where these are not all joint states of so many levels.
    random_state : int
        Seed of the answers that are drawn where they cannot be listed.
    """
    eta = np.asarray(eta, dtype=np.float64)
    n_states = eta.shape[1]
    auxiliary = auxiliaries(families, dispersion, cutpoints)
    if state_names is None:
        states = StateSpace(tuple(levels)).states().tolist()
        state_names = ["".join(map(str, state)) for state in states]
    names = _parameter_names(
        designs, families, probabilities, state_names, item_names, feature_names
    )
    n_draws = max(FEWEST_DRAWS, DRAWS_PER_PARAMETER * len(names))
    rows, weights, exact = answers(eta, probabilities, families, auxiliary, n_draws, random_state)
    if len(rows) * max(len(names), n_states) > LARGEST_SCORE:
        raise SettingError(
            f"the information of {len(names)} parameters over {n_states} joint states is too large "
            "to compute; check a smaller model"
        )
    score = scores(rows, eta, designs, probabilities, families, auxiliary)
    score *= np.sqrt(weights)[:, None]
    scale = np.sqrt((score**2).sum(axis=0))
    scale[scale == 0] = 1.0
    triangle = qr(score / scale, mode="r")[0][: len(names)]
    _, values, right = svd(triangle, full_matrices=True)
    values = np.concatenate([values, np.zeros(len(names) - len(values))])
    large = values > FLAT * values[0]
    rank = int(large.sum())
    return InformationRank(
        n_parameters=len(names),
        rank=rank,
        flat=_directions(right[rank:] / scale, names),
        weakest=float(values[rank - 1] / values[0]) if rank else 0.0,
        n_answers=len(rows),
        exact=exact,
    )


def _parameter_names(
    designs: Sequence[Array],
    families: Sequence[str],
    probabilities: Array,
    state_names: Sequence[str],
    item_names: Sequence[str] | None,
    feature_names: Sequence[Sequence[str]] | None,
) -> list[str]:
    items = item_names or [f"item_{j}" for j in range(len(designs))]
    out = []
    for j, design in enumerate(designs):
        features = (
            feature_names[j]
            if feature_names is not None
            else ["intercept", *(f"feature {f}" for f in range(1, design.shape[1]))]
        )
        out += [f"b[{items[j]}, {feature}]" for feature in features]
        family = family_named(families[j])
        out += [f"cutpoint {c + 2}[{items[j]}]" for c in range(family.n_cutpoints)]
        if family.has_dispersion and not family.n_cutpoints:
            out.append(f"dispersion[{items[j]}]")
    reference = int(np.argmax(probabilities))
    return out + [f"log p({w})" for s, w in enumerate(state_names) if s != reference]


def _directions(null: Array, names: Sequence[str]) -> tuple[FlatDirection, ...]:
    """Return a basis of flat directions in which few parameters move, shape of null (d, P)."""
    if not len(null):
        return ()
    # Pivoting gives each direction one parameter that only it moves.
    _, upper, order = qr(null, mode="economic", pivoting=True)
    basis = np.empty_like(null)
    basis[:, order] = np.linalg.solve(upper[:, : len(null)], upper)
    out = []
    for row in basis:
        row = row / row[np.argmax(np.abs(row))]
        moved = np.flatnonzero(np.abs(row) >= _NAMED_SHARE)
        moved = moved[np.argsort(-np.abs(row[moved]), kind="stable")]
        out.append(
            FlatDirection(tuple(names[int(i)] for i in moved), tuple(float(row[i]) for i in moved))
        )
    return tuple(out)
