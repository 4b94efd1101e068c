"""Response families by name."""

from __future__ import annotations

from hidag.errors import SettingError
from hidag.measurement.families.base import Family
from hidag.measurement.families.bernoulli import Bernoulli
from hidag.measurement.families.gaussian import Gaussian, Lognormal
from hidag.measurement.families.poisson import Poisson, PoissonIdentity

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (Bernoulli(), Poisson(), PoissonIdentity(), Gaussian(), Lognormal())
}


def family_named(name: str) -> Family:
    """Return the family of that name."""
    if name not in FAMILIES:
        known = ", ".join(repr(known) for known in FAMILIES)
        raise SettingError(f"family must be one of {known}, got {name!r}")
    return FAMILIES[name]


__all__ = ["FAMILIES", "Family", "family_named"]
