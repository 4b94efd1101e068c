"""The grammar test: its profiles in words and numbers, and tables of its fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hidag.criteria import information_criteria
from hidag.plots import ItemResponse
from hidag.report import edges_in_words
from hidag.report.parts import Table
from hidag.result import FitResult

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
