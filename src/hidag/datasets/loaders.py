"""The tables of `hidag.datasets` and what is known of them."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.simulation import Truth, simulate
from hidag.views import Content, Library, View, make_frame

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, repr=False)
class Dataset(
    View,
    title="{0.name}: {0.n_rows} rows, {0.n_items} items",
    frames={"items": "_items", "q": "_q"},
):
    """A table with what is known of it.

    Attributes
    ----------
    name : str
    columns : tuple of str
    rows : list of tuple
    families : mapping from item to family, for ``DCRL(family=...)``; other items are inferred
    words : mapping from item to labels, for ``DCRL(words=...)``
    q_matrix : int8 array (J, K) or None, which latent drives which item, if it is known
    latent_names : tuple of str
        Names of the columns of ``q_matrix``; empty if there is none.
    about : str, what the rows and items are, the source, and what is known
    licence : str
    truth : Truth or None, of a simulated table
    library : {"pandas", "polars", "pyarrow"} or None
        Of the data frames; by default one that is loaded.
    """

    name: str
    columns: tuple[str, ...]
    rows: Rows
    families: Mapping[str, str]
    words: Mapping[str, str]
    q_matrix: NDArray[np.int8] | None
    latent_names: tuple[str, ...]
    about: str
    licence: str
    truth: Truth | None = None
    library: Library | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return len(self.rows)

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return len(self.columns)

    @cached_property
    def X(self) -> Any:
        """The table as a data frame."""
        return make_frame((self.columns, self.rows), self.library)

    @cached_property
    def q(self) -> Any:
        """The Q-matrix as a data frame with a column ``item``; None if there is none."""
        return None if self.q_matrix is None else make_frame(self._q(), self.library)

    def _items(self) -> Content:
        return self.columns, self.rows

    def _q(self) -> Content:
        entries = [] if self.q_matrix is None else self.q_matrix.tolist()
        named = zip(self.columns, entries, strict=False)
        return ("item", *self.latent_names), [(name, *row) for name, row in named]

    def summary(self) -> str:
        """Return what the table is, its source and what is known of it, as text."""
        about = textwrap.fill(self.about, 88)
        return f"{self._headline()}\n{about}\nLicence: {self.licence}"


def _simulated(
    truth: Truth, n_rows: int, about: str, *, missing: float, words: Mapping[str, Sequence[str]],
    library: Library | None, name: str,
) -> Dataset:  # fmt: skip
    """Return a table drawn from a truth, with words in place of some numbers."""
    drawn = simulate(truth, n_rows, rng=20, missing=missing)
    whole = {f for f in truth.families if f not in ("gaussian", "lognormal")}
    rows = []
    for line in drawn.X.tolist():
        cells: list[Any] = []
        for item, family, cell in zip(truth.item_names, truth.families, line, strict=True):
            if cell != cell:
                cells.append(None)
            elif item in words:
                cells.append(words[item][int(cell)])
            else:
                cells.append(int(cell) if family in whole else round(cell, 2))
        rows.append(tuple(cells))
    return Dataset(
        name, truth.item_names, rows,
        {one: f for one, f in zip(truth.item_names, truth.families, strict=True)
         if f in ("poisson", "lognormal", "gaussian")},
        {item: "<".join(labels) for item, labels in words.items()},
        truth.q_matrix, truth.latent_names, about,
        "simulated, no rights reserved", truth, library,
    )  # fmt: skip


def load_skills(library: Library | None = None) -> Dataset:
    """Return a simulated test of arithmetic: 15 right or wrong answers, three skills, Q known.

    Multiplication needs addition and fractions need multiplication more often than not, so that the
    graph is a chain; its directions are not identified.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}, optional
        Of the data frames; by default one that is loaded.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> skills
    Dataset(skills: 800 rows, 15 items)
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> model.graph_.n_edges
    2
    """
    names = ("addition", "multiplication", "fractions")
    q = np.zeros((15, 3), dtype=np.int8)
    for j in range(15):
        q[j, j % 3] = 1
        if j >= 9:
            q[j, (j + 1) % 3] = 1
    law = NetworkLaw(
        StateSpace.binary(3),
        ((), (0,), (1,)),
        (np.array([0.35, 0.65]), np.array([[0.85, 0.15], [0.25, 0.75]]),
         np.array([[0.85, 0.15], [0.3, 0.7]])),
    )  # fmt: skip
    loadings = np.where(q.sum(axis=1, keepdims=True) == 1, 3.2, 2.0) * q.astype(float)
    items = tuple(f"item{j + 1:02d}" for j in range(15))
    truth = Truth(
        q, np.full(15, -1.6), loadings, np.full(15, np.nan), ("bernoulli",) * 15, law,
        item_names=items, latent_names=names,
    )  # fmt: skip
    about = "Simulated answers of 800 pupils to 15 questions; additive effects of three skills."
    return _simulated(truth, 800, about, missing=0.0, words={}, library=library, name="skills")


def load_clinic(library: Library | None = None) -> Dataset:
    """Return simulated records of patients: words, measurements and counts, with missing cells.

    Two conditions, infection and inflammation, raise the risk of a third, heart strain: both arrows
    are identified.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}, optional
        Of the data frames; by default one that is loaded.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import hidag
    >>> clinic = hidag.datasets.load_clinic()
    >>> clinic.truth.dag.edges
    [('infection', 'heart strain'), ('inflammation', 'heart strain')]
    >>> clinic.words["pain"]
    'none<some<severe'
    """
    names = ("infection", "inflammation", "heart strain")
    law = NetworkLaw(
        StateSpace.binary(3),
        ((), (), (0, 1)),
        (np.array([0.6, 0.4]), np.array([0.55, 0.45]),
         np.array([[[0.92, 0.08], [0.35, 0.65]], [[0.4, 0.6], [0.08, 0.92]]])),
    )  # fmt: skip
    rows = (  # item, family, intercept, and its effects
        ("fever", "bernoulli", -2.0, (3.6, 0.0, 0.0)), ("cough", "bernoulli", -1.5, (2.8, 0, 0)),
        ("white cells", "gaussian", 7.0, (4.0, 0, 0)), ("visits", "poisson", 0.2, (0.9, 0, 0)),
        ("stiffness", "bernoulli", -2.0, (0, 3.4, 0)), ("pain", "ordinal(3)", -1.2, (0, 2.8, 0)),
        ("crp", "gaussian", 4.0, (0, 9.0, 0)), ("swelling", "bernoulli", -1.8, (0, 2.6, 1.4)),
        ("breathless", "bernoulli", -2.0, (0.9, 0, 3.0)), ("pulse", "gaussian", 72.0, (0, 0, 18.0)),
        ("bnp", "lognormal", 3.6, (0, 0, 1.3)), ("tired", "bernoulli", -1.5, (0, 1.2, 2.4)),
    )  # fmt: skip
    loadings = np.array([row[3] for row in rows], dtype=np.float64)
    spread = {"white cells": 3.0, "crp": 16.0, "pulse": 81.0, "bnp": 0.36}
    cutpoints = np.full((len(rows), 1), np.nan)
    cutpoints[5] = 1.8
    truth = Truth(
        (loadings != 0).astype(np.int8), np.array([row[2] for row in rows]), loadings,
        np.array([spread.get(row[0], np.nan) for row in rows]), tuple(row[1] for row in rows), law,
        item_names=tuple(row[0] for row in rows), latent_names=names, cutpoints=cutpoints,
    )  # fmt: skip
    answers = {row[0]: ("no", "yes") for row in rows if row[1] == "bernoulli"}
    words = {**answers, "pain": ("none", "some", "severe")}
    about = "Simulated records of 900 patients, 5 % of the cells missing at random."
    found = {"missing": 0.05, "words": words, "library": library, "name": "clinic"}
    return _simulated(truth, 900, about, **found)  # type: ignore[arg-type]


def load_election(library: Library | None = None) -> Dataset:
    """Return opinions of 944 voters before the election of 1996 in the United States.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}, optional
        Of the data frames; by default one that is loaded.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import hidag
    >>> election = hidag.datasets.load_election()
    >>> election.n_rows, election.columns[:4]
    (944, ('tv_news', 'self', 'clinton', 'dole'))
    """
    with (files("hidag.datasets") / "tables" / "election.csv").open(encoding="utf-8") as text:
        header, *lines = csv.reader(text)
    about = (
        "American National Election Study 1996, a subset distributed with statsmodels. Placement "
        "of oneself, Clinton and Dole from 1 (extremely liberal) to 7 (extremely conservative); "
        "party from 0 (strong Democrat) to 6 (strong Republican); days with TV news; education "
        "from 1 to 7; age; expected vote (1 is Dole). The latents are unknown."
    )
    grades = {"self": "ordinal(1..7)", "clinton": "ordinal(1..7)", "dole": "ordinal(1..7)",
              "party": "ordinal(0..6)", "education": "ordinal(1..7)",
              "tv_news": "ordinal(0..7)", "age": "gaussian"}  # fmt: skip
    rows: Rows = [tuple(map(int, line)) for line in lines]
    return Dataset(
        "election", tuple(header), rows, grades, {}, None, (), about, "public domain", None, library
    )


def load_wine(library: Library | None = None) -> Dataset:
    """Return chemical analyses of 178 wines of three cultivars, from scikit-learn.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}, optional
        Of the data frames; by default one that is loaded.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import hidag
    >>> hidag.datasets.load_wine()
    Dataset(wine: 178 rows, 13 items)
    """
    from sklearn.datasets import load_wine as load

    about = (
        "Aeberhard and Forina, Wine, UCI Machine Learning Repository. Measurements of 13 "
        "constituents; the three cultivars are known but not among the items."
    )
    return _of_scikit_learn(load(), "wine", about, library)


def load_tumours(library: Library | None = None) -> Dataset:
    """Return measurements of 569 breast tumours (means of ten features), from scikit-learn.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}, optional
        Of the data frames; by default one that is loaded.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import hidag
    >>> hidag.datasets.load_tumours()
    Dataset(tumours: 569 rows, 10 items)
    """
    from sklearn.datasets import load_breast_cancer

    about = (
        "Wolberg, Mangasarian, Street and Street, Breast Cancer Wisconsin (Diagnostic), UCI "
        "Machine Learning Repository. Cell nuclei in images; the diagnosis is not among the items."
    )
    return _of_scikit_learn(load_breast_cancer(), "tumours", about, library, n_columns=10)


def _of_scikit_learn(
    found: Any, name: str, about: str, library: Library | None, n_columns: int | None = None
) -> Dataset:
    columns = tuple(str(one) for one in found.feature_names[:n_columns])
    rows: Rows = [tuple(row) for row in found.data[:, :n_columns].tolist()]
    families = dict.fromkeys(columns, "gaussian")
    return Dataset(name, columns, rows, families, {}, None, (), about, "CC BY 4.0", None, library)
