"""Tables of models that hidag does not fit: warnings, stated arrows, and false warnings.

    python benchmarks/misspecification.py --replicates 40 --seed 790001
    python benchmarks/misspecification.py --kinds control,levels --n 500,5000 --given-q

Latents in a random tree, four pure items for each. Kinds of tables: "control" obeys the model,
"levels" has three levels and is fitted with three; "continuous" traits (normal, related as the
tree); "style", a person-level effect with standard deviation .8 on all items ("halfstyle": on the
first half of them); "pairs", three pairs of items that share an effect with standard deviation 1.8
("weakpair": one, with .8); "few", fitted with one latent too few.

Prints the share of tables with the warning that names the cause, with any serious finding, with a
wrong arrow stated (with the checks, and as it would be without them), the SHD of the graph, and the
CPU time relative to fits without checks and probabilities of edges.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import linear_sum_assignment

from hidag import DCRL, evaluate
from hidag.results.claims import claim_level_of, claims_of
from hidag.simulation import Truth, random_law
from hidag.structure import DAG


def random_tree(k: int, rng: np.random.Generator) -> DAG:
    """Return a tree in which each latent but the first has one earlier cause."""
    adjacency = np.zeros((k, k), dtype=np.int8)
    for child in range(1, k):
        adjacency[rng.integers(child), child] = 1
    return DAG(adjacency, tuple(f"Z{i + 1}" for i in range(k)))


def auxiliaries(family: str, n_items: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return dispersions (J,) and cutpoints (J, C) or None."""
    name = family.partition("(")[0]
    dispersion = np.full(n_items, {"beta": 0.15, "gamma": 2.0}.get(name, 1.0))
    if name == "zero-inflated-poisson":
        dispersion[:] = 0.2
    if name == "negative-binomial":
        dispersion[:] = 0.5
    cutpoints = None
    if name == "ordinal":
        n = int(family[len("ordinal(") : -1])
        cutpoints = np.tile(1.2 * np.arange(1, n - 1), (n_items, 1))
    return dispersion, cutpoints


def draw_truth(
    k: int, families: tuple[str, ...], rng: np.random.Generator, levels: int = 2, slope: float = 2.5
) -> Truth:
    """Return a tree of k latents with equally many pure items."""
    dag = random_tree(k, rng)
    n_items = len(families)
    q = np.zeros((n_items, k), dtype=np.int8)
    q[np.arange(n_items), np.arange(n_items) % k] = 1
    factor = {"poisson": 0.4, "gaussian": 0.8, "negative-binomial": 0.5, "gamma": 0.5,
              "zero-inflated-poisson": 0.5, "lognormal": 0.8, "beta": 0.6}  # fmt: skip
    scale = np.array([factor.get(f.partition("(")[0], 1.0) for f in families])
    sizes = scale * slope * rng.uniform(0.8, 1.2, n_items)
    loadings = q * sizes[:, None] / (levels - 1)
    dispersion, cut = np.ones(n_items), None
    for f in set(families):
        own = np.array([g == f for g in families])
        d, c = auxiliaries(f, int(own.sum()))
        dispersion[own] = d
        if c is not None:
            cut = np.full((n_items, c.shape[1]), np.nan) if cut is None else cut
            cut[own, : c.shape[1]] = c
    counts = np.isin([f.partition("(")[0] for f in families],
                     ("poisson", "negative-binomial", "zero-inflated-poisson"))  # fmt: skip
    intercept = np.where(counts, 0.3, -sizes / 2 + rng.normal(0, 0.3, n_items))
    ordinal = np.array([f.startswith("ordinal") for f in families])
    if ordinal.any():
        intercept = intercept + ordinal * 1.2
    law = random_law(dag, levels=(levels,) * k, rng=rng)
    return Truth(q, intercept, loadings, dispersion, families, law, cutpoints=cut)


def draw_table(
    kind: str,
    n: int,
    k: int,
    families: tuple[str, ...],
    rng: np.random.Generator,
    slope: float = 2.5,
):
    """Return values (N, J), the truth of the items and graph."""
    truth = draw_truth(k, families, rng, levels=3 if kind == "levels" else 2, slope=slope)
    items = truth.items
    states = truth.law.sample(n, rng)
    eta = items.predictors(states).T.copy()
    j = eta.shape[1]
    if kind == "continuous":
        adjacency = truth.law.parents
        traits = np.zeros((n, k))
        for child, causes in enumerate(adjacency):
            noise = rng.normal(size=n)
            if causes:
                b = rng.uniform(0.4, 0.7)
                traits[:, child] = b * traits[:, causes[0]] + np.sqrt(1 - b * b) * noise
            else:
                traits[:, child] = noise
        strength = truth.loadings.sum(axis=1)
        eta = items.intercept + strength / 2 + 0.6 * strength * traits[:, np.arange(j) % k]
    if kind in ("style", "halfstyle"):
        over = np.arange(j) < (j if kind == "style" else j // 2)
        eta += 0.8 * rng.normal(size=n)[:, None] * over
    if kind in ("pairs", "weakpair"):
        n_pairs, size = (3, 1.8) if kind == "pairs" else (1, 0.8)
        chosen = rng.permutation(j)[: 2 * n_pairs]
        for p in range(n_pairs):
            # size: SD of a normal effect that the two items share
            shared = size * rng.normal(size=n)
            for a in chosen[2 * p : 2 * p + 2]:
                eta[:, a] += shared
    values = np.empty_like(eta)
    for family, own in items.groups():
        values[:, own] = family.sample(eta[:, own], items.auxiliary(family, own), rng)
    return values, truth


#: Codes that name the cause of each kind of table, and the kinds that obey the model.
TRUE_CODES = {
    "continuous": ("scales-not-levels",),
    "style": ("response-style",),
    "halfstyle": ("response-style",),
    "pairs": ("dependent-pairs",),
    "weakpair": ("dependent-pairs",),
    "few": ("too-few-latents",),
    "control": (),
    "levels": (),
}


@dataclass(frozen=True)
class Cell:
    """A kind of table."""

    kind: str
    n: int
    k: int
    family: str
    given: bool = False
    missing: float = 0.0
    weighted: bool = False


def fit_table(cell: Cell, seed: int, replicate: int) -> dict[str, float]:
    """Return what a fit to one table says, and its CPU times without and with checks."""
    rng = np.random.default_rng((seed, replicate, len(cell.kind), cell.n, cell.k))
    families = (cell.family,) * (4 * cell.k)
    values, truth = draw_table(cell.kind, cell.n, cell.k, families, rng)
    values[rng.random(values.shape) < cell.missing] = np.nan
    weights = rng.integers(1, 4, cell.n).astype(float) if cell.weighted else None
    model = DCRL(
        cell.k - (cell.kind == "few"),
        family=cell.family,
        levels=3 if cell.kind == "levels" else 2,
        q_matrix=truth.q_matrix if cell.given and cell.kind != "few" else None,
        random_state=0,
        checks="none",
        uncertainty="none",
    )
    begin = time.process_time()
    model.fit(values, sample_weight=weights)
    without = time.process_time() - begin
    begin = time.process_time()
    model.set_params(checks="quick", uncertainty="quick").fit(values, sample_weight=weights)
    seconds = time.process_time() - begin
    result = model.result_
    codes = set(result.misfits)
    # Latents of the fit by those of the truth; a fit with fewer latents matches some of them.
    strength = [np.abs(m) / np.maximum(np.linalg.norm(m, axis=0), 1e-12)
                for m in (result.strengths, truth.q_matrix)]  # fmt: skip
    own, true = linear_sum_assignment(-strength[0].T @ strength[1])
    place = {result.latent_names[i]: j for i, j in zip(own, true, strict=True)}
    arrows = {(a, b) for b, causes in enumerate(truth.law.parents) for a in causes}
    level = claim_level_of(result.settings)
    unguarded = claims_of(result.graph, result.edge_probabilities, level)
    stated, before = (
        [(place[c.one], place[c.other]) for c in claims if c.directed]
        for claims in (result.claims(), unguarded)
    )
    shd = np.nan
    if len(place) == truth.law.space.n_latents:
        shd = evaluate(result, truth).shd
    return {
        "true": bool(codes & set(TRUE_CODES[cell.kind])),
        "any": bool(codes),
        "wrong": bool(set(stated) - arrows),
        "wrong_before": bool(set(before) - arrows),
        "shd": shd,
        "seconds": seconds,
        "without": without,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default="control,levels,continuous,style,pairs,few")
    parser.add_argument("--n", default="2000")
    parser.add_argument("--k", default="5")
    parser.add_argument("--families", default="bernoulli")
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=9100)
    parser.add_argument("--given-q", action="store_true")
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--weighted", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | N | K | family | tables | right warning | any warning | wrong arrow stated | "
          "without checks | SHD | CPU ratio |")  # fmt: skip
    print("|" + "---|" * 11)
    cells = product(given.kinds.split(","), given.n.split(","), given.k.split(","),
                    given.families.split(";"))  # fmt: skip
    fit_table(Cell("control", 500, 3, "bernoulli"), given.seed, 0)  # compiles the loops
    for kind, n, k, family in cells:
        more = (given.given_q, given.missing, given.weighted)
        cell = Cell(kind, int(n), int(k), family, *more)
        found = [fit_table(cell, given.seed, one) for one in range(given.replicates)]
        share = {name: np.mean([one[name] for one in found]) for name in found[0]}
        right = f"{share['true']:.2f}" if TRUE_CODES[kind] else ""
        shd = "" if np.isnan(share["shd"]) else f"{share['shd']:.1f}"
        print(
            f"| {kind} | {n} | {k} | {family} | {len(found)} | {right} | {share['any']:.2f} | "
            f"{share['wrong']:.2f} | {share['wrong_before']:.2f} | {shd} | "
            f"{share['seconds'] / share['without']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
