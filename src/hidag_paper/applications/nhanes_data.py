"""NHANES 2009-12: the tables as they lie in a folder, survey weights, families by evidence.

A folder holds responses.csv (18 measures of adults), types.csv and covariates.csv (age, sex and
the survey's examination weights). The data are public (US National Center for Health Statistics)
and are never part of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.item_types import resolve_families
from hidag.data.readers import existing_file, read_file, read_folder
from hidag.data.sample_weights import effective_number, weighted_rows
from hidag.data.table import Observations, read_table
from hidag.exceptions import DataError, FileError
from hidag.model_selection.candidates import Table
from hidag_paper.applications.exploration import FamilyFit, compared_families

Array = NDArray[np.float64]

WEIGHT = "WTMEC2YR"
#: A diastolic pressure of zero is a reading that failed, not a pressure.
NO_ZERO = ("BPDia",)


@dataclass(frozen=True)
class Survey:
    """The survey as it was read.

    Attributes
    ----------
    observations : Observations
        Rows with a weight above zero, NaN in missing cells.
    types : mapping from item to the word of types.csv
    weights : ndarray, shape (N,)
        Shares of the population, scaled to add up to the number of equally weighted persons that
        would tell a mean as precisely (Kish).
    covariates : mapping from name to ndarray, shape (N,)
        Not used in any fit.
    n_unweighted : int
        Rows without weight, left out.
    n_zero : int
        Readings of zero that were taken as missing.
    """

    observations: Observations
    types: Mapping[str, str]
    weights: Array
    covariates: Mapping[str, Array]
    n_unweighted: int
    n_zero: int


def files_of(folder: Path) -> list[Path]:
    """Return the files that are read."""
    return [folder / f"{name}.csv" for name in ("responses", "types", "covariates")]


def read_survey(folder: Path) -> Survey:
    """Return the survey of a folder."""
    source = read_folder(folder)
    if source.types is None:
        raise FileError(f"the folder {folder} must hold types.csv with the type of each item")
    table = read_table(source.table)
    beside = read_table(read_file(existing_file(folder / "covariates.csv")))
    if WEIGHT not in beside.names:
        raise DataError(
            f"covariates.csv must have the column {WEIGHT} with the survey weights, but it has "
            f"{', '.join(beside.names)}"
        )
    if beside.n_samples != table.n_samples:
        raise DataError(
            f"covariates.csv must have a row for each of the {table.n_samples} rows of "
            f"responses.csv, but it has {beside.n_samples}"
        )
    values = np.array(table.values)
    zero = np.isin(table.names, NO_ZERO)[None, :] & (values == 0)
    values[zero] = np.nan
    raw = beside.values[:, beside.names.index(WEIGHT)]
    known = np.isfinite(raw) & (raw > 0)
    share = raw[known]
    if len(share) < 2:
        raise DataError(f"the column {WEIGHT} of covariates.csv must have weights above zero")
    return Survey(
        replace(table, values=values[known]),
        dict(source.types),
        share * (effective_number(share) / share.sum()),
        {
            name: beside.values[known, c]
            for c, name in enumerate(beside.names)
            if name in ("Age", "Male")
        },
        int((~known).sum()),
        int(zero.sum()),
    )


def measured_families(survey: Survey) -> list[tuple[str, float, float]]:
    """Return for each measured item its mean log density as normal and as lognormal.

    Without latents: the shape of a column over all persons, which a few latents hardly change.
    """
    table = survey.observations
    kinds = resolve_families(table, survey.types, survey.weights).families
    out = []
    for j, name in enumerate(table.names):
        if kinds[j] not in ("gaussian", "lognormal"):
            continue
        x = table.values[:, j]
        seen = np.isfinite(x)
        x, share = x[seen], survey.weights[seen] / survey.weights[seen].sum()
        logarithm = float("-inf")
        if (x > 0).all():
            logs = np.log(x)
            logarithm = _normal_density(logs, share) - float(share @ logs)
        out.append((name, _normal_density(x, share), logarithm))
    return out


def _normal_density(x: Array, share: Array) -> float:
    mean = float(share @ x)
    return -0.5 * (1.0 + float(np.log(2.0 * np.pi * (share @ (x - mean) ** 2))))


def count_families(
    survey: Survey, families: Mapping[str, str], settings: Mapping[str, Any]
) -> list[FamilyFit]:
    """Return fits to all persons with each family of counts."""

    def table_with(family: str) -> Table:
        return as_table(survey, with_counts_as(family, families))

    return compared_families(table_with, settings, float(survey.weights.sum()))


def with_counts_as(family: str, families: Mapping[str, str]) -> dict[str, str]:
    """Return the families of items, counts with another one."""
    return {item: family if kind == "poisson" else kind for item, kind in families.items()}


def as_table(survey: Survey, families: Mapping[str, str]) -> Table:
    """Return the rows as fits take them, with these families."""
    counted, weights = weighted_rows(survey.observations, survey.weights)
    return Table(counted, resolve_families(counted, families, weights).families, weights)


def first_families(survey: Survey) -> dict[str, str]:
    """Return the families of types.csv, measured items as normal or lognormal by evidence."""
    kinds = resolve_families(survey.observations, survey.types, survey.weights).families
    out = dict(zip(survey.observations.names, kinds, strict=True))
    for name, normal, logarithm in measured_families(survey):
        out[name] = "lognormal" if logarithm > normal else "gaussian"
    return out
