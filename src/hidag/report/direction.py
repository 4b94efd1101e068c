"""Names that run from right to left, or pretend to, turn nothing around but themselves.

A name may hold Arabic or Hebrew letters, whose neighbours browsers then put in another order, or a
character that turns all that follows around (U+202E). In a cell of its own an element keeps it in;
inside sentences, captions and commands only the text itself can.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

#: What opens an embedding or an override, what opens an isolate, and what ends them.
_OPENS, _ISOLATES = "\u202a\u202b\u202d\u202e", "\u2066\u2067\u2068"
_END, _END_OF_ISOLATE = "\u202c", "\u2069"
_FIRST_STRONG = "\u2068"
#: Bidirectional classes of letters and controls that may change the order of what is around them.
_TURNING = frozenset(
    {"R", "AL", "AN", "RLE", "RLO", "LRE", "LRO", "PDF", "LRI", "RLI", "FSI", "PDI"}
)


def turns(text: str) -> bool:
    """Return whether a text holds anything that can change the order of its neighbours."""
    return not text.isascii() and any(unicodedata.bidirectional(c) in _TURNING for c in text)


def closed(text: str) -> str:
    """Return a text that ends every embedding and isolate it opens, and none that it did not."""
    out: list[str] = []
    waiting: list[str] = []
    for letter in text:
        if letter in _OPENS:
            waiting.append(_END)
        elif letter in _ISOLATES:
            waiting.append(_END_OF_ISOLATE)
        elif letter == _END:
            if not waiting or waiting[-1] != _END:
                continue
            waiting.pop()
        elif letter == _END_OF_ISOLATE:
            if _END_OF_ISOLATE not in waiting:
                continue
            # The end of an isolate ends what was opened inside it.
            while waiting.pop() != _END_OF_ISOLATE:
                pass
        out.append(letter)
    return "".join([*out, *reversed(waiting)])


def keeper_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that keeps what these names turn around inside them, wherever they stand.

    A name alone is left as it is, so that it can be copied from a page: there an element of its own
    has to keep it in.

    Parameters
    ----------
    names : iterable of str
        Of items and latents, as texts may quote them.
    """
    # Longer ones first: a name may be part of another.
    alone = {name for name in names if turns(name)}
    turning = sorted(alone, key=lambda name: (-len(name), name))
    pattern = re.compile("|".join(map(re.escape, turning))) if turning else None

    def keep(text: str) -> str:
        if text in alone or not turns(text):
            return text
        if pattern is not None:
            text = pattern.sub(lambda m: _FIRST_STRONG + closed(m[0]) + _END_OF_ISOLATE, text)
        return closed(text)

    return keep
