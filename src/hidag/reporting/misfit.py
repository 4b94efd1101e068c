"""What a reader has to know about how well a model fits, before reading what it says.

Sizes come first: with many rows a good model is rejected too, and with few a poor one is not. So a
sentence is said where a misfit is of a size that is customarily called poor and is not what chance
would make of a true model.
"""

from __future__ import annotations

from collections.abc import Sized
from math import isnan, sqrt
from typing import TYPE_CHECKING, Any

from hidag.diagnostics.fit_statistics import LEVEL
from hidag.formatting import plural
from hidag.inference.result_tables import N_EFFECTIVE

if TYPE_CHECKING:
    from hidag.diagnostics.fit_statistics import FitStatistics
    from hidag.diagnostics.limited_information import LimitedInformation
    from hidag.diagnostics.q_validation import QValidation
    from hidag.inference.bootstrap_result import BootstrapResult
    from hidag.inference.result_tables import Table
    from hidag.inference.standard_errors import StandardErrors


#: Customary bounds: below the first RMSEA2 is called good, beyond the second poor.
GOOD_RMSEA, POOR_RMSEA = 0.03, 0.05
#: Customary bound of the root mean square of residual correlations.
POOR_SRMSR = 0.05
#: A residual correlation, and a distance of an item's means, that change what one would say.
SIZEABLE = 0.1
#: Chances far out in the tail are told worst, and Bonferroni's bound lies there: a lone pair with
#: few rows of its own may pass it in a table of a true model. It has to be below this share of it.
LONE = 0.01
#: Predictive checks of a true model are hardly ever low; more than this share is not chance.
MANY_CHECKS = 0.1
#: Twice the log-likelihood beyond its price from which evidence for a change is called very strong.
STRONG = 10.0
#: A latent that fewer refits than this share find again is not one to rely on.
FOUND_AGAIN = 0.8
#: Items that hardly ever depart from their latents have a coefficient that runs to infinity, and
#: that alone is no reason for caution: more than this share of the parameters is.
MANY_FLAT = 0.1


def misfits(found: FitStatistics) -> tuple[str, ...]:
    """Return what statistics of fit give reason to say, as sentences; empty if nothing."""
    out = _poor_pairs(found.pairs) if found.absolute is None else _poor_moments(found.absolute)
    pairs = _beyond_chance(found.pairs, "residual")
    if pairs:
        worst = pairs[0]
        out.append(
            f"{plural(len(pairs), 'pair of items goes', 'pairs of items go')} together otherwise "
            f"than the model says, {_most_of_all(pairs)}{worst['first']} and {worst['second']} (a "
            f"residual correlation of {worst['residual']:.2f})"
        )
    items = _beyond_chance(found.items, "rmsd")
    if items:
        worst = items[0]
        out.append(
            f"{plural(len(items), 'item does', 'items do')} not behave as the model says given "
            f"the other items, {_most_of_all(items)}{worst['item']} (off by {worst['rmsd']:.2f} "
            "over the latents' states)"
        )
    low = sum(p < LEVEL for p in found.checks.column("p_value"))
    if low > max(1.0, MANY_CHECKS * len(found.checks)):
        out.append(
            f"tables drawn from the fit differ from the table in {low} of {len(found.checks)} "
            "numbers that were compared"
        )
    return tuple(out)


def doubts_of_q(found: QValidation) -> tuple[str, ...]:
    """Return what the data have against a Q that was given; empty if nothing strong."""
    gains = [
        row["likelihood_ratio"] - row["price"]
        if row["action"] == "add"
        else row["price"] - row["likelihood_ratio"]
        for row in found.steps.to_dicts()
    ]
    # A true Q of many entries has now and then one that barely pays for its change.
    if max(gains, default=0.0) < STRONG:
        return ()
    n_changed = int((found.provisional != found.suggested).sum())
    return (
        f"the data would change {n_changed} of {found.provisional.size} entries of the Q-matrix "
        "that was given",
    )


def lost_latents(found: BootstrapResult) -> tuple[str, ...]:
    """Return which latents many refits do not find again, as a sentence; empty if none."""
    lost = [
        f"{row['latent']} (the same in {round(row['share_same'] * found.n_refits)} of "
        f"{found.n_refits:,})"
        for row in found.agreement_table()
        if row["share_same"] < FOUND_AGAIN
    ]
    if not lost:
        return ()
    listed = lost[0] if len(lost) == 1 else f"{', '.join(lost[:-1])} and {lost[-1]}"
    return (
        f"some refits of resampled tables have another latent in the place of {listed}: what is "
        f"said of {'it' if len(lost) == 1 else 'them'} may not hold in another sample",
    )


def flat_directions(found: StandardErrors) -> tuple[str, ...]:
    """Return whether the data say nothing of many parameters, as a sentence; empty if not."""
    # What a hierarchy leaves known in sum only is no lack of data, and its sums are estimated.
    flat, n_parameters = found.flat, len(found.names) - len(found.known_in_sum)
    if len(flat) <= MANY_FLAT * n_parameters:
        return ()
    return (
        f"the data say nothing of {len(flat)} of {n_parameters} parameters, for instance of "
        f"{flat[0]}",
    )


def _poor_moments(found: LimitedInformation) -> list[str]:
    """Return whether means and pairs of categorical items are poorly described."""
    # Residual correlations of so many rows have this size by chance alone.
    srmsr = sqrt(max(found.srmsr**2 - 1.0 / found.n_effective, 0.0))
    poor = []
    if found.rmsea >= POOR_RMSEA and found.interval[0] > GOOD_RMSEA:
        poor.append(f"RMSEA2 is {found.rmsea:.3f}, where {POOR_RMSEA:g} and more is called poor")
    if srmsr >= POOR_SRMSR:
        poor.append(f"SRMSR is {found.srmsr:.3f}, where {POOR_SRMSR:g} and more is called poor")
    return [f"the model does not fit how items go together: {'; '.join(poor)}"] if poor else []


def _poor_pairs(pairs: Table) -> list[str]:
    """Return whether pairs of items are poorly described, where there is no M2 to ask."""
    rows = [row for row in pairs.to_dicts() if not isnan(row["residual"])]
    if not rows:
        return []
    srmsr = sqrt(sum(row["residual"] ** 2 for row in rows) / len(rows))
    by_chance = sum(1.0 / row.get(N_EFFECTIVE, row["n_rows"]) for row in rows) / len(rows)
    if srmsr**2 - by_chance < POOR_SRMSR**2:
        return []
    return [
        "the model does not fit how items go together: residual correlations have a root mean "
        f"square of {srmsr:.3f}, where {POOR_SRMSR:g} and more is called poor"
    ]


def _most_of_all(rows: Sized) -> str:
    """Return what goes before the name of the worst one, if there are others."""
    return "most of all " if len(rows) > 1 else ""


def _beyond_chance(found: Table, size: str) -> list[dict[str, Any]]:
    """Return the rows of sizeable misfits that chance does not explain, the largest first."""
    rows = [row for row in found.to_dicts() if not isnan(row["p_value"])]
    bound = LEVEL / max(len(rows), 1)
    bad = [row for row in rows if abs(row[size]) >= SIZEABLE and row["p_value"] < bound]
    if len(bad) == 1 and bad[0]["p_value"] > LONE * bound:
        return []
    return sorted(bad, key=lambda row: -abs(row[size]))
