"""What loadings cost: which coefficients are penalised, in which units, and how much in all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.working import WorkingData
from hidag.kernels.item_regression import FREE, PENALISED, RISING, ZERO
from hidag.measurement import MeasurementParameters, Penalty, Terms, family_named

Array = NDArray[np.float64]

#: Below this share of noise the default threshold is wider than a loading's standard error.
QUIET_SHARE = 0.25


def permissions(q_entries: NDArray[np.int8], terms: Terms) -> NDArray[np.uint8]:
    """Return ZERO, PENALISED or FREE for each coefficient, shape (J, 1 + T).

    Entries of Q that are known to be 1 are free: no data can argue them away. Interactions stay
    zero: they are let in once the items' latents are known.
    """
    out = np.full((len(q_entries), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    out[:, 0] = FREE
    of_latent = np.choose(q_entries + 1, [PENALISED, ZERO, FREE])
    out[:, 1 : 1 + terms.n_main] = of_latent[:, terms.main_latents]
    return out


def at_a_cost(allowed: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which coefficients are paid for when they are not zero, same shape."""
    return np.asarray((allowed == PENALISED) | (allowed == RISING))


def penalty_scales(data: WorkingData) -> Array:
    """Return the units of the penalty's threshold for each item, shape (J,).

    They are `coefficient_scales`, smaller for items with little noise. There standard errors are
    small as well, and a threshold many of them wide would have a slope below the noise of a
    gradient: every false loading would stay.
    """
    quiet = np.sqrt(data.noise_shares / QUIET_SHARE)
    return coefficient_scales(data) * np.minimum(quiet, 1.0)


def coefficient_scales(data: WorkingData) -> Array:
    """Return the size of a typical coefficient of each item, shape (J,)."""
    out = np.empty(data.n_items)
    for name in set(data.families):
        family = family_named(name)
        items = np.flatnonzero(np.array(data.families) == name)
        columns = data.columns.of(family, items)
        out[items] = family.coefficient_scale(data.mean[columns], data.variance[columns])
    return out


def penalty_of(
    parameters: MeasurementParameters,
    penalty: Penalty,
    scale: Array,
    allowed: NDArray[np.uint8],
) -> float:
    """Return the total penalty of the loadings that are not known to be there."""
    cost = penalty.value(parameters.loadings, scale[:, None])
    return float((cost * at_a_cost(allowed[:, 1:])).sum())
