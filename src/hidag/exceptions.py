"""The errors and warnings that hidag raises: one root, each also the builtin a caller expects."""

from __future__ import annotations

import importlib
from typing import Any


class HidagError(Exception):
    """Root of all errors that hidag raises on purpose."""


class DataError(HidagError, ValueError):
    """The table, a column or a cell cannot be used as it is."""


class SettingError(HidagError, ValueError):
    """A parameter of an estimator or a function has a value that makes no sense."""


class GraphError(HidagError, ValueError):
    """A graph is not what it has to be (a cycle, an impossible constraint, a wrong shape)."""


class FileError(HidagError, OSError):
    """A file is missing, empty, truncated, of an unknown format, or cannot be written."""


class MissingPackageError(HidagError, ImportError):
    """What was asked for needs an optional package that is not installed."""


class HidagWarning(UserWarning):
    """Root of all warnings that hidag issues."""


class IdentifiabilityWarning(HidagWarning):
    """What was asked for is not, or may not be, determined by the data."""


class MisfitWarning(HidagWarning):
    """The data vary in a way that the model has no room for."""


class ConvergenceWarning(HidagWarning):
    """The iterations ended before the estimate settled."""


class KnowledgeWarning(HidagWarning):
    """The data speak against what was told beforehand, or it is about no latent in particular."""


# --- Packages that only some uses need: loaded at their use, or named with the extra that


def import_extra(module: str, use: str, extra: str) -> Any:
    """Return a module of an optional package.

    Parameters
    ----------
    module : str
        With dots, as in an import.
    use : str
        What needs it: the beginning of the sentence.
    extra : str
        The extra of hidag that installs it.

    Raises
    ------
    MissingPackageError
        If the package is not installed: the sentence says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"{use} needs {package}, which is not installed; use pip install 'hidag[{extra}]'"
        ) from error
