"""The page on the grammar test: profiles, the graph, models side by side, and what others found."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hidag.applications.ecpe_tables import (
    CHAIN,
    FEW_EXAMINEES,
    HIERARCHY,
    EcpeFits,
    digits,
    edge_table,
    in_words,
    item_responses,
    item_table,
    model_table,
    ordered,
    profile_shares,
    profile_table,
)
from hidag.applications.outcome import Outcome, Picture
from hidag.criteria import information_criteria
from hidag.plots import (
    plot_graph,
    plot_item_responses,
    plot_profiles,
    size_of_graph,
    size_of_item_responses,
    size_of_profiles,
)
from hidag.report import edges_in_words
from hidag.report.parts import Section
from hidag.result import FitResult


def ecpe_outcome(fits: EcpeFits, seed: int) -> Outcome:
    """Return the outcome of the fits of the grammar test."""
    result = fits.full
    shares = profile_shares(result)
    kept = sum(shares[profile] for profile in HIERARCHY)
    found = frozenset(
        frozenset(pair) for pair in (*result.graph.directed_edges, *result.graph.undirected_edges)
    )
    full, simple = information_criteria(result), fits.hierarchy
    loss = result.log_likelihood - simple.log_likelihood
    fewer = full.n_parameters - simple.n_parameters
    cheaper = simple.criteria(result.n_samples)[1] < full.bic
    best = {
        name: min(fits.results, key=lambda m: getattr(information_criteria(fits.results[m]), name))
        for name in ("aic", "bic")
    }
    graph_words = (
        "The graph among the skills is the chain Lexical - Cohesive - Morphosyntactic"
        if found == CHAIN
        else f"The graph among the skills is {'; '.join(edges_in_words(result.graph)) or 'empty'}, "
        "not the chain Lexical - Cohesive - Morphosyntactic"
    )
    findings = (
        f"{kept:.1%} of the examinees are in the four profiles of a linear hierarchy: Lexical "
        "comes first, then Cohesive, then Morphosyntactic. The other four profiles together hold "
        f"{1 - kept:.1%}.",
        f"{graph_words}: what one knows of morphosyntactic rules depends on lexical rules "
        "through cohesive ones alone."
        if found == CHAIN
        else f"{graph_words}.",
        f"With these four profiles only, the log-likelihood is {loss:.1f} lower with {fewer} "
        f"parameters fewer: BIC prefers {'the hierarchy' if cheaper else 'all profiles'}"
        + (", as Templin and Bradshaw (2014) concluded." if cheaper else "."),
    )
    return Outcome(
        name="ecpe",
        title="Three skills behind a grammar test (ECPE)",
        findings=findings,
        cautions=(
            "Combinations of skills that hardly anybody has also leave the answers there hardly "
            "determined: hatched bars on the page.",
            "Data of this kind cannot tell the direction of a chain's edges. That lexical rules "
            "come first is read from the profiles, not from the graph.",
        ),
        result=result,
        seed=seed,
        settings={"seed": seed, "law": "saturated", "effects": "all"},
        sections=_sections(fits, best),
        pictures=_pictures(result, shares),
        tables=(
            profile_table(fits),
            model_table(fits),
            edge_table(fits),
            item_table(result),
        ),
        numbers={
            "profile_shares": {digits(profile): share for profile, share in shares.items()},
            "share_of_hierarchy": kept,
            "log_likelihood_of_hierarchy": simple.log_likelihood,
            "chain_found": found == CHAIN,
        },
    )


def _sections(fits: EcpeFits, best: Mapping[str, str]) -> tuple[Section, ...]:
    return (
        Section(
            "The skills",
            (
                "Experts said which of three kinds of rules each of the 28 items asks for: "
                "morphosyntactic, cohesive and lexical ones. That Q-matrix is given to the fit. An "
                "item's skills may act together in any way, and all eight profiles of skills are "
                "allowed any share.",
                "Templin and Bradshaw (2014, Psychometrika 79, 317-339) suspected a linear "
                "hierarchy in this test (lexical rules are learned before cohesive ones, these "
                "before morphosyntactic ones) and found that a model with the four profiles of "
                "that hierarchy represents the data more adequately than one with all profiles. "
                "The fits with all profiles were told nothing of it. The column 'independent' has "
                "what an EM of the same model gives that shares no code with this library.",
            ),
            ("profiles",),
            ("profiles",),
        ),
        Section(
            "The graph",
            (
                "With a hierarchy, knowing that somebody has cohesive rules says that lexical "
                "rules are there too, and not having them says that morphosyntactic ones are not. "
                "So the outer skills have nothing left to say about each other: a chain. Edges "
                "that the latents' law shows but the answers do not bear out are dropped by a "
                "test on the observed data.",
            ),
            ("graph",),
            ("edge_tests",),
        ),
        Section(
            "Models side by side",
            (
                "Among the models with all eight profiles, the lowest AIC has: "
                f"{fits.models[best['aic']]}; the lowest BIC has: {fits.models[best['bic']]}. "
                "DINA and DINO have one effect for each item.",
            ),
            (),
            ("models",),
        ),
        Section(
            "Items that ask for two skills",
            (
                "Chance of a right answer for each combination of the item's own skills, under the "
                "model with all effects. Hatched: fewer than "
                f"{FEW_EXAMINEES:.0f} examinees are expected to have that combination.",
            ),
            ("items",),
            ("items",),
        ),
    )


def _pictures(result: FitResult, shares: Mapping[tuple[int, ...], float]) -> tuple[Picture, ...]:
    profiles = ordered(shares)
    return (
        Picture.on_axes(
            "profiles",
            "Shares of the eight profiles of skills; dark, the four that a linear hierarchy "
            "allows.",
            lambda ax: plot_profiles(
                ax,
                [in_words(profile) for profile in profiles],
                np.array([shares[profile] for profile in profiles]),
                marked=[profile in HIERARCHY for profile in profiles],
                mark="linear hierarchy",
            ),
            size_of_profiles(len(profiles)),
        ),
        Picture.on_axes(
            "graph",
            "The graph among the skills. Plain lines: the direction cannot be told.",
            lambda ax: plot_graph(result.graph, ax),
            size_of_graph(result.graph),
            fill=True,
        ),
        Picture(
            "items",
            "Chance of a right answer by the item's own skills (M morphosyntactic, C cohesive, L "
            "lexical; - neither). Hatched: hardly anybody has that combination.",
            lambda figure: plot_item_responses(figure, item_responses(result)),
            size_of_item_responses(len(item_responses(result))),
        ),
    )
