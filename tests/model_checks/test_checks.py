"""The checks after a fit name the cause of misfit, and serious findings lower the claims."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import hidag
from hidag import DCRL
from hidag.exceptions import ModelCheckWarning
from hidag.model_checks import check_model
from hidag.results.findings import rejection_note

N_ROWS, N_LATENTS, N_ITEMS = 2500, 4, 16
GROUP = np.arange(N_ITEMS) % N_LATENTS


def draw_binary(seed: int, *, continuous: bool = False, style: float = 0.0) -> np.ndarray:
    """Return answers to four items for each of four related traits."""
    rng = np.random.default_rng(seed)
    traits = np.empty((N_ROWS, N_LATENTS))
    traits[:, 0] = rng.normal(size=N_ROWS)
    for k in range(1, N_LATENTS):
        traits[:, k] = 0.4 * traits[:, k - 1] + np.sqrt(0.84) * rng.normal(size=N_ROWS)
    if not continuous:
        traits = np.where(traits > 0, 1.0, -1.0)
    eta = 1.4 * traits[:, GROUP] + style * rng.normal(size=(N_ROWS, 1))
    return (rng.random(eta.shape) < expit(eta)).astype(float)


def with_pairs(values: np.ndarray) -> np.ndarray:
    """Return the table with three items that mostly repeat an item of another latent."""
    out, rng = values.copy(), np.random.default_rng(5)
    for a, b in ((0, 1), (6, 7), (12, 13)):
        copied = rng.random(len(out)) < 0.25
        out[copied, b] = out[copied, a]
    return out


def findings_of(values: np.ndarray, n_latents: int = N_LATENTS, **settings) -> list[str]:
    model = DCRL(n_latents, family="bernoulli", random_state=0, checks="none", **settings)
    found = check_model(model.fit(values).result_, values).findings
    return [one.code for one in found]


def test_tables_of_the_model_have_no_finding() -> None:
    assert findings_of(draw_binary(1)) == []


@pytest.mark.parametrize(
    ("values", "n_latents", "code"),
    [
        (draw_binary(2, continuous=True), 4, "scales-not-levels"),
        (draw_binary(2, style=1.0), 4, "response-style"),
        (with_pairs(draw_binary(3)), 4, "dependent-pairs"),
        (draw_binary(4), 3, "too-few-latents"),
    ],
)
def test_each_kind_of_misfit_has_its_finding(values, n_latents, code) -> None:
    assert findings_of(values, n_latents)[0] == code


def test_dependent_pairs_are_named() -> None:
    values = with_pairs(draw_binary(3))
    model = DCRL(4, family="bernoulli", random_state=0, checks="none").fit(values)
    (finding,) = check_model(model.result_, values).findings
    names = model.result_.item_names
    wanted = {frozenset((names[a], names[b])) for a, b in ((0, 1), (6, 7), (12, 13))}
    assert set(map(frozenset, finding.pairs)) == wanted


def test_a_fit_warns_and_states_no_arrow(tmp_path) -> None:
    with pytest.warns(ModelCheckWarning) as caught:
        model = DCRL(4, family="bernoulli", random_state=0).fit(draw_binary(2, continuous=True))
    (warning,) = [one.message for one in caught]
    assert warning.code == "scales-not-levels"
    assert "levels='auto'" in str(warning)
    result = model.result_
    assert result.misfits == ("scales-not-levels",)
    assert not any(claim.directed or claim.firm for claim in result.claims())
    assert "traits are not levels" in str(rejection_note(result.misfits))
    loaded = hidag.load(result.save(tmp_path / "fit.npz"))
    assert loaded.findings == result.findings


def test_checks_can_be_left_out() -> None:
    model = DCRL(4, family="bernoulli", random_state=0, checks="none")
    result = model.fit(draw_binary(2, continuous=True)).result_
    assert result.findings == ()
    assert result.checks_note
    with pytest.raises(hidag.exceptions.SettingError, match="checks"):
        DCRL(2, checks="all").fit(draw_binary(1))


def test_findings_do_not_depend_on_the_order_of_rows_and_items() -> None:
    values = with_pairs(draw_binary(3))
    result = DCRL(4, family="bernoulli", random_state=0, checks="none").fit(values).result_
    rows = np.random.default_rng(1).permutation(len(values))
    assert check_model(result, values[rows]).findings == check_model(result, values).findings


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_weights_and_missing_cells_raise_no_false_finding(missing: float) -> None:
    rng = np.random.default_rng(7)
    values = draw_binary(6)
    values[rng.random(values.shape) < missing] = np.nan
    weights = rng.integers(1, 4, len(values)).astype(float)
    model = DCRL(4, family="bernoulli", random_state=0, checks="none")
    result = model.fit(values, sample_weight=weights).result_
    assert check_model(result, values, weights).findings == ()
