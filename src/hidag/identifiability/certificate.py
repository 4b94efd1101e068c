"""Certificates: all findings about a design, the verdicts they imply, and their text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hidag.formatting import plural
from hidag.identifiability.assumptions import (
    analytic_families,
    disentanglement,
    enough_response_patterns,
    faithfulness,
    monotone_items,
    positive_law,
)
from hidag.identifiability.blocks import Blocks, items_per_block
from hidag.identifiability.design import MeasurementDesign, read_design
from hidag.identifiability.findings import Finding, describe_additions, join_names, sentence_case
from hidag.identifiability.fitted_conditions import FittedModel, estimable_coefficients
from hidag.identifiability.generic_conditions import (
    Additions,
    block_condition,
    every_latent_measured,
    generic_theorem,
    minimal_additions,
    subset_condition,
)
from hidag.identifiability.strict_conditions import (
    identity_blocks,
    pure_items_condition,
    states_separated,
    strict_theorem,
)

#: Titles of the conditions by name.
_TITLES = {
    "covered": "Every latent has an item",
    "answer-patterns": "Enough response patterns",
    "own-items": "A pure item for every latent",
    "identity-blocks": "Two identity blocks",
    "distinct-states": "Separated states",
    "blocks": "Block condition",
    "subset": "Subset condition",
    "positive-law": "Positive latent distribution",
    "faithful-graph": "Faithfulness",
    "monotone": "Monotone items",
    "analytic-families": "Analytic response families",
    "disentangled": "Nonparametric disentanglement",
    "estimable-coefficients": "Estimable coefficients",
    "information": "Rank of the information",
}
_MARKS = {"holds": "+", "fails": "-", "undecided": "?"}
#: Explanations of "undecided", if more than Q is missing.
_UNDECIDED = {
    "faithful-graph": "assumed",
    "own-items": "not covered by a theorem",
    "analytic-families": "undecided",
    "disentangled": "not covered",
    "information": "not computed",
}
_WIDTH = 96
_MAX_BLOCK_ROWS = 12

#: Assumptions that hold unless a fit contradicts them.
ASSUMED = ("positive-law", "monotone")
STRICT_NAMES = ("covered", "own-items", "identity-blocks", "distinct-states", *ASSUMED)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Identifiability of a Q-matrix or a fit.

    Attributes
    ----------
    strict : bool or None
        True: the distribution of the data determines every admissible parameter, up to the order of
        the latents. False: every theorem that could apply has a condition that fails. None: it
        depends on arguments that were not given (coefficients, families).
    generic : bool or None
        The same for all parameters except a set of measure zero. Strict implies generic.
    findings : tuple of Finding
        One per condition.
    blocks : Blocks or None
        Rows of Q that satisfy the block condition.
    additions : tuple of tuple of str
        New items that would give generic identifiability, each by the latents it loads on; empty if
        none is needed.
    fewest : bool
        Whether no smaller number of new items suffices.
    design : MeasurementDesign
        The design that was checked.
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
        """Return the findings that prevent a guarantee: those that fail, else undecided ones.

        Undecided assumptions that are taken to hold, and conditions of the other guarantee, are
        left out. Empty if the guarantee is given.
        """
        if self.generic if claim == "generic" else self.strict:
            return ()
        names = STRICT_NAMES
        if claim == "generic":
            subset = ("subset",) if self.finding("subset").required else ()
            families = () if self.design.families is None else ("analytic-families",)
            names = ("covered", "own-items", "blocks", *subset, *families, *ASSUMED)
        relevant = [found for found in self.findings if found.name in names]
        failing = tuple(found for found in relevant if found.status == "fails")
        return failing or tuple(
            found for found in relevant if found.status == "undecided" and found.name not in ASSUMED
        )

    @property
    def provably_bad(self) -> bool:
        """Whether different parameters are known to give the same distribution of the data."""
        return any(found.provably_bad and found.status == "fails" for found in self.findings)

    def summary(self) -> str:
        """Return the verdicts, every finding, and the items to add, as text."""
        lines = [_headline(self.design), ""]
        for head, sentences in verdict_sentences(self):
            lines += _wrap(head, sentences)
        lines.append("")
        for found in self.findings:
            lines += _finding_lines(found)
        if self.additions:
            enough = "the smallest number" if self.fewest else "fewer may suffice"
            advice = f"{describe_additions(self.additions)} ({enough})."
            lines += ["", *_wrap("For generic identifiability: ", advice)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as values that JSON can represent."""
        return {
            "strict": self.strict,
            "generic": self.generic,
            "provably_not_identified": self.provably_bad,
            "findings": [asdict(found) for found in self.findings],
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
    """Check the conditions of the paper's theorems on identifiability for a Q-matrix.

    Parameters
    ----------
    q_matrix : array-like or data frame, shape (J, K)
        1 if an item loads on a latent, else 0. A data frame may name items (first column 'item', or
        a pandas index of text) and latents (its columns).
    effects : {"main", "all", "acdm", "gdina", "dina", "dino"} or int, default="main"
        Main effects, all interactions, interactions up to an order, or the name of a model.
    levels : int or sequence of int (length K), default=2
        Number of levels of the latents.
    families : str, sequence of str (length J), mapping from item to family, or None
        Response families. Without them Assumption 2 is undecided and does not affect the verdict.

    Returns
    -------
    Certificate
        `strict`, `generic`, `findings`, `summary()`. The verdicts presume the assumptions that
        neither Q nor the families decide (positive distribution, faithfulness, monotone items).
    """
    return assemble(read_design(q_matrix, effects=effects, levels=levels, families=families), None)


def assemble(
    design: MeasurementDesign,
    fitted: FittedModel | None,
    *,
    separated: Finding | None = None,
    extra: Sequence[Finding] = (),
) -> Certificate:
    """Return the certificate of a design, or of a fit.

    Parameters
    ----------
    design : MeasurementDesign
    fitted : FittedModel or None
    separated : Finding, optional
        Separation of states by a fit; default by Q.
    extra : sequence of Finding
        Further findings that do not affect the verdicts.
    """
    covered = every_latent_measured(design)
    pure = _present(pure_items_condition(design))
    strict_findings = [identity_blocks(design), separated or states_separated(design)]
    blocks, search = block_condition(design)
    subset = subset_condition(design)
    law, monotone = positive_law(design, fitted), monotone_items(design, fitted)
    families = analytic_families(design, fitted)
    # Assumptions count against a guarantee only if a fit contradicts them.
    necessary = [covered, *pure]
    refuted = [found for found in (law, monotone) if found.status == "fails"]
    required = [blocks] + [subset] * subset.required + [families] * (design.families is not None)
    if design.binary:
        strict = _all_hold([*necessary, *strict_findings, *refuted])
    else:  # no theorem covers more levels
        strict = False if any(found.status == "fails" for found in necessary) else None
    generic = True if strict else _all_hold([*necessary, *required, *refuted])
    new = Additions(design.q[:0], True)
    # No theorem covers conjunctive items, so no additional items can give a guarantee.
    if not pure and (blocks.holds is False or (subset.required and subset.holds is False)):
        per_block = items_per_block(design.levels)
        new = minimal_additions(design.q, per_block, search, subset=subset.required)
    findings = (
        covered,
        *_present(enough_response_patterns(design)),
        *pure,
        *(strict_findings if design.binary else ()),
        blocks,
        subset,
        law,
        faithfulness(),
        monotone,
        families,
        disentanglement(design, fitted, monotone.holds),
        *_present(estimable_coefficients(design)),
        *extra,
    )
    return Certificate(
        strict=strict,
        generic=generic,
        findings=findings,
        blocks=search.blocks,
        additions=tuple(tuple(design.latents(row.nonzero()[0])) for row in new.loads),
        fewest=new.exact,
        design=design,
    )


def _present(found: Finding | None) -> list[Finding]:
    return [] if found is None else [found]


def _all_hold(findings: Iterable[Finding]) -> bool | None:
    """Return False if a condition fails, else None if one is undecided, else True."""
    known = [found.holds for found in findings]
    return False if False in known else None if None in known else True


def _headline(design: MeasurementDesign) -> str:
    levels = sorted(set(design.levels))
    latents = plural(design.n_latents, "binary latent" if design.binary else "latent")
    if not design.binary:
        latents += f" with {' to '.join(map(str, dict.fromkeys((levels[0], levels[-1]))))} levels"
    effects = {1: "main effects", None: "all effects"}.get(
        design.max_order, f"effects up to order {design.max_order}"
    )
    if design.conjunctive:
        effects = "DINA or DINO items"
    return f"Identifiability of {plural(design.n_items, 'item')} on {latents}, {effects}"


def verdict_sentences(certificate: Certificate) -> list[tuple[str, str]]:
    """Return the verdicts as pairs of a head, such as "generic: ", and sentences."""
    design = certificate.design
    given = "given the assumptions marked ? below"
    generic = {
        True: f"guaranteed ({_theorem_applied(certificate)}), {given}. The data determine all "
        "parameters except a set of measure zero, up to the order of the latents.",
        False: f"no guarantee, because {_because(certificate, 'generic')}.",
        None: f"undecided, because {_because(certificate, 'generic')}.",
    }[certificate.generic]
    strict = {
        True: f"guaranteed ({strict_theorem(design)}), {given}. The data determine all parameters, "
        "without exception.",
        False: f"no guarantee, because {_because(certificate, 'strict')}.",
        None: f"undecided, because {_because(certificate, 'strict')}."
        if design.binary
        else "the paper has no theorem for latents with more than two levels.",
    }[certificate.strict]
    notes = []
    if certificate.generic and design.truncated and not (design.binary and design.main_effects):
        notes.append(
            "The theorem is stated for all effects. Its proof excludes only parameters that main "
            "effects describe, so it covers fewer interactions too."
        )
    bad = {f.name for f in certificate.findings if f.provably_bad and f.status == "fails"}
    if bad == {"estimable-coefficients"}:
        notes.append(
            "The model is not identified: only sums of some coefficients are estimable. Quantities "
            "that depend on these sums alone, such as predictions in possible states, are not "
            "affected."
        )
    elif bad:
        notes.append(
            "The model is not identified: unless the latent distribution is restricted, different "
            "parameters give the same distribution of the data."
        )
    elif certificate.generic is False:
        notes.append(
            "The conditions of the theorems are sufficient. A failure does not prove that the "
            "model is not identified."
        )
    return [("generic: ", generic), ("strict:  ", strict), *(("", note) for note in notes)]


def _theorem_applied(certificate: Certificate) -> str:
    """Return the theorem that gives the generic guarantee."""
    design = certificate.design
    names = ["blocks"] + ["analytic-families"] * (design.families is not None)
    directly = all(certificate.finding(name).holds for name in names)
    use_generic = directly or not certificate.strict
    return generic_theorem(design) if use_generic else strict_theorem(design)


def _because(certificate: Certificate, claim: Literal["generic", "strict"]) -> str:
    """Return the conditions that prevent a guarantee, as the end of a sentence."""
    found = certificate.reasons(claim)
    titles = join_names([f'"{_TITLES[finding.name]}"' for finding in found])
    one = len(found) == 1
    if found and found[0].status == "fails":
        return f"{titles} {'fails' if one else 'fail'}"
    return f"{titles} {'is' if one else 'are'} undecided"


def describe_finding(found: Finding) -> tuple[str, str]:
    """Return the title of a condition and its status in a few words."""
    status: str = found.status
    if found.status == "undecided":
        status = _UNDECIDED.get(found.name, "not decided by Q alone")
    if not found.required and found.name == "subset":
        status += " (not required)"
    return _TITLES[found.name], status


def status_mark(found: Finding) -> str:
    """Return the mark that verdicts refer to: + holds, - fails, ? is undecided or assumed."""
    return _MARKS[found.status]


def _finding_lines(found: Finding) -> list[str]:
    title, status = describe_finding(found)
    lines = [f"{status_mark(found)} {title}: {status} [{found.source}]"]
    lines += _wrap("    ", sentence_case(found.sentence) + ".")
    if found.name == "blocks" and found.status == "holds":
        lines.append("      latent: Q1 | Q2 | Q3")
        lines += [
            f"      {name}: {', '.join(w['first'])} | {', '.join(w['second'])} | {w['outside']}"
            for name, w in list(found.witness.items())[:_MAX_BLOCK_ROWS]
        ]
        if len(found.witness) > _MAX_BLOCK_ROWS:
            lines.append(f"      ... and {len(found.witness) - _MAX_BLOCK_ROWS} more")
    if found.advice:
        lines += _wrap("    -> ", sentence_case(found.advice) + ".")
    return lines


def _wrap(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head) if len(head) < 12 else "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
