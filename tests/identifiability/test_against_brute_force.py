"""Verdicts against trying everything out."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from hidag import check_identifiability
from hidag.identifiability.blocks import find_blocks, items_per_block
from hidag.identifiability.certificate import Certificate
from hidag.identifiability.strict_conditions import min_separating_latents, outside_identity_blocks

from .brute_force import (
    all_matrices,
    fewest_items,
    has_blocks,
    no_column_contains_another,
    strict_by_all_effects,
    strict_by_main_effects,
)


def random_matrices(n: int, seed: int, most_latents: int = 3, most_items: int = 8):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        shape = rng.integers(1, most_items + 1), rng.integers(1, most_latents + 1)
        yield (rng.random(shape) < rng.uniform(0.2, 0.95)).astype(int)


def witness_is_right(q: np.ndarray, levels: list[int]) -> bool:
    """Return whether there are blocks; fail if the rows that are given do not fulfil it."""
    per_block = items_per_block(levels)
    search = find_blocks(q.astype(bool), per_block)
    if search.blocks is None:
        assert search.exact
        return False
    blocks = search.blocks
    used = [j for half in (blocks.first, blocks.second) for own in half for j in own]
    assert len(set(used)) == len(used) == 2 * per_block.sum()
    for k in range(q.shape[1]):
        assert len(blocks.first[k]) == len(blocks.second[k]) == per_block[k]
        assert q[[*blocks.first[k], *blocks.second[k], blocks.third[k]], k].all()
        assert blocks.third[k] not in used
    return True


@pytest.mark.parametrize("n_items", range(1, 9))
def test_blocks_of_all_matrices_with_two_latents(n_items) -> None:
    for q in all_matrices(2, n_items):
        assert witness_is_right(q, [2, 2]) == has_blocks(q, [2, 2]), q


def test_blocks_of_random_matrices_with_up_to_four_latents() -> None:
    seen = Counter()
    for q in random_matrices(1500, seed=3, most_latents=4, most_items=11):
        levels = [2] * q.shape[1]
        expected = has_blocks(q, levels)
        assert witness_is_right(q, levels) == expected, q
        seen[expected] += 1
    assert min(seen[True], seen[False]) > 200


def test_blocks_of_latents_with_up_to_five_levels() -> None:
    rng = np.random.default_rng(4)
    seen = Counter()
    for q in random_matrices(1500, seed=5, most_latents=3, most_items=12):
        levels = rng.integers(2, 6, size=q.shape[1]).tolist()
        expected = has_blocks(q, levels)
        assert witness_is_right(q, levels) == expected, (q, levels)
        seen[expected] += 1
    assert min(seen[True], seen[False]) > 100


def test_verdicts_of_random_matrices() -> None:
    rng = np.random.default_rng(6)
    seen: dict[str, Counter] = {"main": Counter(), "all": Counter()}
    for q in [*random_matrices(500, seed=7, most_items=9), *with_pure_items(500, seed=8)]:
        blocks = has_blocks(q, [2] * q.shape[1])
        generic = {"main": blocks, "all": blocks and no_column_contains_another(q)}
        strict = {
            "main": strict_by_main_effects(q, rng),
            "all": strict_by_all_effects(q, rng),
        }
        for effects in ("main", "all"):
            found = check_identifiability(q, effects=effects)
            if q.sum(axis=1).max() <= 1:  # no room for interactions: all effects are main effects
                assert found.generic == generic["main"], q
            else:
                assert found.generic == generic[effects], (effects, q)
            assert found.strict is strict[effects], (effects, q)
            seen[effects][found.strict, found.generic] += 1
    for effects in ("main", "all"):
        for verdict in ((True, True), (None, True), (False, True), (False, False)):
            assert seen[effects][verdict] >= 5, (effects, seen)
        assert not seen[effects][True, False] + seen[effects][None, False]


def with_pure_items(n: int, seed: int):
    """Yield matrices that contain two identity blocks, with rows of any kind beside them."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        n_latents = int(rng.integers(1, 4))
        rest = (rng.random((rng.integers(0, 4), n_latents)) < rng.uniform(0.3, 0.9)).astype(int)
        yield rng.permutation(np.vstack([np.eye(n_latents, dtype=int)] * 2 + [rest]))


def test_levels_beyond_two_need_the_subset_condition_whatever_the_effects() -> None:
    rng = np.random.default_rng(9)
    seen = Counter()
    for q in random_matrices(300, seed=10, most_items=12):
        levels = rng.integers(2, 5, size=q.shape[1]).tolist()
        if set(levels) == {2}:
            continue
        expected = has_blocks(q, levels) and no_column_contains_another(q)
        for effects in ("main", 2, "all"):
            found = check_identifiability(q, levels=levels, effects=effects)
            assert found.generic is expected, (q, levels)
            assert found.strict is (None if q.any(axis=0).all() else False)
        seen[expected] += 1
    assert min(seen[True], seen[False]) > 30


@pytest.mark.parametrize("effects", ["main", "all"])
def test_the_advice_is_enough_and_nothing_smaller_is_if_it_says_so(effects) -> None:
    seen, n_fewest = Counter(), 0
    for q in random_matrices(250, seed=11, most_items=9):
        found = check_identifiability(q, effects=effects)
        if found.generic:
            assert not found.additions
            continue
        subset = found.finding("subset").required
        assert check_identifiability(with_additions(q, found), effects=effects).generic, q
        n_fewest += found.fewest
        most = len(found.additions) - 1
        if found.fewest and most <= 3:
            smaller = fewest_items(q, [2] * q.shape[1], subset=subset, most=most)
            assert smaller is None, (q, found.additions)
        seen[len(found.additions)] += 1
    assert min(seen[n] for n in (1, 2, 3, 4)) > 5
    assert n_fewest > 0.85 * seen.total()


def with_additions(q: np.ndarray, found: Certificate) -> np.ndarray:
    names = found.design.latent_names
    return np.vstack([q, *([int(name in new) for name in names] for new in found.additions)])


def test_orders_of_rows_and_columns_change_no_verdict() -> None:
    rng = np.random.default_rng(12)
    for q in random_matrices(60, seed=13, most_latents=4, most_items=12):
        turned = q[rng.permutation(len(q))][:, rng.permutation(q.shape[1])]
        for effects in ("main", "all"):
            one = check_identifiability(q, effects=effects)
            other = check_identifiability(turned, effects=effects)
            assert (one.strict, one.generic) == (other.strict, other.generic)
            # The advice is greedy: another order of the latents may need one item more.
            assert abs(len(one.additions) - len(other.additions)) <= 1


def test_the_advice_for_the_strict_guarantee_is_enough_and_nothing_smaller_is() -> None:
    rng = np.random.default_rng(14)
    seen = Counter()
    for q in with_pure_items(200, seed=15):
        rest = q[outside_identity_blocks(q.astype(bool))].astype(bool)
        if not rest.any(axis=0).all():
            continue
        own, fewest = min_separating_latents(rest)
        eye = np.eye(q.shape[1], dtype=int)
        assert fewest
        assert strict_by_main_effects(np.vstack([q, eye[own]]), rng) is True
        rows = [row for row in product((0, 1), repeat=q.shape[1]) if any(row)]
        if len(own):
            for new in combinations_with_replacement(rows, len(own) - 1):
                larger = np.vstack([q, *new]) if new else q
                assert strict_by_main_effects(larger, rng) is None, (q, new)
        seen[len(own)] += 1
    assert min(seen[n] for n in (0, 1, 2)) > 3
