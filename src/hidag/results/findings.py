"""What the checks of a fit found: evidence against the model, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hidag.exceptions import Advice, Message, Setting

_NAMED = 4  # Items, latents or pairs that a message names.

#: Sentences by code. The evidence, the names and the settings of a finding are parameters.
_TEMPLATES = {
    "scales-not-levels": (
        "items of the same latent depend on each other within its levels ({shown}): {latents} "
        "{have} more levels than the fit, or {are} continuous, so that entries of Q and edges may "
        "be artefacts",
        "fit again with {levels}",
    ),
    "response-style": (
        "items of the format {family!r} vary together whatever their latents ({shown}), as with a "
        "response style; latents and edges absorb it",
        "fit again with {nuisance}",
    ),
    "dependent-pairs": (
        "{n_pairs} of items depend on each other beyond their latents ({pairs}; largest z "
        "{z:.1f}), so that a latent or an edge may stand for {this_pair}",
        "fit again with {doublets}, or without one item of each pair",
    ),
    "too-few-latents": (
        "groups of items depend on each other beyond their latents ({items}; largest z {z:.1f}): "
        "the latents are too few, and edges may stand for those that are missing",
        "fit again with {n_latents}",
    ),
    "starts-disagree": (
        "a start that ended at other latents is only {gap:.1f} units of log-likelihood worse: the "
        "data hardly distinguish two solutions with different Q",
        "compare fits with other values of {random_state}, use fewer latents, or add rows or items",
    ),
    "imitated-latent": (
        "{pairs} measure mostly the same items and agree (correlation {correlation:.2f}): one "
        "trait is fitted as two latents, and the edge between them is no cause and effect",
        "fit again with {levels}, or with {n_latents}",
    ),
    "dense-q": (
        "each item measures {mean:.1f} of {n} latents on average, and {latents} {have} fewer than "
        "two items of {their} own: such latents have no meaning of their own",
        "fit again with {n_latents}, or with {levels}",
    ),
}

#: The findings in a few words.
_SHORT = {
    "scales-not-levels": "traits are not levels",
    "response-style": "a common effect of a format",
    "dependent-pairs": "dependent items",
    "too-few-latents": "too few latents",
    "starts-disagree": "starts disagree",
    "imitated-latent": "a latent fitted twice",
    "dense-q": "a dense Q",
    "overdispersed-counts": "overdispersed counts",
    "interactions-left-out": "interactions left out",
}


@dataclass(frozen=True)
class Finding:
    """Evidence against the model from one check.

    Attributes
    ----------
    code : str
    evidence : mapping of str to float
        Test statistics, p-values and sizes of effects.
    items, latents : tuple of str
    pairs : tuple of (str, str)
        Pairs of items or of latents.
    shown : str
        The evidence in words.
    settings : mapping
        Settings of the remedy.
    family : str
        Format of the items concerned, if they have one.
    serious : bool
        Whether claims about edges are lowered.
    """

    code: str
    evidence: Mapping[str, float]
    items: tuple[str, ...] = ()
    latents: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    shown: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    serious: bool = True

    def __post_init__(self) -> None:
        if self.code not in _TEMPLATES:
            raise ValueError(f"there is no finding {self.code!r:.60}")

    @property
    def message(self) -> Message:
        """The finding as a sentence with advice."""
        template, advice = _TEMPLATES[self.code]
        one = len(self.latents) == 1
        params: dict[str, Any] = {
            **self.evidence,
            **{name: Setting(name, value) for name, value in self.settings.items()},
            "shown": self.shown,
            "items": _listed(self.items),
            "latents": _listed(self.latents),
            "pairs": _listed([f"{a} and {b}" for a, b in self.pairs]),
            "n_pairs": "1 pair" if len(self.pairs) == 1 else f"{len(self.pairs)} pairs",
            "this_pair": "it" if len(self.pairs) == 1 else "them",
            "have": "has" if one else "have",
            "are": "is" if one else "are",
            "their": "its" if one else "their",
            "family": self.family,
            "random_state": Setting("random_state"),
        }
        return Message(self.code, template, params, Advice(f"remedy-{self.code}", advice))


def rejection_note(misfits: Sequence[str]) -> Message | None:
    """Return the note on statements that assume a model which checks reject, given their codes."""
    if not misfits:
        return None
    template = "this assumes the model, which the checks after the fit reject ({reasons})"
    return Message(
        "model-rejected", template, {"reasons": ", ".join(_SHORT[code] for code in misfits)}
    )


def _listed(names: Sequence[str]) -> str:
    first, rest = ", ".join(names[:_NAMED]), len(names) - _NAMED
    return f"{first} and {rest} more" if rest > 0 else first
