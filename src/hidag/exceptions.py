"""Errors, warnings and notes: each has a code, parameters and advice, and renders in any interface.

A message is written once, with the names of settings as :class:`Setting` and what to do as
:class:`Advice`. Python shows ``max_iter=500``; the command line shows ``--max-iter 500`` by giving
:meth:`Message.render` its own :class:`Style`. No interface reads or changes the text of a message.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

_UNSET: Any = type("_Unset", (), {"__repr__": lambda self: "unset"})()


@dataclass(frozen=True)
class Setting:
    """A setting of an estimator or function, for use as a parameter of a message.

    Attributes
    ----------
    name : str
        As Python spells it.
    value : object, optional
        A value to use; without one the message is about the setting itself.
    """

    name: str
    value: Any = _UNSET

    @property
    def has_value(self) -> bool:
        """Whether the message names a value for the setting."""
        return self.value is not _UNSET


@dataclass(frozen=True)
class Advice:
    """What to do about a message.

    Attributes
    ----------
    code : str
        Names the remedy, for interfaces that have their own way of doing it.
    text : str
        The remedy in Python's terms, a template for ``params`` and the message's own parameters.
    params : mapping
    """

    code: str
    text: str
    params: Mapping[str, Any] = field(default_factory=dict)


class Style:
    """How an interface writes settings and advice; this one is Python's."""

    def setting(self, setting: Setting) -> str:
        """Return a setting, with its value if it has one."""
        if not setting.has_value:
            return setting.name
        return f"{setting.name}={setting.value!r}"

    def advice(self, advice: Advice) -> str:
        """Return the template of an advice."""
        return advice.text

    def fill(self, template: str, params: Mapping[str, Any]) -> str:
        """Return a template with its parameters; one without parameters is final as it is."""
        if not params:
            return template
        return template.format(
            **{
                name: self.setting(value) if isinstance(value, Setting) else value
                for name, value in params.items()
            }
        )


PYTHON_STYLE = Style()


@dataclass(frozen=True)
class Message:
    """A sentence for people that programs can rely on.

    Attributes
    ----------
    code : str
        Short, in kebab case; the same for every message about the same problem.
    template : str
        The sentence without a full stop: what was expected, what came, where. Fields in braces
        are filled from ``params``.
    params : mapping from str to object
    advice : Advice or None
        Appended after a semicolon.
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
        return f"{text}; {remedy}" if remedy else text

    def __str__(self) -> str:
        return self.render()


def _as_advice(advice: Advice | str | None) -> Advice | None:
    return Advice("", advice) if isinstance(advice, str) else advice


class _Coded:
    """What errors and warnings share: built from a code, a template, advice and parameters."""

    message: Message

    def __init__(
        self, code: str, template: str = "", /, *, advice: Advice | str | None = None, **params: Any
    ) -> None:
        if not template:  # A message of one argument has no code of its own yet.
            code, template = "general", code
        self.message = Message(code, template, MappingProxyType(params), _as_advice(advice))
        super().__init__(self.message.render())  # type: ignore[call-arg]

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the error or warning that carries an existing message."""
        return cls(message.code, message.template, advice=message.advice, **message.params)

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
        message = self.message
        return _rebuild, (
            type(self),
            message.code,
            message.template,
            message.advice,
            dict(message.params),
        )


def _rebuild(
    kind: type[_Coded], code: str, template: str, advice: Advice | None, params: dict[str, Any]
) -> _Coded:
    """Return an error or a warning as it was before it was sent to another process."""
    return kind(code, template, advice=advice, **params)


class HidagError(_Coded, Exception):
    """Root of all errors that hidag raises on purpose.

    Parameters
    ----------
    code : str
        Short, in kebab case.
    template : str
        What was expected, what came, where; fields in braces are filled from ``params``.
    advice : Advice or str, optional
        What to do; a string is a template for the same parameters.
    **params
        Values for the template, :class:`Setting` for settings.
    """


class DataError(HidagError, ValueError):
    """The table, a column or a cell cannot be used as it is."""


class SettingError(HidagError, ValueError):
    """A parameter of an estimator or a function has an invalid value."""


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


class ConvergenceWarning(HidagWarning):
    """The iterations ended before the estimate converged."""


class KnowledgeWarning(HidagWarning):
    """The data contradict the prior knowledge, or it cannot be assigned to a latent."""


def import_extra(module: str, use: str, extra: str) -> Any:
    """Return a module of an optional package.

    Parameters
    ----------
    module : str
        Dotted name, as in an import.
    use : str
        The feature that needs it, the subject of the error message.
    extra : str
        The extra of hidag that installs it.

    Raises
    ------
    MissingPackageError
        If the package is not installed; the message names the extra to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            "missing-package",
            "{use} needs {package}, which is not installed",
            advice=Advice("install-extra", "use pip install 'hidag[{extra}]'", {"extra": extra}),
            use=use,
            package=module.partition(".")[0],
        ) from error
