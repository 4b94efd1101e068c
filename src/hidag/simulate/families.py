"""Drawing items given their linear predictor: one line of mathematics per family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hidag.errors import SettingError

Floats = NDArray[np.float64]

#: exp of this is still a count that numpy's Poisson sampler and float64 hold exactly.
MAX_LOG_MEAN = 36.0


@dataclass(frozen=True)
class ItemFamily:
    """How an item with linear predictor eta is drawn.

    Attributes
    ----------
    name : str
    has_dispersion : bool
        Whether the family has a variance parameter.
    mean : callable
        ``mean(eta, variance)``, the expectation of an item.
    draw : callable
        ``draw(eta, variance, rng)``, one draw per entry of eta.
    """

    name: str
    has_dispersion: bool
    mean: Callable[[Floats, float], Floats]
    draw: Callable[[Floats, float, np.random.Generator], Floats]


def _draw_bernoulli(eta: Floats, _: float, rng: np.random.Generator) -> Floats:
    return (rng.random(eta.shape) < expit(eta)).astype(np.float64)


def _draw_poisson(eta: Floats, _: float, rng: np.random.Generator) -> Floats:
    return rng.poisson(np.exp(eta)).astype(np.float64)


def _draw_poisson_identity(eta: Floats, _: float, rng: np.random.Generator) -> Floats:
    return rng.poisson(eta).astype(np.float64)


def _draw_gaussian(eta: Floats, variance: float, rng: np.random.Generator) -> Floats:
    return np.asarray(eta + np.sqrt(variance) * rng.standard_normal(eta.shape), dtype=np.float64)


def _draw_lognormal(eta: Floats, variance: float, rng: np.random.Generator) -> Floats:
    return np.asarray(np.exp(_draw_gaussian(eta, variance, rng)), dtype=np.float64)


#: The families an item can be drawn from, by name.
FAMILIES: dict[str, ItemFamily] = {
    family.name: family
    for family in (
        ItemFamily("bernoulli", False, lambda eta, _: expit(eta), _draw_bernoulli),
        ItemFamily("poisson", False, lambda eta, _: np.exp(eta), _draw_poisson),
        ItemFamily("poisson-identity", False, lambda eta, _: eta, _draw_poisson_identity),
        ItemFamily("gaussian", True, lambda eta, _: eta, _draw_gaussian),
        ItemFamily("lognormal", True, lambda eta, v: np.exp(eta + v / 2), _draw_lognormal),
    )
}


def item_family(name: str) -> ItemFamily:
    """Return the family of that name."""
    if name not in FAMILIES:
        known = ", ".join(repr(known) for known in FAMILIES)
        raise SettingError(f"family must be one of {known}, got {name!r}")
    return FAMILIES[name]


def refuse_impossible_means(
    families: tuple[str, ...], lowest: Floats, highest: Floats, names: tuple[str, ...]
) -> None:
    """Raise unless every state gives every item a mean its family can have.

    Parameters
    ----------
    families : tuple of str, length J
    lowest, highest : ndarray, shape (J,)
        Smallest and largest linear predictor over the latent states.
    names : tuple of str, length J
    """
    kinds = np.array(families)
    bad = np.flatnonzero((kinds == "poisson-identity") & (lowest <= 0))
    if len(bad):
        raise SettingError(
            f"family='poisson-identity' needs a mean > 0 in every latent state, but item "
            f"{names[bad[0]]!r} has mean {lowest[bad[0]]:.6g} in one ({len(bad)} of {len(names)} "
            f"items); raise the intercept or use family='poisson' (log link)"
        )
    exponential = (kinds == "poisson") | (kinds == "lognormal")
    bad = np.flatnonzero(exponential & (highest > MAX_LOG_MEAN))
    if len(bad):
        raise SettingError(
            f"family={families[bad[0]]!r} has a log link and needs a linear predictor of at most "
            f"{MAX_LOG_MEAN:g}, but item {names[bad[0]]!r} reaches {highest[bad[0]]:.6g} "
            f"({len(bad)} of {len(names)} items); lower the intercept or the slopes"
        )
