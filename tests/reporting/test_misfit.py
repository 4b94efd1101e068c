from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

from hidag import DCRL, Knowledge, fit_statistics, standard_errors, validate_q
from hidag.diagnostics.limited_information import LimitedInformation
from hidag.fitting.information_criteria import count_parameters
from hidag.latent import NetworkLaw, StateSpace
from hidag.reporting.panels import (
    find_misfits,
    find_q_misfit,
    find_undetermined,
    standard_error_panel,
)
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


def test_a_true_model_has_no_misfit(right, fine, table):
    assert find_misfits(fine) == ()
    assert find_q_misfit(validate_q(right, table)) == ()
    assert find_undetermined(standard_errors(right, table)) == ()


def test_one_latent_instead_of_three_fits_poorly(table):
    found = fit_statistics(fitted(table, np.ones((12, 1), dtype=np.int8)), table, n_tables=40)
    moments, pairs, *_ = find_misfits(found)
    assert moments.startswith(
        f"poor fit of the associations between items: RMSEA2 {found.absolute.rmsea:.3f} (poor from "
        "0.05), SRMSR "
    )
    assert "pairs of items have a residual correlation that the model does not repr" in pairs


def test_residual_correlations_replace_m2(fine, table):
    poor = fit_statistics(fitted(table, np.ones((12, 1), dtype=np.int8)), table, n_tables=2)
    size = float(np.sqrt(np.mean(np.square(poor.pairs.column("residual")))))
    assert find_misfits(dataclasses.replace(poor, absolute=None))[0] == (
        "poor fit of the associations between items: root mean square of the residual correlations "
        f"{size:.3f} (poor from 0.05)"
    )
    assert find_misfits(dataclasses.replace(fine, absolute=None)) == ()
    # The same residuals of few rows are within sampling error.
    n_rows = poor.pairs.columns.index("n_rows")
    rows = [(*row[:n_rows], 30, *row[n_rows + 1 :]) for row in poor.pairs.rows]
    few = dataclasses.replace(poor.pairs, rows=tuple(rows))
    found = find_misfits(dataclasses.replace(poor, absolute=None, pairs=few))
    assert not any("root mean square" in sentence for sentence in found)


def test_insignificant_and_irrelevant_misfits_are_ignored(fine):
    def misfits(**changed: object) -> tuple[str, ...]:
        absolute = dataclasses.replace(fine.absolute, **changed)
        assert isinstance(absolute, LimitedInformation)
        return find_misfits(dataclasses.replace(fine, absolute=absolute))

    assert misfits(rmsea=0.07, interval=(0.02, 0.12)) == ()
    assert misfits(rmsea=0.04, interval=(0.035, 0.045), p_value=0.0) == ()
    assert misfits(srmsr=0.09, n_effective=150.0) == ()
    assert misfits(srmsr=0.06, n_effective=10_000.0) == (
        "poor fit of the associations between items: SRMSR 0.060 (poor from 0.05)",
    )


@pytest.mark.parametrize(
    ("part", "size", "by", "sentence"),
    [
        (
            "pairs",
            "residual",
            -0.2,
            "1 pair of items has a residual correlation that the model does not reproduce, item_0 "
            "and item_1 (-0.20)",
        ),
        (
            "items",
            "rmsd",
            0.2,
            "1 item does not fit given the other items, item_0 (RMSD 0.20 over the latent states)",
        ),
    ],
)
def test_only_relevant_and_significant_misfits_are_reported(fine, part, size, by, sentence):
    def misfits(chance: float, off: float, n_rows: int = 1) -> tuple[str, ...]:
        table = getattr(fine, part)
        rows = [list(row) for row in table.rows]
        for row in rows[:n_rows]:
            row[table.columns.index("p_value")] = chance
            row[table.columns.index(size)] = off
        changed = dataclasses.replace(table, rows=tuple(map(tuple, rows)))
        return find_misfits(dataclasses.replace(fine, **{part: changed}))

    assert misfits(1e-9, by) == (sentence,)
    assert misfits(1e-9, 0.05) == ()
    assert misfits(0.01, 0.2) == ()
    # A single pair needs a smaller p-value than several.
    assert misfits(1e-4, 0.2) == ()
    twice = misfits(1e-4, 0.2, n_rows=2)[0]
    assert twice.startswith("2 ")
    assert "most of all item_0" in twice
    assert misfits(float("nan"), 0.2) == ()


def test_many_low_predictive_p_values_are_reported(fine):
    place = fine.checks.columns.index("p_value")
    rows = [list(row) for row in fine.checks.rows]
    for row in rows[:2]:
        row[place] = 0.01
    checks = dataclasses.replace(fine.checks, rows=tuple(map(tuple, rows)))
    assert find_misfits(dataclasses.replace(fine, checks=checks)) == (
        "2 of 14 predictive checks have p < 0.05: data simulated from the model differ from the "
        "observed data",
    )


def test_a_wrong_q_matrix_is_reported(table):
    wrong = Q.copy()
    wrong[0], wrong[4] = (0, 1, 0), (1, 0, 0)
    (sentence,) = find_q_misfit(validate_q(fitted(table, wrong), table))
    assert sentence == "the data support changes of 4 of 36 entries of the given Q-matrix"


def test_many_undetermined_parameters_are_reported(right, table):
    errors = standard_errors(right, table)
    names = ("X1: intercept", "X1: Z1", "X2: intercept")
    assert find_undetermined(dataclasses.replace(errors, not_estimated=names)) == (
        "3 of 29 parameters are not locally identified or on the boundary, for instance X1: "
        "intercept",
    )
    assert find_undetermined(dataclasses.replace(errors, not_estimated=names[:2])) == ()


def test_parameters_identified_in_sum_are_not_reported():
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
    assert find_undetermined(errors) == ()
    assert (
        "6 parameters without a standard error (identified in sums only, because of"
        in errors.summary()
    )
    in_sum = standard_error_panel(errors).paragraphs[1]
    assert in_sum.startswith("Prerequisites identify 6 parameters only in sum, for instance ")
