"""Warnings about fits that rest on too little: idle latents, few rows, little information."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.em.m_step import BOUND_SHARE
from hidag.exceptions import IdentifiabilityWarning, MisfitWarning
from hidag.fitting.information_criteria import free_terms, n_free_loadings
from hidag.formatting import format_value
from hidag.identifiability.certificate import Certificate
from hidag.identifiability.findings import Finding
from hidag.latent.laws import LatentLaw, NetworkLaw, n_free_probabilities
from hidag.measurement.families import default_family
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.network_em.overdispersion import CountDispersion
from hidag.results import FitResult
from hidag.strategy.observed_likelihood.edge_tests import KnowledgeCost
from hidag.structure.knowledge import Knowledge, admits_complete_dag

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


# --- Items whose dispersion ended as small as it may be: what that means, said in words

#: What settings call such items, and the words that every sentence about them has.
NOISELESS_SETTING, NOISELESS_SIGN = "noiseless", "no noise beside the latents"
#: So many items are named one by one.
_FEW_NOISELESS = 4


def noiseless_items(
    parameters: MeasurementParameters, smallest: NDArray[np.bool_], names: Sequence[str]
) -> list[str]:
    """Return the items that are all but functions of their latents.

    Parameters
    ----------
    parameters : MeasurementParameters
    smallest : ndarray of bool, shape (J,)
        Whose dispersions ended as small as they may be.
    names : sequence of str, length J
    """
    # Other families then are laws with noise of their own.
    return [
        names[j]
        for j in np.flatnonzero(smallest).tolist()
        if not family_named(parameters.families[j]).limiting_distribution
    ]


#: Families of items with few values.
_CATEGORICAL = tuple(map(default_family, ("binary", "grades", "categories")))


def noiseless_sentence(items: Sequence[str], n_items: int) -> str:
    """Return in a sentence which items are left no noise, and what to do.

    Parameters
    ----------
    items : sequence of str
        As `noiseless_items` returns them, not empty.
    n_items : int
        All items of the table.
    """
    have, their = ("items has", "its") if len(items) == 1 else ("items have", "their")
    return (
        f"{len(items)} of {n_items} {have} {NOISELESS_SIGN} "
        f"({_listed([repr(name) for name in items])}): "
        f"{their} dispersion ended at the smallest that is allowed and is no estimate, and "
        "latents' levels are read off such a column alone; if it has few values, number them from "
        f"0 up and give it a type for these ({', '.join(_CATEGORICAL)}), and if it was made "
        "of other columns, or says what the latents are to find, drop the column"
    )


def warn_of_noiseless(items: Sequence[str], n_items: int, *, stacklevel: int) -> None:
    """Warn of items that are all but functions of their latents, if there are any."""
    if items:
        sentence = noiseless_sentence(items, n_items)
        warnings.warn(sentence, IdentifiabilityWarning, stacklevel=stacklevel + 1)


def least_cases_in_words(result: FitResult) -> list[str]:
    """Return which items ended in a simpler law than their family's, a sentence for each law."""
    found: dict[str, list[str]] = {}
    parameters = result.parameters
    for j, name in enumerate(result.response_names):
        family = family_named(parameters.families[j])
        least = (1.0 + BOUND_SHARE) * family.dispersion_bounds[0]
        if family.limiting_distribution and parameters.dispersion[j] <= least:
            found.setdefault(
                f"of the {family.name} items ended as {family.limiting_distribution}", []
            ).append(name)
    return [
        f"{len(names):,} {words} with the smallest dispersion there is ({_listed(names)})."
        for words, names in found.items()
    ]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_FEW_NOISELESS])
    rest = len(names) - _FEW_NOISELESS
    return f"{shown} and {rest} more" if rest > 0 else shown


# --- Counts that vary more than the fitted Poisson families let them: which, and what to do

#: Chance that a table of Poisson items alone is warned about, at the most.
LEVEL = 0.001
#: Less variation beyond the family's than this, however sure, changes nothing that one would say.
SIZEABLE_RATIO = 1.2
#: The family with room for it.
CURE = family_named(default_family("count")).overdispersed_alternative or ""
#: What settings call such items, and the words that every sentence about them has.
OVERDISPERSED_SETTING, OVERDISPERSED_SIGN = "overdispersed", "than Poisson counts do"
#: So many items are named one by one.
_FEW_OVERDISPERSED = 4


def overdispersed_items(found: CountDispersion, names: tuple[str, ...]) -> dict[str, float]:
    """Return how many times their Poisson variance items have, where that is no chance.

    Parameters
    ----------
    found : CountDispersion
    names : tuple of str
        Of the items that ``found`` numbers.
    """
    level = LEVEL / max(len(found.items), 1)
    sure = (found.p_value < level) & (found.ratio >= SIZEABLE_RATIO)
    # Digits beyond these depend on the order in which rows were added up.
    return {
        names[item]: float(np.round(ratio, 3))
        for item, ratio in zip(found.items[sure], found.ratio[sure], strict=True)
    }


def overdispersion_sentence(
    ratios: Mapping[str, float], n_items: int, cure: str | None = None
) -> str:
    """Return in a sentence which items vary too much for Poisson counts, and the cure.

    Parameters
    ----------
    ratios : mapping
        As `overdispersed_items` returns it, not empty.
    n_items : int
        All items of the table.
    cure : str, optional
        How families are set; as the estimator takes them by default.
    """
    worst = max(ratios, key=lambda name: ratios[name])
    vary = "items varies" if len(ratios) == 1 else "items vary"
    most = "" if len(ratios) == 1 else "most of all "
    return (
        f"{len(ratios)} of {n_items} {vary} more {OVERDISPERSED_SIGN} given the latents "
        f"({most}{worst!r}, "
        f"{_rounded(ratios[worst])} times as much), so levels of latents, edges and errors are "
        f"less certain than they seem; fit again with {cure or _family_setting(ratios, n_items)}, "
        "or with more latents or interactions"
    )


def _rounded(ratio: float) -> str:
    """Return two digits of a ratio, with zeros after them in place of a power of ten."""
    return format_value(float(f"{ratio:.2g}"))


def _family_setting(ratios: Mapping[str, float], n_items: int) -> str:
    """Return the setting that gives such items their family, short enough to be read."""
    if len(ratios) == n_items:
        return f"family={CURE!r}"
    shown = dict.fromkeys(list(ratios)[:_FEW_OVERDISPERSED], CURE)
    if len(ratios) <= _FEW_OVERDISPERSED:
        return f"family={shown!r}"
    where = f"result_.settings[{OVERDISPERSED_SETTING!r}]"
    return f"family={repr(shown)[:-1]}, ...}} ({where} has them all)"


def warn_of_overdispersion(ratios: Mapping[str, float], n_items: int, *, stacklevel: int) -> None:
    """Warn of items that vary too much, if there are any."""
    if ratios:
        sentence = overdispersion_sentence(ratios, n_items)
        warnings.warn(sentence, MisfitWarning, stacklevel=stacklevel + 1)


# --- What the data have against what a fit was told beforehand: kept with the fit, said in

#: Where the settings of a fit hold it, and its two parts.
KEPT_AS = "knowledge_cost"
GRAPH, HIERARCHY = "graph", "hierarchy"
#: Pairs that are named, the dearest first.
_NAMED_PAIRS = 3


def with_doubts(
    result: FitResult, of_graph: KnowledgeCost | None, hierarchy_loss: float
) -> FitResult:
    """Return the fit with what its data have against what it was told; as it is if nothing.

    Parameters
    ----------
    result : FitResult
    of_graph : KnowledgeCost or None
        What knowledge about the graph costs.
    hierarchy_loss : float
        What the observed data's log-likelihood lost when states were ruled out; NaN if none were.
    """
    costs = {GRAPH: of_graph, HIERARCHY: _cost_of_hierarchy(result, hierarchy_loss)}
    told = {part: asdict(cost) for part, cost in costs.items() if cost is not None and cost.strong}
    return replace(result, settings={**result.settings, KEPT_AS: told}) if told else result


def _cost_of_hierarchy(result: FitResult, loss: float) -> KnowledgeCost | None:
    if result.ruled_out is None or np.isnan(loss):
        return None
    in_sum_only = int(free_terms(result).sum()) - n_free_loadings(result)
    fewer = int(result.ruled_out.sum()) + in_sum_only
    return KnowledgeCost(loss, 0.5 * float(np.log(max(_n_rows(result), 2.0))) * fewer)


def doubts_of_knowledge(result: FitResult) -> list[str]:
    """Return what the data have against what the fit was told, as sentences; empty if nothing."""
    costs = result.settings.get(KEPT_AS)
    if not isinstance(costs, Mapping):
        return []
    out = []
    if GRAPH in costs:
        cost = costs[GRAPH]
        dear = [f"{a} and {b} ({lost:,.1f})" for a, b, lost in cost["pairs"][:_NAMED_PAIRS]]
        pairs = f"; kept apart, each pair alone: {', '.join(dear)}" if dear else ""
        out.append(
            "the data speak against what was told about the graph: "
            f"{_price(result, cost)}{pairs}{_law_in_words(result)}"
        )
    if HIERARCHY in costs:
        out.append(
            "the data speak against the hierarchy, by people in states that it rules out: "
            f"{_price(result, costs[HIERARCHY])}"
        )
    return out


def _price(result: FitResult, cost: Mapping[str, Any]) -> str:
    made_up = (
        f", and fewer parameters make up for {cost['saved']:,.1f}" if cost["saved"] > 0 else ""
    )
    # Absent in files of versions that asked the observed data only.
    counted = cost.get("counted")
    where = f"{_n_rows(result):,.0f} rows"
    if counted is not None:
        where = f"expected counts of the latents, which stand for {counted:,.0f} rows"
    return f"it costs {cost['log_likelihood']:,.1f} units of log-likelihood in {where}{made_up}"


def _law_in_words(result: FitResult) -> str:
    """Return that the law does not obey, where it does not; the graph always does."""
    known = Knowledge.from_dict(result.settings["knowledge"])
    if isinstance(result.law, NetworkLaw) or admits_complete_dag(known, result.latent_names):
        return ""
    return "; the saturated law that was asked for does not obey it, the graph does"


def _n_rows(result: FitResult) -> float:
    return result.n_samples if np.isnan(result.n_counted) else result.n_counted
