"""A fit under the names of a truth: for reading, never for estimating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover import Knowledge
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

    Raises
    ------
    DataError
        If some latent has no true one, or a latent of a hierarchy would be turned round.
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
        settings=_relabelled_settings(result, order, flips, tuple(names)),
    )


def _relabelled_settings(
    result: FitResult, order: NDArray[np.int64], flips: NDArray[np.bool_], names: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings of a fit with what they say about single latents under their new names.

    States are ruled out by what is known, so it must speak of the same latents as before.
    """
    out = dict(result.settings)
    if out.get("latent_names") is not None:
        out["latent_names"] = list(names)
    if isinstance(out.get("levels"), list | tuple):
        out["levels"] = [out["levels"][k] for k in order]
    told = out.get("knowledge")
    if isinstance(told, Mapping):
        known = Knowledge.from_dict(told).among(result.latent_names, order.tolist())
        for k in sorted({int(k) for pair in known.hierarchy for k in pair}):
            # Reversed, "nobody has the skill without the prerequisite" is no hierarchy any more.
            if flips[k]:
                raise DataError(
                    "the levels of latents in a hierarchy cannot be reversed, because having a "
                    "skill and lacking it would change places, but "
                    f"{result.latent_names[order[k]]!r} is to be; keep it the way round it has"
                )
        out["knowledge"] = {
            part: [[names[int(k)] for k in entry] for entry in entries]
            for part, entries in known.to_dict().items()
        }
    return out
