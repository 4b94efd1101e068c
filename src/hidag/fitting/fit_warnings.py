"""Warnings after a fit: weak evidence, noise, overdispersion, interactions, knowledge conflicts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearson3

from hidag.config import CONFIG
from hidag.em.posterior import state_posteriors
from hidag.exceptions import Advice, HidagWarning, IdentifiabilityWarning, Message, Setting
from hidag.fitting.information_criteria import free_terms, n_free_loadings
from hidag.formatting import format_value
from hidag.identifiability.certificate import Certificate
from hidag.latent.laws import LatentLaw, NetworkLaw, n_free_probabilities
from hidag.measurement.families import default_family
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.network_em.posterior import sampled_states
from hidag.results import FitResult
from hidag.strategy.observed_likelihood.edge_tests import KnowledgeCost
from hidag.structure.knowledge import Knowledge, admits_complete_dag

Array = NDArray[np.float64]

#: Families for columns with few values.
_DISCRETE = tuple(map(default_family, ("binary", "grades", "categories")))
#: Number of items or pairs that a message names.
_NAMED_ITEMS, _NAMED_PAIRS = 4, 3
#: Frames between ``warnings.warn`` here and the caller of ``fit``.
_STACK = 4


@dataclass(frozen=True)
class Needs:
    """Sample sizes that the fit requires and those that the table has."""

    n_rows: float
    item_rows: float  # observed rows of the item with the fewest rows per coefficient
    n_coefficients: int  # possible coefficients of that item
    n_probabilities: int  # free probabilities of the graph's law; 0 for a saturated law
    q_given: bool  # whether all of Q was given

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
        """Return the sample sizes, given the share of rows that observed each item, (J,).

        Entries of Q (J, K) that were estimated are -1; they count even if they were not selected.
        ``possible`` are the joint states that a hierarchy allows, (S,).
        """
        n_coefficients = 1 + (entries != 0) @ (np.array(levels) - 1)
        item_rows = n_rows * observed
        tightest = int(np.argmin(item_rows / n_coefficients))
        n_probabilities = 0
        if isinstance(law, NetworkLaw):
            n_probabilities = n_free_probabilities(law.parents, law.space, possible)
        rows, n = float(item_rows[tightest]), int(n_coefficients[tightest])
        return cls(n_rows, rows, n, n_probabilities, bool((entries >= 0).all()))


def warn_of_weak_evidence(
    parameters: MeasurementParameters,
    latent_names: tuple[str, ...],
    needs: Needs,
    ratio: float,
    certificate: Certificate | None = None,
    *,
    one_start: bool = False,
) -> None:
    """Warn about unused latents, missing identifiability, few rows and a low information ratio.

    The certificate of the Q-matrix is None if the user was warned about it before the fit. If only
    one start was run to convergence, it may have missed a latent.
    """
    n_items = parameters.q_matrix.sum(axis=0)
    n_latents = len(latent_names)
    pairs = list(zip(latent_names, n_items, strict=True))
    unused, single = ([name for name, n in pairs if n == number] for number in (0, 1))
    if len(unused) == n_latents:
        _warn("no-latents", "no item depends on any latent: the data show no latent structure")
        return
    if unused:
        _warn(
            "unused-latent",
            "no item depends on {latents}: the data support fewer latents"
            + (", or the only start that converged missed some" if one_start else ""),
            advice=("fit again with a larger {starts}, or " if one_start else "")
            + "use {setting} instead of {n_latents}",
            latents=" and ".join(unused),
            starts=Setting("n_starts"),
            setting=Setting("n_latents", n_latents - len(unused)),
            n_latents=n_latents,
        )
    if single:
        _warn(
            "single-item-latent",
            "only one item depends on {latents}, so that its level cannot be separated from the "
            "noise of that item",
            advice="use fewer latents or add items",
            latents=" and on ".join(single),
        )
    if certificate is not None and certificate.generic is False and not unused and not single:
        # States excluded by a hierarchy are the user's own decision.
        failed = [f for f in certificate.reasons("generic") if f.name != "positive-law"]
        if failed:
            _warn(
                "not-identified",
                "this Q-matrix has no guarantee of identifiability: {reason}",
                reason=failed[0].sentence[0].lower() + failed[0].sentence[1:].rstrip("."),
            )
    effective, config = needs.n_rows * ratio, CONFIG.fit_warnings
    if needs.item_rows < config.rows_per_coefficient * needs.n_coefficients:
        _warn(
            "few-rows",
            "{rows:.10g} rows are few for {n} coefficients {whose}; {what} are unreliable",
            advice="add rows" if needs.q_given else "add rows or use fewer latents",
            rows=needs.item_rows,
            n=needs.n_coefficients,
            whose="of an item" if needs.q_given else "that an item may have",
            what="they and the graph" if needs.q_given else "Q and the graph",
        )
    elif n_latents > 1 and ratio < config.low_information:
        _warn(
            "low-information",
            "low information ratio: the items carry {ratio:.1%} of the information about the "
            "dependence among the latents, and the graph is unreliable",
            advice="use fewer latents or add items",
            ratio=ratio,
        )
    elif n_latents > 1 and effective < config.rows_per_probability * needs.n_probabilities:
        _warn(
            "few-effective-rows",
            "the effective sample size for the dependence among the latents is {effective:.0f} "
            "rows, few for {n} probabilities of the graph, which is unreliable",
            advice="add rows or items",
            effective=effective,
            n=needs.n_probabilities,
        )


def _warn(code: str, template: str, advice: str | None = None, **params: object) -> None:
    warning = IdentifiabilityWarning(code, template, advice=advice, **params)
    warnings.warn(warning, stacklevel=_STACK + 1)


def warn_if(message: Message | None, kind: type[HidagWarning], *, stacklevel: int) -> None:
    """Warn with a message, if there is one."""
    if message is not None:
        warnings.warn(kind.of(message), stacklevel=stacklevel + 1)


def noiseless_items(
    parameters: MeasurementParameters, at_bound: NDArray[np.bool_], names: Sequence[str]
) -> tuple[str, ...]:
    """Return items that their latents nearly determine; ``at_bound`` (J,) marks dispersions."""
    # At the bound, families with a limiting case are simpler distributions that have noise.
    return tuple(
        names[j]
        for j in np.flatnonzero(at_bound).tolist()
        if not family_named(parameters.families[j]).limiting_distribution
    )


def noiseless_message(result: FitResult) -> Message | None:
    """Return a message about items without noise given the latents, or None."""
    items = result.noiseless
    if not items:
        return None
    one = len(items) == 1
    return Message(
        "noiseless-items",
        "{n} of {n_items} {have} no noise given the latents ({items}): {their} dispersion is at "
        "its lower bound, it is not an estimate, and the latents reproduce {column}",
        {
            "n": len(items),
            "n_items": len(result.item_names),
            "have": "items has" if one else "items have",
            "their": "its" if one else "their",
            "column": "this column" if one else "these columns",
            "items": _listed([repr(name) for name in items]),
        },
        Advice(
            "recode-noiseless",
            "if the column has few values, code them 0, 1, ... and declare a discrete family "
            "({discrete}); if it was computed from other columns or is an outcome that the "
            "latents should explain, drop the column",
            {"discrete": ", ".join(_DISCRETE)},
        ),
    )


def limiting_cases(result: FitResult) -> list[str]:
    """Return which items were fitted as a limiting case of their family, one sentence for each."""
    found: dict[str, list[str]] = {}
    parameters = result.parameters
    for j, name in enumerate(result.response_names):
        family = family_named(parameters.families[j])
        least = (1.0 + CONFIG.m_step.boundary_share) * family.dispersion_bounds[0]
        if family.limiting_distribution and parameters.dispersion[j] <= least:
            kind = f"of the {family.name} items are fitted as {family.limiting_distribution}"
            found.setdefault(kind, []).append(name)
    return [
        f"{len(names):,} {kind}: their dispersion is at its lower bound ({_listed(names)})."
        for kind, names in found.items()
    ]


def boundary_estimates(result: FitResult) -> list[str]:
    """Return one sentence on probabilities of answers and states that are estimated as 0 or 1.

    An estimate is on the boundary if it leaves less than a share of one row of the table for the
    other answer, or for the state. Empty if there is none, or states are too many to list.
    """
    space, limit = result.law.space, CONFIG.fit_warnings.boundary_rows
    if space.n_states > CONFIG.enumeration.largest_exact_states:
        return []
    states, parameters = space.states(), result.parameters
    rows = result.n_samples * np.asarray(result.law.probabilities)
    means, items = parameters.response_means(states), []
    for r, name in enumerate(result.response_names):
        if not family_named(parameters.families[r]).is_binary:
            continue
        own = np.flatnonzero(parameters.support[r])
        _, first, cell = np.unique(states[:, own], axis=0, return_index=True, return_inverse=True)
        in_cell, mean = np.bincount(cell.ravel(), rows), means[first, r]
        if ((in_cell >= 1.0) & (in_cell * np.minimum(mean, 1.0 - mean) < limit)).any():
            items.append(name)
    possible = np.ones(len(rows), bool) if result.ruled_out is None else ~result.ruled_out
    n_empty = int((possible & (rows < limit)).sum())
    found = [f"in {_listed(items)}, of an answer given the latents"] if items else []
    found += [f"of {n_empty:,} of {int(possible.sum()):,} joint states"] if n_empty else []
    return [
        f"Some probabilities are estimated as 0 or 1: {'; '.join(found)}. Such estimates are on "
        "the boundary; they have no standard error, and a larger table may give other values."
    ][: len(found)]


def _listed(names: Sequence[str]) -> str:
    first, rest = ", ".join(names[:_NAMED_ITEMS]), len(names) - _NAMED_ITEMS
    return f"{first} and {rest} more" if rest > 0 else first


class CountDispersion(NamedTuple):
    """Variation of Poisson items given the latents."""

    items: NDArray[np.intp]  # (n,)
    ratio: Array  # (n,): mean of ``(x - mu)^2`` over the mean of ``mu``; NaN without observed cells
    p_value: Array  # (n,): one-sided p-value of the score test


def count_dispersion(
    parameters: MeasurementParameters,
    law: LatentLaw,
    values: Array,
    weights: Array | None = None,
    *,
    sampled: bool | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> CountDispersion:
    """Return dispersion ratios and score tests of all Poisson items, in a table (N, J).

    A negative binomial with variance ``mu + a mu^2`` is Poisson at ``a = 0``, where the score of a
    count is ``s = ((x - mu)^2 - x) / 2``, with mean zero, variance ``mu^2 / 2`` and third moment
    ``mu^3 + mu^2 / 2`` given the latents. Its expectation given the row varies less: a test by
    these moments is conservative. With ``sampled`` (default with many states, needs a network)
    latents are drawn from the posterior, once per row, instead of summed out.
    """
    items = np.flatnonzero(
        [family_named(f).overdispersed_alternative is not None for f in parameters.families]
    )
    if not len(items):
        return CountDispersion(items, np.zeros(0), np.zeros(0))
    counts = np.ones(len(values)) if weights is None else weights
    if sampled is None:
        sampled = law.space.n_states > CONFIG.network_em.max_summed_states
    states = None
    if sampled and isinstance(law, NetworkLaw):
        states = sampled_states(parameters, law, values, seed=seed, n_threads=n_threads)
    blocks = _powers_of_means(parameters, law, values, items, states)
    squares, score, sums = np.zeros(len(items)), np.zeros(len(items)), np.zeros((3, len(items)))
    for rows, powers in blocks:
        x = values[rows][:, items]
        seen = ~np.isnan(x)
        w = seen * counts[rows, None]
        x = np.where(seen, x, 0.0)
        spread = x**2 - 2.0 * x * powers[0] + powers[1]
        squares += (w * spread).sum(axis=0)
        score += (w * (spread - x)).sum(axis=0) / 2.0
        sums += (w * powers).sum(axis=1)
    first, second, third = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = second / 2.0
        skewness = (third + second / 2.0) / variance**1.5
        # A Pearson III distribution: the score is skewed when a few counts are large.
        p_value = pearson3.sf(score / np.sqrt(variance), skewness)
        return CountDispersion(items, squares / first, np.where(variance > 0, p_value, np.nan))


def _powers_of_means(
    parameters: MeasurementParameters,
    law: LatentLaw,
    values: Array,
    items: NDArray[np.intp],
    states: NDArray[np.integer] | None,
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges and powers of mu, (3, rows, n), in given states or their posterior means."""
    if states is None:
        means = parameters.response_means(law.space.states())[:, items]
        powers = np.hstack([means, means**2, means**3])
        for rows, posterior in state_posteriors(parameters, law, values):
            expected = (posterior @ powers).reshape(len(posterior), 3, len(items))
            yield rows, np.moveaxis(expected, 1, 0)
        return
    n_rows = CONFIG.network_em.dispersion_block_rows
    for start in range(0, len(states), n_rows):
        rows = slice(start, min(start + n_rows, len(states)))
        means = parameters.response_means(states[rows])[:, items]
        yield rows, np.stack([means, means**2, means**3])


def overdispersed_items(found: CountDispersion, names: tuple[str, ...]) -> dict[str, float]:
    """Return the ratio of observed to Poisson variance of items where it is significant."""
    config = CONFIG.fit_warnings
    level = config.overdispersion_level / max(len(found.items), 1)
    significant = (found.p_value < level) & (found.ratio >= config.min_variance_ratio)
    # Further digits depend on the order of summation over rows.
    return {
        names[item]: float(np.round(ratio, 3))
        for item, ratio in zip(found.items[significant], found.ratio[significant], strict=True)
    }


def overdispersion_message(result: FitResult) -> Message | None:
    """Return a message about counts with more variance than Poisson, or None."""
    ratios = result.overdispersed
    if not ratios:
        return None
    worst = max(ratios, key=lambda name: ratios[name])
    own = dict(zip(result.item_names, result.families, strict=True))
    suggested = {name: family_named(own[name]).overdispersed_alternative for name in ratios}
    same = len(ratios) == len(result.item_names) and len(set(suggested.values())) == 1
    family: Any = suggested[worst] if same else suggested
    return Message(
        "overdispersed-counts",
        "{n} of {n_items} {have} more variance than the Poisson family given the latents "
        "({most}{worst!r}, {ratio} times as much), so that standard errors, classification and "
        "edges are overconfident",
        {
            "n": len(ratios),
            "n_items": len(result.item_names),
            "have": "items has" if len(ratios) == 1 else "items have",
            "most": "" if len(ratios) == 1 else "the largest: ",
            "worst": worst,
            "ratio": format_value(float(f"{ratios[worst]:.2g}")),
            "items": tuple(ratios),
            "family": Setting("family", family),
        },
        Advice("use-family", "fit again with {family}, or with more latents or interactions"),
    )


def interactions_message(result: FitResult) -> Message | None:
    """Return a message about interactions that main effects leave out, or None.

    Not about overdispersed items, whose family is the likelier reason.
    """
    items = [name for name in result.interacting if name not in result.overdispersed]
    if not items:
        return None
    q_open = result.q_given is None or bool((result.q_given < 0).any())
    return Message(
        "interactions-left-out",
        "score tests find interactions of the latents in {n} of {n_items} items ({listed}) that "
        "main effects leave out, so that {what} may be wrong",
        {
            "n": len(items),
            "n_items": len(result.item_names),
            "listed": _listed([repr(name) for name in items]),
            "items": tuple(items),
            "what": "Q and the graph" if q_open else "the graph",
            "effects": Setting("effects", "auto"),
        },
        Advice(
            "use-interactions",
            "fit again with {effects}, unless another family or number of levels is more plausible",
        ),
    )


#: Messages about the items that follow from a result alone.
MESSAGES = (overdispersion_message, interactions_message, noiseless_message)


def with_knowledge_cost(
    result: FitResult, of_graph: KnowledgeCost | None, hierarchy_loss: float
) -> FitResult:
    """Return the fit with the log-likelihood lost by knowledge; NaN without a hierarchy."""
    costs = {"graph": of_graph}
    if result.ruled_out is not None and not np.isnan(hierarchy_loss):
        in_sum_only = int(free_terms(result).sum()) - n_free_loadings(result)
        fewer = int(result.ruled_out.sum()) + in_sum_only
        saved = 0.5 * float(np.log(max(_n_rows(result), 2.0))) * fewer
        costs["hierarchy"] = KnowledgeCost(hierarchy_loss, saved)
    strong = {part: cost for part, cost in costs.items() if cost is not None and cost.strong}
    return replace(result, knowledge_cost=strong)


def knowledge_conflicts(result: FitResult) -> list[Message]:
    """Return a message for each part of the prior knowledge that the data contradict."""
    template = (
        "the data contradict the {subject}: it costs {lost:,.1f} units of log-likelihood in "
        "{rows}{saved}{pairs}{law}"
    )
    out = []
    for part, cost in result.knowledge_cost.items():
        rows = f"{_n_rows(result):,.0f} rows"
        if cost.counted is not None:
            rows = f"expected latent counts of {cost.counted:,.0f} effective rows"
        params = {
            "subject": "hierarchy" if part == "hierarchy" else "knowledge about the graph",
            "lost": cost.log_likelihood,
            "rows": rows,
            "saved": f", and saves {cost.saved:,.1f} by fewer parameters" if cost.saved > 0 else "",
            "pairs": "",
            "law": "",
        }
        if part == "graph":
            pairs = [f"{a} and {b} ({lost:,.1f})" for a, b, lost in cost.pairs[:_NAMED_PAIRS]]
            params["pairs"] = f"; cost of each forbidden pair: {', '.join(pairs)}" if pairs else ""
            known = Knowledge.from_dict(result.settings["knowledge"])
            complete = admits_complete_dag(known, result.latent_names)
            if not isinstance(result.law, NetworkLaw) and not complete:
                params["law"] = "; the requested saturated law does not obey it, the graph does"
        out.append(Message(f"{part}-knowledge-conflict", template, params))
    return out


def _n_rows(result: FitResult) -> float:
    return result.n_samples if np.isnan(result.n_counted) else result.n_counted
