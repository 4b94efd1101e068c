"""Terms as an item sees them: in the joint states of its own few latents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.maximise import Basis
from hidag.measurement import Terms
from hidag.measurement.terms import Interaction

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def sub_states(shape: tuple[int, ...]) -> Integers:
    """Return all sub-states of latents with so many levels, (size, p), the first fastest."""
    size = int(np.prod(shape, dtype=np.int64))
    # C order with the latents backwards makes the first change fastest.
    states = np.stack(np.unravel_index(np.arange(size), shape[::-1]), axis=1) if shape else None
    return np.zeros((1, 0), np.int64) if states is None else states[:, ::-1].astype(np.int64)


@dataclass(frozen=True)
class LocalTerms:
    """Items whose terms look the same in their own sub-states.

    Attributes
    ----------
    items : ndarray of int, shape (n,)
    columns : ndarray of int, shape (n, T')
        Columns of the loadings that these terms have.
    features : ndarray, shape (size, T')
        The terms' values in each sub-state.
    cells : ndarray of int64, shape (n, size)
        Where the items' tables lie.
    products : bool
        Whether some terms are products of others.
    """

    items: NDArray[np.intp]
    columns: NDArray[np.intp]
    features: Array
    cells: Integers
    products: bool = False

    @cached_property
    def basis(self) -> Basis:
        """The sub-states as regressors."""
        return Basis.of(self.features, collinear=self.products)


def local_terms(
    terms: Terms,
    shape: tuple[int, ...],
    items: NDArray[np.intp],
    parents: Integers,
    starts: Integers,
) -> list[LocalTerms]:
    """Return the terms of items whose latents have the levels ``shape``, in those latents alone.

    Parameters
    ----------
    terms : Terms
    shape : tuple of int, length p
    items : ndarray of int, shape (n,)
    parents : ndarray of int64, shape (n, p)
    starts : ndarray of int64, shape (n,)
        Where their tables begin.
    """
    firsts = np.concatenate([[0], np.cumsum(np.array(terms.levels) - 1)])
    main = Terms.main(shape) if shape else None
    width = 0 if main is None else main.n_main
    columns = np.zeros((len(items), width), dtype=np.intp)
    if main is not None:
        columns = firsts[parents[:, main.main_latents]] + main.main_levels - 1
    states = sub_states(shape)
    cells = starts[:, None] + np.arange(len(states))
    every = np.arange(len(items))
    if not terms.interactions or len(shape) < 2:
        plain = np.zeros((1, 0)) if main is None else main.features(states)
        return [LocalTerms(items, columns, plain, cells)]
    alike: dict[tuple[Interaction, ...], list[tuple[int, list[int]]]] = {}
    for i in every:
        place = {int(k): a for a, k in enumerate(parents[i])}
        found = {
            tuple((place[k], u) for k, u in pairs): t
            for t, pairs in enumerate(terms.interactions, start=terms.n_main)
            if all(k in place for k, _ in pairs)
        }
        key = tuple(sorted(found))
        alike.setdefault(key, []).append((int(i), [found[pairs] for pairs in key]))
    out = []
    for key, members in sorted(alike.items()):
        places = np.array([i for i, _ in members], dtype=np.intp)
        more = np.array([t for _, t in members], dtype=np.intp).reshape(len(places), len(key))
        out.append(
            LocalTerms(
                items[places],
                np.hstack([columns[places], more]),
                Terms(shape, key).features(states),
                cells[places],
                bool(key),
            )
        )
    return out
