"""A part of the golden master: fits that no structural change may move."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES, arrays

EXPECTED = json.loads(Path(__file__).with_name("expected.json").read_text())


def test_every_fit_of_the_suite_part_is_expected():
    assert {name for name, case in CASES.items() if case.in_suite} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_fit_is_as_in_the_golden_master(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = arrays(CASES[name].fit())
    for key, value in EXPECTED[name].items():
        if isinstance(value, str):
            assert found[key] == value
        else:
            np.testing.assert_allclose(found[key], value, rtol=1e-6, atol=1e-6, err_msg=key)
