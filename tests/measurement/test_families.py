"""Every family, held to one contract. A new family is one more line in CASES."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

import hidag
from hidag.exceptions import SettingError
from hidag.measurement.families import ITEM_TYPES, Family, MeanFamily, family_named, split_name
from hidag.measurement.families.base import softplus

PACKAGE = Path(hidag.__file__).parent

#: Name, predictors at which the family is tested, auxiliary numbers, and the values it can take:
#: a number of whole ones from 0 up, their list, or an interval (a censored one ends in a mass).
CASES = [
    ("bernoulli", [-2.0, 0.3, 1.5], 1.0, 2),
    ("bernoulli-probit", [-2.0, 0.3, 1.5], 1.0, 2),
    ("bernoulli-cloglog", [-2.0, 0.3, 1.0], 1.0, 2),
    ("binomial(7)", [-2.0, 0.3, 1.5], 1.0, 8),
    ("poisson", [-1.0, 0.5, 2.0], 1.0, 120),
    ("poisson-identity", [0.4, 1.0, 6.0], 1.0, 120),
    ("negative-binomial", [-1.0, 0.5, 1.0], 0.6, 600),
    ("zero-inflated-poisson", [-1.0, 0.5, 2.0], 0.3, 120),
    ("ordinal(3)", [-2.0, 0.3, 1.5], [1.2], 3),
    ("ordinal(5)", [-2.0, 0.3, 3.5], [0.8, 1.2, 3.0], 5),
    ("ordinal(1..4)", [-2.0, 0.3, 2.5], [0.8, 1.2], (1, 2, 3, 4)),
    ("gaussian", [-3.0, 0.0, 2.0], 0.7, (-np.inf, np.inf)),
    ("lognormal", [-1.0, 0.0, 1.0], 0.2, (0.0, np.inf)),
    ("censored-lognormal(1.5)", [-1.0, 0.0, 1.0], 0.3, (0.0, 1.5)),
    ("gamma", [-1.0, 0.0, 1.5], 0.4, (0.0, np.inf)),
    ("beta", [-1.0, 0.0, 1.5], 0.2, (0.0, 1.0)),
]


def test_every_family_is_tested():
    assert {split_name(case[0])[0] for case in CASES} == {
        name for name, kind in ITEM_TYPES.items() if issubclass(kind, Family)
    }


def test_no_family_is_named_outside_its_folder():
    # Designs, data sets and help texts name families on behalf of the user.
    exempt = ("measurement/families", "simulation", "datasets", "cli")
    found = []
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith(exempt):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            named = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if named and split_name(node.value)[0] in ITEM_TYPES:
                found.append(f"{place}:{node.lineno} {node.value}")
    assert found == []


@pytest.fixture(params=CASES, ids=[case[0] for case in CASES])
def case(request):
    name, eta, aux, values = request.param
    aux = np.array(aux)
    return family_named(name), np.array(eta), np.broadcast_to(aux, (3, *aux.shape)), values


def columns_first(family, array, ndim):
    """Return arrays of one-column families with the axis that others lead with."""
    return array[None] if np.ndim(array) == ndim and family.n_columns == 1 else array


def drawn(case, n, seed):
    family, eta, aux, _ = case
    return family.sample(np.tile(eta, (n, 1)), aux, np.random.default_rng(seed))


def log_density(family, x, eta, aux):
    theta, partition = family.natural(eta, aux)
    columns = columns_first(family, family.to_working(x), np.ndim(x))
    theta = columns_first(family, theta, np.ndim(eta))
    return np.tensordot(theta, columns, axes=1) - partition + family.base(x, aux)


def test_name_finds_the_family(case):
    family = case[0]
    assert family_named(family.name) is family


def test_slopes_are_the_derivatives_of_natural(case):
    family, eta, aux, _ = case
    step = 1e-6
    up, down = family.natural(eta + step, aux), family.natural(eta - step, aux)
    dtheta, dpartition, _ = family.slopes(eta, aux)
    assert np.shape(dtheta) == ((family.n_columns, 3) if family.n_columns > 1 else (3,))
    np.testing.assert_allclose((up[0] - down[0]) / (2 * step), dtheta, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose((up[1] - down[1]) / (2 * step), dpartition, rtol=1e-6, atol=1e-8)


def test_natural_parameters_are_multiples_of_the_predictor_where_a_family_says_so(case):
    family, eta, aux, _ = case
    span = np.linspace(-3.0, 3.0, 7)[:, None] + np.zeros_like(eta)
    if np.isfinite(family.lowest_predictor):
        span = np.abs(span) + 1.0
    theta = family.natural(span, aux)[0]
    multiple = family.slopes(span, aux)[0] * span
    same = np.shape(theta) == np.shape(multiple) and np.allclose(theta, multiple, rtol=1e-12)
    assert same == (family.canonical_below > 3.0)


def test_score_has_mean_zero_and_variance_information(case):
    family, eta, aux, _ = case
    n = 200_000
    columns = columns_first(family, family.to_working(drawn(case, n, 0)), 2)
    dtheta, dpartition, information = family.slopes(eta, aux)
    score = np.einsum("dij,dj->ij", columns, columns_first(family, dtheta, 1)) - dpartition
    np.testing.assert_allclose(score.mean(axis=0), 0, atol=6 * np.sqrt(information.max() / n))
    np.testing.assert_allclose(score.var(axis=0), information, rtol=0.03)


def test_draws_have_the_stated_mean(case):
    family, eta, aux, _ = case
    x = drawn(case, 200_000, 1)
    error = x.std(axis=0) / np.sqrt(len(x))
    assert (np.abs(x.mean(axis=0) - family.response_mean(eta, aux)) < 5 * error).all()
    if isinstance(family, MeanFamily):
        columns = family.to_working(x)
        error = columns.std(axis=0) / np.sqrt(len(x))
        assert (np.abs(columns.mean(axis=0) - family.mean(eta)) < 5 * error).all()


def test_density_adds_up_to_one_and_has_the_stated_mean(case):
    family, eta, aux, values = case
    for place in range(3):
        e, a = eta[place], aux[place]

        def density(x, e=e, a=a):
            return np.exp(log_density(family, np.asarray(x, dtype=float), e, a))

        if isinstance(values, int) or isinstance(values[0], int):
            x = np.arange(values) if isinstance(values, int) else np.array(values)
            x = x.astype(float)
            mass = density(x)
            total, mean = mass.sum(), x @ mass
        else:
            total, mean = (
                quad(lambda x, f=f: f(x) * density(x), *values, limit=200)[0]
                for f in (lambda x: 1.0, lambda x: x)
            )
            if "censored" in family.name:
                total += density(values[1])
                mean += values[1] * density(values[1])
        assert total == pytest.approx(1.0, abs=1e-6)
        assert mean == pytest.approx(family.response_mean(e, a), rel=1e-5, abs=1e-8)


def test_values_are_listed_where_they_have_an_end(case):
    family, _, _, values = case
    ends = family.name.startswith(("bernoulli", "binomial", "ordinal"))
    assert (family.possible_values() is not None) == ends
    if ends:
        expected = np.arange(values) if isinstance(values, int) else np.array(values)
        np.testing.assert_array_equal(family.possible_values(), expected)


def test_working_inverts_itself(case):
    family = case[0]
    x = drawn(case, 50, 2)
    columns = family.to_working(x)
    assert columns.shape == (x.shape if family.n_columns == 1 else (family.n_columns, *x.shape))
    np.testing.assert_allclose(family.from_working(columns), x, rtol=1e-12)


def test_draws_are_values_that_the_family_takes(case):
    family = case[0]
    for x in drawn(case, 500, 3).T:
        assert family.find_invalid(x) is None


def test_predictor_inverts_mean(case):
    family, eta, _, _ = case
    if isinstance(family, MeanFamily):
        np.testing.assert_allclose(family.predictor(family.mean(eta)), eta, atol=1e-10)
        clipped = family.clip_mean(np.array([-5.0, 0.0, 0.5, 1.0, 7.0]), 1e-4)
        assert np.isfinite(family.predictor(clipped)).all()


def test_summaries_give_sums_of_the_base(case):
    family, _, aux, _ = case
    x = drawn(case, 40, 4)
    direct = [family.base(x[:, j], aux[j]).sum() for j in range(3)]
    if not family.is_location_scale:
        found = family.base_sums([family.base_statistics(x[:, j]) for j in range(3)], aux)
        np.testing.assert_allclose(found, direct, rtol=1e-12, atol=1e-9)


def test_a_first_look_grows_with_the_response(case):
    family, _, _, _ = case
    x = np.unique(drawn(case, 200, 5)[:, 1])
    assert (np.diff(family.linearize(family.to_working(x))) > 0).all()
    spread = float(family.linearize(family.to_working(x)).std())
    mean = np.asarray(family.to_working(x)).mean(axis=-1)
    assert (
        np.diff(family.predictor_effects(np.array([-1.0, 0.0, 1.0]), spread, 1.0, mean)) > 0
    ).all()


def test_items_without_latents_start_near_their_law(case):
    family, eta, aux, _ = case
    columns = columns_first(family, family.to_working(drawn(case, 20_000, 6)), 2)
    mean, variance = columns.mean(axis=1), columns.var(axis=1)
    if family.n_columns == 1:
        mean, variance = mean[0], variance[0]
    predictor, auxiliary = family.fit_null(mean, variance)
    scale = family.coefficient_scale(mean, variance)
    assert auxiliary.shape == aux.shape
    assert (scale > 0).all()
    np.testing.assert_allclose(predictor, eta, atol=0.6)


def test_an_update_of_the_auxiliary_climbs_to_the_top(case):
    family, eta, aux, _ = case
    if family.is_location_scale or not (family.has_dispersion or family.n_cutpoints):
        return
    # Three items same, with two states each.
    states = np.tile(eta[:2], (3, 1))
    counts = np.full((3, 2), 4000.0)
    x = family.sample(np.repeat(states[..., None], 4000, axis=-1).reshape(3, -1).T, aux,
                      np.random.default_rng(7)).T  # fmt: skip
    columns = columns_first(family, family.to_working(x), 2)
    sums = columns.reshape(len(columns), 3, 2, 4000).sum(axis=-1)
    sums = sums[0] if family.n_columns == 1 else sums
    summaries = [family.base_statistics(row) for row in x]
    found = family.fit_null(*(m[0] if family.n_columns == 1 else m for m in (
        columns.mean(axis=2), columns.var(axis=2))))[1]  # fmt: skip
    values, shift = [], np.zeros(3)
    for _ in range(12):
        values.append(
            family.expected_without_base(found, states + shift[:, None], sums, counts)
            + family.base_sums(summaries, found)
        )
        found, move = family.update_auxiliary(
            found, states + shift[:, None], sums, counts, summaries, np.ones(3)
        )
        shift += move
    assert (np.diff(values, axis=0) >= -1e-9 * np.abs(values[0])).all()
    assert np.abs(values[-1] - values[-2]).max() < 1e-6 * np.abs(values[-1]).max()
    np.testing.assert_allclose(found, aux, rtol=0.15)
    np.testing.assert_allclose(shift, 0.0, atol=0.1)
    # No direction leads further up.
    for step in (1e-3, -1e-3):
        nearby = found * (1 + step)
        other = family.expected_without_base(nearby, states + shift[:, None], sums, counts)
        other = other + family.base_sums(summaries, nearby)
        assert (other <= values[-1] + 1e-9 * np.abs(values[-1])).all()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "binomial",
            "family='binomial' needs its number of trials in parentheses; use for instance "
            "'binomial(20)'",
        ),
        (
            "binomial(many)",
            "family='binomial(many)' must have its number of trials in parentheses; use for "
            "instance 'binomial(20)'",
        ),
        (
            "binomial(2.5)",
            "family='binomial(2.5)' must have a whole number of trials, at least 1",
        ),
        (
            "ordinal(2)",
            "family='ordinal(2)' must have a whole number of grades, at least 3; use "
            "family='bernoulli' for two grades",
        ),
        (
            "censored-lognormal(-1)",
            "family='censored-lognormal(-1.0)' must have a limit > 0, in the units of the item",
        ),
        (
            "ordinal(1..2)",
            "family='ordinal(1..2)' must have a whole number of grades, at least 3; use "
            "family='bernoulli' for two grades",
        ),
        (
            "ordinal(1..many)",
            "family='ordinal(1..many)' must have its number of grades in parentheses; use for "
            "instance 'ordinal(5)'",
        ),
        ("poisson(3)", "family='poisson' takes no argument in parentheses, got 'poisson(3)'"),
    ],
)
def test_arguments_of_families_are_checked(name, sentence):
    with pytest.raises(SettingError) as caught:
        family_named(name)
    assert str(caught.value) == sentence


def test_softplus_keeps_its_digits_everywhere():
    x = np.array([-800.0, -40.0, -1e-9, 0.0, 1e-9, 3.0, 40.0, 800.0])
    np.testing.assert_allclose(softplus(x), np.logaddexp(0.0, x), rtol=1e-15)
    assert softplus(np.array([[1.0]])).shape == (1, 1)


def test_counts_can_be_drawn_however_large_their_mean() -> None:
    family = family_named("negative-binomial")
    drawn = family.sample(np.full(2000, 40.0), np.array(1e4), np.random.default_rng(0))
    assert np.isfinite(drawn).all()


def test_certain_answers_have_no_rounding_error_under_the_cloglog_link():
    family = family_named("bernoulli-cloglog")
    eta = np.linspace(3.0, 40.0, 200)
    theta, partition = family.natural(eta, np.ones_like(eta))
    # Likelihoods add up the two parts over items before they take one from the other.
    exact = np.log(-np.expm1(-np.exp(eta))).sum()
    assert np.cumsum(theta)[-1] - partition.sum() == pytest.approx(exact, abs=1e-8)
    assert (partition[eta > 10.0] > 1000.0).all()
