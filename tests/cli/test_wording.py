from __future__ import annotations

import pytest

from hidag.cli.messages import in_options, options_for_settings
from hidag.exceptions import DataError

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


@pytest.mark.parametrize(
    ("sentence", "options"),
    [
        ("n_jobs must be None, -1 or at least 1, got 0", "--jobs must be -1 or at least 1, got 0"),
        (
            "penalty must be 'tlp', 'scad', 'mcp' or None, got 'foo'",
            "--penalty must be tlp, scad, mcp or none, got 'foo'",
        ),
        ("tol must be a positive number, got -1.0", "--tol must be a positive number, got -1.0"),
        (
            "effective_size must be 'auto', 'all' or a share of N between 0 and 1, got 9.0",
            "--effective-size must be 'auto', 'all' or a share of N between 0 and 1, got 9.0",
        ),
        (
            "Stage I had not settled after max_iter=1 step; raise max_iter or tol (now 0.1)",
            "Stage I had not settled after --max-iter 1 step; raise --max-iter or --tol (now 0.1)",
        ),
        (
            "Found a table with 1 sample(s) (shape=(1, 12)) while a minimum of 2 is required. Give "
            "one row per sample",
            "the table has 1 row below the names, but at least 2 are needed",
        ),
    ],
)
def test_settings_are_named_as_options(sentence, options):
    assert options_for_settings(sentence) == options
