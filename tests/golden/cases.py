"""The fits of the golden master: settings by name, on tables of ``tables``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tables import FAMILIES, table

from hidag import DCRL, Knowledge


@dataclass(frozen=True)
class Case:
    """One fit: how its table is drawn, how Q is given, and the settings of the estimator."""

    n_rows: int
    n_latents: int
    family: str = "bernoulli"
    q: str = "none"
    table: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    weighted: bool = False
    in_suite: bool = False

    def data(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return responses (N, J), Q as the fit gets it or None, and weights (N,) or None."""
        values, q = table(self.n_rows, self.n_latents, self.family, seed=20261118, **self.table)
        given = None
        if self.q == "given":
            given = q.astype(float)
        elif self.q == "partial":
            given = q.astype(float)
            given[: self.n_latents] = -1
        weights = None
        if self.weighted:
            weights = np.random.default_rng(7).integers(1, 4, len(values)).astype(float)
        return values, given, weights

    def fit(self) -> DCRL:
        """Return the fitted model."""
        values, given, weights = self.data()
        settings = {"n_latents": self.n_latents, "family": self.family, "random_state": 3}
        model = DCRL(**(settings | self.settings), q_matrix=given)
        return model.fit(values, sample_weight=weights)


def _cases() -> dict[str, Case]:
    cases = {
        f"family {family}": Case(500, 3, family, in_suite=family in ("bernoulli", "gaussian"))
        for family in FAMILIES
    }
    for n_latents, n_rows in ((5, 800), (6, 800), (7, 800), (10, 600), (14, 400)):
        cases[f"K={n_latents}"] = Case(n_rows, n_latents)
    for law in ("network", "saturated"):
        for method in ("em", "saem"):
            settings = {"law": law, "method": method, "max_iter": 60}
            cases[f"{law} law by {method}"] = Case(
                500, 4, settings=settings, in_suite=law[0] == "n"
            )
    given: dict[str, Case] = {
        "Q partial": Case(500, 4, q="partial", in_suite=True),
        "Q given": Case(500, 4, q="given", in_suite=True),
        "Q given, K=10": Case(500, 10, q="given"),
        "three levels": Case(800, 3, "gaussian", table={"levels": 3}, settings={"levels": 3}),
        "unequal levels": Case(800, 3, "gaussian", settings={"levels": (2, 3, 2)}),
        "interactions": Case(600, 3, table={"conjunctive": True}, settings={"effects": "all"}),
        "interactions, Q given": Case(
            600, 3, q="given", table={"conjunctive": True}, settings={"effects": "gdina"}
        ),
        "DINA, Q given": Case(
            600,
            3,
            q="given",
            table={"conjunctive": True},
            settings={"effects": "dina"},
            in_suite=True,
        ),
        "DINO, Q given": Case(600, 3, q="given", settings={"effects": "dino"}),
        "missing cells": Case(600, 4, table={"missing": 0.15}, in_suite=True),
        "weights": Case(500, 4, weighted=True),
        "hierarchy": Case(
            500,
            3,
            q="given",
            settings={"knowledge": Knowledge(hierarchy=[("Z1", "Z2")])},
        ),
        "required edge": Case(
            500, 3, q="given", settings={"knowledge": Knowledge(required=[("Z1", "Z3")])}
        ),
        "number of latents auto": Case(800, 4, settings={"n_latents": "auto"}),
        "two threads": Case(800, 5, settings={"n_jobs": 2}),
        "scad": Case(500, 4, settings={"penalty": "scad"}),
        "no penalty": Case(500, 3, settings={"penalty": None}),
        "resampled rows": Case(500, 4, settings={"resample": "2N"}),
        "bic, exact search": Case(500, 4, settings={"graph_score": "bic", "search": "exact"}),
        "five starts": Case(500, 4, settings={"n_starts": 5}),
    }
    return cases | given


#: All fits by name.
CASES: dict[str, Case] = _cases()


def arrays(model: DCRL) -> dict[str, Any]:
    """Return what a fit found, by name: arrays, numbers and texts."""
    return {
        "loadings": model.loadings_,
        "intercept": model.intercept_,
        "dispersion": model.dispersion_,
        "cutpoints": model.cutpoints_,
        "q_matrix": model.q_matrix_,
        "law": law_values(model),
        "graph": str(model.graph_),
        "log_likelihood": model.log_likelihood_,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "trace": model.trace_,
        "names": " ".join(model.latent_names_),
    }


def law_values(model: DCRL) -> np.ndarray:
    """Return the latent law as numbers: joint probabilities, or the tables of a network."""
    law = model.latent_law_
    if hasattr(law, "tables"):
        return np.concatenate([np.ravel(one) for one in law.tables])
    return np.ravel(law.probabilities)
