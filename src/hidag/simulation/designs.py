"""The simulation designs of the paper, as printed in its text and as run by its research code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import Choices, invalid_setting
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.simulation.generators import (
    banded_q,
    chain_dag,
    dag_from_parents,
    random_law,
    spread_slopes,
    tree_dag,
)
from hidag.simulation.truth import Seed, Truth, check_length

Design = Literal["text", "research-code"]
Parents = tuple[tuple[int, ...], ...]

_MODEL_8_TOP: Parents = ((), (0,), (0,), (1,), (1,), (2,), (2,))

#: Latent graphs of the paper's figures, as 0-based parents of each latent.
GRAPHS: dict[str, Parents] = {
    "Chain-5": chain_dag(5).parents,
    "Tree-5": tree_dag(5).parents,
    "Model-5": dag_from_parents([(), (0,), (), (2, 4), ()]).parents,
    "Chain-10": chain_dag(10).parents,
    "Tree-10": tree_dag(10).parents,
    "Model-7": ((), (0,), (0,), (1, 2), (1, 2), (3,), (4,)),
    "Model-8": (*_MODEL_8_TOP, (4, 5)),
    "Model-13": (*_MODEL_8_TOP, *((3, 4),) * 3, *((5, 6),) * 3),
}

#: In the research code the last latent of Model-8 has the parents Z5 and Z7, not Z5 and Z6.
RESEARCH_CODE_GRAPHS: dict[str, Parents] = {**GRAPHS, "Model-8": (*_MODEL_8_TOP, (4, 6))}

#: Bandwidths of the paper's two Q-matrices.
BANDWIDTHS: dict[str, int] = {"Q1": 1, "Q2": 2}

#: Intercept and sum of slopes by family.
COEFFICIENTS: dict[str, dict[str, tuple[float, float]]] = {
    "text": {
        "gaussian": (-1.0, 3.0),
        "lognormal": (-1.0, 3.0),
        "poisson": (1.0, 2.0),
        "poisson-identity": (1.0, 2.0),
        "bernoulli": (1.0, 2.0),
    },
}
#: Only Bernoulli items differ: as printed, P(X = 1) is from .73 to .95, which is uninformative.
COEFFICIENTS["research-code"] = {**COEFFICIENTS["text"], "bernoulli": (-1.0, 3.0)}

#: Variants of the items: arguments of `design` by name. With the paper's equal slopes an item of
#: two latents has three means and one of three latents has four, so that methods which count
#: mixture components cannot infer its number of latents. "distinct" slopes give every state its own
#: mean. The means of a Gaussian item of three latents are then .43 apart, which noise of variance 1
#: conceals; "distinct-quiet" has noise of standard deviation .1, so that they can be counted.
ITEM_VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "distinct": {"slope_ratio": 2.0},
    "distinct-quiet": {"slope_ratio": 2.0, "dispersion": 0.01},
}

#: Ranges of P(child = 1) given two parents: both 0, both 1, and the two mixed states.
BOTH_ZERO, BOTH_ONE, MIXED_LOW, MIXED_HIGH = (0.20, 0.25), (0.60, 0.65), (0.35, 0.40), (0.77, 0.82)


def _table(one: ArrayLike) -> NDArray[np.float64]:
    """Return the conditional table of a binary latent from P(child = 1 | parents)."""
    p = np.asarray(one, dtype=np.float64)
    return np.stack([1.0 - p, p], axis=-1)


def _either(rng: np.random.Generator, low: tuple[float, float], high: tuple[float, float]) -> float:
    return float(rng.uniform(*(low if rng.random() < 0.5 else high)))


def _text_tables(parents: Parents, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Return tables drawn separately for each child (Supplement, Simulation Setup Details).

    The text does not assign the two ranges to the mixed states: a fair coin does.
    """
    tables = []
    for causes in parents:
        if not causes:
            tables.append(_table(0.5))
        elif len(causes) == 1:
            p = _either(rng, (0.30, 0.35), (0.65, 0.70))
            tables.append(_table([1.0 - p, p]))
        else:
            mixed = [rng.uniform(*MIXED_LOW), rng.uniform(*MIXED_HIGH)]
            if rng.random() < 0.5:
                mixed.reverse()
            zero, one = rng.uniform(*BOTH_ZERO), rng.uniform(*BOTH_ONE)
            tables.append(_table([[zero, mixed[0]], [mixed[1], one]]))
    return tables


def _chain_tables(parents: Parents, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Return the research code's tables for a chain: both conditionals drawn separately."""
    tables = [_table(0.5)]
    for _ in parents[1:]:
        pair = [rng.uniform(0.35, 0.40), rng.uniform(0.60, 0.65)]
        if rng.random() < 0.5:
            pair.reverse()
        tables.append(_table(pair))
    return tables


def _tree_tables(parents: Parents, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Return the research code's tables for a tree: one draw for all children of a parent."""
    tables = [_table(0.5)]
    drawn: dict[int, float] = {}
    for causes in parents[1:]:
        if causes[0] not in drawn:
            drawn[causes[0]] = _either(rng, (0.35, 0.40), (0.60, 0.65))
        p = drawn[causes[0]]
        tables.append(_table([1.0 - p, p]))
    return tables


def _model_tables(parents: Parents, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Return the research code's tables for other models: one draw for the whole network."""
    p = rng.uniform(0.65, 0.70)
    zero, one = rng.uniform(*BOTH_ZERO), rng.uniform(*BOTH_ONE)
    low, high = rng.uniform(*MIXED_LOW), rng.uniform(*MIXED_HIGH)
    tables = []
    for k, causes in enumerate(parents):
        if not causes:
            tables.append(_table(0.5))
        elif len(causes) == 1:
            # In the figures Z2, Z4 and Z6 are on the left, Z3, Z5 and Z7 on the right.
            at_one = p if k % 2 == 1 else 1.0 - p
            tables.append(_table([1.0 - at_one, at_one]))
        else:
            # First axis: the parent with the smaller number; (1,0) has the low range.
            tables.append(_table([[zero, high], [low, one]]))
    return tables


def design_law(model: str, *, design: Design = "text", rng: Seed = None) -> NetworkLaw:
    """Return the latent network of one of the paper's models, by its key in ``GRAPHS``."""
    if model not in GRAPHS:
        raise invalid_setting("model", Choices(tuple(GRAPHS)), model)
    if design not in COEFFICIENTS:
        raise invalid_setting("design", Choices(tuple(COEFFICIENTS)), design)
    generator = np.random.default_rng(rng)
    if design == "text":
        parents = GRAPHS[model]
        tables = _text_tables(parents, generator)
    else:
        parents = RESEARCH_CODE_GRAPHS[model]
        draw = {"Chain": _chain_tables, "Tree": _tree_tables}.get(
            model.split("-")[0], _model_tables
        )
        tables = draw(parents, generator)
    return NetworkLaw(StateSpace.binary(len(parents)), parents, tuple(tables))


def make_truth(
    law: NetworkLaw,
    q_matrix: ArrayLike,
    family: str | Sequence[str] = "gaussian",
    *,
    coefficients: Design = "research-code",
    slope_ratio: float = 1.0,
    dispersion: float = 1.0,
    rng: Seed = None,
) -> Truth:
    """Return a truth whose items have the paper's coefficients for their families.

    Parameters
    ----------
    law : NetworkLaw
        Each level of a latent adds the same step. With more than two levels, the predictors of
        Bernoulli items keep their centre.
    q_matrix : array of 0 and 1, shape (J, K)
    family : str or sequence of str, length J
    coefficients : {"text", "research-code"}
        They differ for Bernoulli items only: (intercept, sum of slopes) is (1, 2) or (-1, 3).
    slope_ratio, dispersion, rng
        As in `design`.
    """
    q = np.asarray(q_matrix, dtype=np.int8)
    families = (family,) * len(q) if isinstance(family, str) else tuple(family)
    if coefficients not in COEFFICIENTS:
        raise invalid_setting("coefficients", Choices(tuple(COEFFICIENTS)), coefficients)
    table = COEFFICIENTS[coefficients]
    for name in families:
        if name not in table:
            raise invalid_setting("family", Choices(tuple(table)), name)
    check_length(families, len(q), "items", "families")
    numbers = np.array([table[name] for name in families])
    loadings = spread_slopes(q, numbers[:, 1], ratio=slope_ratio, rng=rng)
    intercept = numbers[:, 0].copy()
    # Centred, because with further levels nearly all responses would be 1.
    beyond = loadings @ (np.array(law.space.levels) - 2) / 2
    binary = np.array([name == "bernoulli" for name in families])
    intercept[binary] -= beyond[binary]
    return Truth(q, intercept, loadings, np.full(len(q), dispersion), families, law)


def design(
    model: str,
    q: str = "Q1",
    family: str = "gaussian",
    *,
    design: Design = "text",
    slope_ratio: float = 1.0,
    dispersion: float = 1.0,
    levels: int | Sequence[int] = 2,
    rng: Seed = None,
) -> Truth:
    """Return the truth of one cell of the paper's simulation studies, with random tables.

    Parameters
    ----------
    model : str
        "Chain-5", "Tree-5", "Model-5", "Chain-10", "Tree-10", "Model-7", "Model-8", "Model-13".
    q : {"Q1", "Q2"}
        The Q-matrix, shape (3K, K).
    family : str
        "bernoulli", "poisson", "gaussian" or "lognormal". "poisson" has the log link in the text
        design and the identity link in the research code; "poisson-identity" always has the latter.
    design : {"text", "research-code"}
        The design printed in the paper, or the one that produced its numbers. They differ in the
        conditional tables, the parents of the last latent of Model-8, the coefficients of
        Bernoulli items and the link of Poisson items.
    slope_ratio : float
        1 for the paper's equal slopes; 2 gives every state of an item's latents a different mean,
        as a fair comparison with methods that count mixture components requires.
    dispersion : float
        Variance of gaussian items and of the logarithm of lognormal items, 1 in the paper.
    levels : int or sequence of int, length K
        If any is above 2, the tables are drawn by `random_law`; the paper has binary latents only.
    rng : int, SeedSequence, Generator or None
    """
    if q not in BANDWIDTHS:
        raise invalid_setting("q", Choices(tuple(BANDWIDTHS)), q)
    generator = np.random.default_rng(rng)
    law = design_law(model, design=design, rng=generator)
    n_latents = law.space.n_latents
    each = (levels,) * n_latents if isinstance(levels, int) else tuple(levels)
    if len(each) != n_latents or any(m < 2 for m in each):
        expected = (
            f"a whole number from 2 up, or {n_latents} of them (one for each latent of {model})"
        )
        raise invalid_setting("levels", expected, levels)
    if max(each) > 2:
        law = random_law(dag_from_parents(law.parents), levels=each, rng=generator)
    if design == "research-code" and family == "poisson":
        family = "poisson-identity"
    return make_truth(
        law,
        banded_q(n_latents, BANDWIDTHS[q]),
        family,
        coefficients=design,
        slope_ratio=slope_ratio,
        dispersion=dispersion,
        rng=generator,
    )
