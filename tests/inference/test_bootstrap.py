"""The bootstrap: aligned refits, identical for any number of processes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import hidag
from hidag import DCRL, BootstrapResult, Knowledge, bootstrap
from hidag.causal import average_effects
from hidag.exceptions import DataError, FileError, KnowledgeWarning, SettingError
from hidag.inference.refit import align_refit
from hidag.metrics import relabel_law
from hidag.plotting import support_of

Q = np.vstack([np.eye(3, dtype=int)] * 3 + [[[1, 1, 0]]])
WORDS = ["pace", "focus", "skill"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    first = rng.random(160) < 0.5
    second = np.where(first, rng.random(160) < 0.9, rng.random(160) < 0.2)
    states = np.column_stack([first, second, rng.random(160) < 0.4])
    X = states @ (2.0 * Q.T) + rng.standard_normal((160, len(Q)))
    X[rng.random(X.shape) < 0.03] = np.nan
    return X


@pytest.fixture(scope="module")
def model(table):
    return DCRL(
        3, family="gaussian", q_matrix=Q, latent_names=WORDS, n_starts=2, random_state=0
    ).fit(table)


@pytest.fixture(scope="module")
def found(model, table):
    return bootstrap(model, table, n_resamples=6, random_state=3)


def same(one: BootstrapResult, other: BootstrapResult) -> bool:
    return all(
        np.array_equal(getattr(one, f.name), getattr(other, f.name), equal_nan=True)
        for f in dataclasses.fields(one)
        if isinstance(getattr(one, f.name), np.ndarray)
    )


def test_strong_edges_and_latents_are_found_in_refits(found):
    rows = {(r["one"], r["other"]): r for r in found.edge_table()}
    assert rows["pace", "focus"]["joined"] > 0.99
    assert rows["pace", "focus"]["fit"] == "-"
    assert 0.2 < rows["pace", "focus"]["one_causes_other"] < 0.8
    assert rows["focus", "skill"]["joined"] < 0.9
    assert found.same_latents.all()
    np.testing.assert_array_equal(found.q_probability, Q)
    for row in found.coefficient_table(0.9):
        assert row["low"] <= row["high"]
    slopes = [r for r in found.coefficient_table() if r["term"] == "pace"]
    assert [r["item"] for r in slopes] == ["item_0", "item_3", "item_6", "item_9"]
    assert all(0.5 < r["low"] < r["high"] < 3.5 for r in slopes)


def test_all_tables_have_percentile_intervals(found):
    many = dataclasses.replace(
        found,
        **{
            name: np.concatenate([getattr(found, name)] * 5)[:19]
            for name in ("adjacency", "intercept", "loadings", "margins")
        },
    )
    # Of 19 refits the least and the greatest are the ends of 90 %, their neighbours of 80 %.
    for row in many.coefficient_table(0.9):
        place = found.response_names.index(row["item"])
        values = many.intercept[:, place]
        if row["term"] != "intercept":
            values = many.loadings[:, place, found.term_names.index(row["term"])]
        assert (row["low"], row["high"]) == (values.min(), values.max())
    for row in many.law_table(0.8):
        place = found.latent_names.index(row["latent"])
        values = np.sort(many.margins[:, place, row["level"]])
        assert (row["low"], row["high"]) == pytest.approx((values[1], values[17]))
    assert "Q was estimated from the same table" not in found.summary()
    assert "6 refits give intervals of at most 71%; 90% needs 19 refits" in found.summary()


def test_probabilities_are_averages_over_refits(found):
    p = found.edge_probabilities
    np.testing.assert_allclose(p, found.arrows.mean(axis=0))
    assert ((p >= 0.0) & (p + p.T <= 1.0 + 1e-9)).all()
    i, j = (found.latent_names.index(name) for name in ("pace", "focus"))
    row = next(r for r in found.edge_table() if {r["one"], r["other"]} == {"pace", "focus"})
    assert row["joined"] == pytest.approx(p[i, j] + p[j, i])
    support = support_of(found)
    assert support[row["one"], row["other"]] == row["joined"]


def test_refits_without_probabilities_are_certain_of_their_class(model, table):
    settings = {**model.get_params(), "uncertainty": "none"}
    refits = bootstrap(DCRL(**settings).fit(table), table, n_resamples=2, random_state=3)
    a = refits.adjacency
    expected = a / (1.0 + a * a.transpose(0, 2, 1))
    np.testing.assert_array_equal(refits.edge_probabilities, expected.mean(axis=0))


def test_parallel_and_resumed_bootstraps_are_identical(model, table, found, tmp_path):
    assert same(found, bootstrap(model, table, n_resamples=6, random_state=3, n_jobs=2))
    seen = []

    def stop(progress):
        seen.append(progress.n_done)
        if progress.n_done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bootstrap(model, table, n_resamples=6, random_state=3, folder=tmp_path / "b", observer=stop)
    (tmp_path / "b" / "resample-00004.part").write_text("torn")
    # A machine that went off may leave a file that is not whole.
    (tmp_path / "b" / "resample-00000.npz").write_bytes(b"torn")
    resumed = bootstrap(
        model,
        table,
        n_resamples=6,
        random_state=3,
        folder=tmp_path / "b",
        observer=lambda p: seen.append(p.n_done),
    )
    assert seen == [0, 1, 2, 1, 2, 3, 4, 5, 6]
    assert same(found, resumed)
    with pytest.raises(
        SettingError, match="holds resamples of another bootstrap \\(different seed\\)"
    ):
        bootstrap(model, table, n_resamples=6, random_state=4, folder=tmp_path / "b")
    (tmp_path / "b" / "bootstrap.json").write_text("{")
    with pytest.raises(FileError, match="was not written by a bootstrap"):
        bootstrap(model, table, n_resamples=6, random_state=3, folder=tmp_path / "b")


def test_bootstrap_of_a_result_equals_that_of_its_estimator(model, table, found, tmp_path):
    model.result_.save(tmp_path / "fit.npz")
    again = bootstrap(hidag.load(tmp_path / "fit.npz"), table, n_resamples=6, random_state=3)
    assert same(found, again)


@pytest.mark.parametrize("start", ["full", "fitted"])
def test_a_number_of_latents_chosen_from_the_table_is_not_chosen_again(table, start):
    chosen = DCRL("auto", family="gaussian", random_state=0, n_starts=1).fit(table)
    for fit in (chosen, chosen.result_):
        again = bootstrap(fit, table, n_resamples=2, start=start, random_state=1)
        assert again.n_refits == 2
        assert again.margins.shape[1] == len(chosen.latent_names_)


def test_effects_get_intervals_from_replicates(model, found):
    fit = model.result_
    replicates = list(found.replicates(fit))
    assert len(replicates) == 6
    np.testing.assert_array_equal(replicates[2].loadings, found.loadings[2])
    np.testing.assert_array_equal(replicates[2].graph.adjacency, found.adjacency[2])
    effects = average_effects(fit, items=False, replicates=replicates)
    assert (effects.lower <= effects.upper)[~np.isnan(effects.lower)].all()
    other = dataclasses.replace(fit, item_names=tuple("abcdefghij"))
    with pytest.raises(SettingError, match="replicates need the fit that was bootstrapped"):
        next(found.replicates(other))


def test_a_saved_bootstrap_loads_unchanged(found, tmp_path):
    back = BootstrapResult.load(found.save(tmp_path / "boot.npz"))
    assert same(found, back)
    assert str(back) == str(found)
    assert back.coefficient_table() == found.coefficient_table()
    assert back.law_table() == found.law_table()
    with pytest.raises(FileError, match="is not a saved hidag fit"):
        hidag.load(tmp_path / "boot.npz")


def test_alignment_undoes_permutations_and_reversals(model):
    fit = model.result_
    order, flips = np.array([2, 0, 1]), np.array([True, False, True])
    turned = dataclasses.replace(
        fit,
        parameters=fit.parameters.reordered(latents=order).flipped(flips),
        law=relabel_law(fit.law, order, flips),
        graph=hidag.CPDAG(fit.graph.adjacency[np.ix_(order, order)], fit.latent_names),
        q_given=fit.q_given[:, order],
    )
    back = align_refit(turned, fit)
    assert back.moved
    np.testing.assert_allclose(back.agreement, 1.0)
    np.testing.assert_allclose(back.loadings, fit.loadings)
    np.testing.assert_allclose(back.intercept, fit.intercept)
    np.testing.assert_allclose(back.joint, fit.law.probabilities)
    np.testing.assert_array_equal(back.adjacency, fit.graph.adjacency)


@pytest.fixture(scope="module")
def chain():
    """Return a table of a chain of three latents, equally strong: their order is chance."""
    rng = np.random.default_rng(0)
    a = rng.random(400) < 0.5
    b = rng.random(400) < np.where(a, 0.8, 0.2)
    c = rng.random(400) < np.where(b, 0.8, 0.2)
    states = np.column_stack([a, b, c])
    return 2.0 * np.repeat(states, 4, axis=1) + rng.standard_normal((400, 12))


@pytest.mark.parametrize("start", ["full", "fitted"])
@pytest.mark.parametrize("by_number", [False, True])
def test_knowledge_follows_the_latents_of_an_estimated_q(chain, start, by_number):
    free = DCRL(3, family="gaussian", n_starts=1, random_state=0).fit(chain)
    place = [int(np.flatnonzero(free.q_matrix_[4 * k])[0]) for k in range(3)]
    first, second, third = place if by_number else [free.latent_names_[k] for k in place]
    known = Knowledge(required=[(second, first)], forbidden=[(first, third), (third, first)])
    model = DCRL(3, family="gaussian", knowledge=known, n_starts=1, random_state=0)
    with pytest.warns(KnowledgeWarning, match="the prior knowledge names the latent"):
        model.fit(chain)
    found = bootstrap(model, chain, n_resamples=6, start=start, random_state=1)
    # Latents come in other orders, which is what knowledge has to follow.
    assert found.moved.any()
    assert found.same_latents.all()
    a, b, c = place
    assert found.directed[b, a] == 1.0
    assert found.adjacent[a, c] == 0.0
    again = bootstrap(model.result_, chain, n_resamples=6, start=start, random_state=1)
    assert same(found, again)


@pytest.mark.parametrize("effects", [2, "all", "gdina", "dina", "dino"])
@pytest.mark.parametrize("q", [Q, None], ids=["given", "estimated"])
@pytest.mark.filterwarnings("ignore::hidag.exceptions.IdentifiabilityWarning")
def test_refits_with_interactions_start_at_the_fit(table, effects, q):
    X = table.copy()
    X[:, 9] += 2.0 * ((X[:, 0] > 1) & (X[:, 1] > 1))
    model = DCRL(3, family="gaussian", effects=effects, q_matrix=q, n_starts=1, random_state=0)
    model.fit(X)
    found = bootstrap(model, X, n_resamples=2, start="fitted", random_state=1)
    assert found.failures == ()
    assert found.loadings.shape[2] >= model.loadings_.shape[1]
    assert all(one.loadings.shape == found.loadings.shape[1:] for one in
               found.replicates(model.result_))  # fmt: skip


def test_parametric_resamples_keep_missing_cells_and_reestimate_q(table):
    model = DCRL(2, family="gaussian", n_starts=1, random_state=0).fit(table[:, [0, 3, 6, 2, 5, 8]])
    found = bootstrap(
        model,
        table[:, [0, 3, 6, 2, 5, 8]],
        n_resamples=3,
        kind="parametric",
        start="fitted",
        random_state=0,
    )
    assert not found.q_given
    assert found.q_probability.min() < 0.4
    assert "refits of 160 rows drawn from the fit" in found.summary()
    assert "refits started at the fit: other optima were not searched for" in found.summary()
    assert (
        "3 refits give intervals of at most 50%; 90% needs 19 refits\n"
        "Q was estimated from the same table: a slope too weak to be selected is 0 in nearly all "
        "refits, so that an interval from 0 to 0 is no evidence of its absence, and intervals of "
        "weak slopes cover the truth less often than the nominal level (Q-matrix validation tests "
        "excluded entries)\n"
    ) in found.summary()


def test_resamples_that_cannot_be_fitted_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.random((40, 5)) < 0.5).astype(float)
    X[:, 4] = 0
    X[0, 4] = 1
    with pytest.warns(hidag.exceptions.HidagWarning):
        model = DCRL(1, family="bernoulli", n_starts=1, random_state=0).fit(X)
    found = bootstrap(model, X, n_resamples=8, start="fitted", random_state=0)
    assert 0 < len(found.failures) < 8
    assert found.n_refits + len(found.failures) == 8
    assert f"{len(found.failures)} of 8 resamples could not be fitted" in found.summary()
    assert {one.code for one in found.failures} == {"constant-item"}
    path = found.save(tmp_path / "bootstrap.npz")
    assert BootstrapResult.load(path).failures == found.failures


def test_invalid_arguments_are_refused(model, table):
    cases = [
        ((DCRL(3), table), {}, "bootstrap needs a fitted DCRL or a FitResult, got DCRL"),
        ((model, table[:50]), {}, "the table that was fitted, 160 rows and 10 items, got 50 and"),
        ((model, table), {"kind": "wild"}, "kind must be 'nonparametric' or 'parametric', got"),
        ((model, table), {"start": "cold"}, "start must be 'full' or 'fitted', got 'cold'"),
        ((model, table), {"n_resamples": 0}, "n_resamples must be a whole number of at least 1"),
        ((model, table), {"folder": ""}, "folder must be the path of a folder, or None"),
    ]
    for args, options, words in cases:
        with pytest.raises((DataError, SettingError), match=words):
            bootstrap(*args, **options)
    knowing = DCRL(
        3,
        family="gaussian",
        q_matrix=Q,
        n_starts=1,
        knowledge=Knowledge(forbidden=[(0, 2)]),
        random_state=0,
    ).fit(table)
    result = knowing.result_
    again = bootstrap(result, table, n_resamples=2, random_state=0)
    assert again.directed[0, 2] == 0.0
    # Named scores are stored.
    lean = dataclasses.replace(result, settings={**result.settings, "graph_score": "lean"})
    assert bootstrap(lean, table, n_resamples=1, random_state=0).n_refits == 1
    own = {**result.settings, "graph_score": {"not stored": "my score"}}
    own = dataclasses.replace(result, settings=own)
    with pytest.raises(SettingError, match="the result does not store graph_score"):
        bootstrap(own, table, n_resamples=1)


def test_order_of_columns_and_extra_columns_do_not_matter(table):
    frame = pd.DataFrame(table, columns=[f"x{j}" for j in range(10)])
    fit = DCRL(3, family="gaussian", q_matrix=Q, n_starts=1, random_state=0).fit(frame)
    first = bootstrap(fit, frame, n_resamples=2, random_state=3)
    turned = frame[frame.columns[::-1]].assign(name="a")
    assert same(first, bootstrap(fit, turned, n_resamples=2, random_state=3))
    numbered = pd.DataFrame(table)
    assert same(first, bootstrap(fit, numbered, n_resamples=2, random_state=3))
    for other, words in (
        (frame.add_prefix("y"), "bootstrap needs the table that was fitted, but its items have "
         "other names"),
        (frame.iloc[:, 1:], "the table must have the items of the fit, but it lacks 'x0' (1 of 10 "
         "items); give the table that was fitted, or one with the same columns"),
    ):  # fmt: skip
        with pytest.raises(DataError) as caught:
            bootstrap(fit, other, n_resamples=2)
        assert str(caught.value) == words


def test_effects_get_intervals_from_a_bootstrap(model, found):
    effects = average_effects(model.result_, replicates=found)
    assert effects.interval_source == (
        "6 replicates with a graph estimated in each (too few for a level above 71%)"
    )
    apart = ~np.isnan(effects.low)
    assert (effects.lower[apart] <= effects.upper[apart]).all()
    # pace and focus are joined in every refit and directed in none: from nothing to all of it.
    assert effects.lower[0, 1] == pytest.approx(0.0, abs=1e-9)
    assert effects.upper[0, 1] > 0.5
