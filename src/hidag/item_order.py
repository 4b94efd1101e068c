"""A fit told with its items in another order: the same model, and the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.result import FitResult


def with_items_in_order(result: FitResult, order: NDArray[np.intp]) -> FitResult:
    """Return the fit with its items in an order that says which one comes where.

    What rounds differently in another order of items is to be computed in one that depends on
    contents alone (:func:`hidag.estimate.canonical.canonical_order`): then the order of a table's
    columns has no say in it.

    Parameters
    ----------
    result : FitResult
    order : ndarray of int, shape (J,)
    """
    places = order.tolist()
    rows = np.concatenate([np.flatnonzero(result.responses.item == j) for j in places])
    return replace(
        result,
        item_names=tuple(result.item_names[j] for j in places),
        parameters=result.parameters.reordered(items=rows),
        q_given=None if result.q_given is None else result.q_given[order],
        family_reasons=tuple(result.family_reasons[j] for j in places),
        item_families=tuple(result.item_families[j] for j in places)
        if result.item_families
        else (),
        seen_rows=None if result.seen_rows is None else result.seen_rows.with_items_in_order(order),
    )
