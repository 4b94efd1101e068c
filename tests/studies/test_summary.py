from __future__ import annotations

from math import isnan, sqrt

import pytest

from hidag.studies import Cell, stand, summarise

A, B, C, D = (Cell("Chain-5", "Q1", "gaussian", n) for n in (100, 200, 300, 400))


def row(cell: Cell, replicate: int, shd: int | None, **more) -> dict:
    graph = None if shd is None else shd // 2
    return {
        "address": f"table1/{cell.name}/{replicate}",
        "cell": cell.name,
        "replicate": replicate,
        "status": "failed" if shd is None else "ok",
        "reason": "SettingError: no" if shd is None else None,
        "shd": shd,
        "shd_graph": graph,
        "shd_q": None if shd is None else shd - graph,
        "tv_law": 0.1,
        "rmse_loadings": None,
        "cpu_seconds": 2.0 + replicate,
        "truth_started_shd": 1,
        "true_latents_shd_graph": replicate,
        **more,
    }


def test_numbers_of_a_cell_are_those_computed_by_hand() -> None:
    (found,) = summarise([row(A, 0, 1), row(A, 1, 2), row(A, 2, 6)], {A: 5}, {A: 6.5})
    assert (found.n_asked, found.n_done, found.n_failed) == (5, 3, 0)
    assert found.shd == pytest.approx(3.0)
    # Deviations -2, -1 and 3: variance 14 / 2.
    assert found.error == pytest.approx(sqrt(7 / 3))
    assert found.shd_graph == pytest.approx((0 + 1 + 3) / 3)
    assert found.shd_q == pytest.approx((1 + 1 + 3) / 3)
    assert (found.truth_started, found.true_latents, found.cpu_seconds) == (1.0, 1.0, 3.0)
    assert isnan(found.rmse_loadings)
    assert found.at_or_below
    assert found.at_or_below_half


def test_one_run_has_no_standard_error_and_none_has_no_mean() -> None:
    one, none = summarise([row(A, 0, 1)], {A: 1, B: 1})
    assert one.shd == 1
    assert isnan(one.error)
    assert isnan(none.shd)
    assert (none.n_asked, none.n_done) == (1, 0)


def test_cells_stand_where_their_means_put_them() -> None:
    rows = [row(A, 0, 1), row(A, 1, 2), row(B, 0, 2), row(C, 0, 4), row(D, 0, 9)]
    found = stand(summarise(rows, None, {A: 1.5, B: 4.0, C: 3.9}))
    assert (found.n_compared, found.at_or_below, found.at_or_below_half) == (3, 2, 1)
    assert found.above == (C,)
    assert found.failed == ()
    assert found.unfinished == ()


def test_cells_with_failed_fits_are_named_and_not_compared() -> None:
    rows = [row(A, 0, 0), row(A, 1, None), row(B, 0, 0)]
    summaries = summarise(rows, {A: 2, B: 2}, {A: 5.0, B: 5.0})
    assert (summaries[0].n_done, summaries[0].n_failed) == (2, 1)
    assert summaries[0].shd == 0
    assert summaries[0].cpu_seconds == 2.0
    assert summaries[0].reasons == ("SettingError: no",)
    found = stand(summaries)
    assert (found.n_compared, found.failed, found.unfinished) == (1, (A,), (B,))


def test_a_published_mean_of_zero_is_met_by_zero_only() -> None:
    found = stand(summarise([row(A, 0, 0), row(B, 0, 0), row(B, 1, 1)], None, {A: 0.0, B: 0.0}))
    assert (found.at_or_below, found.at_or_below_half, found.above) == (1, 1, (B,))


def test_an_address_that_was_written_twice_counts_once() -> None:
    (found,) = summarise([row(A, 0, 1), row(A, 0, 7)])
    assert (found.n_done, found.shd) == (1, 1.0)
