"""A fit under the names of a truth: for reading, never for estimating."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hidag.errors import DataError
from hidag.evaluate.matching import Matching
from hidag.evaluate.parts import relabel_law
from hidag.result import FitResult


def relabel_result(result: FitResult, matching: Matching, names: Sequence[str]) -> FitResult:
    """Return the same fit with its latents in a truth's order, way round and names.

    Which latent comes first and which of its levels is called 1 are conventions. Pictures that
    stand beside a truth follow the truth's; the model, its likelihood and its graph are the same.

    Parameters
    ----------
    result : FitResult
    matching : Matching
        Of all its latents, as `match_latents` finds it.
    names : sequence of str, length K
    """
    order = np.array(matching.permutation, dtype=np.int64)
    flips = np.array(matching.flips, dtype=bool)
    if sorted(order.tolist()) != list(range(len(result.latent_names))):
        raise DataError(
            f"every latent of the fit needs its true one, but {len(result.latent_names)} latents "
            f"are matched as {matching.permutation}"
        )
    called = {result.latent_names[old]: name for old, name in zip(order, names, strict=True)}
    return replace(
        result,
        latent_names=tuple(names),
        parameters=result.parameters.reordered(latents=order).flipped(flips),
        law=relabel_law(result.law, order, flips),
        graph=result.graph.permute(matching.permutation).rename(tuple(names)),
        q_given=None if result.q_given is None else result.q_given[:, order],
        edge_tests=tuple(
            replace(test, pair=(called[test.pair[0]], called[test.pair[1]]))
            for test in result.edge_tests
        ),
    )
