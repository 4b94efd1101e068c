"""The grammar section of the ECPE: three skills with a known Q, fitted with all effects.

Examination for the Certificate of Proficiency in English, 2922 examinees, 28 items. Templin and
Hoffman (2013, Educational Measurement: Issues and Practice 32, 37-50) published the data; Templin
and Bradshaw (2014, Psychometrika 79, 317-339) tested on them whether the skills are a hierarchy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.readers import read_folder
from hidag.estimator import DCRL
from hidag.exceptions import DataError
from hidag.fitting.information_criteria import count_parameters, information_criteria
from hidag.parallel import Progress
from hidag.plotting.figure import size_of_graph
from hidag.plotting.graph import plot_graph
from hidag.plotting.profiles import (
    ItemResponse,
    plot_item_responses,
    plot_profiles,
    size_of_item_responses,
    size_of_profiles,
)
from hidag.reporting.fit_description import edges_in_words
from hidag.reporting.sections import Section, Table
from hidag.results import FitResult
from hidag.structure.knowledge import Knowledge
from hidag_paper.applications.outcome import Outcome, Picture

# --- The grammar test: its profiles in words and numbers, and tables of its fits

Array = NDArray[np.float64]

SKILLS = ("Morphosyntactic", "Cohesive", "Lexical")
#: The profiles that a linear hierarchy Lexical, Cohesive, Morphosyntactic allows.
HIERARCHY = ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1))
#: Its edges, without directions: which skill comes first cannot be told from the law.
CHAIN = frozenset({frozenset({"Lexical", "Cohesive"}), frozenset({"Cohesive", "Morphosyntactic"})})

#: An EM of the saturated G-DINA model with the same Q that has nothing in common with this library,
#: best of eight starts: log-likelihood, and shares of the profiles of the hierarchy.
INDEPENDENT_LOG_LIKELIHOOD = -42738.56
INDEPENDENT_SHARES: Mapping[tuple[int, ...], float] = {
    (0, 0, 0): 0.303,
    (0, 0, 1): 0.124,
    (0, 1, 1): 0.182,
    (1, 1, 1): 0.350,
}

#: A combination of an item's skills that fewer examinees are expected to have says little.
FEW_EXAMINEES = 100.0


@dataclass(frozen=True)
class HierarchyFit:
    """The model with all effects and the profiles of the hierarchy only.

    Attributes
    ----------
    shares : ndarray, shape (4,)
        Of the profiles, in the order of `HIERARCHY`.
    log_likelihood : float
    n_parameters : int
    """

    shares: Array
    log_likelihood: float
    n_parameters: int

    def criteria(self, n_rows: int) -> tuple[float, float]:
        """Return AIC and BIC."""
        twice = -2.0 * self.log_likelihood
        return twice + 2.0 * self.n_parameters, twice + float(np.log(n_rows)) * self.n_parameters


@dataclass(frozen=True)
class EcpeFits:
    """Fits of the grammar test under several models.

    Attributes
    ----------
    results : mapping from effects to FitResult
    models : mapping from effects to str
        In words, in the same order.
    hierarchy : HierarchyFit
    """

    results: Mapping[str, FitResult]
    models: Mapping[str, str]
    hierarchy: HierarchyFit

    @property
    def full(self) -> FitResult:
        """The fit with all effects."""
        return self.results["all"]


def profile_shares(result: FitResult) -> dict[tuple[int, ...], float]:
    """Return the share of each profile."""
    states = result.law.space.states()
    return {
        tuple(int(z) for z in state): float(p)
        for state, p in zip(states, result.law.probabilities, strict=True)
    }


def digits(profile: tuple[int, ...]) -> str:
    """Return a profile as three digits."""
    return "".join(str(z) for z in profile)


def in_words(profile: tuple[int, ...]) -> str:
    """Return the skills of a profile."""
    has = [skill for skill, z in zip(SKILLS, profile, strict=True) if z]
    return "none" if not has else "all three" if len(has) == len(SKILLS) else " + ".join(has)


def ordered(shares: Mapping[tuple[int, ...], float]) -> list[tuple[int, ...]]:
    """Return the hierarchy's profiles from none to all, then the others."""
    return [*HIERARCHY, *(profile for profile in sorted(shares) if profile not in HIERARCHY)]


def item_responses(result: FitResult) -> list[ItemResponse]:
    """Return how the items with several skills answer in the states of these skills."""
    q = result.q_matrix
    states = result.law.space.states()
    expected = np.asarray(result.law.probabilities) * result.n_samples
    out = []
    for j in np.flatnonzero(q.sum(axis=1) > 1):
        own = np.flatnonzero(q[j])
        words, means, common = [], [], []
        for levels in product((0, 1), repeat=len(own)):
            there = (states[:, own] == levels).all(axis=1)
            state = np.zeros((1, q.shape[1]), dtype=np.int64)
            state[0, own] = levels
            words.append(
                "+".join(SKILLS[k][0] for k, z in zip(own, levels, strict=True) if z) or "-"
            )
            means.append(float(result.item_means(state)[0, j]))
            common.append(bool(expected[there].sum() >= FEW_EXAMINEES))
        out.append(ItemResponse(result.item_names[j], tuple(words), tuple(means), tuple(common)))
    return out


def profile_table(fits: EcpeFits) -> Table:
    """Return the shares of profiles under several models."""
    shares = profile_shares(fits.full)
    among: dict[tuple[int, ...], float] = dict(
        zip(HIERARCHY, fits.hierarchy.shares.tolist(), strict=True)
    )
    return Table(
        "profiles",
        "Shares of profiles (Morphosyntactic, Cohesive, Lexical): with all effects; by an "
        "independent EM of that model; with main effects; and with the hierarchy's profiles only.",
        ("profile", "skills", "all effects", "independent", "main effects", "hierarchy only"),
        tuple(
            (
                digits(profile),
                in_words(profile),
                shares[profile],
                INDEPENDENT_SHARES.get(profile),
                profile_shares(fits.results["main"])[profile],
                among.get(profile),
            )
            for profile in ordered(shares)
        ),
    )


def model_table(fits: EcpeFits) -> Table:
    """Return likelihoods and information criteria of the models."""
    rows: list[tuple[object, ...]] = []
    for effects, result in fits.results.items():
        value = information_criteria(result)
        rows.append(
            (
                fits.models[effects],
                value.log_likelihood,
                value.n_parameters,
                value.aic,
                value.bic,
                "; ".join(edges_in_words(result.graph)),
            )
        )
    simple = fits.hierarchy
    rows.append(
        (
            "all effects, profiles of the hierarchy only",
            simple.log_likelihood,
            simple.n_parameters,
            *simple.criteria(fits.full.n_samples),
            "",
        )
    )
    rows.append(
        ("all effects, an independent EM", INDEPENDENT_LOG_LIKELIHOOD, None, None, None, "")
    )
    return Table(
        "models",
        "Models with the same Q and, but for the hierarchy, any law of the eight profiles.",
        ("model", "log-likelihood", "parameters", "AIC", "BIC", "graph"),
        tuple(rows),
        decimals=2,
    )


def edge_table(fits: EcpeFits) -> Table:
    """Return what the answers said about weak edges."""
    return Table(
        "edge_tests",
        "Weak edges put to the test: an edge is dropped when the answers lose less log-likelihood "
        "without it than its parameters would cost.",
        ("model", "edge", "loss without it", "cost of its parameters", "kept"),
        tuple(
            (
                fits.models[effects],
                " - ".join(test.pair),
                test.likelihood_loss,
                test.saved,
                test.kept,
            )
            for effects, result in fits.results.items()
            for test in result.edge_tests
        ),
        decimals=1,
    )


def item_table(result: FitResult) -> Table:
    """Return the chances of right answers in the profiles of the hierarchy."""
    states = np.array(HIERARCHY)
    means = result.item_means(states)
    return Table(
        "items",
        "Chance of a right answer of all items in the four profiles of the hierarchy.",
        ("item", "skills", *(in_words(profile) for profile in HIERARCHY)),
        tuple(
            (
                name,
                " + ".join(SKILLS[k] for k in np.flatnonzero(result.q_matrix[j])),
                *(float(mean) for mean in means[:, j]),
            )
            for j, name in enumerate(result.item_names)
        ),
        decimals=2,
    )


# --- The page on the grammar test: profiles, the graph, models side by side, and what others


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


# ---

#: What an item's skills do together, in words, by the estimator's name for it. The first is what
#: the page is about; it holds the others.
MODELS: Mapping[str, str] = {
    "all": "all effects (G-DINA, LCDM)",
    "main": "main effects only",
    "dina": "DINA: all of an item's skills are needed",
    "dino": "DINO: one of an item's skills is enough",
}

#: The hierarchy as prerequisites: nobody has the second without the first.
LINE = (("Lexical", "Cohesive"), ("Cohesive", "Morphosyntactic"))


@dataclass(frozen=True)
class EcpeData:
    """Answers and the experts' Q.

    Attributes
    ----------
    table : pyarrow.Table
        Answers, 0 and 1.
    q : pyarrow.Table
        Items and skills.
    """

    table: Any
    q: Any


def read_ecpe(folder: Path) -> EcpeData:
    """Return the test in a folder with responses.csv and q.csv.

    Raises
    ------
    DataError
        If there is no Q-matrix, or one with other skills.
    """
    found = read_folder(folder)
    if found.q is None:
        raise DataError(
            f"the grammar test needs its Q-matrix, but {folder} has no q.csv; put it beside "
            "responses.csv, with a line for each item and a column for each skill"
        )
    skills = tuple(found.q.column_names[1:])
    if skills != SKILLS:
        raise DataError(
            f"the Q-matrix of the grammar test has the skills {', '.join(SKILLS)}, in this order, "
            f"but {folder / 'q.csv'} has {', '.join(skills)}; for another test use hidag fit"
        )
    return EcpeData(found.table, found.q)


def run_ecpe(
    folder: Path, *, seed: int = 1, observer: Callable[[Progress], None] | None = None
) -> Outcome:
    """Return what is found in the grammar test.

    Parameters
    ----------
    folder : Path
        With responses.csv and q.csv.
    seed : int
    observer : callable, optional
        Told of the fits' progress.
    """
    data = read_ecpe(folder)

    def fit(effects: str, known: Knowledge | None = None, tol: float = 1e-4) -> FitResult:
        model = DCRL(
            len(SKILLS),
            effects=effects,
            family="bernoulli",
            law="saturated",
            q_matrix=data.q,
            knowledge=known,
            tol=tol,
            random_state=seed,
            observer=observer,
        )
        return model.fit(data.table).result_

    fits = {effects: fit(effects) for effects in MODELS}
    # Shares of the four profiles settle later than the likelihood does.
    of_line = fit("all", Knowledge(hierarchy=LINE), tol=1e-6)
    hierarchy = HierarchyFit(
        np.asarray(of_line.law.probabilities)[of_line.law.space.number(np.array(HIERARCHY))],
        of_line.log_likelihood,
        count_parameters(of_line),
    )
    return ecpe_outcome(EcpeFits(fits, MODELS, hierarchy), seed)
