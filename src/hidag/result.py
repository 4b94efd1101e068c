"""FitResult: everything a reader of a fit needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, Knowledge
from hidag.evidence import EdgeTest
from hidag.fit_identifiability import certificate_of_fit, certificate_of_q
from hidag.identify import Certificate
from hidag.latent import LatentLaw
from hidag.measurement import MeasurementParameters, Responses, Terms, family_named
from hidag.observations.known_items import read_known_items
from hidag.result_file import read_fields, write_result
from hidag.row_posteriors import (
    by_level,
    most_probable_levels,
    probabilities_above_zero,
    row_log_densities,
)
from hidag.seen_rows import SeenRows
from hidag.start.records import StartRecord

Array = NDArray[np.float64]

#: Under which settings keep the words of items whose answers stood in words.
ANSWER_WORDS = "answer_words"


@dataclass(frozen=True)
class FitResult:
    """A fitted model, frozen.

    Attributes
    ----------
    item_names, latent_names : tuple of str
    parameters : MeasurementParameters
    law : LatentLaw
    graph : CPDAG
    q_given : ndarray of int8, shape (J, K), or None
        The Q the fit was given: 1, 0, or -1 where it was to be estimated.
    log_likelihood, objective : float
        Of the observed data under ``law``, and less the penalty; NaN when the latents were sampled
        and their joint states are too many to sum over.
    n_samples : int
        Rows of the table, also those that count for nothing; see ``n_counted``.
    missing_share : float
        Of the cells in the rows that count.
    n_iter, converged, method : int, bool, str
    trace : ndarray, shape (n_iter, 2)
        Objective and largest coefficient move per step.
    starts : tuple of StartRecord
        Their objectives are under the penalty that estimation began with; the final choice of
        loadings may have been made under another (``settings["penalty_strength_used"]``). They
        are on ``n_rows`` rows; starts under a law over a graph are compared by them less the price
        of the law's parameters.
    n_reached : int
        How many starts came as high as the best.
    graph_rows : float
        Number of rows the graph's score counted on.
    information_ratio : float
        Share of the latents' pairwise information that the items carry.
    edge_tests : tuple of EdgeTest
        What the observed data said about the weakest edges.
    family_reasons : tuple of str
    settings, versions : mapping
    item_families : tuple of str
        Families of the items where some are nominal, so that ``parameters`` has several rows for
        them; empty else.
    seen_rows : SeenRows or None
        Which cells rows had and how much they counted; None in files without it.
    """

    item_names: tuple[str, ...]
    latent_names: tuple[str, ...]
    parameters: MeasurementParameters
    law: LatentLaw
    graph: CPDAG
    q_given: NDArray[np.int8] | None
    log_likelihood: float
    objective: float
    n_samples: int
    missing_share: float
    n_iter: int
    converged: bool
    method: str
    trace: Array
    starts: tuple[StartRecord, ...]
    n_reached: int
    graph_rows: float
    information_ratio: float
    edge_tests: tuple[EdgeTest, ...]
    family_reasons: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    item_families: tuple[str, ...] = ()
    seen_rows: SeenRows | None = None

    @cached_property
    def identifiability(self) -> Certificate:
        """What this Q lets be identified, condition by condition (print it)."""
        return certificate_of_q(self)

    def certify(self, *, information: bool = True) -> Certificate:
        """Return the certificate of the fitted coefficients and law too, not of Q alone.

        Monotone items, positive law, states that look alike; with ``information`` also the rank of
        the Fisher information and the directions that are flat, up to 2^13 joint states; beyond,
        states are compared item by item only.
        """
        return certificate_of_fit(self, information=information)

    @property
    def all_starts_stopped(self) -> bool:
        """Whether ``max_iter`` ended every start before it settled, so that none could win."""
        most = self.settings.get("max_iter")
        return (
            isinstance(most, int)
            and bool(self.starts)
            and not any(one.converged or one.n_iter < most for one in self.starts)
        )

    @property
    def n_finished(self) -> int:
        """How many starts were run to the end; the others were given up after a rough look."""
        return max(self.n_reached, sum(record.converged for record in self.starts))

    @property
    def q_matrix(self) -> NDArray[np.int8]:
        """Which latent drives which item, shape (J, K)."""
        if self.q_given is not None and (self.q_given >= 0).all():
            return self.q_given.copy()
        return np.asarray(self.responses.any_response(self.parameters.support), dtype=np.int8)

    @cached_property
    def responses(self) -> Responses:
        """Which rows of coefficients belong to which item: several for nominal items only."""
        return Responses.of(self.families)

    @property
    def response_names(self) -> tuple[str, ...]:
        """What rows of coefficients are about: the items, nominal ones category by category."""
        return self.responses.names(self.item_names, self.answer_words)

    @property
    def answer_words(self) -> Mapping[str, Sequence[str]]:
        """Words of items whose answers stood in words: the first of an item's stands for 0."""
        return dict(self.settings.get(ANSWER_WORDS, {}))

    @property
    def intercept(self) -> Array:
        """Intercepts, shape (J,); nominal items have one for each category but the last."""
        return self.parameters.intercept

    @property
    def loadings(self) -> Array:
        """Loadings on the terms, shape (J, T); (J, K) for main effects of binary latents.

        Nominal items have a row for each category but the last, as ``response_names`` says.
        """
        return self.parameters.loadings

    @property
    def terms(self) -> Terms:
        """What the loadings multiply."""
        return self.parameters.terms

    @property
    def strengths(self) -> Array:
        """How strongly each latent drives each item over all its levels, shape (J, K).

        Of a nominal item's categories, the one that is driven most. See ``response_strengths``.
        """
        return self.responses.largest(self.response_strengths)

    @property
    def response_strengths(self) -> Array:
        """How strongly each latent drives each response over all its levels, shape (R, K).

        With interactions the average over patterns of the other latents; where prerequisites rule
        states out, over those that can occur (:meth:`Terms.strengths_among`).
        """
        if self.ruled_out is None:
            return self.parameters.strengths
        states = self.law.space.states()[~self.ruled_out]
        return self.terms.strengths_among(self.loadings, states)

    @property
    def dispersion(self) -> Array:
        """The number that items have besides their predictor, NaN where they have none, (J,).

        The variance of Gaussian and lognormal items, and what else a family calls its dispersion.
        """
        known = [family_named(name).has_dispersion for name in self.parameters.families]
        return np.where(known, self.parameters.dispersion, np.nan)[self.responses.starts]

    @property
    def cutpoints(self) -> Array:
        """Cutpoints of ordered grades beyond the first, NaN where there are fewer, (J, C)."""
        return self.parameters.cutpoints[self.responses.starts]

    @property
    def has_prerequisites(self) -> bool:
        """Whether some latents were told to be prerequisites of others."""
        told = self.settings.get("knowledge")
        return isinstance(told, Mapping) and bool(told.get("hierarchy"))

    @cached_property
    def ruled_out(self) -> NDArray[np.bool_] | None:
        """Joint states that prerequisites rule out, shape (S,); None where all may occur."""
        if not self.has_prerequisites:
            return None
        known = Knowledge.from_dict({"hierarchy": self.settings["knowledge"]["hierarchy"]})
        return ~known.possible_states(self.latent_names, self.law.space.levels).ravel()

    @property
    def n_counted(self) -> float:
        """Rows that the fit counted on, or the sum of their weights; NaN in files without it."""
        known = np.nan if self.settings.get("weighted") else self.n_samples
        return float(self.settings.get("n_counted", known))

    @property
    def latent_law(self) -> LatentLaw:
        """The latents' joint law."""
        return self.law

    @property
    def families(self) -> tuple[str, ...]:
        """Response family of each item."""
        return self.item_families or self.parameters.families

    @property
    def _seed(self) -> int:
        return int(self.settings.get("seed", 0))

    def rows(self, X: Any) -> Array:
        """Return the values of the fit's items in a table, in the fit's order, shape (N, J).

        X is whatever can be fitted. A frame's columns are found by the items' names, in any order,
        and others are left out; an array has one column per item. NaN cells are missing.
        """
        return read_known_items(X, self.item_names, self.families).values

    def _expanded(self, X: Any) -> Array:
        """Return the rows of a table with a column for each response, shape (N, R)."""
        return self.responses.expand(self.rows(X))

    def _above_zero(self, X: Any) -> Array:
        """Return the probability of each level above 0, shape (N, F), latent by latent."""
        return probabilities_above_zero(
            self.parameters, self.law, self._expanded(X), seed=self._seed
        )

    def posterior(self, X: Any) -> Array:
        """Return the expected level of each latent given each row, shape (N, K).

        For binary latents that is P(Z_k = 1 | row). Rows as in `rows`.
        """
        return self.terms.expected_levels(self._above_zero(X))

    def posterior_levels(self, X: Any) -> list[Array]:
        """Return the probabilities of each latent's levels given each row: K arrays (N, M_k)."""
        return by_level(self._above_zero(X), self.terms)

    def classify(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable joint latent state of each row, shape (N, K)."""
        return most_probable_levels(self.parameters, self.law, self._expanded(X), seed=self._seed)

    def row_log_likelihood(self, X: Any) -> Array:
        """Return the log density of each row, shape (N,)."""
        return row_log_densities(self.parameters, self.law, self._expanded(X))

    def item_means(self, states: NDArray[np.integer]) -> Array:
        """Return what is expected of each response in latent states given by rows, shape (n, J).

        In the items' own units: probabilities of a yes, mean counts, mean grades, mean times (up to
        the limit, if they end at one).
        Nominal items have a column for each category but the last, as ``response_names`` says: the
        probability of the category, given that it is none of the earlier ones.
        """
        return self.parameters.response_means(states)

    def sample_items(self, states: NDArray[np.integer], rng: np.random.Generator) -> Array:
        """Return items drawn in latent states given by rows, shape (n, J)."""
        return self.responses.collapse(self.parameters.sample(states, rng))

    def save(self, path: str | Path) -> Path:
        """Write the result to one file (a zip of arrays with a JSON header) and return its path."""
        return write_result(self, Path(path))


def load(path: str | Path) -> FitResult:
    """Return the FitResult that ``FitResult.save`` wrote.

    Parameters
    ----------
    path : str or Path
    """
    return FitResult(**read_fields(Path(path)))
