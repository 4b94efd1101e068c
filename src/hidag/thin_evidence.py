"""Warnings about fits that rest on too little: idle latents, few rows, little information."""

from __future__ import annotations

import warnings

from hidag.errors import IdentifiabilityWarning
from hidag.identify import Certificate
from hidag.measurement import MeasurementParameters

#: Below this share of the latents' pairwise information a graph is not to be trusted.
LITTLE_INFORMATION = 0.05
#: Rows that there should be for each coefficient of the items.
ROWS_PER_COEFFICIENT = 2
#: From the caller of ``fit``: this function, ``run_stages``, ``fit``, the caller.
_STACK = 4


def warn_of_thin_evidence(
    parameters: MeasurementParameters,
    latent_names: tuple[str, ...],
    n_samples: float,
    ratio: float,
    certificate: Certificate | None = None,
) -> None:
    """Warn, a sentence each, of what makes a fit untrustworthy.

    Parameters
    ----------
    parameters : MeasurementParameters
    latent_names : tuple of str
    n_samples : int
    ratio : float
        Share of the latents' pairwise information that the items carry.
    certificate : Certificate or None
        What Q lets be identified; None when that has been spoken of already.
    """
    n_items = parameters.q_matrix.sum(axis=0)
    n_latents = len(latent_names)
    idle = [name for name, n in zip(latent_names, n_items, strict=True) if n == 0]
    lonely = [name for name, n in zip(latent_names, n_items, strict=True) if n == 1]
    if len(idle) == n_latents:
        _warn("no item depends on any latent: the data show no latents at all")
        return
    if idle:
        _warn(
            f"no item depends on {' and '.join(idle)}: the data do not show so many latents; ask "
            f"for {n_latents - len(idle)} instead of {n_latents}"
        )
    if lonely:
        _warn(
            f"only one item depends on {' and on '.join(lonely)}, so its level cannot be told from "
            f"that item's noise; ask for fewer latents or add items"
        )
    if certificate is not None and certificate.generic is False and not idle and not lonely:
        _warn(_without_guarantee(certificate))
    n_coefficients = parameters.n_items + int(n_items.sum())
    if n_samples < ROWS_PER_COEFFICIENT * n_coefficients:
        _warn(
            f"{n_samples:.10g} rows are few for {n_coefficients} coefficients; neither Q nor the "
            f"graph can be relied on: add rows or ask for fewer latents"
        )
    elif n_latents > 1 and ratio < LITTLE_INFORMATION:
        _warn(
            f"the items carry {ratio:.1%} of the information about how the latents go together; "
            f"the graph is little more than a guess: ask for fewer latents or add items"
        )


def _without_guarantee(certificate: Certificate) -> str:
    """Return in a sentence which condition of the theorems the Q-matrix does not fulfil."""
    failed = certificate.reasons("generic")[0]
    sentence = failed.sentence[0].lower() + failed.sentence[1:].rstrip(".")
    return f"this Q comes without a guarantee that it is identified: {sentence}"


def _warn(sentence: str) -> None:
    warnings.warn(sentence, IdentifiabilityWarning, stacklevel=_STACK + 1)
