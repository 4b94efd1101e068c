"""Latent class analysis with a class for every joint state, and states for the classes afterwards.

The classes come from StepMix (``pip install hidag[baselines]``).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hidag.errors import SettingError
from hidag.extras import import_extra
from hidag.studies.baselines.class_matching import match_classes
from hidag.studies.baselines.contract import (
    NORMAL_FAMILIES,
    Baseline,
    BaselineResult,
    Floats,
    graph_of_law,
    normal_values,
    refuse_other_families,
)

#: Beginnings of EM, from k-means, and its steps at the most.
BEGINNINGS, STEPS = 4, 300
#: EM ends when a step gains less log-likelihood for each row.
LEAST_GAIN = 1e-5
#: So many latents have 256 classes.
MOST_LATENTS = 8
#: Probabilities of a class are kept this far from 0 and 1 on the scale of the link.
EDGE = 0.02


def latent_class(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Return Q and the graph from 2^K classes whose means were matched to joint states."""
    if n_latents > MOST_LATENTS:
        raise SettingError(
            f"latent-class has a class for each of the 2^K joint states: at most {MOST_LATENTS} "
            f"latents, got {n_latents}"
        )
    if len(values) < 2**n_latents:
        raise SettingError(
            f"latent-class needs at least as many rows as classes, got {len(values)} rows for "
            f"2^{n_latents}"
        )
    refuse_other_families(families, (*NORMAL_FAMILIES, "bernoulli"), "latent-class")
    normal = np.array([family in NORMAL_FAMILIES for family in families])
    table = normal_values(values, families)
    means, shares, n_iter = _classes(table, normal, 2**n_latents, seed)
    weights = len(table) * shares
    matched = match_classes(means, weights, n_latents, np.random.default_rng(seed))
    law = np.bincount(matched.states, shares, minlength=2**n_latents)
    return BaselineResult(
        matched.q_matrix,
        graph_of_law(law / law.sum(), n_latents, len(table)),
        {
            "n_iter": n_iter,
            "unexplained_by_states": matched.unexplained,
            "states_with_classes": len(np.unique(matched.states)),
        },
    )


def _classes(
    table: Floats, normal: np.ndarray[Any, np.dtype[np.bool_]], n_classes: int, seed: int
) -> tuple[Floats, Floats, int]:
    """Return the classes' means on an additive scale with unit noise (C, J), shares and steps."""
    StepMix = import_extra("stepmix.stepmix", "latent-class", "baselines").StepMix
    kinds = (("normal", "gaussian_diag", normal), ("binary", "binary", ~normal))
    blocks = [(name, kind, which) for name, kind, which in kinds if which.any()]
    model = StepMix(
        n_components=n_classes,
        measurement={
            name: {"model": kind, "n_columns": int(which.sum())} for name, kind, which in blocks
        },
        n_init=BEGINNINGS,
        init_params="kmeans",
        max_iter=STEPS,
        abs_tol=LEAST_GAIN,
        random_state=seed % 2**32,
        progress_bar=0,
        verbose=0,
    )
    with warnings.catch_warnings():
        # Of several beginnings some do not settle; the best one is what counts.
        warnings.simplefilter("ignore")
        model.fit(np.hstack([table[:, which] for _, _, which in blocks]))
    found = model.get_parameters()
    shares = np.asarray(found["weights"], dtype=np.float64)
    means = np.empty((n_classes, table.shape[1]))
    for name, _, which in blocks:
        part = found["measurement"][name]
        if name == "normal":
            within = shares @ np.asarray(part["covariances"])
            means[:, which] = np.asarray(part["means"]) / np.sqrt(within)
        else:
            odds = np.clip(np.asarray(part["pis"]), EDGE, 1.0 - EDGE)
            overall = table[:, which].mean(axis=0)
            # On the scale of the link a row's noise has variance 1 / (p (1 - p)).
            means[:, which] = np.log(odds / (1.0 - odds)) * np.sqrt(overall * (1.0 - overall))
    return means, shares, int(model.n_iter_)


LATENT_CLASS = Baseline(
    "latent-class",
    "latent class analysis with 2^K classes, matched to states of K latents",
    latent_class,
)
