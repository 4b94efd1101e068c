"""The sampler's layout is rebuilt when supports change, and only then."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em.design_data import WorkingData
from hidag.em.layout import ItemLayout
from hidag.em.saem import GibbsSampler
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Terms

SPACE = StateSpace.binary(2)
FAMILIES = ("gaussian",) * 4


def _parameters(loadings: np.ndarray) -> MeasurementParameters:
    return MeasurementParameters(
        intercept=np.zeros(4),
        loadings=loadings,
        dispersion=np.ones(4),
        families=FAMILIES,
        terms=Terms.main(SPACE.levels),
    )


@pytest.fixture
def laid_out(monkeypatch):
    """Return the supports that were laid out, as they come."""
    seen = []
    original = ItemLayout.of.__func__

    def counted(cls, parameters):
        seen.append(parameters.support.copy())
        return original(cls, parameters)

    monkeypatch.setattr(ItemLayout, "of", classmethod(counted))
    return seen


def test_layouts_follow_supports(laid_out):
    rng = np.random.default_rng(0)
    data = WorkingData.from_values(rng.normal(size=(50, 4)), FAMILIES)
    narrow = np.tile(np.eye(2), (2, 1))
    wide = np.ones((4, 2))
    law = np.full(4, 0.25)

    def walked(sampler: GibbsSampler) -> np.ndarray:
        for loadings in (narrow, 2 * narrow, wide, 0.5 * wide, narrow):
            sampler.draw(_parameters(loadings), law)
        return sampler.states

    stored = walked(GibbsSampler(data, SPACE, np.zeros(50, dtype=np.int64), 3))
    assert [int(support.sum()) for support in laid_out] == [4, 8, 4]

    class Forgetful(GibbsSampler):
        def draw(self, *args, **kwargs):
            self._layout = None
            super().draw(*args, **kwargs)

    forgetful = walked(Forgetful(data, SPACE, np.zeros(50, dtype=np.int64), 3))
    np.testing.assert_array_equal(stored, forgetful)
