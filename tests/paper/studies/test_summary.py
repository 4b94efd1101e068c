from __future__ import annotations

from math import isnan, sqrt

import pytest

from hidag_paper.studies import Cell, compare_with_paper, summarise

OURS = "ours"
A, B, C, D = (Cell("Chain-5", "Q1", "gaussian", n) for n in (100, 200, 300, 400))


def row(cell: Cell, replicate: int, shd: int | None, **more) -> dict:
    graph = None if shd is None else shd // 2
    return {
        "address": f"table1/{cell.name}/{replicate}",
        "cell": cell.name,
        "method": "ours",
        "rule": "calibrated",
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


def beside(means: dict[Cell, float]) -> dict:
    return {(cell, "dcrl", "N"): mean for cell, mean in means.items()}


def cells(summaries) -> list[Cell]:
    return [summary.cell for summary in summaries]


def test_summary_of_a_cell() -> None:
    (found,) = summarise(
        [row(A, 0, 1), row(A, 1, 2), row(A, 2, 6)], {(A, OURS): 5}, beside({A: 6.5})
    )
    assert (found.n_asked, found.n_done, found.n_failed) == (5, 3, 0)
    assert found.shd.mean == pytest.approx(3.0)
    # Deviations -2, -1 and 3: variance 14 / 2.
    assert found.shd.error == pytest.approx(sqrt(7 / 3))
    assert found.shd_graph.mean == pytest.approx((0 + 1 + 3) / 3)
    assert found.shd_q.mean == pytest.approx((1 + 1 + 3) / 3)
    assert found.graph_rate.mean == pytest.approx(1 / 3)
    assert found.q_rate.mean == 0.0
    assert found.true_latents_rate.mean == pytest.approx(1 / 3)
    assert (found.truth_started.mean, found.true_latents.mean) == (1.0, 1.0)
    assert found.cpu_seconds == 3.0
    assert isnan(found.rmse_loadings)
    assert found.at_or_below
    assert found.at_or_below_half


def test_one_run_has_no_standard_error_and_none_has_no_mean() -> None:
    one, none = summarise([row(A, 0, 1)], {(A, OURS): 1, (B, OURS): 1})
    assert one.shd.mean == 1
    assert isnan(one.shd.error)
    assert isnan(none.shd.mean)
    assert (none.n_asked, none.n_done) == (1, 0)


def test_comparison_with_published_means() -> None:
    rows = [row(A, 0, 1), row(A, 1, 2), row(B, 0, 2), row(C, 0, 4), row(D, 0, 9)]
    found = compare_with_paper(summarise(rows, None, beside({A: 1.5, B: 4.0, C: 3.9})))
    assert (found.n_compared, found.at_or_below, found.at_or_below_half) == (3, 2, 1)
    assert cells(found.above) == [C]
    assert found.failed == ()
    assert found.unfinished == ()


def test_cells_with_failed_fits_are_named_and_not_compared() -> None:
    rows = [row(A, 0, 0), row(A, 1, None), row(B, 0, 0)]
    summaries = summarise(rows, {(A, OURS): 2, (B, OURS): 2}, beside({A: 5.0, B: 5.0}))
    assert (summaries[0].n_done, summaries[0].n_failed) == (2, 1)
    assert summaries[0].shd.mean == 0
    # A table whose fit failed is a table whose graph was not found.
    assert summaries[0].graph_rate.mean == 0.5
    assert summaries[0].cpu_seconds == 2.0
    assert summaries[0].reasons == ("SettingError: no",)
    found = compare_with_paper(summaries)
    assert found.n_compared == 1
    assert (cells(found.failed), cells(found.unfinished)) == ([A], [B])


def test_published_mean_of_zero() -> None:
    rows = [row(A, 0, 0), row(B, 0, 0), row(B, 1, 1)]
    found = compare_with_paper(summarise(rows, None, beside({A: 0.0, B: 0.0})))
    assert (found.at_or_below, found.at_or_below_half, cells(found.above)) == (1, 1, [B])


def test_duplicate_rows_count_once() -> None:
    (found,) = summarise([row(A, 0, 1), row(A, 0, 7)])
    assert (found.n_done, found.shd.mean) == (1, 1.0)


def test_summaries_by_method_and_rule() -> None:
    rows = [
        row(A, 0, 4, rule="2N"),
        row(A, 0, 2, rule="N"),
        row(A, 0, 9, rule=None, method="another"),
    ]
    published = {(A, "dcrl", "N"): 3.0, (A, "dcrl", "2N"): 3.5, (A, "another", ""): 8.0}
    found = summarise(rows, None, published, rules=("N", "2N"))
    assert [(one.method, one.rule, one.shd.mean, one.published) for one in found] == [
        ("ours", "N", 2.0, 3.0),
        ("ours", "2N", 4.0, 3.5),
        ("another", None, 9.0, 8.0),
    ]
