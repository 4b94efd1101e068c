"""Latents and items have different names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hidag import DCRL
from hidag.exceptions import SettingError

COLUMNS = ["Z1", "score", "c", "d", "e"]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    able = rng.random(200) < 0.5
    chance = np.where(able[:, None], 0.85, 0.2)
    return pd.DataFrame((rng.random((200, 5)) < chance).astype(float), columns=COLUMNS)


@pytest.mark.filterwarnings("ignore::hidag.exceptions.HidagWarning")
def test_default_names_differ_from_item_names():
    assert DCRL(2, random_state=0, max_iter=5).fit(table()).result_.latent_names == ("ZZ1", "ZZ2")


@pytest.mark.filterwarnings("ignore::hidag.exceptions.HidagWarning")
def test_names_of_items_are_invalid_for_latents():
    with pytest.raises(SettingError) as caught:
        DCRL(2, latent_names=["score", "speed"]).fit(table())
    assert str(caught.value) == (
        "latents and items must have different names, but 'score' is the name of both (1 of 2 "
        "latents); rename the latent or the item"
    )
    q = pd.DataFrame({"item": COLUMNS, "c": [1] * 5, "d": [1, 0, 1, 0, 1]})
    with pytest.raises(SettingError) as caught:
        DCRL(2, q_matrix=q).fit(table())
    assert str(caught.value) == (
        "latents and items must have different names, but 'c' is the name of both (2 of 2 "
        "latents); rename its column of the Q-matrix or the item"
    )
