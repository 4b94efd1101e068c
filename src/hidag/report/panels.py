"""Parts of the report that need the table: how well the model fits, and who is where."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from hidag.explain.classification import Classification
from hidag.explain.fit_statistics import LEVEL, FitStatistics
from hidag.report.parts import Section, Table

if TYPE_CHECKING:
    from hidag.explain.tables import Table as Found

Panel = tuple[Section, tuple[Table, ...]]

#: Pairs of items are many: the page shows the worst of them.
_SHOWN_PAIRS = 25
_SHOWN_PROFILES = 20
#: Customary bounds: below the first RMSEA2 is called good, beyond the second poor.
_GOOD_RMSEA, _POOR_RMSEA = 0.03, 0.05
#: A placement that is right less often than this should not decide about anybody.
_TRUSTED_PLACEMENT = 0.8


def fit_panel(found: FitStatistics) -> Panel:
    """Return what the page says about how well the model fits."""
    words: list[str] = []
    if found.criteria is not None:
        c = found.criteria
        words.append(
            f"Log-likelihood {c.log_likelihood:,.2f} with {c.n_parameters} parameters: AIC "
            f"{c.aic:,.2f}, BIC {c.bic:,.2f}, EBIC {c.ebic:,.2f}; {c.n_rows:,} rows and "
            f"{c.n_cells:,} observed cells were used."
        )
    if found.absolute is not None:
        a = found.absolute
        verdict = "good" if a.rmsea < _GOOD_RMSEA else "fair" if a.rmsea < _POOR_RMSEA else "poor"
        words.append(
            f"Means and pairs of the {a.n_items} categorical items: RMSEA2 {a.rmsea:.4f} (90 % "
            f"interval {a.interval[0]:.4f} to {a.interval[1]:.4f}), which is customarily called "
            f"{verdict}; SRMSR {a.srmsr:.4f}; M2 {a.m2:,.1f} on {a.degrees} degrees of freedom, "
            f"p {a.p_value:.3g}; {a.n_rows:,} rows without a missing cell."
        )
    tables = []
    for name, caption, part, most in (
        ("item_fit", "Items, those that fit worst first", found.items, None),
        ("pair_fit", "Pairs of items, the worst first", found.pairs, _SHOWN_PAIRS),
        ("checks", "The table beside tables drawn from the fit", found.checks, None),
    ):
        if len(part):
            words.append(_low_chances(caption.split(",")[0], part))
            tables.append(_worst_first(name, caption, part, most))
    words += [f"{note[0].upper()}{note[1:]}." for note in found.notes]
    names = tuple(table.name for table in tables)
    return Section("How well it fits", tuple(words), (), names), tuple(tables)


def placement_panel(found: Classification) -> Panel:
    """Return what the page says about the placement of rows."""
    quality = {row["of"]: row for row in found.quality.to_dicts()}
    doubtful = [
        name for name in found.latent_names if quality[name]["accuracy"] < _TRUSTED_PLACEMENT
    ]
    words = [
        "Each row is placed at the most probable level of each latent. Accuracy is the chance that "
        "such a placement is right, consistency that another test like this one would lead to the "
        "same, both as the model sees it."
    ]
    if doubtful:
        words.append(
            f"Placements on {', '.join(doubtful)} are right less often than "
            f"{_TRUSTED_PLACEMENT:.0%} of the time: they should not decide about anybody."
        )
    words += [f"{note[0].upper()}{note[1:]}." for note in found.notes]
    shares = found.shares()
    tables = (
        Table("placement", "How far placements can be trusted", *_content(found.quality)),
        Table(
            "profiles",
            f"Most common profiles of {len(shares)} (levels of {', '.join(found.latent_names)})",
            shares.columns,
            shares.rows[:_SHOWN_PROFILES],
        ),
    )
    return Section("Who is where", tuple(words), (), ("placement", "profiles")), tables


def _content(found: Found) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    return found.columns, found.rows


def _chances(found: Found) -> list[float]:
    return [1.0 if isnan(p) else p for p in found.column("p_value")]


def _low_chances(what: str, found: Found) -> str:
    """Return how many tests have a low chance, beside how many would have by chance alone."""
    known = [p for p in found.column("p_value") if not isnan(p)]
    low = sum(p < LEVEL for p in known)
    return (
        f"{what}: {low} of {len(known)} tests have p < {LEVEL:g}, where chance alone gives about "
        f"{LEVEL * len(known):.0f}."
    )


def _worst_first(name: str, caption: str, found: Found, most: int | None) -> Table:
    chances = _chances(found)
    order: Sequence[int] = sorted(range(len(found)), key=chances.__getitem__)[:most]
    rows = tuple(found.rows[i] for i in order)
    left = f" ({len(order)} of {len(found)})" if len(order) < len(found) else ""
    return Table(name, caption + left, found.columns, rows)
