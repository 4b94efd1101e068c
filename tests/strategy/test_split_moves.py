"""Split moves: detection of merged latents, start points of splits, and their results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em.em import run_em
from hidag.kernels.coordinate_descent import FREE
from hidag.latent.laws import factorise_counts
from hidag.measurement import NO_SPARSITY
from hidag.strategy.moves.recombination import run_to_convergence
from hidag.strategy.moves.split_moves import (
    promising_splits,
    residual_correlations,
    start_of_split,
    try_splits,
)
from hidag.strategy.structural_em import Candidate

from .problems import drawn, silent

#: Four items for each of three latents of a chain.
Q = np.repeat(np.eye(3, dtype=np.int8), 4, axis=0)
MERGED = ((), (), (0,))


@pytest.fixture(scope="module")
def merged():
    """Return a problem, its true items, and an estimate in which latent 0 stands for 0 and 1."""
    problem, items, _ = drawn(Q, 3000, 8)
    loadings = items.loadings.copy()
    loadings[:, 0] += loadings[:, 1]
    loadings[:, 1] = 0.0
    allowed = problem.allowed.copy()
    allowed[:, 1:] *= loadings != 0
    schedule = replace(problem.schedule, max_iter=60)
    found = run_em(
        replace(problem, allowed=allowed, penalty=NO_SPARSITY, schedule=schedule),
        replace(items, loadings=loadings),
        np.full(8, 1 / 8),
        law_step=lambda counts: factorise_counts(counts, MERGED, problem.space),
    )
    return problem, items, found


def end_of(problem, found, parents=MERGED):
    return run_to_convergence(Candidate(found, found, parents, problem.data, 0.0), problem, silent)


def test_merged_latent_leaves_residual_correlations(merged):
    problem, _, found = merged
    law = found.probabilities / found.probabilities.sum()
    residual = residual_correlations(found.parameters, problem.data, problem.basis.design, law)
    pairs = np.triu_indices(4, 1)
    same = np.concatenate([residual[:4, :4][pairs], residual[4:8, 4:8][pairs]])
    assert same.mean() > residual[:4, 4:8].mean() + 0.05
    assert np.abs(residual[8:, 8:]).max() < 0.05
    assert (np.diag(residual) == 0).all()


def test_split_of_a_merged_latent_separates_its_parts(merged):
    problem, _, found = merged
    idle, splits = promising_splits(found, problem)
    assert idle == 1
    assert splits[0].latent == 0
    assert set(splits[0].leaving) in ({0, 1, 2, 3}, {4, 5, 6, 7})
    assert splits[0].excess > 2 * splits[1].excess


def test_start_of_a_split_has_two_parts_and_keeps_other_latents(merged):
    problem, _, found = merged
    idle, splits = promising_splits(found, problem)
    items, law = start_of_split(found, splits[0], idle, problem)
    leaving = splits[0].leaving
    assert (items.loadings[leaving, 1] == found.parameters.loadings[leaving, 0]).all()
    assert (items.loadings[leaving, 0] == 0).all()
    assert (items.loadings[:, 2] == found.parameters.loadings[:, 2]).all()
    assert law.sum() == pytest.approx(1)
    cube, before = law.reshape(2, 2, 2), found.probabilities.reshape(2, 2, 2)
    assert cube.sum(axis=(0, 1)) == pytest.approx(before.sum(axis=(0, 1)), abs=0.06)
    # Both parts mostly have the same level.
    parts = cube.sum(axis=2)
    assert parts[0, 0] + parts[1, 1] > parts[0, 1] + parts[1, 0]


def test_splits_recover_merged_latents(merged):
    problem, _, found = merged
    end = end_of(problem, found)
    # The merged end has an unused latent, which has a cost.
    assert (end.estimate.parameters.q_matrix.sum(axis=0) < 2).sum() == 1
    better = try_splits(end, problem, silent)
    assert better.criterion > end.criterion + CONFIG.recombination.unused_latent_cost
    columns = {tuple(np.flatnonzero(column)) for column in better.estimate.parameters.q_matrix.T}
    assert columns == {(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)}


def test_end_without_improving_splits_is_returned(merged):
    problem, items, _ = merged
    law = np.full(8, 1 / 8)
    right = run_em(problem, items, law)
    end = end_of(problem, right, ((), (0,), (1,)))
    assert try_splits(end, problem, silent) is end


def test_latents_with_given_entries_are_not_split(merged):
    problem, _, found = merged
    allowed = problem.allowed.copy()
    allowed[0, 1:] = FREE
    assert promising_splits(found, replace(problem, allowed=allowed))[1] == []
    untouched = end_of(problem, found)
    off = replace(problem, penalty=NO_SPARSITY)
    assert try_splits(untouched, off, silent) is untouched
