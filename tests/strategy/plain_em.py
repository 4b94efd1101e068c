"""An independent plain EM for binary items with a given Q, and tables to hold fits against.

It shares no code with the library: every item has a design over the joint states, a saturated law,
random ordered starts, and no acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

#: Largest predictor, and iterations of a run at most.
BOUND, MAX_STEPS = 21.0, 3000


@dataclass(frozen=True)
class Table:
    """Binary responses X (N, J) with a Q-matrix (J, K) and the levels of the latents."""

    X: np.ndarray
    q: np.ndarray
    levels: tuple[int, ...]


def all_states(levels):
    return np.array(list(product(*(range(m) for m in levels))))


def item_designs(q, levels, effects):
    """Return for each item its cells (C, P), the cell of each state (S,), and cells by height (C,).

    Terms are products of indicators ``level >= u``: all of them up to the order of ``effects``, or
    only products of all latents of the item ("dina"), or of their absences ("dino").
    """
    states = all_states(levels)
    if effects == "dino":
        states = np.array(levels) - 1 - states
    designs = []
    for row in q:
        own = np.flatnonzero(row)
        order = {"main": 1, "acdm": 1, "2": 2}.get(effects, len(own))
        sizes = {0, len(own)} if effects in ("dina", "dino") else range(order + 1)
        columns = [
            np.all([states[:, k] >= u for k, u in zip(own, us, strict=True)], axis=0)
            for us in product(*(range(levels[k]) for k in own))
            if np.count_nonzero(us) in sizes
        ]
        design = np.column_stack(columns).astype(float)
        rows, cells = np.unique(design, axis=0, return_inverse=True)
        # Cells in the order in which starts make success more probable.
        height = -rows.sum(axis=1) if effects == "dino" else rows.sum(axis=1)
        designs.append((rows, cells.ravel(), np.argsort(height, kind="stable")))
    return designs


def _newton(rows, beta, right, count, n_steps):
    """Return coefficients of a logistic regression on cells after damped Newton steps."""

    def value(b):
        eta = rows @ b
        return right @ eta - count @ np.logaddexp(0.0, eta)

    now = value(beta)
    for _ in range(n_steps):
        chance = 1.0 / (1.0 + np.exp(-rows @ beta))
        slope = rows.T @ (right - count * chance)
        bend = (rows * (count * chance * (1.0 - chance))[:, None]).T @ rows
        step = np.linalg.solve(bend + 1e-8 * np.eye(len(beta)), slope)
        for _ in range(20):
            there = beta + step
            if np.abs(rows @ there).max() < BOUND and (after := value(there)) >= now:
                beta, now = there, after
                break
            step *= 0.5
    return beta


def plain_em(table, designs, rng, *, gain=1e-6):
    """Return the log-likelihood at which plain EM with a saturated law ends."""
    X, weights = np.unique(table.X, axis=0, return_counts=True)
    n_states = len(designs[0][1])
    members = [np.eye(len(rows))[cells] for rows, cells, _ in designs]
    saturated = [len(rows) == rows.shape[1] for rows, _, _ in designs]
    # Random but ordered: cells with more latents succeed more often.
    etas, betas = [], []
    for rows, _, order in designs:
        ordered = np.empty(len(rows))
        ordered[order] = np.sort(rng.uniform(0.05, 0.95, len(rows)))
        beta = np.linalg.lstsq(rows, np.log(ordered / (1 - ordered)), rcond=None)[0]
        betas.append(beta)
        etas.append(rows @ beta)
    law = rng.dirichlet(np.ones(n_states))
    last = -np.inf
    for _ in range(MAX_STEPS):
        eta = np.stack([m @ e for m, e in zip(members, etas, strict=True)])
        joint = X @ eta - np.logaddexp(0.0, eta).sum(axis=0) + np.log(law)
        top = joint.max(axis=1, keepdims=True)
        posterior = np.exp(joint - top)
        total = posterior.sum(axis=1, keepdims=True)
        value = float(weights @ (np.log(total) + top)[:, 0])
        if value - last < gain:
            break
        last = value
        posterior *= weights[:, None] / total
        count, right = posterior.sum(axis=0), X.T @ posterior
        for j, (rows, _, _) in enumerate(designs):
            seen, hits = count @ members[j], right[j] @ members[j]
            if saturated[j]:
                chance = np.clip(hits / np.maximum(seen, 1e-300), 1e-9, 1 - 1e-9)
                etas[j] = np.log(chance / (1 - chance))
            else:
                betas[j] = _newton(rows, betas[j], hits, seen, 2)
                etas[j] = rows @ betas[j]
        law = np.maximum(count / count.sum(), 1e-300)
    return last


def best_plain_em(table, effects, n_starts):
    """Return the highest log-likelihood of some runs of plain EM."""
    designs = item_designs(table.q, table.levels, effects)
    return max(plain_em(table, designs, np.random.default_rng(s)) for s in range(n_starts))


def random_q(n_items, n_latents, rng):
    """Return a Q-matrix with one pure item of each latent and no empty row."""
    q = np.vstack([np.eye(n_latents), rng.integers(0, 2, (n_items - n_latents, n_latents))])
    q = q.astype(int)
    q[q.sum(axis=1) == 0, 0] = 1
    return q


def draw_table(seed, *, n_rows=400, n_items=14, levels=(2, 2, 2, 2), low=0.2, high=0.85):
    """Return a conjunctive table with correlated latents; ``low`` and ``high`` give its strength.

    With more levels the probability of success rises with the share of levels reached.
    """
    rng = np.random.default_rng(seed)
    n_latents = len(levels)
    q = random_q(n_items, n_latents, rng)
    trait = rng.standard_normal((n_rows, 1)) + 0.5 * rng.standard_normal((n_rows, n_latents))
    states = np.column_stack(
        [
            np.digitize(trait[:, k], np.quantile(trait[:, k], np.arange(1, m) / m))
            for k, m in enumerate(levels)
        ]
    )
    share = states / (np.array(levels) - 1.0)
    able = np.array([share[:, row == 1].min(axis=1) for row in q]).T
    X = (rng.random(able.shape) < low + (high - low) * able).astype(float)
    return Table(X, q, tuple(levels))
