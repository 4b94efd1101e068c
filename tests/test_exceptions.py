"""Messages have a code, parameters and advice, and each interface renders them in its own terms."""

from __future__ import annotations

import pickle
import warnings

import pytest

from hidag.exceptions import (
    Advice,
    DataError,
    FileError,
    HidagError,
    MisfitWarning,
    Setting,
    SettingError,
    Style,
)


class Options(Style):
    def setting(self, setting: Setting) -> str:
        option = "--" + setting.name.replace("_", "-")
        return f"{option} {setting.value}" if setting.has_value else option

    def advice(self, advice: Advice) -> str:
        return {"drop-column": "use --drop {item}"}.get(advice.code, advice.text)


def constant_item() -> DataError:
    return DataError(
        "constant-item",
        "item {item!r} has the value {value:g} in all {n:,} rows",
        advice=Advice("drop-column", "drop the column {item!r}"),
        item="a{b}",
        value=1.0,
        n=2000,
    )


def test_a_message_is_filled_from_its_parameters() -> None:
    error = constant_item()
    assert str(error) == "item 'a{b}' has the value 1 in all 2,000 rows; drop the column 'a{b}'"
    assert (error.code, error.params["n"]) == ("constant-item", 2000)


def test_an_interface_renders_settings_and_advice_in_its_own_terms() -> None:
    assert constant_item().render(Options()).endswith("; use --drop a{b}")
    error = SettingError(
        "range",
        "{name} must be at least 1",
        advice="use {fix}",
        name=Setting("max_iter"),
        fix=Setting("max_iter", 300),
    )
    assert str(error) == "max_iter must be at least 1; use max_iter=300"
    assert error.render(Options()) == "--max-iter must be at least 1; use --max-iter 300"


def test_text_without_parameters_is_not_a_template() -> None:
    assert str(FileError("odd-name", "the file {x} is empty")) == "the file {x} is empty"


@pytest.mark.parametrize("error", [constant_item(), FileError("lost", "no file {f}", f="a.csv")])
def test_messages_survive_a_process_boundary(error: HidagError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code, dict(again.params)) == (
        str(error),
        error.code,
        dict(error.params),
    )
    assert again.advice == error.advice


def test_warnings_carry_the_same() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(MisfitWarning("overdispersed", "{n} items", n=3), stacklevel=1)
    assert caught[0].category is MisfitWarning
    assert caught[0].message.code == "overdispersed"  # type: ignore[union-attr]
