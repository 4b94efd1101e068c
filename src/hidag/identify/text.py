"""A certificate as text, for readers who are no mathematicians."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Literal

from hidag.identify.findings import Finding, counted, listed, new_items, sentence_case
from hidag.identify.generic_conditions import generic_theorem
from hidag.identify.question import Question
from hidag.identify.strict_conditions import strict_theorem

if TYPE_CHECKING:
    from hidag.identify.certificate import Certificate

_MARKS = {"holds": "+", "fails": "-", "undecided": "?"}
_STATUS_WORDS = {
    "holds": "holds",
    "fails": "fails",
    "undecided": "cannot be decided from Q alone",
}
#: Where Q is not what stands in the way of a decision.
_OPEN_WORDS = {
    "faithful-graph": "is assumed",
    "own-items": "no theorem is about such items",
    "analytic-families": "cannot be decided",
    "disentangled": "is not covered",
    "information": "was not computed",
}
_TITLES = {
    "covered": "Every latent has an item",
    "answer-patterns": "Enough answer patterns",
    "own-items": "An item of its own for every latent",
    "identity-blocks": "Two items of its own for every latent",
    "distinct-states": "The other items tell all states apart",
    "blocks": "Two blocks of items and a rest",
    "subset": "No latent has all the items of another",
    "positive-law": "Every combination of levels occurs",
    "faithful-graph": "The graph shows all independences",
    "monotone": "Items rise with their latents",
    "analytic-families": "Analytic response families",
    "disentangled": "What stays open for items of any form",
    "known-in-sum": "States that occur tell coefficients apart",
    "information": "Rank of the information",
}
_WIDTH = 96


def certificate_text(certificate: Certificate) -> str:
    """Return the verdict, every finding, and what to add."""
    lines = [_headline(certificate.asked), ""]
    for head, sentences in verdict_sentences(certificate):
        lines += _wrapped(head, sentences)
    lines.append("")
    for found in certificate.findings:
        lines += _finding_lines(found)
    if certificate.additions:
        lines += ["", *_addition_lines(certificate)]
    return "\n".join(lines)


def _headline(asked: Question) -> str:
    levels = sorted(set(asked.levels))
    if asked.binary:
        latents = counted(asked.n_latents, "binary latent")
    elif len(levels) == 1:
        latents = f"{counted(asked.n_latents, 'latent')} with {levels[0]} levels"
    else:
        latents = f"{counted(asked.n_latents, 'latent')} with {levels[0]} to {levels[-1]} levels"
    effects = {1: "main effects", None: "all effects"}.get(
        asked.asked_order, f"effects up to order {asked.asked_order}"
    )
    if asked.conjunctive:
        effects = "DINA or DINO items"
    return f"Identifiability of {counted(asked.n_items, 'item')} on {latents}, {effects}"


def verdict_sentences(certificate: Certificate) -> list[tuple[str, str]]:
    """Return what is guaranteed, as pairs of a head, such as "generic: ", and sentences."""
    asked = certificate.asked
    given = "given the assumptions marked ? below"
    generic = {
        True: f"guaranteed ({_granting(certificate)}), {given}. The data determine all but "
        "exceptional parameters, up to the order of the latents.",
        False: f"no guarantee, as {_because(certificate, 'generic')}.",
        None: f"open, as {_because(certificate, 'generic')}.",
    }[certificate.generic]
    strict = {
        True: f"guaranteed ({strict_theorem(asked)}), {given}. The data determine all parameters, "
        "without exceptions.",
        False: f"no guarantee, as {_because(certificate, 'strict')}.",
        None: f"open, as {_because(certificate, 'strict')}."
        if asked.binary
        else "the paper has no theorem for latents with more than two levels.",
    }[certificate.strict]
    said = [("generic: ", generic), ("strict:  ", strict)]
    if certificate.generic and (asked.truncated and not (asked.binary and asked.main_effects)):
        said.append(
            (
                "",
                "The theorem is printed for all effects. Its proof leaves out only parameters that "
                "main effects describe, so it covers fewer interactions too.",
            )
        )
    bad = {f.name for f in certificate.findings if f.provably_bad and f.status == "fails"}
    if bad == {"known-in-sum"}:
        said.append(
            (
                "",
                "This is more than a missing guarantee: some coefficients are known in sum only. "
                "What depends on their sums alone, as all answers do in states that occur, is not "
                "touched by that.",
            )
        )
    elif bad:
        said.append(
            (
                "",
                "This is more than a missing guarantee: unless the law of the latents is "
                "restricted, different parameters give the same distribution of the data.",
            )
        )
    elif certificate.generic is False:
        said.append(
            (
                "",
                "The theorems name conditions that are enough. One that fails does not prove that "
                "anything is lost.",
            )
        )
    return said


def _granting(certificate: Certificate) -> str:
    """Return the theorem that the generic guarantee rests on."""
    asked = certificate.asked
    names = ["blocks", *(["analytic-families"] if asked.families is not None else [])]
    by_itself = all(certificate.finding(name).status == "holds" for name in names)
    return generic_theorem(asked) if by_itself or not certificate.strict else strict_theorem(asked)


def _because(certificate: Certificate, claim: Literal["generic", "strict"]) -> str:
    """Return which conditions stand against a guarantee, as the end of a sentence."""
    found = certificate.reasons(claim)
    titles = listed([f'"{_TITLES[finding.name]}"' for finding in found])
    if found and found[0].status == "fails":
        return f"{titles} {'fails' if len(found) == 1 else 'fail'}"
    return f"{titles} {'is' if len(found) == 1 else 'are'} open"


def finding_in_words(found: Finding) -> tuple[str, str]:
    """Return the title of a condition, and what became of it in a few words."""
    status = _STATUS_WORDS[found.status]
    if found.status == "undecided":
        status = _OPEN_WORDS.get(found.name, status)
    if not found.required and found.name == "subset":
        status += " (not needed)"
    return _TITLES[found.name], status


def mark_of(found: Finding) -> str:
    """Return the mark that verdicts refer to: + holds, - fails, ? is open or assumed."""
    return _MARKS[found.status]


def _finding_lines(found: Finding) -> list[str]:
    title, status = finding_in_words(found)
    lines = [f"{mark_of(found)} {title}: {status} [{found.source}]"]
    lines += _wrapped("    ", sentence_case(found.sentence) + ".")
    if found.name == "blocks" and found.status == "holds":
        lines += _block_lines(found)
    if found.advice:
        lines += _wrapped("    -> ", sentence_case(found.advice) + ".")
    return lines


def _block_lines(found: Finding, limit: int = 12) -> list[str]:
    rows = [
        f"      {name}: {', '.join(w['first'])} | {', '.join(w['second'])} | {w['outside']}"
        for name, w in list(found.witness.items())[:limit]
    ]
    more = len(found.witness) - limit
    return ["      latent: first block | second block | outside", *rows] + (
        [f"      ... and {more} more"] if more > 0 else []
    )


def _addition_lines(certificate: Certificate) -> list[str]:
    enough = "no smaller number will do" if certificate.fewest else "perhaps fewer will do"
    what = new_items(certificate.additions)
    return _wrapped("To get the generic guarantee: ", f"{what} ({enough}).")


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head) if len(head) < 12 else "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
