"""Errors, warnings and notes of the library in the terms of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from string import Formatter
from typing import Any

from hidag import exceptions
from hidag.exceptions import Advice, HidagError, HidagWarning, Message, Setting, Style
from hidag.formatting import is_hidden

#: Settings whose option is not their name with dashes; None where there is no option.
_OPTIONS = {
    "n_latents": "--latents", "n_starts": "--starts", "n_resamples": "--resamples",
    "n_jobs": "--jobs", "n_tables": "--tables", "n_draws": "--draws", "max_changes": "--changes",
    "graph_score": "--score", "q_matrix": "--q", "random_state": "--seed",
    "sample_weight": "--weights", "equivalent_sample_size": None, "latent_names": None,
    "n_sweeps": None, "observer": None, "penalty_threshold": None,
}  # fmt: skip
#: Templates for advice that commands have an option for; ``!q`` quotes a value for the shell.
_ADVICE = {
    "drop-column": "leave the column out with --drop {item!q}",
    "drop-copy": "use --drop {item!q} if it is a copy",
    "drop-date": "convert dates to numbers, such as days since a reference date, or leave the "
    "column out with --drop {item!q}",
    "drop-row-ids": "leave out a column that identifies rows with --id {item!q} or --drop "
    "{item!q}, or set its type with --family ITEM=TYPE to use it",
    "drop-duplicate-name": "rename the columns in the file, or leave one out: --drop {last!q}",
    "recode-missing": "use --missing {code!q} if {code} stands for a missing answer",
    "suspected-code": "it holds {code} in {n} of {n_cells} cells, apart from the other values "
    "({low} to {high}): use --missing {code!q} if {code} stands for a missing answer",
    "recode-cell": "recode {texts} as numbers, or leave the cell empty or use --missing {cell!q} "
    "if the answer is missing",
    "recode-boolean-cell": "recode it as yes or no, or leave the cell empty or use --missing "
    "{cell!q} if the answer is missing",
    "recode-frame-cell": "recode the text as numbers, use --missing {cell!q} if the answer is "
    "missing, or leave the column out with --drop {item!q}",
    "recode-frame-column": "recode the text as numbers, list its labels with --words "
    "{item!q}=LABELS, or leave the column out with --drop {item!q}",
    "recode-text": "recode {texts} as numbers; leave out a column that is not an item with --drop "
    "{item!q}, or with --id {item!q} if it identifies rows",
    "list-labels": "recode {texts} as numbers, or list the labels with {labels}, separated by < "
    "from low to high if they are ordered; leave out a column that is not an item with --drop "
    "{item!q}, or with --id {item!q} if it identifies rows",
    "repeat-weights": "add --weights {weights_column!q}, as in the fit",
    "recode-noiseless": "if the column has few values, code them 0, 1, ... and set a discrete type "
    "({discrete}) with --family COLUMN=TYPE; if it was computed from other columns or is an "
    "outcome that the latents should explain, leave it out with --drop COLUMN",
    "another-place": "choose another place with --out",
    "require-edges": "give its steps with --require instead, which leaves states without a "
    "prerequisite the probability that the data give them, or use fewer latents",
    "resume-elsewhere": "repeat the command with the former settings to resume, or remove that "
    "folder",
}
_TEMPLATES = frozenset(_ADVICE.values())
_OPTION = re.compile(r"--[a-z-]+")
_MOST_OPTIONS = 3
#: The number at the end of an item's name, and the part after its last separator.
_NUMBER_AT_END, _AFTER_SEPARATOR = re.compile(r"\d+\Z"), re.compile(r"(?<=[_.\- ])[^_.\- ]+\Z")


@dataclass(frozen=True)
class CommandLineStyle(Style):
    """Settings as options, and advice as the options to add to the command."""

    #: All items of the table, so that options can name several of them by a pattern.
    items: tuple[str, ...] = ()
    #: The column of weights that the fit used.
    weights_column: str | None = None
    #: Whether the running command has an option.
    has_option: Callable[[str], bool] = lambda option: True

    def setting(self, setting: Setting) -> str:
        """Return the option, with its value if the message names one."""
        option = _OPTIONS.get(setting.name, "--" + setting.name.replace("_", "-"))
        if option is None:
            return super().setting(setting)
        if not setting.has_value:
            return option
        if isinstance(setting.value, Mapping):
            return self._item_options(option, setting.value)
        return f"{option} {quote(_typed(setting.value))}"

    def value(self, value: Any) -> str:
        """Return a value as it was typed; text in quotes, lists without brackets."""
        return repr(value) if isinstance(value, str) else _typed(value)

    def choices(self, choices: exceptions.Choices) -> str:
        """Return the values that an option can have, without those that only Python can pass."""
        return exceptions.join_choices([*map(_typed, choices.values), choices.other])

    def advice(self, advice: Advice) -> str:
        """Return the template of an advice: the command line's if the command has its options."""
        if advice.code == "repeat-weights" and self.weights_column is None:
            return "add --weights COLUMN, as in the fit"
        template = _ADVICE.get(advice.code, "")
        usable = template and all(map(self.has_option, _OPTION.findall(template)))
        return template if usable else advice.text

    def fill(self, template: str, params: Mapping[str, Any]) -> str:
        """Return a template with its parameters; ``!q`` quotes one for the shell."""
        if not params and template not in _TEMPLATES:
            return template
        shown = {name: self._show(_of_item(value, params)) for name, value in params.items()}
        return _SHELL.vformat(template, (), {"weights_column": self.weights_column} | shown)

    def _item_options(self, option: str, values: Mapping[Any, Any]) -> str:
        """Return options ITEM=VALUE for a mapping from items, the first few of them."""
        chosen = {str(item): _typed(value) for item, value in values.items()}
        if len(chosen) == len(self.items) and len(set(chosen.values())) == 1:
            return f"{option} {quote(next(iter(chosen.values())))}"
        words = [quote(f"{name}={value}") for name, value in by_patterns(chosen, self.items)]
        shown = " ".join(f"{option} {word}" for word in words[:_MOST_OPTIONS])
        return shown + (" ..." if len(words) > _MOST_OPTIONS else "")


class _ShellFormatter(Formatter):
    """Quote ``{name!q}`` for the shell; an unknown parameter ``item`` is a placeholder ITEM."""

    def get_value(self, key: Any, args: Any, kwargs: Any) -> Any:
        return kwargs.get(key, str(key).upper())

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return quote(str(value)) if conversion == "q" else super().convert_field(value, conversion)


_SHELL = _ShellFormatter()
_PLAIN = CommandLineStyle()
_STYLE: ContextVar[CommandLineStyle] = ContextVar("_STYLE", default=_PLAIN)


@contextmanager
def command_style(has_option: Callable[[str], bool]) -> Iterator[None]:
    """Start a command with some options; its messages know no table or fit yet."""
    token = _STYLE.set(CommandLineStyle(has_option=has_option))
    try:
        yield
    finally:
        _STYLE.reset(token)


def set_message_context(**known: Any) -> None:
    """Let the command's messages use the items or the weights column: fields of the style."""
    _STYLE.set(replace(_STYLE.get(), **known))


def message_style() -> CommandLineStyle:
    """Return the style of the running command."""
    return _STYLE.get()


def render(message: str | Message | HidagError | HidagWarning) -> str:
    """Return a message in the terms of the running command; text as it is."""
    return message if isinstance(message, str) else message.render(_STYLE.get())


def join_command(words: Iterable[str]) -> str:
    """Return a command that can be typed again, hidden characters written as bash escapes."""
    # All hidden characters stand inside the quotes that the shell needs; these are interrupted.
    return "".join(
        f"'$'\\u{ord(letter):04x}''" if is_hidden(letter) else letter
        for letter in shlex.join(words)
    )


def quote(word: str) -> str:
    """Return a word quoted for a shell, in double quotes if it has an apostrophe."""
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)


def by_patterns(chosen: Mapping[str, str], items: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield items with their values; items of one value by a pattern that only they match."""
    covered: set[str] = set()
    for item, value in chosen.items():
        if item in covered:
            continue
        for start in (_NUMBER_AT_END.sub("", item), _AFTER_SEPARATOR.sub("", item)):
            matched = [name for name in items if name.startswith(start)] if start else []
            uniform = len(matched) > 1 and all(chosen.get(name) == value for name in matched)
            # Brackets and stars in a name mean something else in a pattern.
            if uniform and start != item and not set(start) & set("*?[]="):
                covered |= set(matched)
                yield f"{start}*", value
                break
        else:
            yield item, value


def _of_item(param: Any, params: Mapping[str, Any]) -> Any:
    """Return a parameter; the family in a message about an item as the family of that item."""
    if isinstance(param, Setting) and param.name == "family" and isinstance(param.value, str):
        return Setting("family", {params["item"]: param.value}) if "item" in params else param
    return param


def _typed(value: Any) -> str:
    """Return a value as an option takes it."""
    if isinstance(value, list | tuple):
        # Pairs of items are written a+b.
        pairs = ["+".join(map(_typed, one)) for one in value if isinstance(one, list | tuple)]
        return ",".join(pairs or map(_typed, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
