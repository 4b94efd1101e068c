"""A provisional Q and the fits around it: one that was given it, one that was not."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover import Knowledge
from hidag.errors import DataError, HidagWarning, SettingError
from hidag.estimator import DCRL
from hidag.evaluate import Parts, match_latents
from hidag.explain.remembered import remembered_settings
from hidag.observations import read_q_matrix, read_table
from hidag.observations.q_matrix import QSpec
from hidag.result import FitResult
from hidag.shown_text import counted

Q = NDArray[np.int8]
#: From the caller of ``validate_q``: the warning function, ``_like``, ``provisional_fit``,
#: ``validate_q``, the caller.
_STACK = 4


def has_given_q(result: FitResult) -> bool:
    """Return whether a fit was given a Q without open entries."""
    return result.q_given is not None and bool((result.q_given >= 0).all())


def provisional_fit(
    fit: FitResult | DCRL, X: Any, provisional_q: Any, seed: int, sample_weight: Any = None
) -> FitResult:
    """Return a fit with the provisional Q given: the one that came, or a new one."""
    if not isinstance(fit, FitResult):
        given = fit.q_matrix if provisional_q is None else provisional_q
        if given is None:
            raise DataError("there is no Q to validate; give it as provisional_q")
        table = read_table(X)
        q = _known_q(read_q_matrix(given, table.names))
        model = DCRL(**{**fit.get_params(), "n_latents": q.n_latents})
        return _fitted(model, q, X, table.names, seed, sample_weight)
    result: FitResult = fit
    if provisional_q is None:
        if not has_given_q(result):
            raise DataError(
                "the fit was not given a Q with 1 and 0 throughout; give the provisional Q as "
                "provisional_q"
            )
        return result
    q = _known_q(read_q_matrix(provisional_q, result.item_names))
    if has_given_q(result) and np.array_equal(result.q_matrix, q.entries):
        return result
    model = _like(result, q)
    return _fitted(model, q, result.rows(X), result.item_names, seed, sample_weight)


def _like(result: FitResult, q: QSpec) -> DCRL:
    """Return an estimator with a fit's settings for another Q.

    What the fit was told of its latents goes with them, where it is clear which they are; otherwise
    a warning says what is left out.

    Raises
    ------
    SettingError
        If it is not clear, and the latents of the fit have not all as many levels.
    """
    settings, forgotten = remembered_settings(result)
    if forgotten:
        warnings.warn(
            f"the fit of the provisional Q takes the default {' and '.join(forgotten)}, because a "
            "result does not remember one's own; give the fitted DCRL instead of the result",
            HidagWarning,
            stacklevel=_STACK,
        )
    known: Knowledge | None = settings.pop("knowledge", None)
    names = settings.pop("latent_names", None)
    levels = result.law.space.levels
    settings |= {"n_latents": q.n_latents, "family": list(result.families), "verbose": 0}
    place, reason = _same_latents(result, q)
    if place:
        return DCRL(**settings | {
            "levels": [levels[k] for k in place],
            "latent_names": [result.latent_names[k] for k in place],
            "knowledge": None if known is None else known.among(result.latent_names, place),
        })  # fmt: skip
    if len(set(levels)) > 1:
        raise SettingError(
            f"{reason}, and the latents of the fit have {', '.join(map(str, levels))} levels; "
            "give a DCRL with the levels of the latents of that Q instead of the fit"
        )
    left_out = list({} if known is None else known.to_dict())
    if names is not None and not q.named:
        left_out.append("latent_names")
    if left_out:
        warnings.warn(
            f"{reason}: what the fit was told of its latents ({', '.join(left_out)}) is left out; "
            "give a DCRL with what is known of the latents of that Q instead of the fit",
            HidagWarning,
            stacklevel=_STACK,
        )
    return DCRL(**settings | {"levels": levels[0]})


def _same_latents(result: FitResult, q: QSpec) -> tuple[list[int], str]:
    """Return which latent of a fit each column of a Q is; none, and why, if that is not clear."""
    ours = result.latent_names
    if q.n_latents != len(ours):
        return [], f"the provisional Q has {counted(q.n_latents, 'latent')}, the fit {len(ours)}"
    if q.named:
        if set(q.latent_names) == set(ours):
            return [ours.index(name) for name in q.latent_names], ""
        theirs = ", ".join(q.latent_names)
        return (
            [],
            f"the latents of the provisional Q are {theirs}, those of the fit {', '.join(ours)}",
        )
    if result.q_given is None:
        return [], (
            "the fit found its latents without a Q, and the provisional Q, whose columns have no "
            "names, does not say which of them is which"
        )
    return list(range(len(ours))), ""


def _known_q(q: QSpec) -> QSpec:
    if not q.fully_known:
        raise DataError(
            "the provisional Q must be 1 and 0 throughout to be held against the data, but it has "
            f"{counted(int((q.entries < 0).sum()), 'entry', 'entries')} to be estimated; fit it "
            "and validate the Q that comes back"
        )
    return q


def _fitted(
    model: DCRL, q: QSpec, X: Any, items: tuple[str, ...], seed: int, sample_weight: Any
) -> FitResult:
    """Return a confirmatory fit, items and latents with their names."""
    names = q.latent_names if q.named else model.latent_names
    model.set_params(q_matrix=q.entries, latent_names=names, random_state=seed)
    with warnings.catch_warnings():
        # What there is to say about the evidence for this Q is said in what comes back.
        warnings.simplefilter("ignore", HidagWarning)
        return replace(model.fit(X, sample_weight=sample_weight).result_, item_names=items)


def matched_q(estimated: FitResult, provisional: FitResult) -> Q:
    """Return an estimated Q with its latents in the places of the provisional ones."""
    if estimated.item_names != provisional.item_names:
        raise DataError("the estimated fit must have the items of the provisional Q, in its order")
    ours = Parts(estimated.q_matrix, loadings=estimated.strengths)
    matching = match_latents(ours, Parts(provisional.q_matrix, loadings=provisional.strengths))
    out = np.zeros_like(provisional.q_matrix)
    for k, place in enumerate(matching.permutation):
        if place >= 0:
            out[:, k] = estimated.q_matrix[:, place]
    return out
