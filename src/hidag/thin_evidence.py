"""Warnings about fits that rest on too little: idle latents, few rows, little information."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.errors import IdentifiabilityWarning
from hidag.identify import Certificate, Finding
from hidag.latent import LatentLaw, NetworkLaw
from hidag.latent.factorise import n_free_probabilities
from hidag.measurement import MeasurementParameters

#: Below this share of the latents' pairwise information a graph is not to be trusted.
LITTLE_INFORMATION = 0.05
#: Rows that there should be for each coefficient of one item: ten are customary where what drives
#: an item is seen, and latents are not. Other items take nothing away from an item's rows.
ROWS_PER_COEFFICIENT = 15
#: Rows with latents in sight that there should be for each probability of the graph's law.
ROWS_PER_PROBABILITY = 2
#: From the caller of ``fit``: this function, ``run_stages``, ``fit``, the caller.
_STACK = 4


@dataclass(frozen=True)
class Needs:
    """What a fit asks of the table, and what the table has.

    Attributes
    ----------
    n_rows : float
        Of the table.
    item_rows, n_coefficients : float, int
        Rows that observed an item and coefficients that it may have, of the item with the fewest
        rows for each.
    n_probabilities : int
        Free probabilities of the graph's law.
    q_given : bool
        Whether all of Q was given.
    """

    n_rows: float
    item_rows: float
    n_coefficients: int
    n_probabilities: int
    q_given: bool

    @classmethod
    def of(
        cls,
        n_rows: float,
        observed: NDArray[np.float64],
        entries: NDArray[np.int8],
        levels: tuple[int, ...],
        law: LatentLaw,
        possible: NDArray[np.bool_] | None = None,
    ) -> Needs:
        """Return what latents with so many levels ask of items.

        Parameters
        ----------
        n_rows : float
        observed : ndarray, shape (J,)
            Share of rows that observed each item.
        entries : ndarray of int8, shape (J, K)
            1 and 0 where Q was given, -1 where it was estimated: a latent that may be chosen has
            to be judged like one that was.
        levels : tuple of int, length K
        law : LatentLaw
            Over the graph that was found.
        possible : ndarray of bool, shape (S,), optional
            Joint states that prerequisites allow; all unless given.
        """
        n_coefficients = 1 + (entries != 0) @ (np.array(levels) - 1)
        item_rows = n_rows * observed
        tightest = int(np.argmin(item_rows / n_coefficients))
        # A law without a graph has a probability for each joint state, and no graph rests on it.
        n_probabilities = 0
        if isinstance(law, NetworkLaw):
            n_probabilities = n_free_probabilities(law.parents, law.space, possible)
        return cls(
            n_rows,
            float(item_rows[tightest]),
            int(n_coefficients[tightest]),
            n_probabilities,
            bool((entries >= 0).all()),
        )


def warn_of_thin_evidence(
    parameters: MeasurementParameters,
    latent_names: tuple[str, ...],
    needs: Needs,
    ratio: float,
    certificate: Certificate | None = None,
    *,
    one_start: bool = False,
) -> None:
    """Warn, a sentence each, of what makes a fit untrustworthy.

    Parameters
    ----------
    parameters : MeasurementParameters
    latent_names : tuple of str
    needs : Needs
    ratio : float
        Share of the latents' pairwise information that the items carry.
    certificate : Certificate or None
        What Q lets be identified; None when that has been spoken of already.
    one_start : bool
        Whether nothing but one start was followed to its end: it may have missed a latent.
    """
    n_items = parameters.q_matrix.sum(axis=0)
    n_latents = len(latent_names)
    idle = [name for name, n in zip(latent_names, n_items, strict=True) if n == 0]
    lonely = [name for name, n in zip(latent_names, n_items, strict=True) if n == 1]
    if len(idle) == n_latents:
        _warn("no item depends on any latent: the data show no latents at all")
        return
    if idle:
        fewer = f"ask for {n_latents - len(idle)} instead of {n_latents}"
        shown = f"the data do not show so many latents; {fewer}"
        if one_start:
            shown = (
                "the data do not show so many latents, or the one start that was followed missed "
                f"what they show; fit again with more starts, or {fewer}"
            )
        _warn(f"no item depends on {' and '.join(idle)}: {shown}")
    if lonely:
        _warn(
            f"only one item depends on {' and on '.join(lonely)}, so its level cannot be told from "
            f"that item's noise; ask for fewer latents or add items"
        )
    reasons = [] if certificate is None else _against_guarantee(certificate)
    if reasons and not idle and not lonely:
        _warn(_without_guarantee(reasons[0]))
    seen = needs.n_rows * ratio
    if needs.item_rows < ROWS_PER_COEFFICIENT * needs.n_coefficients:
        whose, doubted = (
            ("of an item", "neither these nor the graph")
            if needs.q_given
            else ("that an item may have", "neither Q nor the graph")
        )
        fewer = "" if needs.q_given else " or ask for fewer latents"
        _warn(
            f"{needs.item_rows:.10g} rows are few for the {needs.n_coefficients} coefficients "
            f"{whose}; {doubted} can be relied on: add rows{fewer}"
        )
    elif (
        n_latents > 1
        and ratio >= LITTLE_INFORMATION
        and seen < ROWS_PER_PROBABILITY * needs.n_probabilities
    ):
        _warn(
            f"the items tell as much about how the latents go together as {seen:.0f} rows of the "
            f"latents themselves, few for the {needs.n_probabilities} probabilities of the graph: "
            f"it cannot be relied on; add rows or items"
        )
    elif n_latents > 1 and ratio < LITTLE_INFORMATION:
        _warn(
            f"the items carry {ratio:.1%} of the information about how the latents go together; "
            f"the graph is little more than a guess: ask for fewer latents or add items"
        )


def _against_guarantee(certificate: Certificate) -> list[Finding]:
    """Return what is wrong with the Q-matrix itself, if anything is.

    That prerequisites rule states out was said by the user, who needs no warning of it.
    """
    failed = certificate.reasons("generic") if certificate.generic is False else ()
    return [found for found in failed if found.name != "positive-law"]


def _without_guarantee(failed: Finding) -> str:
    """Return in a sentence which condition of the theorems the Q-matrix does not fulfil."""
    sentence = failed.sentence[0].lower() + failed.sentence[1:].rstrip(".")
    return f"this Q comes without a guarantee that it is identified: {sentence}"


def _warn(sentence: str) -> None:
    warnings.warn(sentence, IdentifiabilityWarning, stacklevel=_STACK + 1)
