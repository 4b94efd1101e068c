"""Certificates: all findings about a design, the verdicts they imply, and their text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hidag.formatting import join_names, plural, sentence_case
from hidag.identifiability import assumptions, generic_conditions, strict_conditions
from hidag.identifiability.blocks import Blocks
from hidag.identifiability.design import (
    Finding,
    FittedModel,
    MeasurementDesign,
    describe_additions,
    read_design,
)
from hidag.identifiability.information import full_rank
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import ALL_ORDERS
from hidag.views import View

if TYPE_CHECKING:
    from hidag.results import FitResult

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
#: Marks that verdicts refer to; "?" also marks assumptions.
STATUS_MARKS = {"holds": "+", "fails": "-", "undecided": "?"}
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

#: Up to this many joint states predictors are computed for all of them; beyond that each item is
#: examined over its own latents only, and the information is not computed.
MOST_LISTED_STATES = 1 << 13


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(
    View, title="strict: {0.strict}, generic: {0.generic}", frames={"conditions": "_conditions"}
):
    """Identifiability of a Q-matrix or a fit.

    Attributes
    ----------
    strict : bool or None
        True if the distribution of the data determines every admissible parameter, up to the order
        of the latents; False if every theorem that could apply has a condition that fails; None if
        it depends on arguments that were not given (coefficients, families).
    generic : bool or None
        The same for all parameters except a set of measure zero. Strict implies generic.
    findings : tuple of Finding, one for each condition
    blocks : Blocks or None, rows of Q that satisfy the block condition
    additions : tuple of tuple of str, new items for a generic guarantee, by their latents
    fewest : bool, whether no smaller number of new items suffices
    design : MeasurementDesign, what the certificate is about
    """

    strict: bool | None
    generic: bool | None
    findings: tuple[Finding, ...]
    blocks: Blocks | None
    additions: tuple[tuple[str, ...], ...]
    fewest: bool
    design: MeasurementDesign

    def _conditions(self) -> list[dict[str, Any]]:
        return [
            {"condition": one.name, "status": one.status, "source": one.source,
             "finding": one.sentence}
            for one in self.findings
        ]  # fmt: skip

    def finding(self, name: str) -> Finding:
        """Return the finding of that name."""
        return next(found for found in self.findings if found.name == name)

    def reasons(self, claim: Literal["generic", "strict"] = "generic") -> tuple[Finding, ...]:
        """Return the findings that prevent a ``claim``: those that fail, else undecided ones.

        Undecided assumptions that are taken to hold, and conditions of the other claim, are left
        out. Empty if the claim is guaranteed.
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
    q_matrix : array-like or data frame, shape (J, K), FitResult or DCRL
        1 if an item loads on a latent, else 0. A data frame may name items (first column 'item', or
        a pandas index of text) and latents (its columns). A fit has its own effects, levels and
        families.
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

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> hidag.check_identifiability(skills.q_matrix, effects="main").generic
    True
    """
    fit = getattr(q_matrix, "result_", q_matrix)
    if hasattr(fit, "parameters"):
        return certify_q_matrix(fit)
    return certify(read_design(q_matrix, effects=effects, levels=levels, families=families))


def certify(
    design: MeasurementDesign,
    fitted: FittedModel | None = None,
    *,
    information: bool = True,
    random_state: int = 0,
) -> Certificate:
    """Return the certificate of a design, or of a fit; with the rank of the information if set."""
    covered = generic_conditions.every_latent_measured(design)
    pure = _present(strict_conditions.pure_items_condition(design))
    separated = strict_conditions.states_separated(design, fitted)
    strict_findings = [strict_conditions.identity_blocks(design), separated]
    blocks, search = generic_conditions.block_condition(design)
    subset = generic_conditions.subset_condition(design)
    law = assumptions.positive_law(design, fitted)
    monotone = assumptions.monotone_items(design, fitted)
    families = assumptions.analytic_families(design, fitted)
    # Assumptions count against a guarantee only if a fit contradicts them.
    necessary = [covered, *pure]
    refuted = [found for found in (law, monotone) if found.status == "fails"]
    required = [blocks] + [subset] * subset.required + [families] * (design.families is not None)
    if design.binary:
        strict = _all_hold([*necessary, *strict_findings, *refuted])
    else:  # no theorem covers more levels
        strict = False if any(found.status == "fails" for found in necessary) else None
    generic = True if strict else _all_hold([*necessary, *required, *refuted])
    new = generic_conditions.Additions(design.q[:0], True)
    # No theorem covers conjunctive items, so no additional items can give a guarantee.
    if not pure and (blocks.holds is False or (subset.required and subset.holds is False)):
        new = generic_conditions.sufficient_additions(design.q, search, subset=subset.required)
    rank = None
    if information and fitted is not None and design.families is not None:
        rank = full_rank(design, fitted, random_state=random_state)
    findings = (
        covered,
        *_present(assumptions.enough_response_patterns(design)),
        *pure,
        *(strict_findings if design.binary else ()),
        blocks,
        subset,
        law,
        assumptions.faithfulness(),
        monotone,
        families,
        assumptions.disentanglement(design, fitted, monotone.holds),
        *_present(assumptions.estimable_coefficients(design)),
        *_present(rank),
    )
    additions = tuple(tuple(design.latents(row.nonzero()[0])) for row in new.loads)
    return Certificate(strict, generic, findings, search.blocks, additions, new.exact, design)


def _present(found: Finding | None) -> list[Finding]:
    return [] if found is None else [found]


def _all_hold(findings: Iterable[Finding]) -> bool | None:
    """Return False if a condition fails, else None if one is undecided, else True."""
    known = [found.holds for found in findings]
    return False if False in known else None if None in known else True


def _headline(design: MeasurementDesign) -> str:
    n_items, n_latents = design.q.shape
    latents = plural(n_latents, "binary latent" if design.binary else "latent")
    if not design.binary:
        ends = dict.fromkeys((min(design.levels), max(design.levels)))
        latents += f" with {' to '.join(map(str, ends))} levels"
    order = design.effects.highest
    effects = f"effects up to order {order}"
    effects = {1: "main effects", ALL_ORDERS: "all effects"}.get(order, effects)
    if design.effects.conjunctive:
        effects = "DINA or DINO items"
    return f"Identifiability of {plural(n_items, 'item')} on {latents}, {effects}"


def verdict_sentences(certificate: Certificate) -> list[tuple[str, str]]:
    """Return the verdicts as pairs of a head, such as "generic: ", and sentences."""
    design = certificate.design
    given = "given the assumptions marked ? below"
    generic, strict = _because(certificate, "generic"), _because(certificate, "strict")
    if certificate.generic:
        generic = (
            f"guaranteed ({_theorem_applied(certificate)}), {given}. The data determine all "
            "parameters except a set of measure zero, up to the order of the latents."
        )
    if certificate.strict:
        strict = (
            f"guaranteed ({strict_conditions.strict_theorem(design)}), {given}. The data determine "
            "all parameters, without exception."
        )
    elif certificate.strict is None and not design.binary:
        strict = "the paper has no theorem for latents with more than two levels."
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
    if directly or not certificate.strict:
        return generic_conditions.generic_theorem(design)
    return strict_conditions.strict_theorem(design)


def _because(certificate: Certificate, claim: Literal["generic", "strict"]) -> str:
    """Return that there is no guarantee, or that it is undecided, and the conditions to blame."""
    found = certificate.reasons(claim)
    titles = join_names([f'"{_TITLES[finding.name]}"' for finding in found])
    one = len(found) == 1
    state = f"{'is' if one else 'are'} undecided"
    if found and found[0].status == "fails":
        state = "fails" if one else "fail"
    verdict = "undecided" if getattr(certificate, claim) is None else "no guarantee"
    return f"{verdict}, because {titles} {state}."


def describe_finding(found: Finding) -> tuple[str, str]:
    """Return the title of a condition and its status in a few words."""
    status: str = found.status
    if found.status == "undecided":
        status = _UNDECIDED.get(found.name, "not decided by Q alone")
    if not found.required and found.name == "subset":
        status += " (not required)"
    return _TITLES[found.name], status


def _finding_lines(found: Finding) -> list[str]:
    title, status = describe_finding(found)
    lines = [f"{STATUS_MARKS[found.status]} {title}: {status} [{found.source}]"]
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
    indent = " " * len(head) if len(head) < 12 else "    "
    whole: Mapping[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=indent, **whole)


def certify_q_matrix(fit: FitResult) -> Certificate:
    """Return the certificate of the fit's Q-matrix, for any coefficients."""
    return certify(_design(fit, fit.q_matrix, fit.families))


def certify_result(fit: FitResult, *, information: bool = True) -> Certificate:
    """Return the certificate of a fit, with the rank of the Fisher information if requested."""
    # A nominal item has several responses; only the first counts as an item of the design.
    items = fit.parameters.reordered(items=fit.responses.starts)
    design = _design(fit, items.q_matrix, items.families)
    space = fit.law.space
    eta = items.predictors(space.states()) if space.n_states <= MOST_LISTED_STATES else None
    every = _tables_of_parameters(items, design.q, space.levels)
    tables = assumptions.mask_undetermined(design, every)
    fitted = FittedModel(tables, fit.law, eta, items.dispersion, items.cutpoints)
    return certify(design, fitted, information=information)


def _tables_of_parameters(
    items: MeasurementParameters, q: NDArray[np.bool_], levels: tuple[int, ...]
) -> tuple[NDArray[np.float64], ...]:
    """Return each item's predictor over its own latents, one axis for each of them."""
    out = []
    for row, intercept, loadings in zip(q, items.intercept, items.loadings, strict=True):
        latents = np.flatnonzero(row)
        features = items.terms.features(items.terms.states_of(latents))
        out.append((intercept + features @ loadings).reshape([levels[k] for k in latents]))
    return tuple(out)


def _design(fit: FitResult, q: NDArray[np.int8], families: tuple[str, ...]) -> MeasurementDesign:
    effects = fit.effects
    levels = fit.law.space.levels
    return MeasurementDesign(
        q == 1, fit.item_names, fit.latent_names, levels, effects, families, fit.ruled_out
    )
