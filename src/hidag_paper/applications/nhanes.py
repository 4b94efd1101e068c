"""Health in the US, 2009-12: hidden states behind measures, answers and counts of adults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from hidag.reporting.sections import Section, Table
from hidag_paper.applications import exploration_report
from hidag_paper.applications.exploration import (
    COMES_BACK,
    LATENTS_FOR_FAMILIES,
    Exploration,
    best_family,
    explore,
    misfit,
)
from hidag_paper.applications.exploration_report import (
    common_numbers,
    count_family_table,
    misfit_section,
    number_section,
)
from hidag_paper.applications.nhanes_data import (
    Survey,
    as_table,
    count_families,
    first_families,
    measured_families,
    read_survey,
    with_counts_as,
)
from hidag_paper.applications.outcome import Outcome

#: Numbers of latents that are fitted: past these the items of a latent get few.
NUMBERS = (2, 3, 4, 5, 6)


def explain_health(
    folder: Path,
    *,
    seed: int = 0,
    numbers: tuple[int, ...] = NUMBERS,
    n_seeds: int = 2,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Return what a few hidden yes/no states say about the health of adults.

    Parameters
    ----------
    folder : Path
        With responses.csv, types.csv and covariates.csv.
    seed : int
    numbers : tuple of int
        Numbers of latents to fit.
    n_seeds : int
        Refits from other seeds.
    tell : callable, optional
        Called with a sentence before each part of the work.
    """
    say = tell or (lambda sentence: None)
    survey = read_survey(folder)
    say("families of the items")
    families = first_families(survey)
    counts = count_families(survey, families, {"random_state": seed})
    best = best_family(counts)
    families = with_counts_as(best, families)
    say(f"{numbers[0]} to {numbers[-1]} latents, on all rows and on halves")
    found = explore(as_table(survey, families), numbers, seed=seed, n_seeds=n_seeds)
    say("what is left unexplained")
    gaps = misfit(found.result, found.table)
    tables = (
        _family_table(survey, families),
        count_family_table(
            counts, f"Families of the counts, by fits with {LATENTS_FOR_FAMILIES} latents."
        ),
        exploration_report.number_table(found),
        exploration_report.latent_table(found),
        exploration_report.effect_table(found),
        exploration_report.edge_table(found),
        _covariate_table(found, survey),
        exploration_report.misfit_table(found, gaps),
    )
    n = len(survey.weights)
    return Outcome(
        name="nhanes",
        title="Hidden states behind the health of adults (NHANES 2009-12)",
        findings=(
            f"{found.chosen} hidden yes/no states: "
            + "; ".join(
                f"{name} ({share:.0%} of adults)"
                for name, share in zip(
                    found.result.latent_names, found.result.law.marginals()[:, 1], strict=True
                )
            )
            + ". A name lists the items that a state drives most, a minus sign those it lowers.",
            exploration_report.number_words(found),
            exploration_report.stability_words(found),
        ),
        cautions=_cautions(found, survey),
        result=found.result,
        seed=seed,
        settings={"folder": folder.name, "numbers": list(numbers), "n_seeds": n_seeds},
        sections=(
            Section(
                "The data, and what each column was taken for",
                (
                    f"{n:,} adults with an examination weight ({survey.n_unweighted:,} without "
                    f"were left out), {len(found.result.item_names)} items of four kinds, "
                    f"{found.result.missing_share:.1%} of the cells missing. Weights were scaled "
                    f"to add up to {survey.weights.sum():,.0f}: unequal weights make {n:,} persons "
                    f"tell as much as so many. {survey.n_zero:,} diastolic pressures of zero were "
                    "taken as missing.",
                    "Measured items are normal or lognormal, whichever makes the column more "
                    f"probable. Counts are {best}: of fits with {LATENTS_FOR_FAMILIES} latents "
                    "that differ in nothing else, these have the best BIC.",
                ),
                tables=("families", "count_families"),
            ),
            number_section(found),
            Section(
                "The states",
                (
                    "What a state adds to an item is in the item's standard deviations, so that "
                    "counts, grades, yeses and measurements can be read side by side.",
                ),
                pictures=("effects",),
                tables=("latents", "effects"),
            ),
            Section(
                "The graph among them",
                (
                    exploration_report.stability_words(found),
                    "An edge is a dependence that the other states do not explain. Directions rest "
                    "on assumptions that a survey at one time cannot test: no common cause outside "
                    "the model, although age and sex are such causes here.",
                ),
                pictures=("graph",),
                tables=("edges",),
            ),
            Section(
                "Age and sex, which no fit saw",
                (
                    "Chances of having a state, averaged by age and sex with the survey's weights. "
                    "Neither was an item; the table shows what the states stand for, and which "
                    "edges may be age's doing.",
                ),
                tables=("age_and_sex",),
            ),
            misfit_section(found, gaps),
        ),
        pictures=(
            exploration_report.graph_picture(found),
            exploration_report.number_picture(found),
            exploration_report.agreement_picture(found),
            exploration_report.loadings_picture(found),
        ),
        tables=tables,
        numbers=common_numbers(found, gaps),
    )


def _cautions(found: Exploration, survey: Survey) -> tuple[str, ...]:
    out = [
        "Blood pressure, weight and cholesterol are matters of degree; a yes/no state cuts them in "
        "two, and several states may stand for one thing that has many grades.",
        "Strata and clusters of the survey are not in the model: with them all uncertainty is "
        "larger than told here.",
        "Missing cells are taken as missing at random. Several questions were put to some ages "
        "only, so that it is age that decides there.",
    ]
    if found.criterion_at_end:
        out.insert(
            0,
            f"No criterion of fit stops at {found.chosen} states: EBIC is best for the most that "
            "were fitted. The number rests on what comes back in halves of the rows.",
        )
    weak = [
        name
        for name, again in zip(
            found.result.latent_names, found.latents_again.min(axis=0), strict=True
        )
        if again < COMES_BACK
    ]
    if weak:
        out.insert(0, f"Not found again in every refit: {'; '.join(weak)}.")
    return tuple(out)


def _family_table(survey: Survey, families: dict[str, str]) -> Table:
    density = {name: (normal, log) for name, normal, log in measured_families(survey)}
    missing = np.isnan(survey.observations.values).mean(axis=0)
    return Table(
        "families",
        "Each item's kind, and the mean log density of measured ones under either law.",
        ("item", "type", "family", "missing", "normal", "lognormal"),
        tuple(
            (
                name,
                survey.types[name],
                families[name],
                float(missing[j]),
                *density.get(name, (float("nan"), float("nan"))),
            )
            for j, name in enumerate(survey.observations.names)
        ),
    )


def _covariate_table(found: Exploration, survey: Survey) -> Table:
    chances = found.posterior()
    groups: list[tuple[str, np.ndarray]] = []
    if "Age" in survey.covariates:
        age = survey.covariates["Age"]
        for low, high in ((20, 39), (40, 59), (60, 120)):
            label = f"age {low} to {high}" if high < 100 else f"age {low} and more"
            groups.append((label, (age >= low) & (age <= high)))
    if "Male" in survey.covariates:
        groups += [(w, survey.covariates["Male"] == v) for w, v in (("women", 0), ("men", 1))]
    return Table(
        "age_and_sex",
        "Average chance of each state by age and sex.",
        ("group", "persons", *found.result.latent_names),
        tuple(
            (
                label,
                int(inside.sum()),
                *(
                    float(v)
                    for v in np.average(chances[inside], axis=0, weights=survey.weights[inside])
                ),
            )
            for label, inside in groups
            if inside.any()
        ),
        decimals=2,
    )
