"""Test scores, percentages and ages against counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hidag.data.type_inference import AS_SCORES, evidence_for_scores, infer_family

Draw = Callable[[np.random.Generator, int], np.ndarray]


def rounded(mean: float, deviation: float, top: int = 100) -> Draw:
    return lambda rng, n: np.clip(np.rint(rng.normal(mean, deviation, n)), 0, top)


def negative_binomial(mean: float, size: float) -> Draw:
    return lambda rng, n: rng.negative_binomial(size, size / (size + mean), n)


SCORES: dict[str, Draw] = {
    "all over the range": lambda rng, n: rng.integers(0, 101, n),
    "test scores": rounded(60, 15),
    "test scores with a ceiling": rounded(75, 20),
    "sums of right answers": lambda rng, n: rng.binomial(40, rng.beta(3, 2, n)),
    "ages": lambda rng, n: rng.integers(18, 91, n),
    "scores that depend on a latent": lambda rng, n: np.rint(
        rng.normal(40 + 30 * rng.integers(0, 2, n), 5)
    ),
}
COUNTS: dict[str, Draw] = {
    "few": lambda rng, n: rng.poisson(3, n),
    "many": lambda rng, n: rng.poisson(20, n),
    "long tail": negative_binomial(8, 1),
    "many with a long tail": negative_binomial(60, 2),
    "many with a tail": negative_binomial(60, 5),
    "from one latent": lambda rng, n: rng.poisson(rng.choice([20, 60], n)),
    "from three latents": lambda rng, n: rng.poisson(
        np.exp(1.5 + rng.integers(0, 2, (n, 3)) @ [0.8, 0.6, 0.5])
    ),
    "from rare latents": lambda rng, n: rng.poisson(
        np.exp(2 + (rng.random((n, 3)) < 0.3) @ [0.8, 0.6, 0.5])
    ),
    "extra zeros": lambda rng, n: np.where(rng.random(n) < 0.3, 0, rng.poisson(50, n)),
    "days of a month": lambda rng, n: np.minimum(negative_binomial(8, 0.4)(rng, n), 30),
}


def families(draw: Draw, n_rows: int, n_draws: int = 20) -> list[str | None]:
    rng = np.random.default_rng(8)
    return [infer_family(draw(rng, n_rows).astype(float)).family for _ in range(n_draws)]


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_gaussian(name: str) -> None:
    assert families(SCORES[name], 1000).count("gaussian") >= 19
    # Of fewer rows it is asked rather than guessed wrongly.
    assert families(SCORES[name], 200).count("poisson") <= 1


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("n_rows", [200, 1000])
def test_counts_stay_poisson(name: str, n_rows: int) -> None:
    found = families(COUNTS[name], n_rows)
    assert found.count("poisson") >= 19
    assert "gaussian" not in found


def test_many_counts_far_from_zero_are_ambiguous() -> None:
    assert set(families(lambda rng, n: rng.poisson(50, n), 500)) == {None}


def test_the_reason_names_scores_if_they_were_preferred() -> None:
    guess = infer_family(np.repeat(np.arange(101.0), 3))
    assert guess.reason == f"holds whole numbers from 0 to 100 (101 different), {AS_SCORES}"


def test_scores_above_100_and_skewed_scores_are_ambiguous() -> None:
    rng = np.random.default_rng(0)
    for values in (rng.integers(0, 201, 500), np.minimum(np.rint(rng.normal(98, 12, 500)), 100)):
        assert evidence_for_scores(values.astype(float)) > 0
        guess = infer_family(values.astype(float))
        assert (guess.family, guess.suggestion) == (None, "gaussian")
        assert guess.reason.endswith("distributed like scores: a rounded measurement or a count?")


def test_columns_with_many_zeros_are_not_scores() -> None:
    values = np.append(np.repeat(np.arange(1.0, 101.0), 3), np.zeros(30))
    assert evidence_for_scores(values) == -np.inf


def test_few_distant_numbers_are_compared() -> None:
    values = np.repeat([0.0, 5.0, 900_000.0, 1_000_000.0], [1, 20, 20, 20])
    assert np.isfinite(evidence_for_scores(values))
