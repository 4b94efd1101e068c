"""Grammar section of the ECPE: three skills with a known Q, fitted with all interactions.

Examination for the Certificate of Proficiency in English, 2922 examinees, 28 items. Templin and
Hoffman (2013, Educational Measurement: Issues and Practice 32, 37-50) published the data; Templin
and Bradshaw (2014, Psychometrika 79, 317-339) tested for a hierarchy of the skills.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np

from hidag.data.readers import read_folder
from hidag.estimator import DCRL
from hidag.exceptions import Advice, DataError
from hidag.fitting.information_criteria import information_criteria
from hidag.parallel import Progress
from hidag.plotting.figure import size_of_graph
from hidag.plotting.graph import plot_graph
from hidag.reporting.content import Table
from hidag.reporting.fit_description import format_edges
from hidag.results import FitResult
from hidag.structure.knowledge import Knowledge
from hidag_paper.applications.figures import (
    ItemResponse,
    plot_item_responses,
    plot_profiles,
    size_of_item_responses,
    size_of_profiles,
)
from hidag_paper.applications.report import ApplicationReport, ReportFigure, ReportSection

Profile = tuple[int, ...]

SKILLS = ("Morphosyntactic", "Cohesive", "Lexical")
#: Prerequisites of the linear hierarchy: nobody has the second skill without the first.
LINE = (("Lexical", "Cohesive"), ("Cohesive", "Morphosyntactic"))
#: The profiles that the hierarchy permits.
HIERARCHY = ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1))
#: Its graph; the directions are not identified.
CHAIN = frozenset(frozenset(pair) for pair in LINE)
#: Item models, by the value of ``effects``; the first is the main one and contains the others.
MODELS: Mapping[str, str] = {
    "all": "all interactions (G-DINA, LCDM)",
    "main": "main effects only",
    "dina": "DINA: all skills of an item are required",
    "dino": "DINO: one skill of an item suffices",
}
#: Log-likelihood and profile probabilities by an independent EM implementation of the saturated
#: G-DINA model with the same Q, best of eight starts.
INDEPENDENT_LOG_LIKELIHOOD = -42738.56
INDEPENDENT_SHARES: Mapping[Profile, float] = dict(
    zip(HIERARCHY, (0.303, 0.124, 0.182, 0.350), strict=True)
)
#: Expected number of examinees below which the responses of a skill combination are unreliable.
FEW_EXAMINEES = 100.0


@dataclass(frozen=True)
class EcpeFits:
    """Fits of several models.

    Attributes
    ----------
    models : mapping from effects to FitResult
        The keys of `MODELS`.
    hierarchy : FitResult
        All interactions, only the profiles of the hierarchy.
    """

    models: Mapping[str, FitResult]
    hierarchy: FitResult

    @property
    def full(self) -> FitResult:
        """The fit with all interactions and all profiles."""
        return self.models["all"]


def read_ecpe(folder: Path) -> tuple[Any, Any]:
    """Return the responses and the Q-matrix from responses.csv and q.csv, as pyarrow tables."""
    found = read_folder(folder)
    if found.q is None:
        raise DataError(
            "missing-q",
            "the ECPE application needs a Q-matrix, but {folder} has no q.csv",
            advice=Advice(
                "add-file",
                "put q.csv beside responses.csv, with a row per item and a column per skill",
            ),
            folder=folder,
        )
    skills = tuple(found.q.column_names[1:])
    if skills != SKILLS:
        raise DataError(
            "column-names",
            "the Q-matrix of the ECPE must have the skills {expected}, in this order, but {path} "
            "has {found}",
            advice=Advice("use-fit", "use hidag fit for another test"),
            expected=", ".join(SKILLS),
            path=folder / "q.csv",
            found=", ".join(skills),
        )
    return found.table, found.q


def run_ecpe(
    folder: Path, *, seed: int = 1, observer: Callable[[Progress], None] | None = None
) -> ApplicationReport:
    """Analyse the grammar section of the ECPE.

    Parameters
    ----------
    folder : Path
        With responses.csv and q.csv.
    seed : int
    observer : callable, optional
        Receives the progress of the fits.
    """
    table, q = read_ecpe(folder)

    def fit(effects: str, known: Knowledge | None = None, tol: float = 1e-4) -> FitResult:
        model = DCRL(
            len(SKILLS),
            effects=cast(Any, effects),
            family="bernoulli",
            law="saturated",
            q_matrix=q,
            knowledge=known,
            tol=tol,
            random_state=seed,
            observer=observer,
        )
        return model.fit(table).result_

    models = {effects: fit(effects) for effects in MODELS}
    # The probabilities of the four profiles converge more slowly than the likelihood.
    return ecpe_report(EcpeFits(models, fit("all", Knowledge(hierarchy=LINE), tol=1e-6)), seed)


def profile_shares(result: FitResult) -> dict[Profile, float]:
    """Return the probability of each profile, those of the hierarchy first."""
    states = map(tuple, result.law.space.states().tolist())
    shares = dict(zip(states, np.asarray(result.law.probabilities).tolist(), strict=True))
    return {**{profile: shares[profile] for profile in HIERARCHY}, **shares}


def describe_profile(profile: Profile) -> str:
    """Return the skills of a profile."""
    skills = [skill for skill, z in zip(SKILLS, profile, strict=True) if z]
    return {0: "none", len(SKILLS): "all three"}.get(len(skills), " + ".join(skills))


def item_responses(result: FitResult) -> list[ItemResponse]:
    """Return the responses to items with several skills by combination of these skills."""
    q, states = result.q_matrix, result.law.space.states()
    expected = np.asarray(result.law.probabilities) * result.n_samples
    responses = []
    for j in np.flatnonzero(q.sum(axis=1) > 1):
        own = np.flatnonzero(q[j])
        labels, means, common = [], [], []
        for levels in product((0, 1), repeat=len(own)):
            state = np.zeros((1, q.shape[1]), dtype=np.int64)
            state[0, own] = levels
            skills = [SKILLS[k][0] for k, z in zip(own, levels, strict=True) if z]
            labels.append("+".join(skills) or "-")
            means.append(float(result.item_means(state)[0, j]))
            inside = (states[:, own] == levels).all(axis=1)
            common.append(bool(expected[inside].sum() >= FEW_EXAMINEES))
        name = result.item_names[j]
        responses.append(ItemResponse(name, tuple(labels), tuple(means), tuple(common)))
    return responses


def ecpe_report(fits: EcpeFits, seed: int) -> ApplicationReport:
    """Return the report on the fits."""
    result = fits.full
    shares = profile_shares(result)
    total = sum(shares[profile] for profile in HIERARCHY)
    edges = (*result.graph.directed_edges, *result.graph.undirected_edges)
    is_chain = frozenset(map(frozenset, edges)) == CHAIN
    full, restricted = information_criteria(result), information_criteria(fits.hierarchy)
    chain = "Lexical - Cohesive - Morphosyntactic"
    if is_chain:
        graph = (
            f"The graph of the skills is the chain {chain}: given the cohesive skill, the "
            "morphosyntactic and the lexical skill are independent."
        )
    else:
        found = "; ".join(format_edges(result.graph)) or "empty"
        graph = f"The graph of the skills is {found}, not the chain {chain}."
    if restricted.bic < full.bic:
        verdict = "the hierarchy, as Templin and Bradshaw (2014) concluded."
    else:
        verdict = "all profiles."
    return ApplicationReport(
        name="ecpe",
        title="Three skills in a grammar test (ECPE)",
        findings=(
            f"{total:.1%} of the examinees have one of the four profiles of a linear hierarchy: "
            "Lexical first, then Cohesive, then Morphosyntactic. The other four profiles have "
            f"{1 - total:.1%}.",
            graph,
            "With these four profiles only, the log-likelihood is "
            f"{full.log_likelihood - restricted.log_likelihood:.1f} lower with "
            f"{full.n_parameters - restricted.n_parameters} fewer parameters: BIC prefers "
            f"{verdict}",
        ),
        cautions=(
            "The responses of rare combinations of skills are weakly identified (hatched bars).",
            "The directions of a chain are not identified. That lexical skills come first follows "
            "from the profiles, not from the graph.",
        ),
        result=result,
        seed=seed,
        settings={"seed": seed, "law": "saturated", "effects": "all"},
        sections=(
            _profile_section(fits, shares),
            _graph_section(fits),
            _model_section(fits),
            _item_section(result),
        ),
        numbers={
            "profile_shares": {
                "".join(map(str, profile)): shares[profile] for profile in sorted(shares)
            },
            "share_of_hierarchy": total,
            "log_likelihood_of_hierarchy": fits.hierarchy.log_likelihood,
            "chain_found": is_chain,
        },
    )


def _profile_section(fits: EcpeFits, shares: Mapping[Profile, float]) -> ReportSection:
    main, restricted = profile_shares(fits.models["main"]), profile_shares(fits.hierarchy)
    table = Table(
        "profiles",
        "Probabilities of the profiles (Morphosyntactic, Cohesive, Lexical): all interactions; an "
        "independent EM of that model; main effects; only the profiles of the hierarchy.",
        ("profile", "skills", "all interactions", "independent", "main effects", "hierarchy only"),
        tuple(
            (
                "".join(map(str, profile)),
                describe_profile(profile),
                share,
                INDEPENDENT_SHARES.get(profile),
                main[profile],
                restricted[profile] if profile in HIERARCHY else None,
            )
            for profile, share in shares.items()
        ),
    )
    figure = ReportFigure.on_axes(
        "profiles",
        "Probabilities of the eight skill profiles; dark: the four profiles of the linear "
        "hierarchy.",
        lambda ax: plot_profiles(
            ax,
            [describe_profile(profile) for profile in shares],
            np.array(list(shares.values())),
            marked=[profile in HIERARCHY for profile in shares],
            mark="linear hierarchy",
        ),
        size_of_profiles(len(shares)),
    )
    return ReportSection(
        "Skills",
        (
            "Experts determined which of three skills each of the 28 items requires: "
            "morphosyntactic, cohesive and lexical rules. This Q-matrix is given. The skills of an "
            "item may interact in any way, and all eight profiles may have any probability.",
            "Templin and Bradshaw (2014, Psychometrika 79, 317-339) hypothesised a linear "
            "hierarchy (lexical rules are learned before cohesive rules, these before "
            "morphosyntactic rules) and found that a model with its four profiles represents the "
            "data more adequately than one with all profiles. The fits with all profiles do not "
            "use this hypothesis. The column 'independent' comes from an EM implementation that "
            "shares no code with this library.",
        ),
        (figure,),
        (table,),
    )


def _graph_section(fits: EcpeFits) -> ReportSection:
    graph = fits.full.graph
    table = Table(
        "edge_tests",
        "Likelihood tests of weak edges: an edge is dropped if the loss of observed-data "
        "log-likelihood without it is less than the penalty of its parameters.",
        ("model", "edge", "loss without edge", "penalty", "retained"),
        tuple(
            (MODELS[effects], " - ".join(test.pair), test.likelihood_loss, test.saved, test.kept)
            for effects, result in fits.models.items()
            for test in result.edge_tests
        ),
        decimals=1,
    )
    figure = ReportFigure.on_axes(
        "graph",
        "Causal graph of the skills. The direction of edges without an arrow is not identified.",
        lambda ax: plot_graph(graph, ax),
        size_of_graph(graph),
        fill=True,
    )
    paragraph = (
        "Under the hierarchy, having the cohesive skill implies having the lexical skill, and "
        "lacking it implies lacking the morphosyntactic skill. The outer skills are therefore "
        "independent given the middle one: a chain. Edges of the latent distribution that the "
        "observed-data likelihood does not support are dropped."
    )
    return ReportSection("Causal graph", (paragraph,), (figure,), (table,))


def _model_section(fits: EcpeFits) -> ReportSection:
    named = {MODELS[effects]: result for effects, result in fits.models.items()}
    criteria = {name: information_criteria(result) for name, result in named.items()}
    best = {c: min(criteria, key=lambda name: getattr(criteria[name], c)) for c in ("aic", "bic")}
    graphs = {name: "; ".join(format_edges(result.graph)) for name, result in named.items()}
    restricted = "all interactions, profiles of the hierarchy only"
    criteria[restricted] = information_criteria(fits.hierarchy)
    rows: list[tuple[object, ...]] = [
        (name, c.log_likelihood, c.n_parameters, c.aic, c.bic, graphs.get(name, ""))
        for name, c in criteria.items()
    ]
    independent = ("all interactions, independent EM", INDEPENDENT_LOG_LIKELIHOOD)
    table = Table(
        "models",
        "Models with the same Q; all but the hierarchy have a saturated distribution of the eight "
        "profiles.",
        ("model", "log-likelihood", "parameters", "AIC", "BIC", "graph"),
        (*rows, (*independent, None, None, None, "")),
        decimals=2,
    )
    sentence = (
        f"Among the models with all eight profiles, AIC selects: {best['aic']}; BIC selects: "
        f"{best['bic']}. DINA and DINO have one effect per item."
    )
    return ReportSection("Model comparison", (sentence,), (), (table,))


def _item_section(result: FitResult) -> ReportSection:
    means = result.item_means(np.array(HIERARCHY)).T.tolist()
    skills = [" + ".join(SKILLS[k] for k in np.flatnonzero(row)) for row in result.q_matrix]
    table = Table(
        "items",
        "Probability of a correct response to each item in the four profiles of the hierarchy.",
        ("item", "skills", *map(describe_profile, HIERARCHY)),
        tuple((n, s, *m) for n, s, m in zip(result.item_names, skills, means, strict=True)),
        decimals=2,
    )
    responses = item_responses(result)
    figure = ReportFigure(
        "items",
        "Probability of a correct response by skills of the item (M morphosyntactic, C cohesive, L "
        "lexical; - none). Hatched: rare combinations.",
        lambda figure: plot_item_responses(figure, responses),
        size_of_item_responses(len(responses)),
    )
    paragraph = (
        "Probability of a correct response for each combination of the skills of an item, with all "
        f"interactions. Hatched: combinations of fewer than {FEW_EXAMINEES:.0f} examinees expected."
    )
    return ReportSection("Items that require two skills", (paragraph,), (figure,), (table,))
