"""Names that run from right to left turn nothing around but themselves, and hidden ones nothing.

A name may hold Arabic or Hebrew letters, whose neighbours browsers then put in another order. In a
cell of its own an element keeps it in; inside sentences and captions only the text itself can. A
character that turns all that follows around (U+202E) is shown as a mark instead.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from hidag.shown_text import visible

_FIRST_STRONG, _END_OF_ISOLATE = "\u2068", "\u2069"
#: Bidirectional classes of letters that may change the order of what is around them.
_FROM_THE_RIGHT = frozenset({"R", "AL", "AN"})


def turns(text: str) -> bool:
    """Return whether a text holds letters that can change the order of their neighbours."""
    return not text.isascii() and any(unicodedata.bidirectional(c) in _FROM_THE_RIGHT for c in text)


def keeper_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that makes hidden characters seen and keeps turning names in themselves.

    A name alone gets nothing around it, so that it can be copied from a page: there an element of
    its own has to keep it in.

    Parameters
    ----------
    names : iterable of str
        Of items and latents, as texts may quote them.
    """
    # Longer ones first: a name may be part of another.
    alone = {name for name in map(visible, names) if turns(name)}
    turning = sorted(alone, key=lambda name: (-len(name), name))
    pattern = re.compile("|".join(map(re.escape, turning))) if turning else None

    def keep(text: str) -> str:
        text = visible(text)
        if text in alone or pattern is None:
            return text
        return pattern.sub(lambda m: _FIRST_STRONG + m[0] + _END_OF_ISOLATE, text)

    return keep
