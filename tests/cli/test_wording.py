from __future__ import annotations

import pytest

from hidag.cli.wording import in_options
from hidag.errors import DataError

LIKERT = {f"likert_{j}": "ordinal" for j in range(1, 13)}


@pytest.mark.parametrize(
    ("families", "others", "options"),
    [
        (LIKERT, ["age"], "--family 'likert_*=ordinal'"),
        (LIKERT, [], "--family ordinal"),
        (
            LIKERT,
            ["likert_sum"],
            "--family likert_1=ordinal --family likert_2=ordinal --family likert_3=ordinal ...",
        ),
        (
            {"mood.a": "ordinal", "mood.b": "ordinal", "clicks": "poisson"},
            ["age"],
            "--family 'mood.*=ordinal' --family clicks=poisson",
        ),
        ({"q[1]": "ordinal", "q[2]": "poisson"}, ["a"],
         "--family 'q[1]=ordinal' --family 'q[2]=poisson'"),
    ],
)  # fmt: skip
def test_items_that_only_a_pattern_matches_are_named_by_it(families, others, options):
    error = DataError(f"say what they are, for instance family={families!r}; the others stay")
    assert str(in_options(error, [*families, *others])) == (
        f"say what they are, for instance {options}; the others stay"
    )
