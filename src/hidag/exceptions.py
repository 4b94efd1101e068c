"""Errors, warnings and notes: each has a code, parameters and advice, and renders in any interface.

A message is written once, with the names of settings as :class:`Setting` and what to do as
:class:`Advice`. Python shows ``max_iter=500``; the command line shows ``--max-iter 500`` by giving
:meth:`Message.render` its own :class:`Style`. No interface reads or changes the text of a message.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Setting:
    """A setting, as a parameter of a message: its name in Python and, optionally, a value."""

    name: str
    value: Any = ...  # An ellipsis, if there is none, stays itself when a message is pickled.

    @property
    def has_value(self) -> bool:
        """Whether the message names a value for the setting."""
        return self.value is not ...


@dataclass(frozen=True)
class Value:
    """A value that a user gave, as a parameter of a message."""

    value: Any


@dataclass(frozen=True)
class Choices:
    """The values that a setting can have, as a parameter of a message."""

    values: tuple[Any, ...]
    other: str = ""  # A further kind of value in words, such as "a number of rows".
    python_only: str = ""  # A further kind of value that only Python can pass, such as "a callable"


@dataclass(frozen=True)
class Advice:
    """What to do about a message."""

    code: str  # Names the remedy, for interfaces that have their own way of doing it.
    #: The remedy in Python's terms, a template for ``params`` and the message's own parameters.
    text: str
    params: Mapping[str, Any] = field(default_factory=dict)


def join_advice(*parts: Advice) -> Advice:
    """Return several pieces of advice as one; interfaces render each by its own code."""
    return parts[0] if len(parts) == 1 else Advice("several", "{parts}", {"parts": parts})


def suggest_name(name: str, known: Sequence[str], otherwise: str = "") -> Advice:
    """Return the advice to use the most similar known name, or else other advice."""
    similar = difflib.get_close_matches(name, known, n=1)
    if not similar:
        return Advice("", otherwise)
    return Advice("similar-name", "did you mean {similar!r}?", {"similar": similar[0]})


class Style:
    """How an interface writes settings and advice; this one is Python's."""

    def setting(self, setting: Setting) -> str:
        """Return a setting, with its value if it has one."""
        return f"{setting.name}={setting.value!r}" if setting.has_value else setting.name

    def value(self, value: Any) -> str:
        """Return a value that a user gave."""
        return repr(value)

    def choices(self, choices: Choices) -> str:
        """Return the values that a setting can have."""
        return join_choices([*map(repr, choices.values), choices.other, choices.python_only])

    def advice(self, advice: Advice) -> str:
        """Return the template of an advice."""
        return advice.text

    def fill(self, template: str, params: Mapping[str, Any]) -> str:
        """Return a template with its parameters; one without parameters is final as it is."""
        if not params:
            return template
        return template.format(**{name: self._show(value) for name, value in params.items()})

    def _show(self, param: Any) -> Any:
        """Return a parameter in the terms of the interface; plain values as they are."""
        if isinstance(param, Setting):
            return self.setting(param)
        if isinstance(param, Value):
            return self.value(param.value)
        if isinstance(param, Choices):
            return self.choices(param)
        if isinstance(param, Message | _Coded):
            return param.render(self)
        if isinstance(param, Advice):
            return self.fill(self.advice(param), param.params)
        if isinstance(param, tuple) and param and isinstance(param[0], Advice):
            return "; ".join(self._show(part) for part in param)
        return param


def join_choices(words: Sequence[str]) -> str:
    """Return the words that are not empty as alternatives: "a, b or c"."""
    given = [word for word in words if word]
    return " or ".join([", ".join(given[:-1]), given[-1]] if len(given) > 1 else given)


PYTHON_STYLE = Style()


@dataclass(frozen=True)
class Message:
    """A sentence for people with a code and parameters for programs.

    The code, in kebab case, is the same for every message about the same problem. The template
    has no full stop: what was expected, what came, where; fields in braces are ``params``. Advice
    is appended after a semicolon, or on a line of its own if the template ends a line.
    """

    code: str
    template: str
    params: Mapping[str, Any] = field(default_factory=dict)
    advice: Advice | None = None

    def render(self, style: Style = PYTHON_STYLE) -> str:
        """Return the sentence in the terms of an interface."""
        text = style.fill(self.template, self.params)
        if self.advice is None:
            return text
        remedy = style.fill(style.advice(self.advice), {**self.params, **self.advice.params})
        glue = "" if text.endswith("\n") else "; "
        return f"{text}{glue}{remedy}" if remedy else text

    def __str__(self) -> str:
        return self.render()


class _Coded:
    """What errors and warnings share: a :class:`Message`."""

    message: Message

    def __init__(
        self,
        code: str,
        template: str,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        advice: Advice | str | None = None,
        **more: Any,
    ) -> None:
        advice = Advice("", advice) if isinstance(advice, str) else advice
        self.message = Message(code, template, {**(params or {}), **more}, advice)
        super().__init__(self.message.render())  # type: ignore[call-arg]

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the error or warning that carries an existing message."""
        return cls(message.code, message.template, message.params, advice=message.advice)

    @property
    def code(self) -> str:
        """The code of the message."""
        return self.message.code

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the message."""
        return self.message.params

    @property
    def advice(self) -> Advice | None:
        """What to do about it."""
        return self.message.advice

    def render(self, style: Style = PYTHON_STYLE) -> str:
        """Return the sentence in the terms of an interface."""
        return self.message.render(style)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self.message,)


class HidagError(_Coded, Exception):
    """Root of all errors that hidag raises on purpose.

    Parameters
    ----------
    code, template, params
        As in :class:`Message`; :class:`Setting` for settings.
    advice : Advice or str, optional
        What to do; a string is a template for the same parameters.
    **more
        Further parameters.
    """


class DataError(HidagError, ValueError):
    """The table, a column or a cell cannot be used as it is."""


class SettingError(HidagError, ValueError):
    """A parameter of an estimator or a function has an invalid value."""


def invalid_setting(name: str, expected: str | Choices, given: Any) -> SettingError:
    """Return the error about a setting whose value is not among those expected."""
    text = "{setting} must be {expected}, got {given}"
    params = {"setting": Setting(name), "expected": expected, "given": Value(given)}
    return SettingError("invalid-setting", text, params)


class GraphError(HidagError, ValueError):
    """A graph is invalid: it has a cycle, an impossible constraint or a wrong shape."""


class FileError(HidagError, OSError):
    """A file is missing, empty, truncated, of an unknown format, or cannot be written."""


class MissingPackageError(HidagError, ImportError):
    """A feature needs an optional package that is not installed."""


class HidagWarning(_Coded, UserWarning):
    """Root of all warnings that hidag issues; constructed like :class:`HidagError`."""


class IdentifiabilityWarning(HidagWarning):
    """The requested model is not, or may not be, identified."""


class MisfitWarning(HidagWarning):
    """The data vary in a way that the model cannot reproduce."""


class ModelCheckWarning(MisfitWarning):
    """A check of the model after the fit found evidence against it."""


class ConvergenceWarning(HidagWarning):
    """The iterations ended before the estimate converged."""


class KnowledgeWarning(HidagWarning):
    """The data contradict the prior knowledge, or it cannot be assigned to a latent."""


def import_extra(module: str, use: str, extra: str) -> Any:
    """Return a module that ``use`` needs, or raise an error that names hidag's ``extra``."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            "missing-package",
            "{use} needs {package}, which is not installed",
            {"use": use, "package": module.partition(".")[0]},
            advice=Advice("install-extra", "use pip install 'hidag[{extra}]'", {"extra": extra})
            if extra
            else Advice("install-package", "use pip install {package}"),
        ) from error


def not_fitted(given: Any, needed: str = "this function needs") -> SettingError:
    """Return the error of something that is no fit where one is ``needed``."""
    text = "{needed} a fitted DCRL or a FitResult, got {found}"
    advice = Advice("fit-first", "call fit first") if hasattr(given, "get_params") else None
    params = {"needed": needed, "found": type(given).__name__}
    return SettingError("not-fitted", text, params, advice=advice)
