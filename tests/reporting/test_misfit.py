from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

from hidag import DCRL, Knowledge, fit_statistics, standard_errors, validate_q
from hidag.diagnostics.limited_information import LimitedInformation
from hidag.fitting.information_criteria import count_parameters
from hidag.latent import NetworkLaw, StateSpace
from hidag.reporting.diagnostic_sections import errors_panel
from hidag.reporting.misfit import doubts_of_q, flat_directions, misfits
from hidag.simulation import Truth, simulate

Q = np.repeat(np.eye(3, dtype=np.int8), 4, axis=0)
LAW = NetworkLaw(
    StateSpace.binary(3),
    ((), (0,), (1,)),
    (
        np.array([0.5, 0.5]),
        np.array([[0.7, 0.3], [0.3, 0.7]]),
        np.array([[0.7, 0.3], [0.3, 0.7]]),
    ),
)


@pytest.fixture(scope="module")
def table():
    truth = Truth(Q, np.full(12, -1.5), 3.0 * Q, np.ones(12), ("bernoulli",) * 12, LAW)
    return simulate(truth, 1000, rng=3).X


def fitted(X, q):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DCRL(q.shape[1], q_matrix=q, family="bernoulli", random_state=0, n_starts=2)
        return model.fit(X).result_


@pytest.fixture(scope="module")
def right(table):
    return fitted(table, Q)


@pytest.fixture(scope="module")
def fine(right, table):
    return fit_statistics(right, table, n_tables=40)


def test_a_true_model_raises_no_doubt(right, fine, table):
    assert misfits(fine) == ()
    assert doubts_of_q(validate_q(right, table)) == ()
    assert flat_directions(standard_errors(right, table)) == ()


def test_one_latent_in_place_of_three_is_called_a_poor_fit(table):
    found = fit_statistics(fitted(table, np.ones((12, 1), dtype=np.int8)), table, n_tables=40)
    moments, pairs, *_ = misfits(found)
    assert moments.startswith(
        f"the model does not fit how items go together: RMSEA2 is {found.absolute.rmsea:.3f}, "
        "where 0.05 and more is called poor; SRMSR is "
    )
    assert "pairs of items go together otherwise than the model says, most of all" in pairs


def test_without_m2_residual_correlations_tell_whether_pairs_are_poorly_described(fine, table):
    poor = fit_statistics(fitted(table, np.ones((12, 1), dtype=np.int8)), table, n_tables=2)
    size = float(np.sqrt(np.mean(np.square(poor.pairs.column("residual")))))
    assert misfits(dataclasses.replace(poor, absolute=None))[0] == (
        "the model does not fit how items go together: residual correlations have a root mean "
        f"square of {size:.3f}, where 0.05 and more is called poor"
    )
    assert misfits(dataclasses.replace(fine, absolute=None)) == ()
    # The same residuals of so few rows are what chance makes of a true model.
    n_rows = poor.pairs.columns.index("n_rows")
    rows = [(*row[:n_rows], 30, *row[n_rows + 1 :]) for row in poor.pairs.rows]
    few = dataclasses.replace(poor.pairs, rows=tuple(rows))
    told = misfits(dataclasses.replace(poor, absolute=None, pairs=few))
    assert not any("root mean square" in sentence for sentence in told)


def test_a_large_misfit_in_few_rows_and_a_small_one_in_many_are_no_reason(fine):
    def told(**changed: object) -> tuple[str, ...]:
        absolute = dataclasses.replace(fine.absolute, **changed)
        assert isinstance(absolute, LimitedInformation)
        return misfits(dataclasses.replace(fine, absolute=absolute))

    assert told(rmsea=0.07, interval=(0.02, 0.12)) == ()
    assert told(rmsea=0.04, interval=(0.035, 0.045), p_value=0.0) == ()
    assert told(srmsr=0.09, n_effective=150.0) == ()
    assert told(srmsr=0.06, n_effective=10_000.0) == (
        "the model does not fit how items go together: SRMSR is 0.060, where 0.05 and more is "
        "called poor",
    )


@pytest.mark.parametrize(
    ("part", "size", "by", "sentence"),
    [
        (
            "pairs",
            "residual",
            -0.2,
            "1 pair of items goes together otherwise than the model says, item_0 and item_1 (a "
            "residual correlation of -0.20)",
        ),
        (
            "items",
            "rmsd",
            0.2,
            "1 item does not behave as the model says given the other items, item_0 (off by 0.20 "
            "over the latents' states)",
        ),
    ],
)
def test_only_sizeable_misfits_beyond_chance_are_told(fine, part, size, by, sentence):
    def told(chance: float, off: float, n_rows: int = 1) -> tuple[str, ...]:
        table = getattr(fine, part)
        rows = [list(row) for row in table.rows]
        for row in rows[:n_rows]:
            row[table.columns.index("p_value")] = chance
            row[table.columns.index(size)] = off
        changed = dataclasses.replace(table, rows=tuple(map(tuple, rows)))
        return misfits(dataclasses.replace(fine, **{part: changed}))

    assert told(1e-9, by) == (sentence,)
    assert told(1e-9, 0.05) == ()
    assert told(0.01, 0.2) == ()
    # What chance does once in a while it does not do twice.
    assert told(1e-4, 0.2) == ()
    twice = told(1e-4, 0.2, n_rows=2)[0]
    assert twice.startswith("2 ")
    assert "most of all item_0" in twice
    assert told(float("nan"), 0.2) == ()


def test_many_predictive_checks_that_fail_are_told(fine):
    place = fine.checks.columns.index("p_value")
    rows = [list(row) for row in fine.checks.rows]
    for row in rows[:2]:
        row[place] = 0.01
    checks = dataclasses.replace(fine.checks, rows=tuple(map(tuple, rows)))
    assert misfits(dataclasses.replace(fine, checks=checks)) == (
        "tables drawn from the fit differ from the table in 2 of 14 numbers that were compared",
    )


def test_a_wrong_q_is_told(table):
    wrong = Q.copy()
    wrong[0], wrong[4] = (0, 1, 0), (1, 0, 0)
    (sentence,) = doubts_of_q(validate_q(fitted(table, wrong), table))
    assert sentence == "the data would change 4 of 36 entries of the Q-matrix that was given"


def test_many_parameters_that_the_data_say_nothing_of_are_told(right, table):
    errors = standard_errors(right, table)
    names = ("X1: intercept", "X1: Z1", "X2: intercept")
    assert flat_directions(dataclasses.replace(errors, not_estimated=names)) == (
        "the data say nothing of 3 of 29 parameters, for instance of X1: intercept",
    )
    assert flat_directions(dataclasses.replace(errors, not_estimated=names[:2])) == ()


def test_what_a_hierarchy_leaves_known_in_sum_only_is_no_doubt():
    # Nobody has the second skill alone: its own effect and the interaction are one number.
    law = NetworkLaw(
        StateSpace.binary(2),
        ((), (0,)),
        (np.array([0.4, 0.6]), np.array([[1.0, 0.0], [0.4, 0.6]])),
    )
    q = np.array([[1, 0], [0, 1], [1, 1]] * 3, dtype=np.int8)
    truth = Truth(q, np.full(9, -1.5), 2.0 * q, np.ones(9), ("bernoulli",) * 9, law)
    X = simulate(truth, 1500, rng=1).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DCRL(
            2,
            q_matrix=q,
            family="bernoulli",
            effects="all",
            knowledge=Knowledge(hierarchy=[(0, 1)]),
            random_state=0,
            n_starts=2,
        ).fit(X)
    errors = standard_errors(model.result_, X)
    assert len(errors.known_in_sum) == 6
    assert set(errors.known_in_sum) == set(errors.not_estimated)
    assert all("Z2" in name for name in errors.known_in_sum)
    assert errors.n_parameters == count_parameters(model.result_)
    assert len(errors.names) == errors.n_parameters + 3
    assert flat_directions(errors) == ()
    assert (
        "6 parameters without a standard error (identified in sums only, because of"
        in errors.summary()
    )
    in_sum = errors_panel(errors)[0].paragraphs[1]
    assert in_sum.startswith("Prerequisites leave 6 parameters known in sum only, for instance ")
