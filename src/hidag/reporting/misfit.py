"""Warnings about poor fit: misfits that are both large and beyond chance.

Effect sizes come first: with many rows a good model is rejected too, and with few rows a poor one
is not. A misfit is reported if its size is conventionally called poor and exceeds sampling error.
"""

from __future__ import annotations

from math import isnan, sqrt
from typing import TYPE_CHECKING, Any

from hidag.diagnostics.goodness_of_fit import LEVEL
from hidag.formatting import join_names, plural
from hidag.inference.result_tables import N_EFFECTIVE

if TYPE_CHECKING:
    from hidag.diagnostics.goodness_of_fit import FitStatistics
    from hidag.diagnostics.limited_information import LimitedInformation
    from hidag.diagnostics.q_validation import QValidation
    from hidag.inference.bootstrap_result import BootstrapResult
    from hidag.inference.result_tables import Table
    from hidag.inference.standard_errors import StandardErrors

#: Conventional bounds of RMSEA2: below the first fit is good, above the second poor.
GOOD_RMSEA, POOR_RMSEA = 0.03, 0.05
#: Conventional bound of the standardized root mean square residual.
POOR_SRMSR = 0.05
#: Residual correlations, and RMSD of items, that are practically relevant.
RELEVANT_SIZE = 0.1
#: A p-value far in the tail is inaccurate: a single pair has to pass this share of Bonferroni's
#: bound.
SINGLE_SHARE = 0.01
#: More than this share of low predictive p-values is not expected under a true model.
MAX_LOW_CHECKS = 0.1
#: Excess of the likelihood ratio over its penalty that is called very strong evidence.
STRONG_EVIDENCE = 10.0
#: Share of bootstrap samples that should reproduce a latent.
MIN_RECURRENCE = 0.8
#: Items without error have an infinite coefficient, which alone is no reason for a warning; more
#: than this share of undetermined parameters is.
MAX_UNDETERMINED = 0.1


def find_misfits(statistics: FitStatistics) -> tuple[str, ...]:
    """Return warnings that fit statistics justify, as clauses; empty if there are none."""
    if statistics.absolute is None:
        out = _poor_residuals(statistics.pairs)
    else:
        out = _poor_moments(statistics.absolute)
    if pairs := _significant_rows(statistics.pairs, "residual"):
        worst = pairs[0]
        out.append(
            f"{plural(len(pairs), 'pair of items has', 'pairs of items have')} a residual "
            f"correlation that the model does not reproduce, {_largest(pairs)}{worst['first']} and "
            f"{worst['second']} ({worst['residual']:.2f})"
        )
    if items := _significant_rows(statistics.items, "rmsd"):
        worst = items[0]
        out.append(
            f"{plural(len(items), 'item does', 'items do')} not fit given the other items, "
            f"{_largest(items)}{worst['item']} (RMSD {worst['rmsd']:.2f} over the latent states)"
        )
    low = sum(p < LEVEL for p in statistics.checks.column("p_value"))
    if low > max(1.0, MAX_LOW_CHECKS * len(statistics.checks)):
        out.append(
            f"{low} of {len(statistics.checks)} predictive checks have p < {LEVEL:g}: data "
            "simulated from the model differ from the observed data"
        )
    return tuple(out)


def find_q_misfit(validation: QValidation) -> tuple[str, ...]:
    """Return a warning if the data strongly contradict the given Q-matrix; empty if not."""
    gains = [
        row["likelihood_ratio"] - row["price"]
        if row["action"] == "add"
        else row["price"] - row["likelihood_ratio"]
        for row in validation.steps.to_dicts()
    ]
    # A true Q-matrix with many entries may have one that is barely rejected.
    if max(gains, default=0.0) < STRONG_EVIDENCE:
        return ()
    n_changed = int((validation.provisional != validation.suggested).sum())
    return (
        f"the data support changes of {n_changed} of {validation.provisional.size} entries of the "
        "given Q-matrix",
    )


def find_unstable_latents(bootstrap: BootstrapResult) -> tuple[str, ...]:
    """Return a warning about latents that many bootstrap samples do not reproduce."""
    unstable = [
        f"{row['latent']} (reproduced in {round(row['share_same'] * bootstrap.n_refits)} of "
        f"{bootstrap.n_refits:,})"
        for row in bootstrap.agreement_table()
        if row["share_same"] < MIN_RECURRENCE
    ]
    if not unstable:
        return ()
    latents = "1 latent" if len(unstable) == 1 else f"{len(unstable)} latents"
    return (
        f"bootstrap samples often do not reproduce {latents}: {join_names(unstable)}; the "
        f"interpretation of {'this latent' if len(unstable) == 1 else 'these latents'} may not "
        "generalize to other samples",
    )


def find_undetermined(errors: StandardErrors) -> tuple[str, ...]:
    """Return a warning if many parameters are not locally identified; empty if not."""
    # Parameters that a hierarchy identifies only in sum are counted out.
    n_parameters = len(errors.names) - len(errors.known_in_sum)
    if len(errors.flat) <= MAX_UNDETERMINED * n_parameters:
        return ()
    return (
        f"{len(errors.flat)} of {n_parameters} parameters are not locally identified or on the "
        f"boundary, for instance {errors.flat[0]}",
    )


def _poor_moments(absolute: LimitedInformation) -> list[str]:
    """Return a warning about the limited-information statistics of categorical items."""
    # The expected size of sample correlations under independence is subtracted.
    srmsr = sqrt(max(absolute.srmsr**2 - 1.0 / absolute.n_effective, 0.0))
    poor = []
    if absolute.rmsea >= POOR_RMSEA and absolute.interval[0] > GOOD_RMSEA:
        poor.append(f"RMSEA2 {absolute.rmsea:.3f} (poor from {POOR_RMSEA:g})")
    if srmsr >= POOR_SRMSR:
        poor.append(f"SRMSR {absolute.srmsr:.3f} (poor from {POOR_SRMSR:g})")
    return [f"poor fit of the associations between items: {', '.join(poor)}"] if poor else []


def _poor_residuals(pairs: Table) -> list[str]:
    """Return a warning about residual correlations, for items without M2."""
    rows = [row for row in pairs.to_dicts() if not isnan(row["residual"])]
    if not rows:
        return []
    srmsr = sqrt(sum(row["residual"] ** 2 for row in rows) / len(rows))
    by_chance = sum(1.0 / row.get(N_EFFECTIVE, row["n_rows"]) for row in rows) / len(rows)
    if srmsr**2 - by_chance < POOR_SRMSR**2:
        return []
    return [
        "poor fit of the associations between items: root mean square of the residual "
        f"correlations {srmsr:.3f} (poor from {POOR_SRMSR:g})"
    ]


def _largest(rows: list[dict[str, Any]]) -> str:
    """Return a phrase before the worst case, if it is not the only one."""
    return "most of all " if len(rows) > 1 else ""


def _significant_rows(table: Table, size: str) -> list[dict[str, Any]]:
    """Return rows with relevant misfit and p below Bonferroni's bound, the largest first."""
    rows = [row for row in table.to_dicts() if not isnan(row["p_value"])]
    bound = LEVEL / max(len(rows), 1)
    bad = [row for row in rows if abs(row[size]) >= RELEVANT_SIZE and row["p_value"] < bound]
    if len(bad) == 1 and bad[0]["p_value"] > SINGLE_SHARE * bound:
        return []
    return sorted(bad, key=lambda row: -abs(row[size]))
