"""NHANES 2009-12: binary latents behind health measurements, answers and counts of US adults.

A folder contains responses.csv (18 measures of adults), types.csv and covariates.csv (age, sex and
the examination weights). The data are public (US National Center for Health Statistics) and not
part of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hidag.data.item_types import resolve_families
from hidag.data.readers import check_file_exists, read_file, read_folder
from hidag.data.rows import effective_sample_size, select_weighted_rows
from hidag.data.table import Observations, read_table
from hidag.exceptions import DataError, FileError
from hidag.model_selection.candidates import Table as DataTable
from hidag.reporting.content import Table
from hidag_paper.applications.exploration import (
    LATENTS_FOR_FAMILIES,
    Exploration,
    best_family,
    compare_count_families,
    explore,
    residual_correlations,
)
from hidag_paper.applications.exploration_report import (
    common_cautions,
    common_numbers,
    count_family_table,
    describe_number,
    describe_stability,
    effect_figure,
    graph_section,
    latent_tables,
    number_section,
    residual_section,
)
from hidag_paper.applications.report import ApplicationReport, ReportSection

Array = NDArray[np.float64]

WEIGHT = "WTMEC2YR"
#: Items in which zero is a failed reading.
NONZERO_ITEMS = ("BPDia",)
#: Numbers of latents fitted by default; with more, latents have few items.
NUMBERS = (2, 3, 4, 5, 6)


@dataclass(frozen=True)
class Survey:
    """The survey data.

    Attributes
    ----------
    observations : Observations
        Rows with a positive weight, NaN in missing cells.
    types : mapping from item to its entry in types.csv
    weights : ndarray, shape (N,)
        Survey weights, scaled to sum to the effective sample size (Kish).
    covariates : mapping from name to ndarray, shape (N,)
        Not used in any fit.
    n_unweighted : int
        Rows without weight, which are excluded.
    n_zero : int
        Zero readings that were set to missing.
    """

    observations: Observations
    types: Mapping[str, str]
    weights: Array
    covariates: Mapping[str, Array]
    n_unweighted: int
    n_zero: int

    def to_table(self, families: Mapping[str, str]) -> DataTable:
        """Return the weighted rows with given families of the items."""
        rows, weights = select_weighted_rows(self.observations, self.weights)
        return DataTable(rows, resolve_families(rows, families, weights).families, weights)


def input_files(folder: Path) -> list[Path]:
    """Return the files that are read."""
    return [folder / f"{name}.csv" for name in ("responses", "types", "covariates")]


def read_survey(folder: Path) -> Survey:
    """Read the survey from a folder."""
    source = read_folder(folder)
    if source.types is None:
        raise FileError(
            "missing-file",
            "the folder {folder} must contain types.csv with the type of each item",
            folder=folder,
        )
    table = read_table(source.table)
    covariates = read_table(read_file(check_file_exists(folder / "covariates.csv")))
    if WEIGHT not in covariates.names:
        raise DataError(
            "missing-column",
            "covariates.csv must have the column {column} with the survey weights, but it has "
            "{found}",
            column=WEIGHT,
            found=", ".join(covariates.names),
        )
    if covariates.n_samples != table.n_samples:
        raise DataError(
            "row-count",
            "covariates.csv must have {expected} rows, as responses.csv has, but it has {n}",
            expected=table.n_samples,
            n=covariates.n_samples,
        )
    values = np.array(table.values)
    zero = np.isin(table.names, NONZERO_ITEMS)[None, :] & (values == 0)
    values[zero] = np.nan
    raw = covariates.values[:, covariates.names.index(WEIGHT)]
    known = np.isfinite(raw) & (raw > 0)
    weights = raw[known]
    if len(weights) < 2:
        raise DataError(
            "no-weights",
            "the column {column} of covariates.csv must have positive weights in at least 2 rows",
            column=WEIGHT,
        )
    return Survey(
        replace(table, values=values[known]),
        dict(source.types),
        weights * (effective_sample_size(weights) / weights.sum()),
        {
            name: covariates.values[known, c]
            for c, name in enumerate(covariates.names)
            if name in ("Age", "Male")
        },
        int((~known).sum()),
        int(zero.sum()),
    )


def marginal_densities(survey: Survey) -> dict[str, tuple[float, float]]:
    """Return the mean log density of each continuous item as normal and as lognormal.

    The marginal distribution is used, because a few latents hardly change its shape.
    """
    table = survey.observations
    families = resolve_families(table, survey.types, survey.weights).families
    densities = {}
    for name, family, x in zip(table.names, families, table.values.T, strict=True):
        if family not in ("gaussian", "lognormal"):
            continue
        seen = np.isfinite(x)
        x, share = x[seen], survey.weights[seen] / survey.weights[seen].sum()
        lognormal = float("-inf")
        if (x > 0).all():
            lognormal = _normal_density(np.log(x), share) - float(share @ np.log(x))
        densities[name] = (_normal_density(x, share), lognormal)
    return densities


def _normal_density(x: Array, share: Array) -> float:
    variance = share @ (x - float(share @ x)) ** 2
    return -0.5 * (1.0 + float(np.log(2.0 * np.pi * variance)))


def item_families(survey: Survey) -> dict[str, str]:
    """Return the families of types.csv; continuous items are normal or lognormal by likelihood."""
    table = survey.observations
    families = resolve_families(table, survey.types, survey.weights).families
    chosen = {
        name: "lognormal" if lognormal > normal else "gaussian"
        for name, (normal, lognormal) in marginal_densities(survey).items()
    }
    return {**dict(zip(table.names, families, strict=True)), **chosen}


def run_nhanes(
    folder: Path,
    *,
    seed: int = 0,
    numbers: tuple[int, ...] = NUMBERS,
    n_seeds: int = 2,
    observer: Callable[[str], None] | None = None,
) -> ApplicationReport:
    """Analyse the health of adults with a few binary latents.

    Parameters
    ----------
    folder : Path
        With responses.csv, types.csv and covariates.csv.
    seed : int
    numbers : tuple of int
        Numbers of latents to fit.
    n_seeds : int
        Refits from other seeds.
    observer : callable, optional
        Called with the name of each step before it starts.
    """
    notify = observer or (lambda step: None)
    survey = read_survey(folder)
    notify("families of the items")
    families = item_families(survey)

    def with_counts_as(family: str) -> dict[str, str]:
        return {item: family if old == "poisson" else old for item, old in families.items()}

    fits = compare_count_families(
        lambda family: survey.to_table(with_counts_as(family)),
        {"random_state": seed},
        float(survey.weights.sum()),
    )
    best = best_family(fits)
    families = with_counts_as(best)
    notify(f"{numbers[0]} to {numbers[-1]} latents, on all rows and on halves")
    found = explore(survey.to_table(families), numbers, seed=seed, n_seeds=n_seeds)
    notify("residual correlations")
    residuals = residual_correlations(found.result, found.table)
    n, result = len(survey.weights), found.result
    latents = "; ".join(
        f"{name} ({share:.0%} of adults)"
        for name, share in zip(result.latent_names, result.law.marginals()[:, 1], strict=True)
    )
    counts = f"Count families, compared by fits with {LATENTS_FOR_FAMILIES} latents."
    return ApplicationReport(
        name="nhanes",
        title="Latent health states of US adults (NHANES 2009-12)",
        findings=(
            f"{found.chosen} binary latents: {latents}. A name lists the items with the strongest "
            "effects, with a minus sign for negative effects.",
            describe_number(found),
            describe_stability(found),
        ),
        cautions=(
            *common_cautions(found),
            "Blood pressure, weight and cholesterol are continuous; a binary latent dichotomises "
            "them, and several latents may represent one continuous trait.",
            "Strata and clusters of the survey are not part of the model; with them all "
            "uncertainty would be larger.",
            "Cells are assumed to be missing at random. Several questions were put to certain age "
            "groups only, so that missingness depends on age.",
        ),
        result=result,
        seed=seed,
        settings={"folder": folder.name, "numbers": list(numbers), "n_seeds": n_seeds},
        sections=(
            ReportSection(
                "Data and item families",
                (
                    f"{n:,} adults with an examination weight ({survey.n_unweighted:,} without "
                    f"were excluded), {len(result.item_names)} items of four types, "
                    f"{result.missing_share:.1%} of the cells missing. The weights are scaled to "
                    f"the effective sample size (Kish) of {survey.weights.sum():,.0f}. "
                    f"{survey.n_zero:,} diastolic pressures of zero were set to missing.",
                    "Continuous items are normal or lognormal, whichever has the higher "
                    f"likelihood. Counts are {best}: of fits with {LATENTS_FOR_FAMILIES} latents "
                    "that differ only in this family, it has the lowest BIC.",
                ),
                tables=(_family_table(survey, families), count_family_table(fits, counts)),
            ),
            number_section(found),
            ReportSection(
                "Latents",
                ("Effects are in standard deviations of the item, comparable across item types.",),
                (effect_figure(found),),
                latent_tables(found),
            ),
            graph_section(
                found,
                "An edge is a dependence that the other latents do not explain. Directions assume "
                "that there is no common cause outside the model; a cross-sectional survey cannot "
                "test this, and age and sex are such causes here.",
            ),
            ReportSection(
                "Age and sex, not used in the fits",
                (
                    "Posterior probabilities averaged by age and sex with the survey weights. "
                    "Neither was an item; the table helps to interpret the latents, and shows "
                    "which edges age may explain.",
                ),
                tables=(_covariate_table(found, survey),),
            ),
            residual_section(found, residuals),
        ),
        numbers=common_numbers(found, residuals),
    )


def _family_table(survey: Survey, families: Mapping[str, str]) -> Table:
    densities = marginal_densities(survey)
    table = survey.observations
    missing = np.isnan(table.values).mean(axis=0).tolist()
    unknown = (float("nan"), float("nan"))
    return Table(
        "families",
        "Type and family of each item; mean log density of continuous items by distribution.",
        ("item", "type", "family", "missing", "normal", "lognormal"),
        tuple(
            (name, survey.types[name], families[name], share, *densities.get(name, unknown))
            for name, share in zip(table.names, missing, strict=True)
        ),
    )


def _covariate_table(found: Exploration, survey: Survey) -> Table:
    posterior = found.posterior()
    groups: dict[str, NDArray[np.bool_]] = {}
    age, male = survey.covariates.get("Age"), survey.covariates.get("Male")
    if age is not None:
        groups["age 20 to 39"] = (age >= 20) & (age <= 39)
        groups["age 40 to 59"] = (age >= 40) & (age <= 59)
        groups["age 60 and over"] = age >= 60
    if male is not None:
        groups["women"], groups["men"] = male == 0, male == 1
    return Table(
        "age_and_sex",
        "Mean posterior probability of each latent by age and sex.",
        ("group", "persons", *found.result.latent_names),
        tuple(
            (
                label,
                int(inside.sum()),
                *np.average(posterior[inside], axis=0, weights=survey.weights[inside]).tolist(),
            )
            for label, inside in groups.items()
            if inside.any()
        ),
        decimals=2,
    )
