"""The paper's simulation designs, as printed and as run by its research code, and generators.

Generators make latent graphs, conditional tables, Q-matrices and loadings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import Choices, SettingError, invalid_setting
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.terms import Effects
from hidag.simulation.truth import Seed, Truth, check_length
from hidag.structure.graphs import DAG

Design = Literal["text", "research-code"]
Parents = tuple[tuple[int, ...], ...]
Tables = list[NDArray[np.float64]]


#: The DAG in which latent k has the parents ``parents[k]`` (0-based).
dag_from_parents = DAG.from_parents


def chain_dag(n_latents: int) -> DAG:
    """Return the chain Z1 -> Z2 -> ... -> ZK, K = ``n_latents``."""
    return tree_dag(n_latents, branching=1)


def tree_dag(n_latents: int, branching: int = 2) -> DAG:
    """Return the tree of ``n_latents``, filled by row, with up to ``branching`` children each."""
    if n_latents < 1 or branching < 1:
        text = "a tree needs at least 1 latent and 1 branch, got n_latents={n_latents} and "
        text += "branching={branching}"
        raise SettingError("invalid-tree", text, {"n_latents": n_latents, "branching": branching})
    return dag_from_parents([() if k == 0 else ((k - 1) // branching,) for k in range(n_latents)])


def random_dag(n_latents: int, average_parents: float, *, rng: Seed = None) -> DAG:
    """Return a random DAG of ``n_latents``; ``rng`` is a seed or a Generator.

    A latent has ``average_parents`` on average, at most (n_latents - 1) / 2.
    """
    most = (n_latents - 1) / 2
    if not 0 <= average_parents <= most:
        expected = f"from 0 to {most:g} for {n_latents} latents"
        raise invalid_setting("average_parents", expected, average_parents)
    generator = np.random.default_rng(rng)
    probability = average_parents / most if most > 0 else 0.0
    joined = np.triu(generator.random((n_latents, n_latents)) < probability, k=1)
    order = generator.permutation(n_latents)
    adjacency = np.zeros((n_latents, n_latents), dtype=np.int8)
    adjacency[np.ix_(order, order)] = joined
    return DAG(adjacency)


def random_law(
    dag: DAG,
    *,
    rng: Seed = None,
    levels: Sequence[int] | None = None,
    effects: tuple[float, float] = (1.2, 2.0),
    root_probability: tuple[float, float] = (0.5, 0.5),
) -> NetworkLaw:
    """Return a law with random conditional tables on a graph.

    The adjacent-category log-odds of a latent are the sum of its parents' effects times their
    levels, centred so that no level is rare. Each effect has a magnitude drawn uniformly from
    ``effects`` and a random sign. With one binary parent an effect of 1.7 gives probabilities of
    .30 and .70.

    Parameters
    ----------
    dag : DAG
    rng : int, SeedSequence, Generator or None
    levels : sequence of int, length K, optional
        Number of levels of each latent; default binary.
    effects : (float, float)
        Range of the magnitudes; the levels of a parent together span one effect.
    root_probability : (float, float)
        Range of P(Z = 1) for binary latents without parents; other roots are uniform.
    """
    if not 0 <= effects[0] <= effects[1]:
        raise invalid_setting("effects", "a range (low, high) with 0 <= low", effects)
    if not 0 < root_probability[0] <= root_probability[1] < 1:
        raise invalid_setting("root_probability", "a range inside (0, 1)", root_probability)
    space = StateSpace.binary(dag.n_variables) if levels is None else StateSpace(tuple(levels))
    check_length(space.levels, dag.n_variables, "latents", "levels")
    generator = np.random.default_rng(rng)
    tables = []
    for k, parents in enumerate(dag.parents):
        n_levels = space.levels[k]
        if not parents:
            one = generator.uniform(*root_probability)
            root = [1 - one, one] if n_levels == 2 else [1 / n_levels] * n_levels
            tables.append(np.array(root))
            continue
        magnitude = generator.uniform(*effects, size=len(parents))
        effect = magnitude * generator.choice((-1.0, 1.0), size=len(parents))
        shape = tuple(space.levels[a] for a in parents)
        position = np.indices(shape).reshape(len(parents), -1) / (np.array(shape)[:, None] - 1)
        score = (effect @ (position - 0.5)).reshape(shape)
        weight = np.exp(score[..., None] * np.arange(n_levels))
        tables.append(weight / weight.sum(axis=-1, keepdims=True))
    return NetworkLaw(space, dag.parents, tuple(tables))


def banded_q(n_latents: int, bandwidth: int) -> NDArray[np.int8]:
    """Return the paper's Q, (3K, K) for K = ``n_latents``: a band on two identities.

    The band has a ``bandwidth`` of 1 (the paper's Q1) or 2 (Q2).
    """
    if n_latents < 1 or bandwidth < 0:
        text = "a banded Q needs at least 1 latent and a bandwidth >= 0, got n_latents={n_latents} "
        text += "and bandwidth={bandwidth}"
        raise SettingError("invalid-band", text, {"n_latents": n_latents, "bandwidth": bandwidth})
    index = np.arange(n_latents)
    band = np.abs(index[:, None] - index[None, :]) <= bandwidth
    identity = np.eye(n_latents, dtype=bool)
    return np.vstack([band, identity, identity]).astype(np.int8)


def random_q(
    n_items: int,
    n_latents: int,
    *,
    pure_share: float = 2 / 3,
    max_parents: int = 3,
    rng: Seed = None,
) -> NDArray[np.int8]:
    """Return a random Q-matrix, shape (J, K).

    Pure items (one latent each) come last and cycle through the latents, so that their numbers
    differ by at most one. The first latent of the other items cycles likewise.

    Parameters
    ----------
    n_items, n_latents : int, J and K
    pure_share : float, share of pure items
    max_parents : int, the other items measure 2 to ``max_parents`` latents
    rng : int, SeedSequence, Generator or None
    """
    if n_items < n_latents:
        text = "every latent needs an item: {n_latents} latents, but only {n_items} items"
        raise SettingError("too-few-items", text, {"n_latents": n_latents, "n_items": n_items})
    if not 0 <= pure_share <= 1:
        raise invalid_setting("pure_share", "from 0 to 1", pure_share)
    n_pure = round(pure_share * n_items)
    if n_pure < n_items and not 2 <= max_parents <= n_latents:
        expected = f"from 2 to {n_latents}, because items that are not pure measure several latents"
        raise invalid_setting("max_parents", expected, max_parents)
    generator = np.random.default_rng(rng)
    out = np.zeros((n_items, n_latents), dtype=np.int8)
    # The cycle runs through both kinds of items, so that J >= K items cover every latent.
    out[np.arange(n_items), np.arange(n_items) % n_latents] = 1
    for row in out[: n_items - n_pure]:
        others = np.flatnonzero(row == 0)
        n_more = generator.integers(1, max_parents)
        row[generator.choice(others, size=n_more, replace=False)] = 1
    return out


def spread_slopes(
    q_matrix: ArrayLike, total: ArrayLike, *, ratio: float = 1.0, rng: Seed = None
) -> NDArray[np.float64]:
    """Return loadings, shape (J, K), with given sums over the latents of each item.

    Parameters
    ----------
    q_matrix : array of 0 and 1, shape (J, K)
    total : array, shape (J,), sums of the loadings
    ratio : float
        Ratio of successive slopes of an item: 1 makes them equal, as in the paper; with 2 every
        subset of an item's latents has a different mean.
    rng : int, SeedSequence, Generator or None, assigns slopes to latents
    """
    q = np.asarray(q_matrix)
    if ratio <= 0:
        raise invalid_setting("ratio", "> 0", ratio)
    sums = np.broadcast_to(np.asarray(total, dtype=np.float64), (q.shape[0],))
    generator = np.random.default_rng(rng)
    out = np.zeros(q.shape)
    for j, row in enumerate(q):
        latents = np.flatnonzero(row)
        if ratio != 1.0:
            latents = generator.permutation(latents)
        weight = ratio ** np.arange(len(latents))
        out[j, latents] = sums[j] * weight / weight.sum() if len(latents) else 0.0
    return out


# The designs of the paper.

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

BANDWIDTHS: dict[str, int] = {"Q1": 1, "Q2": 2}  # Bandwidths of the paper's two Q-matrices.

#: Intercept and sum of slopes by family.
COEFFICIENTS: dict[str, dict[str, tuple[float, float]]] = {
    "text": {
        **dict.fromkeys(("gaussian", "lognormal"), (-1.0, 3.0)),
        **dict.fromkeys(("poisson", "poisson-identity", "bernoulli"), (1.0, 2.0)),
    }
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


def _text_tables(parents: Parents, rng: np.random.Generator) -> Tables:
    """Return tables drawn for each child (Supplement); a coin assigns ranges to mixed states."""
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


def _chain_tables(parents: Parents, rng: np.random.Generator) -> Tables:
    """Return the research code's tables for a chain: both conditionals drawn separately."""
    tables = [_table(0.5)]
    for _ in parents[1:]:
        pair = [rng.uniform(0.35, 0.40), rng.uniform(0.60, 0.65)]
        if rng.random() < 0.5:
            pair.reverse()
        tables.append(_table(pair))
    return tables


def _tree_tables(parents: Parents, rng: np.random.Generator) -> Tables:
    """Return the research code's tables for a tree: one draw for all children of a parent."""
    tables = [_table(0.5)]
    drawn: dict[int, float] = {}
    for causes in parents[1:]:
        if causes[0] not in drawn:
            drawn[causes[0]] = _either(rng, (0.35, 0.40), (0.60, 0.65))
        p = drawn[causes[0]]
        tables.append(_table([1.0 - p, p]))
    return tables


def _model_tables(parents: Parents, rng: np.random.Generator) -> Tables:
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
    """Return the latent network of one of the paper's models.

    Parameters
    ----------
    model : str, "Chain-5" or another name in `design`
    design, rng : as in :func:`hidag.design`
    """
    if model not in GRAPHS:
        raise invalid_setting("model", Choices(tuple(GRAPHS)), model)
    if design not in COEFFICIENTS:
        raise invalid_setting("design", Choices(tuple(COEFFICIENTS)), design)
    generator = np.random.default_rng(rng)
    parents, draw = GRAPHS[model], _text_tables
    if design == "research-code":
        kinds = {"Chain": _chain_tables, "Tree": _tree_tables}
        parents, draw = RESEARCH_CODE_GRAPHS[model], kinds.get(model.split("-")[0], _model_tables)
    return NetworkLaw(StateSpace.binary(len(parents)), parents, tuple(draw(parents, generator)))


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

    Returns
    -------
    Truth
        Q, coefficients, latent distribution and graph of the cell.

    Examples
    --------
    >>> import hidag
    >>> truth = hidag.design("Tree-5", "Q1", "gaussian", rng=1)
    >>> truth
    Truth(15 items, 5 latents)
    """
    if q not in BANDWIDTHS:
        raise invalid_setting("q", Choices(tuple(BANDWIDTHS)), q)
    generator = np.random.default_rng(rng)
    law = design_law(model, design=design, rng=generator)
    n_latents = law.space.n_latents
    each = (levels,) * n_latents if isinstance(levels, int) else tuple(levels)
    if len(each) != n_latents or any(m < 2 for m in each):
        each_of = f"{n_latents} of them (one for each latent of {model})"
        expected = f"a whole number from 2 up, or {each_of}"
        raise invalid_setting("levels", expected, levels)
    if max(each) > 2:
        law = random_law(dag_from_parents(law.parents), levels=each, rng=generator)
    if design == "research-code" and family == "poisson":
        family = "poisson-identity"
    items: dict[str, Any] = {"slope_ratio": slope_ratio, "dispersion": dispersion}
    q_matrix = banded_q(n_latents, BANDWIDTHS[q])
    return make_truth(law, q_matrix, family, coefficients=design, rng=generator, **items)


#: Mean step of the linear predictor from one level to the next.
STEPS = {"gaussian": 1.5, "lognormal": 1.5, "bernoulli": 2.0, "poisson": 0.8}
#: Families whose predictors are centred, because the link saturates at both ends.
CENTRED = frozenset({"bernoulli"})
UNEVENNESS = 0.3  # Relative half-width of the uniform distribution of the steps.


def random_truth(
    law: NetworkLaw,
    q_matrix: ArrayLike,
    family: str | Sequence[str] = "gaussian",
    *,
    effects: str | int = "main",
    dispersion: float = 1.0,
    rng: Seed = None,
) -> Truth:
    """Return a truth with random loadings, different for every level and every interaction.

    Parameters
    ----------
    law : NetworkLaw
        Its latents may have any number of levels.
    q_matrix : array of 0 and 1, shape (J, K)
    family : str or sequence of str, length J
        "gaussian", "lognormal", "bernoulli" or "poisson".
    effects : {"main", "all", "dina"} or int
        Main effects only; all interactions as well, or those up to an order; or only the
        interaction of all latents of an item, twice as large.
    dispersion : float
        Variance of gaussian items and of the logarithm of lognormal items.
    rng : int, SeedSequence, Generator or None
        Loadings are uniform within 30 % of their mean.
    """
    q = np.asarray(q_matrix, dtype=np.int8)
    families = (family,) * len(q) if isinstance(family, str) else tuple(family)
    for name in families:
        if name not in STEPS:
            raise invalid_setting("family", Choices(tuple(STEPS)), name)
    wanted = Effects.of(effects)
    if wanted.reversed:
        raise invalid_setting("effects", Choices(("main", "all", "dina"), "an order"), effects)
    terms = wanted.terms(q, law.space.levels)
    generator = np.random.default_rng(rng)
    size = np.array([STEPS[name] for name in families])[:, None]
    uneven = generator.uniform(1.0 - UNEVENNESS, 1.0 + UNEVENNESS, (len(q), terms.n_terms))
    loadings = np.where(wanted.support(terms, q), size * uneven, 0.0)
    if wanted.conjunctive:
        alone = (q != 0).sum(axis=1, keepdims=True) == 1
        loadings *= np.where(alone, 1.0, 2.0)
    # Centred: the lowest and highest predictor of an item have opposite values.
    middle = 0.5 * loadings.sum(axis=1)
    intercept = np.where([name in CENTRED for name in families], -middle, 0.0)
    return Truth(q, intercept, loadings, np.full(len(q), dispersion), families, law, terms=terms)
