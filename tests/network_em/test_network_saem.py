"""Gibbs-SAEM under a network: layouts, statistics, M-step, scores, posteriors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.em.design_data import WorkingData
from hidag.em.em import Schedule
from hidag.em.information import information_ratio
from hidag.em.layout import ItemLayout
from hidag.em.m_step import Basis, allowed_coefficients, coefficient_scales, run_m_step
from hidag.em.posterior import most_probable_states, posterior_marginals
from hidag.em.saem import GibbsSampler
from hidag.exceptions import SettingError
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import (
    NO_SPARSITY,
    MeasurementParameters,
    Terms,
    default_penalty,
    family_named,
)
from hidag.network_em.em import law_from_draws, run_network_m_step, run_network_saem
from hidag.network_em.gibbs import NetworkModel, NetworkSampler
from hidag.network_em.posterior import sampled_marginals, sampled_modes
from hidag.network_em.support import ItemScores, score_loadings, screen_loadings, select_loadings
from hidag.strategy.saem_network import sampled_information_ratio

FAMILIES = ("bernoulli", "poisson", "poisson-identity", "gaussian", "lognormal")
#: Families with several columns per item, among them one with a single one.
SEVERAL = ("ordinal(4)", "zero-inflated-poisson", "beta", "bernoulli", "censored-lognormal(2)")
DISPERSIONS = {
    "gaussian": 0.6,
    "lognormal": 0.6,
    "censored-lognormal(2)": 0.6,
    "beta": 0.2,
    "zero-inflated-poisson": 0.25,
}
both_kinds = pytest.mark.parametrize("names", [FAMILIES, SEVERAL], ids=["one", "several"])
#: Two parents with different effects: a reversed order of bits changes the result.
LAW = NetworkLaw(
    StateSpace.binary(4),
    ((2,), (), (1,), (2, 0)),
    (
        np.array([[0.7, 0.3], [0.2, 0.8]]),
        np.array([0.4, 0.6]),
        np.array([[0.75, 0.25], [0.3, 0.7]]),
        np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.35, 0.65], [0.1, 0.9]]]),
    ),
)


def make_problem(seed, *, n_samples=400, families=FAMILIES, missing=0.0, copies=1):
    """Return values and parameters (user scale): two pure items a latent, one with two latents."""
    rng = np.random.default_rng(seed)
    q = np.vstack([np.eye(4), np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]]])
    names = tuple(families[j % len(families)] for j in range(len(q)))
    loadings = q * rng.uniform(0.8, 1.6, q.shape)
    intercept = np.where(np.isin(names, ["poisson-identity"]), 0.7, -0.5)
    dispersion = np.array([DISPERSIONS.get(name, 1.0) for name in names])
    graded = np.isin(names, ["ordinal(4)"])
    cutpoints = np.where(graded[:, None], [0.8, 1.7], np.nan)
    parameters = MeasurementParameters(names, intercept, loadings, dispersion, cutpoints=cutpoints)
    eta = intercept + LAW.sample(n_samples, rng) @ loadings.T
    values = np.empty(eta.shape)
    for family, items in parameters.groups():
        auxiliary = parameters.auxiliary(family, items)
        values[:, items] = family.sample(eta[:, items], auxiliary, rng)
    values[rng.random(values.shape) < missing] = np.nan
    return np.repeat(values, copies, axis=0), parameters


def set_out(values, parameters, seed=0, n_threads=1):
    data = WorkingData.from_values(values, parameters.families)
    working = data.to_working(parameters)
    states = LAW.sample(len(values), np.random.default_rng(seed))
    sampler = NetworkSampler(data, states, seed, n_threads=n_threads)
    return data, working, sampler, NetworkModel.of(working, LAW)


def exact_posterior(values, parameters, law):
    """Return the probability of each joint state given each row, cell by cell."""
    states = law.space.states()
    joint = np.tile(np.log(law.probabilities), (len(values), 1))
    for s, z in enumerate(states):
        eta = parameters.intercept + parameters.loadings @ z
        for j, name in enumerate(parameters.families):
            family = family_named(name)
            auxiliary = parameters.auxiliary(family, np.array([j]))
            theta, partition = family.natural(eta[j : j + 1], auxiliary)
            seen = ~np.isnan(values[:, j])
            columns = family.to_working(values[seen, j]).reshape(family.n_columns, -1)
            joint[seen, s] += theta.reshape(-1) @ columns - partition
    joint -= joint.max(axis=1, keepdims=True)
    out = np.exp(joint)
    return out / out.sum(axis=1, keepdims=True)


@both_kinds
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_sweeps_draw_from_the_posterior(missing, names):
    copies = 4000
    values, parameters = make_problem(
        1, n_samples=5, families=names, missing=missing, copies=copies
    )
    _, _, sampler, model = set_out(values, parameters)
    sampler.states[:] = 0
    sampler.draw(model, n_sweeps=40)
    found = LAW.space.number(sampler.states).reshape(5, copies)
    exact = exact_posterior(values[::copies], parameters, LAW)
    for row in range(5):
        share = np.bincount(found[row], minlength=16) / copies
        spread = np.sqrt(exact[row] * (1 - exact[row]) / copies)
        assert (np.abs(share - exact[row]) < 4.5 * spread + 1e-3).all()


@both_kinds
def test_nothing_depends_on_the_number_of_threads(names):
    values, parameters = make_problem(2, n_samples=203, families=names, missing=0.2)
    results = []
    for n_threads in (1, 3):
        data, working, sampler, model = set_out(values, parameters, n_threads=n_threads)
        found = run_network_saem(working, LAW, sampler, Schedule(max_iter=4, burn_in=2))
        draws = sampler.retain(
            replace(model, parameters=found.parameters, law=found.law), n_draws=4
        )
        allowed = allowed_coefficients(-np.ones((10, 4), np.int8), Terms.main((2,) * 4))
        judged = score_loadings(found.parameters, draws, data, allowed, n_threads=n_threads)
        results.append((found.parameters.loadings, draws, judged[9].information, found.law.tables))
    for one, other in zip(*results, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@both_kinds
def test_tallies_equal_plain_sums(names):
    values, parameters = make_problem(3, n_samples=150, families=names, missing=0.25)
    data, _, sampler, model = set_out(values, parameters)
    found, items, network = sampler.statistics(model), model.items, model.network
    states = sampler.states.astype(int)
    for column, j in enumerate(data.columns.item):
        parents = np.flatnonzero(parameters.loadings[j])
        code = states[:, parents] @ (1 << np.arange(len(parents)))
        cells = slice(items.table_ptr[column], items.table_ptr[column + 1])
        seen = data.observed[:, j]
        size = 1 << len(parents)
        np.testing.assert_allclose(found.count[cells], np.bincount(code, seen, minlength=size))
        np.testing.assert_allclose(
            found.sum_x[cells], np.bincount(code, data.x[:, column], minlength=size), atol=1e-12
        )
    for k, pa in enumerate(LAW.parents):
        table = np.zeros((2,) * (len(pa) + 1))
        np.add.at(table, tuple(states[:, a] for a in (*pa, k)), 1.0)
        cells = slice(network.table_ptr[k], network.table_ptr[k + 1])
        np.testing.assert_array_equal(found.families[cells], table.ravel())
    law = law_from_draws(LAW.parents, sampler.states[None], LAW.space.levels, mass=0.0)
    direct = network.law_from(found.families, 0.0)
    for a, b in zip(law.tables, direct.tables, strict=True):
        np.testing.assert_allclose(a, b)


@both_kinds
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_m_step_on_sub_states_is_the_m_step_on_all_states(missing, names, configure):
    configure("m_step", item_mass=0.0)
    values, parameters = make_problem(4, families=names, missing=missing)
    data, working, sampler, model = set_out(values, parameters)
    statistics = sampler.statistics(model)
    ours = run_network_m_step(working, statistics, data, model.items, n_newton=20)
    listed = GibbsSampler(data, LAW.space, LAW.space.number(sampler.states), 0).statistics()
    allowed = np.hstack([np.ones((10, 1)), working.loadings != 0]).astype(np.uint8)
    basis = Basis.of(LAW.space.states().astype(float))
    theirs = run_m_step(working, listed, data, basis, allowed, NO_SPARSITY, n_newton=20)
    np.testing.assert_allclose(ours.loadings, theirs.loadings, atol=1e-6)
    np.testing.assert_allclose(ours.intercept, theirs.intercept, atol=1e-6)
    np.testing.assert_allclose(ours.dispersion, theirs.dispersion, atol=1e-6)
    np.testing.assert_allclose(ours.cutpoints, theirs.cutpoints, atol=1e-6)


@both_kinds
def test_scores_and_information_are_those_of_the_observed_data(names):
    values, parameters = make_problem(5, n_samples=250, families=names, missing=0.1)
    data, working, sampler, model = set_out(values, parameters)
    sampler.draw(model, n_sweeps=20)
    draws = sampler.retain(model, n_draws=600, n_sweeps=2)
    posterior = exact_posterior(values, parameters, LAW)
    states = LAW.space.states()
    design = np.hstack([np.ones((16, 1)), states])
    for j in (0, 3, 8, 9):
        eta = working.intercept[j] + states @ working.loadings[j]
        family = family_named(working.families[j])
        auxiliary = working.auxiliary(family, np.array([j]))
        dtheta, dpartition, _ = family.slopes(eta, auxiliary)
        columns = data.columns.of(family, np.array([j])).ravel()
        slope = data.x[:, columns] @ dtheta.reshape(-1, 16) - dpartition
        scores = (posterior * slope * data.observed[:, j, None]) @ design
        gradient, information = scores.sum(axis=0), scores.T @ scores
        slopes = model.items.tables(working, derivatives=True)
        scores_of = ItemScores(draws, data, model.items, slopes).of_item
        ours = scores_of(j, np.arange(4), np.ones(4, int))
        root = np.sqrt(np.diag(information))
        assert np.abs((ours[0] - gradient) / root).max() < 0.25
        assert np.abs((ours[1] - information) / np.outer(root, root)).max() < 0.06


def test_a_missing_loading_is_added_and_a_false_one_dropped():
    values, parameters = make_problem(6, n_samples=4000, families=("gaussian", "bernoulli"))
    loadings = parameters.loadings.copy()
    loadings[8, 1], loadings[2, 0] = 0.0, 0.3
    wrong = MeasurementParameters(
        parameters.families, parameters.intercept, loadings, parameters.dispersion
    )
    data, chosen, sampler, _ = set_out(values, wrong)
    allowed = allowed_coefficients(-np.ones((10, 4), np.int8), Terms.main((2,) * 4))
    law, screened = LAW, []
    # What the first choice leaves wrong (a missing loading misleads its neighbours) is put right.
    for _ in range(2):
        found = run_network_saem(chosen, law, sampler, Schedule(max_iter=30, burn_in=15))
        law, model = found.law, NetworkModel.of(found.parameters, found.law)
        draws = sampler.retain(model, n_draws=12)
        screened.append(screen_loadings(found.parameters, draws, data, model.items))
        judged = score_loadings(found.parameters, draws, data, allowed)
        penalty = default_penalty("tlp", 4000, 4)
        chosen = select_loadings(
            found.parameters, judged, allowed, penalty, coefficient_scales(data)
        )
    assert screened[0][8, 1] == screened[0][8, [1, 2, 3]].max() > 5.0
    np.testing.assert_array_equal(chosen.loadings != 0, parameters.loadings != 0)


def test_the_sampled_information_ratio_is_the_exact_one():
    values, parameters = make_problem(7, n_samples=3000)
    data, working, sampler, model = set_out(values, parameters)
    sampler.draw(model, n_sweeps=20)
    draws = sampler.retain(model, n_draws=2, n_sweeps=20)
    exact = information_ratio(working, LAW, data)
    assert abs(sampled_information_ratio(draws) - exact) < 0.03
    assert 0.1 < exact < 0.9


@both_kinds
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_sampled_posteriors_are_the_listed_ones(missing, names):
    values, parameters = make_problem(8, n_samples=300, families=names, missing=missing)
    exact = posterior_marginals(parameters, LAW, values)
    found = sampled_marginals(parameters, LAW, values, seed=3)
    assert np.abs(found - exact).max() < 0.15
    assert np.abs(found - exact).mean() < 0.01
    best = most_probable_states(parameters, LAW, values)
    climbed = sampled_modes(parameters, LAW, values, seed=3)
    assert (best == climbed).all(axis=1).mean() > 0.99


@both_kinds
def test_a_rows_posterior_does_not_depend_on_the_rows_beside_it(names):
    values, parameters = make_problem(9, n_samples=40, families=names, missing=0.1)
    for ask in (sampled_marginals, sampled_modes):
        together = ask(parameters, LAW, values, seed=1, n_threads=2)
        np.testing.assert_array_equal(together[7:12], ask(parameters, LAW, values[7:12], seed=1))


def test_an_item_with_too_many_latents_is_refused():
    support = np.ones((2, 20), dtype=bool)
    with pytest.raises(SettingError) as caught:
        ItemLayout.over(support, Terms.main((2,) * support.shape[1]), ("bernoulli",) * 2)
    assert str(caught.value) == (
        "item 0 loads on 20 latents with 1048576 joint states; at most 65536 can be tabulated; set "
        "some entries of its row of Q to 0"
    )


@both_kinds
def test_kernels_are_their_plain_python_bodies(names):
    from hidag.kernels import gibbs, sufficient_statistics

    values, parameters = make_problem(10, n_samples=30, families=names, missing=0.2)
    originals = {
        module: {name: getattr(module, name) for name in names}
        for module, names in (
            (
                gibbs,
                (
                    "mix",
                    "draw_level",
                    "add_item_evidence",
                    "place_in_table",
                    "sweep_network",
                    "log_joint",
                ),
            ),
            (sufficient_statistics, ("place_in_table", "tally", "residuals", "item_scores")),
        )
    }

    def everything():
        data, working, sampler, model = set_out(values, parameters)
        draws = sampler.retain(model, n_draws=3)
        tables = sampler.statistics(model)
        slopes = model.items.tables(working, derivatives=True)
        scores_of = ItemScores(draws, data, model.items, slopes).of_item
        scores = scores_of(8, np.arange(4), np.ones(4, int))
        screened = screen_loadings(working, draws, data, model.items)
        joint = sampler.log_joint(model)
        return draws, tables.count, tables.sum_x, tables.families, *scores, screened, joint

    compiled = everything()
    try:
        for module, functions in originals.items():
            for name, function in functions.items():
                setattr(module, name, function.py_func)
        with np.errstate(over="ignore"):
            plain = everything()
    finally:
        for module, functions in originals.items():
            for name, function in functions.items():
                setattr(module, name, function)
    np.testing.assert_array_equal(compiled[0], plain[0])
    for a, b in zip(compiled[1:], plain[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@both_kinds
def test_joint_densities_are_proportional_to_the_posterior(names):
    values, parameters = make_problem(11, n_samples=20, families=names, missing=0.2)
    _, _, sampler, model = set_out(values, parameters)
    exact = np.log(exact_posterior(values, parameters, LAW))
    found = []
    for state in LAW.space.states():
        sampler.states[:] = state
        found.append(sampler.log_joint(model))
    ours = np.stack(found, axis=1)
    np.testing.assert_allclose(ours - ours[:, :1], exact - exact[:, :1], atol=1e-9)
