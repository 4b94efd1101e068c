from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL
from hidag.errors import IdentifiabilityWarning, SettingError
from hidag.fit_task import read_task
from hidag.observations import read_table


def task_of(n_items, n_latents):
    table = read_table(np.random.default_rng(0).integers(0, 2, (40, n_items)).astype(float))
    return read_task(table, None, DCRL(n_latents).get_params())


def test_one_item_is_never_said_to_identify_a_latent():
    with pytest.raises(SettingError) as refused:
        task_of(1, 2)
    assert str(refused.value) == (
        "n_latents=2 is more than the 1 item of the table, and each latent needs an item of its "
        "own to be fitted at all; even one latent takes 3 items to be identified, so add items"
    )
    with pytest.warns(IdentifiabilityWarning) as told:
        task_of(1, 1)
    assert str(told[0].message) == (
        "1 latent cannot be identified from 1 item: at least 3 are needed; add items"
    )


def test_the_most_that_is_offered_is_accepted_without_a_warning():
    with pytest.raises(SettingError, match="ask for 2, the most that 5 items can identify"):
        task_of(5, 6)
    assert task_of(5, 2).n_latents == 2
