"""What a result remembers of the settings it came from, for another fit with the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hidag.discover import Knowledge
from hidag.estimator import DCRL
from hidag.result import FitResult
from hidag.settings import NAMED_SCORES, NAMED_SEARCHES

#: Settings that a saved result holds in words only, where they are functions or objects.
_IN_WORDS = ("search", "score", "resample")


def remembered_settings(result: FitResult) -> tuple[dict[str, Any], list[str]]:
    """Return the estimator's settings that a result remembers, and the names of those it does not.

    It does not remember functions and objects of one's own.
    """
    known = DCRL(1).get_params()
    settings = {name: value for name, value in result.settings.items() if name in known}
    settings.setdefault("n_latents", len(result.latent_names))
    if isinstance(settings.get("knowledge"), Mapping):
        settings["knowledge"] = Knowledge.from_dict(settings["knowledge"])
    forgotten = [
        name for name in _IN_WORDS if name in settings and not _is_plain(name, settings[name])
    ]
    for name in forgotten:
        del settings[name]
    return settings, forgotten


def _is_plain(name: str, value: Any) -> bool:
    known = {"search": NAMED_SEARCHES, "score": NAMED_SCORES}
    return value in known[name] if name in known else not str(value).startswith("<")
