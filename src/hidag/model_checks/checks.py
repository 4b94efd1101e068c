"""The checks of a fit: residual products are tested, and their pattern names the cause.

Three kinds of misfit leave residual dependence between items, in patterns that differ. Traits that
vary within the levels of their latent leave products within the items of each latent (third moments
of the items), hardly residual correlations, which the loadings fit. A style of response leaves
products of about the same size for all pairs of items of a format. Dependent pairs and missing
latents leave large residual correlations of few pairs, isolated or in blocks. The largest
standardised signal is reported, because it causes others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hidag.config import CONFIG
from hidag.data.rows import effective_sample_size, scale_to_effective_size
from hidag.information.free_parameters import FreeParameters, row_scores
from hidag.information.moment_tests import (
    LocalScores,
    ScoredColumns,
    drop_constant,
    score_basis,
)
from hidag.information.pair_sums import PairSums
from hidag.information.posterior_tables import can_list_states
from hidag.model_checks.residual_products import MomentTests, ResidualProducts, test_moments
from hidag.parallel import one_blas_thread
from hidag.results import FitResult, canonical_rows, observable, reorder_items
from hidag.results.findings import Finding

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]
Pair = tuple[int, int]


@one_blas_thread()
def check_model(result: FitResult, values: Array, weights: Array | None = None) -> FitResult:
    """Return the fit with the findings of the checks on its table (N, J), most serious first."""
    if result.nuisance:
        return replace(result, checks_note="the fit has nuisances, which the checks leave out")
    if not can_list_states(result) or not result.q_matrix.any():
        note = "the latents have too many joint states to list"
        return replace(result, checks_note=note if result.q_matrix.any() else "")
    values = observable(result, values)
    if weights is not None:
        weights = scale_to_effective_size(weights)
    rows, places = canonical_rows(result, values, weights)
    rows = rows[: _most_rows(result)]
    items = np.argsort(places)
    ordered = reorder_items(result, items)
    found = _Residuals.of(
        ordered, values[np.ix_(rows, items)], None if weights is None else weights[rows]
    )
    findings = _with_general_latent([*_dependence(found), *_shape_of_q(ordered)], ordered)
    if result.rival_gap < CONFIG.model_checks.rival_gap:
        findings.append(Finding("starts-disagree", {"gap": max(result.rival_gap, 0.0)}))
    rank = {name: j for j, name in enumerate(result.item_names)}
    findings = [
        replace(one, items=tuple(sorted(one.items, key=rank.__getitem__))) for one in findings
    ]
    return replace(result, findings=tuple(findings))


def _most_rows(result: FitResult) -> int:
    """Return how many rows are tested."""
    config = CONFIG.model_checks
    work = result.law.space.n_states * len(result.response_names)
    return max(config.fewest_rows, min(config.most_rows, int(config.most_work / work)))


@dataclass(frozen=True)
class _Residuals:
    """Tests of residual products and residual correlations of a fit, items in canonical order."""

    result: FitResult
    group: IntArray  # (J,), latent with the largest effect on each item; -1 without latents
    within: MomentTests  # of pairs of latents, in the direction of the loadings
    styles: dict[str, MomentTests]  # the same for the items of a format, with equal directions
    z: Array  # (J, J), of residual correlations; NaN without a test
    p_value: Array  # (J, J)
    size: Array  # (J, J), residual correlations

    @classmethod
    def of(cls, result: FitResult, values: Array, weights: Array | None) -> _Residuals:
        """Return the tests on a table (N, J)."""
        free = FreeParameters.of(result, values, weights)
        scores = row_scores(free)
        row_weights = free.data.row_weights
        n_rows = effective_sample_size(row_weights**2)
        most = int(n_rows / CONFIG.model_checks.rows_per_direction)
        basis = drop_constant(score_basis(free.data.weighted(scores))[:, :most])
        strength = np.abs(result.strengths)
        group = np.where(strength.max(axis=1) > 0, strength.argmax(axis=1), -1)
        item, n_latents = result.responses.item, strength.shape[1]
        own = np.arange(len(item)), np.maximum(group[item], 0)
        products = ResidualProducts(free, group, n_latents)
        left, right = np.triu_indices(n_latents)

        def tests(direction: Array) -> MomentTests:
            moments = products.by_pair(direction)[:, left, right]
            return test_moments(moments, row_weights, basis, n_rows)

        styles = {}
        for family in sorted(set(result.families)):
            inside = np.array([name == family for name in result.families])
            used = inside & (group >= 0)
            if used.sum() >= CONFIG.model_checks.fewest_items and len(set(group[used])) > 1:
                styles[family] = tests(inside[item].astype(np.float64))
        reach = CONFIG.support.max_step
        within = tests(np.clip(result.response_strengths[own], -reach, reach))
        return cls(result, group, within, styles, *_pair_tests(free, values, scores))

    @property
    def is_within(self) -> NDArray[np.bool_]:
        """Which moments are of a latent with itself."""
        left, right = np.triu_indices(len(self.result.latent_names))
        return np.asarray(left == right)


def _pair_tests(free: FreeParameters, values: Array, scores: Array) -> tuple[Array, Array, Array]:
    """Return z scores, p-values and sizes of residual correlations of items, (J, J) each."""
    columns = ScoredColumns.of(free, values)
    sums = PairSums.of(free, columns, LocalScores.of(free, scores))
    n_items = values.shape[1]
    z, p, size = np.full((3, n_items, n_items), np.nan)
    number = np.bincount(columns.item, minlength=n_items)
    for first, both, _, rest, own_z, own_p in sums.blocks():
        for a, g in enumerate(range(first.start, first.stop)):
            i = columns.item[g]
            for h in np.flatnonzero((columns.item > i) & ~np.isnan(own_z[a])):
                j = columns.item[h]
                # Of nominal items the most significant pair of categories, corrected.
                corrected = min(own_p[a, h] * number[i] * number[j], 1.0)
                if np.isnan(p[i, j]) or corrected < p[i, j]:
                    spread = sums.spread[g] * sums.spread[h] * max(both.total[a, h], 1.0)
                    p[i, j] = p[j, i] = corrected
                    z[i, j] = z[j, i] = own_z[a, h]
                    size[i, j] = size[j, i] = rest[a, h] / max(spread, 1e-300)
    return z, p, size


def _dependence(found: _Residuals) -> list[Finding]:
    """Return the finding that explains the residual dependence of the items, if there is any."""
    config, names = CONFIG.model_checks, np.array(found.result.item_names, dtype=object)
    pairs, blocks, largest = _significant_pairs(found)
    scale = _scales(found)
    style, adequate = _style(found)
    trait = max((one.evidence["z"] for one in (scale, style) if one is not None), default=0.0)
    if largest > config.pair_precedence * trait:
        if blocks:
            more = found.result.law.space.n_latents + len(blocks)
            items = tuple(names[sorted(set().union(*blocks))])
            return [Finding("too-few-latents", {"z": largest}, items, settings={"n_latents": more})]
        listed = tuple((str(names[a]), str(names[b])) for a, b in pairs[: config.most_pairs])
        settings = {"doublets": [list(pair) for pair in listed]}
        return [Finding("dependent-pairs", {"z": largest}, pairs=listed, settings=settings)]
    if style is not None and (adequate or scale is None):
        return [style]
    return [] if scale is None else [scale]


def _significant_pairs(found: _Residuals) -> tuple[list[Pair], list[set[int]], float]:
    """Return dependent pairs of items, blocks of items that depend on each other, the largest z."""
    config = CONFIG.model_checks
    left, right = np.triu_indices(len(found.z), 1)
    z, p = np.nan_to_num(found.z[left, right]), np.nan_to_num(found.p_value[left, right], nan=1.0)
    size = np.abs(np.nan_to_num(found.size[left, right]))
    significant = (p < config.pair_level / max(len(p), 1)) & (size >= config.smallest_correlation)
    if not significant.any():
        return [], [], 0.0
    # Small residuals beside large ones are mostly their consequences; so are negative ones.
    order = np.argsort(-z, kind="stable") if (z[significant] > 0).any() else np.argsort(-np.abs(z))
    signed = z if (z[significant] > 0).any() else np.abs(z)
    largest = float(signed[significant].max())
    chosen = [i for i in order if significant[i] and signed[i] >= config.share_of_largest * largest]
    pairs = [(int(left[i]), int(right[i])) for i in chosen]
    near = nx.Graph([(a, b) for a, b in pairs])
    blocks = [
        part
        for part in map(set, nx.connected_components(near))
        if len(part) > 2 and near.subgraph(part).number_of_edges() >= len(part)
    ]
    return pairs, blocks, largest


def _scales(found: _Residuals) -> Finding | None:
    """Return evidence that traits vary within the levels of their latents."""
    config, result = CONFIG.model_checks, found.result
    inside, tests = found.is_within, found.within
    own, spread = tests.z[inside], np.sqrt(np.maximum(tests.effects()[inside], 0.0))
    total = float(tests.along(inside[:, None].astype(np.float64))[0])
    level = float(norm.isf(config.moment_level))
    each = float(norm.isf(config.moment_level / len(own)))
    if total < level and own.max(initial=0.0) < each:
        return None
    named = own > (norm.isf(0.05) if total >= level else each)
    size = float(np.average(spread[named], weights=own[named])) if named.any() else 0.0
    # Without information about it the estimate has no bound.
    if not config.smallest_spread <= size <= config.largest_spread:
        return None
    latents = tuple(np.array(result.latent_names, dtype=object)[named])
    items = tuple(
        np.array(result.item_names, dtype=object)[np.isin(found.group, np.flatnonzero(named))]
    )
    z = max(total, float(own.max()))
    evidence = {"z": z, "largest_z": float(own.max()), "p_value": float(norm.sf(z)), "spread": size}
    shown = f"z {z:.1f}; standard deviation within a level {size:.0%} of a step"
    settings = {"levels": _more_levels(result)}
    return Finding("scales-not-levels", evidence, items, latents, shown=shown, settings=settings)


def _more_levels(result: FitResult) -> str | int:
    """Return the setting of levels that fits more of them."""
    levels = max(result.law.space.levels)
    return levels + 1 if levels > 2 or "auto" in str(result.settings.get("levels")) else "auto"


def _style(found: _Residuals) -> tuple[Finding | None, bool]:
    """Return evidence for an effect common to a format, and whether it explains the dependence."""
    config, result = CONFIG.model_checks, found.result
    across = ~found.is_within
    best, z_best, family = None, 0.0, ""
    for name, tests in found.styles.items():
        z = float(tests.along(across[:, None].astype(np.float64))[0])
        if z >= norm.isf(config.moment_level / len(found.styles)) and z > z_best:
            best, z_best, family = tests, z, name
    if best is None:
        return None, False
    # Within a latent each pair of items is counted twice already.
    everywhere = np.where(across, 2.0, 1.0)[:, None]
    whole = float(best.along(everywhere)[0])
    statistic, degrees = found.within.chi_square()
    # The degrees of freedom are what the remainder has by chance.
    rest = max(statistic - whole**2 - degrees + 1, 0.0)
    variance = 2.0 * float(best.total @ everywhere[:, 0])
    variance /= max(float(everywhere[:, 0] @ best.covariance @ everywhere[:, 0]), 1e-300)
    items = tuple(n for n, f in zip(result.item_names, result.families, strict=True) if f == family)
    spread = float(np.sqrt(max(variance, 0.0)))
    evidence = {"z": max(whole, z_best), "p_value": float(norm.sf(z_best)), "spread": spread}
    evidence["remainder"] = rest / max(whole**2, 1e-300)
    shown = f"z {evidence['z']:.1f}; standard deviation of the effect at least {spread:.2g} on the "
    shown += "scale of the predictor"
    return Finding(
        "response-style", evidence, items, (), (), shown, {"nuisance": "style"}, family
    ), rest <= config.remainder_share * whole**2


def _with_general_latent(findings: list[Finding], result: FitResult) -> list[Finding]:
    """Return the findings, or a response style if one latent drives all items of a format.

    A fit with free Q gives a strong style a latent of its own, whose levels are too few.
    """
    codes = {one.code for one in findings}
    if not codes & {"scales-not-levels", "dense-q"}:
        return findings
    config, sizes = CONFIG.model_checks, result.strengths
    for family in sorted(set(result.families)):
        own = np.array([name == family for name in result.families])
        same = np.maximum((sizes[own] > 0).mean(axis=0), (sizes[own] < 0).mean(axis=0))
        if own.sum() < 2 * config.fewest_items or len(same) < 2 or same.max() < config.general:
            continue
        latent = result.latent_names[int(same.argmax())]
        items = tuple(n for n, inside in zip(result.item_names, own, strict=True) if inside)
        shown = f"{latent} drives {same.max():.0%} of them in the same direction"
        evidence = {"share": float(same.max())} | dict(findings[0].evidence)
        style = Finding(
            "response-style", evidence, items, (latent,), (), shown, {"nuisance": "style"}, family
        )
        return [*(one for one in findings if one.code not in ("dense-q", style.code)), style]
    return findings


def _shape_of_q(result: FitResult) -> list[Finding]:
    """Return findings about Q: two latents that imitate one, and latents without items."""
    config = CONFIG.model_checks
    n_latents = len(result.latent_names)
    if n_latents < 2 or (result.q_given is not None and (result.q_given >= 0).all()):
        return []
    names = result.latent_names
    law, space = np.asarray(result.law.probabilities), result.law.space
    states = space.states().astype(np.float64)
    centred = states - law @ states
    covariance = centred.T @ (law[:, None] * centred)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    correlation = covariance / np.outer(deviation, deviation)
    strength = np.abs(result.strengths)
    unit = strength / np.maximum(np.linalg.norm(strength, axis=0), 1e-12)
    overlap = unit.T @ unit
    same = np.triu((overlap > config.same_items) & (np.abs(correlation) > config.same_trait), 1)
    out = []
    if same.any():
        pairs = tuple((names[a], names[b]) for a, b in np.argwhere(same))
        largest = float(np.abs(correlation[same]).max())
        evidence = {"correlation": largest, "overlap": float(overlap[same].max())}
        settings = {"levels": _more_levels(result), "n_latents": n_latents - len(pairs)}
        out.append(Finding("imitated-latent", evidence, pairs=pairs, settings=settings))
    q = result.q_matrix
    alone = q[q.sum(axis=1) == 1].sum(axis=0)
    mean = float(q.sum(axis=1)[q.any(axis=1)].mean())
    poor = alone < config.own_items
    if n_latents > 2 and mean > config.dense_share * n_latents and poor.any():
        latents = tuple(np.array(names, dtype=object)[poor])
        settings = {"levels": _more_levels(result), "n_latents": n_latents - 1}
        evidence = {"mean": mean, "n": float(n_latents)}
        out.append(Finding("dense-q", evidence, latents=latents, settings=settings))
    return out
