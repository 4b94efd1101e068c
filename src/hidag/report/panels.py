"""Parts of the report that need the table: how well the model fits, and who is where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from hidag.explain.bootstrap_result import BootstrapResult
from hidag.explain.bootstrap_words import sums_in_words
from hidag.explain.classification import Classification
from hidag.explain.fit_statistics import LEVEL, FitStatistics, where_true
from hidag.explain.intervals import FEWEST_FOR_INTERVALS, interval_cautions, level_reached
from hidag.report.headings import FIT_HEADING, PLACEMENT_HEADING, SURE_HEADING
from hidag.report.misfit import GOOD_RMSEA, POOR_RMSEA
from hidag.report.parts import Section, Table, in_words
from hidag.row_weights import rows_in_words
from hidag.shown_text import counted

if TYPE_CHECKING:
    from hidag.explain.tables import Table as Found

Panel = tuple[Section, tuple[Table, ...]]

#: Pairs of items are many: the page shows the worst of them.
_SHOWN_PAIRS = 25
_SHOWN_PROFILES = 20
#: A placement that is right less often than this should not decide about anybody.
_TRUSTED_PLACEMENT = 0.8


def fit_panel(found: FitStatistics) -> Panel:
    """Return what the page says about how well the model fits."""
    words: list[str] = []
    if found.criteria is not None:
        c = found.criteria
        rows = rows_in_words(c.n_rows, c.n_effective)
        words.append(
            f"Log-likelihood {c.log_likelihood:,.2f} with {counted(c.n_parameters, 'parameter')}: "
            f"AIC {c.aic:,.2f}, BIC {c.bic:,.2f}, EBIC {c.ebic:,.2f}; {rows} and "
            f"{c.n_cells:,} observed cells were used."
        )
    if found.absolute is not None:
        a = found.absolute
        rows = rows_in_words(a.n_rows, a.n_effective)
        verdict = "good" if a.rmsea < GOOD_RMSEA else "fair" if a.rmsea < POOR_RMSEA else "poor"
        words.append(
            f"Means and pairs of the {a.n_items} categorical items: RMSEA2 {a.rmsea:.4f} (90 % "
            f"interval {a.interval[0]:.4f} to {a.interval[1]:.4f}), which is customarily called "
            f"{verdict}; SRMSR {a.srmsr:.4f}; M2 {a.m2:,.1f} on {counted(a.degrees, 'degree')} of "
            f"freedom, p {a.p_value:.3g}; {rows} without a missing cell."
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
    return Section(FIT_HEADING, tuple(words), (), names), tuple(tables)


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
    if len(found.latent_names) > 1:
        words[0] += (
            " A profile is the most probable combination of levels, which is not for every row the "
            "one of the most probable levels."
        )
    if doubtful:
        words.append(
            f"Placements on {', '.join(doubtful)} are right less often than "
            f"{_TRUSTED_PLACEMENT:.0%} of the time: they should not decide about anybody."
        )
    words += [f"{note[0].upper()}{note[1:]}." for note in found.notes]
    tables = [Table("placement", "How far placements can be trusted", *_content(found.quality))]
    caption, common = found.common_profiles(_SHOWN_PROFILES)
    caption = f"{caption[0].upper()}{caption[1:]}"
    if len(common):
        tables.append(Table("profiles", caption, *_content(common)))
    else:
        words.append(f"{caption}.")
    names = tuple(table.name for table in tables)
    return Section(PLACEMENT_HEADING, tuple(words), (), names), tuple(tables)


def bootstrap_panel(found: BootstrapResult) -> Panel:
    """Return what the page says about how sure the fit is."""
    kind = (
        "of rows drawn again from the table"
        if found.kind == "nonparametric"
        else "drawn from the fitted model"
    )
    words = [
        f"The model was fitted again to {counted(found.n_refits, 'table')} {kind}. All latents "
        f"were those of the fit in {found.same_latents.mean():.0%} of them."
    ]
    if found.start == "fitted":
        words.append("Refits began at the fit, so that other optima were not looked for.")
    if found.failures:
        words.append(
            f"{len(found.failures)} of {found.n_resamples} tables could not be fitted, for "
            f"instance: {found.failures[0]}"
        )
    words += [f"{caution}." for caution in interval_cautions(found.n_refits, found.q_given)]
    words += [f"{line[0].upper()}{line[1:]}." for line in sums_in_words(found)]
    intervals = f"{level_reached(found.n_refits):.0%} intervals"
    unsure = [row for row in found.q_table() if 0.05 < row["probability"] < 0.95]
    tables = [
        _of_rows(
            "edge_support",
            "Pairs of latents: how often they are joined, and how",
            [row for row in found.edge_table() if row["fit"] or row["joined"] >= 0.05],
        ),
        _of_rows(
            "agreement", "How well refits agree about what each latent is", found.agreement_table()
        ),
        _of_rows(
            "law_intervals",
            f"How common each level of each latent is, with {intervals}",
            found.law_table(),
        ),
        _of_rows(
            "intervals", f"Intercepts and loadings with {intervals}", found.coefficient_table()
        ),
    ]
    if found.n_refits < FEWEST_FOR_INTERVALS:
        tables = [table for table in tables if table.name not in ("law_intervals", "intervals")]
    if not found.q_given:
        entries = counted(len(unsure), "entry of Q is", "entries of Q are")
        words.append(f"{entries} in 5 to 95 % of the refits.")
        tables.append(_of_rows("q_support", "Entries of Q that refits do not agree on", unsure))
    tables = [table for table in tables if table.rows]
    names = tuple(table.name for table in tables)
    return Section(SURE_HEADING, tuple(words), (), names), tuple(tables)


def _of_rows(name: str, caption: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    header = in_words(rows[0]) if rows else ()
    return Table(name, caption, header, tuple(tuple(row.values()) for row in rows))


def _content(found: Found) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    return in_words(found.columns), found.rows


def _chances(found: Found) -> list[float]:
    return [1.0 if isnan(p) else p for p in found.column("p_value")]


def _low_chances(what: str, found: Found) -> str:
    """Return how many tests have a low chance, beside how many of a true model would."""
    known = [p for p in found.column("p_value") if not isnan(p)]
    if not known:
        return f"{what}: none could be tested."
    low = sum(p < LEVEL for p in known)
    return f"{what}: {low} of {len(known)} tests have p < {LEVEL:g}, {where_true(found)}."


def _worst_first(name: str, caption: str, found: Found, most: int | None) -> Table:
    chances = _chances(found)
    order: Sequence[int] = sorted(range(len(found)), key=chances.__getitem__)[:most]
    rows = tuple(found.rows[i] for i in order)
    left = f" ({len(order)} of {len(found)})" if len(order) < len(found) else ""
    return Table(name, caption + left, in_words(found.columns), rows)
