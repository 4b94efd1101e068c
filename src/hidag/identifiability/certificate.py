"""The certificate: all findings about a design and the verdict they add up to."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hidag.identifiability.assumptions import (
    Fitted,
    analytic_families,
    disentangled,
    enough_answers,
    faithful_graph,
    monotone_items,
    positive_law,
)
from hidag.identifiability.blocks import Blocks, items_per_block
from hidag.identifiability.design import MeasurementDesign, read_design
from hidag.identifiability.findings import Finding, counted, join_names, new_items, sentence_case
from hidag.identifiability.fitted_conditions import known_in_sum
from hidag.identifiability.generic_conditions import (
    Additions,
    blocks_and_rest,
    every_latent_has_an_item,
    fewest_additions,
    generic_theorem,
    no_contained_column,
)
from hidag.identifiability.strict_conditions import (
    effects_of_their_own,
    rest_tells_states_apart,
    strict_theorem,
    two_identity_blocks,
)

# --- A certificate as text, for readers who are no mathematicians

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
    lines = [_headline(certificate.design), ""]
    for head, sentences in verdict_sentences(certificate):
        lines += _wrapped(head, sentences)
    lines.append("")
    for found in certificate.findings:
        lines += _finding_lines(found)
    if certificate.additions:
        lines += ["", *_addition_lines(certificate)]
    return "\n".join(lines)


def _headline(design: MeasurementDesign) -> str:
    levels = sorted(set(design.levels))
    if design.binary:
        latents = counted(design.n_latents, "binary latent")
    elif len(levels) == 1:
        latents = f"{counted(design.n_latents, 'latent')} with {levels[0]} levels"
    else:
        latents = f"{counted(design.n_latents, 'latent')} with {levels[0]} to {levels[-1]} levels"
    effects = {1: "main effects", None: "all effects"}.get(
        design.requested_order, f"effects up to order {design.requested_order}"
    )
    if design.conjunctive:
        effects = "DINA or DINO items"
    return f"Identifiability of {counted(design.n_items, 'item')} on {latents}, {effects}"


def verdict_sentences(certificate: Certificate) -> list[tuple[str, str]]:
    """Return what is guaranteed, as pairs of a head, such as "generic: ", and sentences."""
    design = certificate.design
    given = "given the assumptions marked ? below"
    generic = {
        True: f"guaranteed ({_granting(certificate)}), {given}. The data determine all but "
        "exceptional parameters, up to the order of the latents.",
        False: f"no guarantee, as {_because(certificate, 'generic')}.",
        None: f"open, as {_because(certificate, 'generic')}.",
    }[certificate.generic]
    strict = {
        True: f"guaranteed ({strict_theorem(design)}), {given}. The data determine all parameters, "
        "without exceptions.",
        False: f"no guarantee, as {_because(certificate, 'strict')}.",
        None: f"open, as {_because(certificate, 'strict')}."
        if design.binary
        else "the paper has no theorem for latents with more than two levels.",
    }[certificate.strict]
    said = [("generic: ", generic), ("strict:  ", strict)]
    if certificate.generic and (design.truncated and not (design.binary and design.main_effects)):
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
    design = certificate.design
    names = ["blocks", *(["analytic-families"] if design.families is not None else [])]
    by_itself = all(certificate.finding(name).status == "holds" for name in names)
    return (
        generic_theorem(design) if by_itself or not certificate.strict else strict_theorem(design)
    )


def _because(certificate: Certificate, claim: Literal["generic", "strict"]) -> str:
    """Return which conditions stand against a guarantee, as the end of a sentence."""
    found = certificate.reasons(claim)
    titles = join_names([f'"{_TITLES[finding.name]}"' for finding in found])
    if found and found[0].status == "fails":
        return f"{titles} {'fails' if len(found) == 1 else 'fail'}"
    return f"{titles} {'is' if len(found) == 1 else 'are'} open"


def describe_finding(found: Finding) -> tuple[str, str]:
    """Return the title of a condition, and what became of it in a few words."""
    status = _STATUS_WORDS[found.status]
    if found.status == "undecided":
        status = _OPEN_WORDS.get(found.name, status)
    if not found.required and found.name == "subset":
        status += " (not needed)"
    return _TITLES[found.name], status


def status_mark(found: Finding) -> str:
    """Return the mark that verdicts refer to: + holds, - fails, ? is open or assumed."""
    return _MARKS[found.status]


def _finding_lines(found: Finding) -> list[str]:
    title, status = describe_finding(found)
    lines = [f"{status_mark(found)} {title}: {status} [{found.source}]"]
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


# ---

#: Assumptions that are taken for granted while nothing speaks against them.
GRANTED = ("positive-law", "monotone")
STRICT_NAMES = ("covered", "own-items", "identity-blocks", "distinct-states", *GRANTED)


@dataclass(frozen=True, eq=False)
class Certificate:
    """What a Q-matrix, or a fit, allows to be identified.

    Attributes
    ----------
    strict : bool or None
        True: every admissible parameter is determined by the distribution of the data, up to the
        order of the latents. False: no theorem of the paper says so, as a condition of each that
        could apply fails. None: it depends on what was not given (coefficients, families).
    generic : bool or None
        The same for all parameters but a set of measure zero. A strict guarantee is a generic one.
    findings : tuple of Finding
        One per condition.
    blocks : Blocks or None
        Rows that fulfil condition (i) of the generic theorems, by number.
    additions : tuple of tuple of str
        New items that would give the generic guarantee, each by the latents it should load on and
        no others; empty if none is needed.
    fewest : bool
        Whether no smaller number of new items would do.
    design : MeasurementDesign
        The design, as it was read.
    """

    strict: bool | None
    generic: bool | None
    findings: tuple[Finding, ...]
    blocks: Blocks | None
    additions: tuple[tuple[str, ...], ...]
    fewest: bool
    design: MeasurementDesign

    def finding(self, name: str) -> Finding:
        """Return the finding of that name."""
        return next(found for found in self.findings if found.name == name)

    def reasons(self, claim: Literal["generic", "strict"] = "generic") -> tuple[Finding, ...]:
        """Return the findings that stand against a guarantee: those that fail, else open ones.

        Assumptions that are taken for granted while nothing speaks against them are left out, and
        so are conditions of the other guarantee. Empty if the guarantee is given.
        """
        verdict = self.generic if claim == "generic" else self.strict
        if verdict:
            return ()
        names = generic_names(self) if claim == "generic" else STRICT_NAMES
        failing = tuple(f for f in self.findings if f.name in names and f.status == "fails")
        waiting = tuple(f for f in self.findings if f.name in names and f.status == "undecided")
        return failing or tuple(f for f in waiting if f.name not in GRANTED)

    @property
    def provably_bad(self) -> bool:
        """Whether different parameters are known to give the same distribution of the data."""
        return any(found.provably_bad and found.status == "fails" for found in self.findings)

    def summary(self) -> str:
        """Return the certificate as text for a reader who is no mathematician."""
        return certificate_text(self)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain values that JSON can hold."""
        return {
            "strict": self.strict,
            "generic": self.generic,
            "provably_not_identified": self.provably_bad,
            "findings": [
                {
                    "name": found.name,
                    "source": found.source,
                    "status": found.status,
                    "required": found.required,
                    "provably_bad": found.provably_bad,
                    "sentence": found.sentence,
                    "witness": dict(found.witness),
                    "advice": found.advice,
                }
                for found in self.findings
            ],
            "additions": [list(names) for names in self.additions],
            "fewest": self.fewest,
        }


def check_identifiability(
    q_matrix: Any,
    *,
    effects: str | int = "main",
    levels: int | Sequence[int] = 2,
    families: str | Sequence[str] | Mapping[str, str] | None = None,
) -> Certificate:
    """Return what the paper's theorems say about a Q-matrix: holds, fails or undecided, and why.

    Parameters
    ----------
    q_matrix : array-like or data frame, shape (J, K)
        1 where a latent drives an item, 0 where it does not. A data frame may name items (first
        column 'item', or a pandas index of text) and latents (its columns).
    effects : {"main", "all", "acdm", "gdina", "dina", "dino"} or int, default="main"
        Main effects only, all interactions, or interactions up to an order; or a model's name.
    levels : int or sequence of int (length K), default=2
        Number of values of the latents.
    families : str, sequence of str (length J), mapping from item to family, or None
        Response families. None leaves the assumption about them open without touching the verdict.

    Returns
    -------
    Certificate
        `strict`, `generic`, `findings`, `summary()`. The verdict takes for granted what neither Q
        nor the families can show (positive law, faithful graph, monotone items).
    """
    return assemble(read_design(q_matrix, effects=effects, levels=levels, families=families), None)


def assemble(
    design: MeasurementDesign,
    fitted: Fitted | None,
    *,
    distinct: Finding | None = None,
    extra: Sequence[Finding] = (),
) -> Certificate:
    """Return the certificate of a design, with what a fit says if there is one.

    Parameters
    ----------
    design : MeasurementDesign
    fitted : Fitted or None
    distinct : Finding, optional
        What a fit says about states that look alike, in place of what Q says.
    extra : sequence of Finding
        Findings that are shown but do not bear on the verdict.
    """
    covered = every_latent_has_an_item(design)
    answers = enough_answers(design)
    identity = two_identity_blocks(design)
    distinct = distinct or rest_tells_states_apart(design)
    blocks, search = blocks_and_rest(design)
    subset = no_contained_column(design)
    law, monotone = positive_law(design, fitted), monotone_items(design, fitted)
    families = analytic_families(design, fitted)
    assumptions = [law, faithful_graph(design), monotone, families]
    in_sum = known_in_sum(design)
    own = [found for found in (effects_of_their_own(design),) if found is not None]
    structure = [covered, *([] if answers is None else [answers]), *own]
    # What a fit contradicts is not taken for granted; what nothing was said about is.
    refuted = [found for found in (law, monotone) if found.status == "fails"]
    strict = _unless_bad([covered, *own])
    if design.binary:
        strict = _all([covered, *own, identity, distinct, *refuted])
    needed = [covered, *own, blocks, *([subset] if subset.required else []), *refuted]
    generic = _all([*needed, *([] if design.families is None else [families])])
    if strict:
        generic = True
    new = Additions(design.q[:0], True)
    # No theorem is about conjunctive items, so no items give its guarantee.
    if not own and False in (blocks.holds, subset.holds if subset.required else None):
        new = fewest_additions(
            design.q, items_per_block(design.levels), search, subset=subset.required
        )
    shown = [identity, distinct] if design.binary else []
    return Certificate(
        strict=strict,
        generic=generic,
        findings=(
            *structure,
            *shown,
            blocks,
            subset,
            *assumptions,
            disentangled(design, fitted, monotone.holds),
            *([] if in_sum is None else [in_sum]),
            *extra,
        ),
        blocks=search.blocks,
        additions=tuple(tuple(design.latents(row.nonzero()[0])) for row in new.loads),
        fewest=new.exact,
        design=design,
    )


def _all(findings: Sequence[Finding]) -> bool | None:
    """Return False if a condition fails, else None if one is open, else True."""
    known = [found.holds for found in findings]
    return False if False in known else None if None in known else True


def _unless_bad(findings: Sequence[Finding]) -> bool | None:
    """Return None, as no theorem is about this, or False where that is certain anyway."""
    return False if any(found.status == "fails" for found in findings) else None


def generic_names(certificate: Certificate) -> tuple[str, ...]:
    """Return the names of the findings that the generic guarantee rests on."""
    subset = ("subset",) if certificate.finding("subset").required else ()
    families = () if certificate.design.families is None else ("analytic-families",)
    return ("covered", "own-items", "blocks", *subset, *families, *GRANTED)
