"""Settings and advice of the library's messages are rendered as options of the command line."""

from __future__ import annotations

import pytest

from hidag.cli.messages import CommandLineStyle
from hidag.exceptions import (
    Advice,
    Choices,
    DataError,
    Setting,
    SettingError,
    invalid_setting,
    join_advice,
)

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
def test_a_mapping_names_items_by_patterns_that_match_no_other(families, others, options):
    style = CommandLineStyle(items=(*families, *others))
    assert style.setting(Setting("family", families)) == options


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (invalid_setting("n_jobs", "at least 1", 0), "--jobs must be at least 1, got 0"),
        (
            invalid_setting("penalty", Choices(("tlp", "scad", None)), "foo"),
            "--penalty must be tlp, scad or none, got 'foo'",
        ),
        (
            invalid_setting("search", Choices(("ges", "exact"), python_only="a callable"), None),
            "--search must be ges or exact, got none",
        ),
        (invalid_setting("levels", "at least 2", [1, 3]), "--levels must be at least 2, got 1,3"),
        (
            invalid_setting("penalty_threshold", "above 0", -1.0),
            "penalty_threshold must be above 0, got -1",
        ),
        (
            SettingError(
                "x", "no convergence after {max_iter}", advice="raise {it} or {tol}",
                max_iter=Setting("max_iter", 1), it=Setting("max_iter"), tol=Setting("tol"),
            ),
            "no convergence after --max-iter 1; raise --max-iter or --tol",
        ),
    ],
)  # fmt: skip
def test_settings_are_rendered_as_options(error, sentence):
    assert error.render(CommandLineStyle()) == sentence


def test_advice_names_the_option_and_quotes_user_data_for_the_shell():
    advice = Advice("drop-column", "drop the column")
    error = DataError("constant", "item {item!r} is constant", advice=advice, item="a {b}")
    assert str(error) == "item 'a {b}' is constant; drop the column"
    assert error.render(CommandLineStyle()) == (
        "item 'a {b}' is constant; leave the column out with --drop 'a {b}'"
    )


def test_a_parameter_that_a_message_lacks_is_a_placeholder():
    error = DataError("constant", "constant", advice=Advice("drop-column", "drop the column"))
    assert error.render(CommandLineStyle()).endswith("leave the column out with --drop ITEM")


def test_each_part_of_joined_advice_is_rendered_by_its_own_code():
    advice = join_advice(
        Advice("recode-missing", "replace {code} with NaN", {"code": "-9"}),
        Advice("none-of-these", "recode the item"),
    )
    error = DataError("x", "item {item} is odd", advice=advice, item="a")
    assert str(error) == "item a is odd; replace -9 with NaN; recode the item"
    assert error.render(CommandLineStyle()) == (
        "item a is odd; use --missing -9 if -9 stands for a missing answer; recode the item"
    )


@pytest.mark.parametrize(
    ("column", "option"), [("the weight", "--weights 'the weight'"), (None, "--weights COLUMN")]
)
def test_weights_of_the_fit_are_named_where_the_command_knows_them(column, option):
    advice = Advice("repeat-weights", "give {weights}", {"weights": Setting("sample_weight")})
    error = SettingError("missing-weights", "no weights", advice=advice)
    style = CommandLineStyle(weights_column=column)
    assert error.render(style) == f"no weights; add {option}, as in the fit"
