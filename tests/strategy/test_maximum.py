"""Fits end at the maximum of their own model, held against a plain EM written here."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from hidag import DCRL
from hidag.em.em import has_converged

from .plain_em import best_plain_em, draw_table
from .plain_families import PlainEM, draw_mixed

FRACTIONS = Path(__file__).parents[3] / "shared" / "data" / "fraction_subtraction"


#: Settings of tables: few items, several maxima, and one without a unique maximum.
TABLES = {
    "usual": {"seed": 12},
    "several maxima": {"seed": 13},
    "few items": {"seed": 1, "n_rows": 200, "n_items": 7, "levels": (2,) * 3},
    "not identified": {"seed": 2, "n_rows": 300, "n_items": 8},
    "three levels": {"seed": 5, "n_rows": 400, "n_items": 9, "levels": (3, 3)},
    "latent classes": {"seed": 7, "n_rows": 300, "n_items": 8, "levels": (4,)},
}


@pytest.mark.filterwarnings("ignore::hidag.exceptions.HidagWarning")
@pytest.mark.parametrize(
    ("effects", "name"),
    [
        ("dina", "usual"),
        ("dina", "not identified"),
        ("dino", "usual"),
        ("dino", "few items"),
        ("acdm", "usual"),
        ("acdm", "three levels"),
        ("2", "several maxima"),
        ("gdina", "several maxima"),
        ("gdina", "few items"),
        ("gdina", "three levels"),
        ("main", "latent classes"),
    ],
)
def test_a_fit_with_a_given_q_ends_no_lower_than_plain_em(effects, name):
    table = draw_table(**TABLES[name])
    best = best_plain_em(table, effects, 12)
    found = DCRL(
        len(table.levels),
        q_matrix=table.q,
        levels=table.levels,
        effects=int(effects) if effects.isdigit() else effects,
        family="bernoulli",
        law="saturated",
        random_state=1,
    ).fit(table.X)
    assert found.log_likelihood_ > best - 0.05


#: Tables of other families; nominal items of the library are "categorical" here.
FAMILIES = {
    "gaussian": {"seed": 2, "families": ("gaussian",), "n_rows": 300, "levels": (2,) * 4},
    "probit": {"seed": 9, "families": ("bernoulli-probit",), "n_items": 12},
    "ordinal": {"seed": 6, "families": ("ordinal(4)",), "n_rows": 300, "levels": (3, 2)},
    "zero-inflated": {"seed": 17, "families": ("zero-inflated-poisson",), "n_rows": 300},
    "mixed": {
        "seed": 13,
        "families": ("gaussian", "bernoulli", "poisson", "ordinal(4)", "categorical(3)"),
        "missing": 0.1,
        "weighted": True,
    },
}


@pytest.mark.filterwarnings("ignore::hidag.exceptions.HidagWarning")
@pytest.mark.parametrize(
    ("effects", "name"),
    [("gdina", "gaussian"), (2, "probit"), ("dina", "ordinal"), ("main", "zero-inflated"),
     ("gdina", "mixed")],
)  # fmt: skip
def test_a_fit_of_any_family_ends_no_lower_than_plain_em(effects, name):
    table = draw_mixed(**FAMILIES[name])
    shape = table.X, table.q, table.levels, str(effects), table.families, table.weights
    best = PlainEM(*shape).best(6, n_long=2, gain=1e-4)
    found = DCRL(
        len(table.levels),
        q_matrix=table.q,
        levels=table.levels,
        effects=effects,
        family=[name.replace("categorical(3)", "nominal") for name in table.families],
        law="saturated",
        random_state=1,
    ).fit(table.X, sample_weight=table.weights)
    assert best - 0.05 < found.log_likelihood_ < best + 50.0


NESTED = draw_table(21, n_rows=250, n_items=10, levels=(2,) * 3)
#: Q without one latent of each of two items.
FEWER = NESTED.q.copy()
for _item in np.flatnonzero(NESTED.q.sum(axis=1) > 1)[:2]:
    FEWER[_item, np.flatnonzero(NESTED.q[_item])[0]] = 0
#: Some items have all three latents, so that order 2 is less than G-DINA.
WIDE = NESTED.q.copy()
WIDE[::3] = 1


@pytest.mark.filterwarnings("ignore::hidag.exceptions.HidagWarning")
@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ({"effects": "dina"}, {"effects": "gdina"}),
        ({"q_matrix": WIDE, "effects": 2}, {"q_matrix": WIDE, "effects": "gdina"}),
        ({"effects": "dino"}, {"effects": "gdina"}),
        ({"effects": "acdm"}, {"effects": "gdina"}),
        ({"effects": "main"}, {"effects": 2}),
        ({"q_matrix": FEWER}, {}),
        ({"q_matrix": FEWER, "effects": "gdina"}, {"effects": "gdina"}),
        ({"levels": 2}, {"levels": (3, 2, 2)}),
    ],
)
def test_a_fit_never_ends_below_a_nested_model(smaller, larger):
    shared = {"q_matrix": NESTED.q, "family": "bernoulli", "law": "saturated", "random_state": 0}
    low, high = (
        DCRL(3, **(shared | settings)).fit(NESTED.X).log_likelihood_
        for settings in (smaller, larger)
    )
    assert high > low - 1e-2


#: Few interactions matter here: their nested models nearly reach their maximum.
NESTED_MIXED = draw_mixed(24, FAMILIES["mixed"]["families"], n_rows=200, n_items=10, missing=0.1)


@pytest.mark.filterwarnings("ignore::hidag.exceptions.HidagWarning")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("smaller", "larger"), [("main", 2), ("main", "gdina"), ("dina", "gdina"), ("dino", "gdina")]
)
def test_a_fit_of_any_family_never_ends_below_a_nested_model(smaller, larger, seed):
    table = NESTED_MIXED
    family = [name.replace("categorical(3)", "nominal") for name in table.families]
    shared = {"q_matrix": table.q, "family": family, "law": "saturated", "random_state": seed}
    low, high = (
        DCRL(3, effects=effects, **shared).fit(table.X).log_likelihood_
        for effects in (smaller, larger)
    )
    assert high > low - 1e-2


def fractions(folder):
    X = np.genfromtxt(folder / "responses.csv", delimiter=",", skip_header=1)
    with (folder / "q.csv").open() as file:
        q = np.array([[int(float(v)) for v in row[1:]] for row in list(csv.reader(file))[1:]])
    return X[:, -len(q) :], q


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::hidag.exceptions.IdentifiabilityWarning")
@pytest.mark.skipif(not FRACTIONS.exists(), reason="needs the real data sets")
@pytest.mark.parametrize(
    ("folder", "effects", "known"),
    [("five_skills", "dina", -3455.77), ("five_skills", "gdina", -3217.57)],
)
def test_fraction_subtraction_reaches_the_known_maximum(folder, effects, known):
    X, q = fractions(FRACTIONS / folder)
    fit = DCRL(q.shape[1], q_matrix=q, effects=effects, family="bernoulli", law="saturated")
    found = fit.set_params(random_state=5).fit(X)
    assert found.log_likelihood_ > known - 0.01


def test_em_goes_on_while_small_gains_add_up():
    creeping = [-10.0 * 0.99**t for t in range(40)]
    assert creeping[-1] - creeping[-2] < 0.1
    assert not has_converged(creeping, 0.1)
    fast = [-10.0 * 0.5**t for t in range(40)]
    assert has_converged(fast, 0.1)
    assert not has_converged([-1.0], 0.1)
