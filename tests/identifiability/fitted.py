"""Certificates of parameters that no fit produced."""

from __future__ import annotations

import numpy as np

from hidag.identifiability import Certificate
from hidag.identifiability.certificate import certify
from hidag.identifiability.design import FittedModel, read_design
from hidag.latent import SaturatedLaw, StateSpace


def item_tables(eta: np.ndarray, q: np.ndarray, levels: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Return each item's predictor over its own latents, given it over joint states, (J, S)."""
    return tuple(
        line.reshape(levels)[tuple(slice(None) if own else 0 for own in row)]
        for line, row in zip(eta, q, strict=True)
    )


def certify_items(q, eta, law, *, dispersion=None, information=True, **settings) -> Certificate:
    """Return the certificate of items with predictors ``eta`` (J, S) under a law (S,)."""
    design = read_design(q, **settings)
    tables = item_tables(np.asarray(eta), design.q, design.levels)
    law = SaturatedLaw(StateSpace(design.levels), np.asarray(law))
    fitted = FittedModel(tables, law, np.asarray(eta), dispersion)
    return certify(design, fitted, information=information)
