from __future__ import annotations

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
