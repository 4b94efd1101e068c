"""Options that list several things with commas, where names may have commas themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from hidag.errors import SettingError


def split_known(text: str, known: Callable[[str], bool]) -> list[str]:
    """Return the parts of a text between commas, a comma inside of something known left alone.

    Parameters
    ----------
    text : str
    known : function of a part
        Whether a part that has commas is one thing. The whole text is asked about first, then the
        longest part from where the last one ended; a part without commas is taken as it is.
    """
    pieces = text.split(",")
    out = []
    start = 0
    while start < len(pieces):
        end = len(pieces)
        while end > start + 1 and not known(",".join(pieces[start:end]).strip()):
            end -= 1
        out.append(",".join(pieces[start:end]).strip())
        start = end
    return out


def read_pairs(texts: Sequence[str], option: str, names: Collection[str]) -> dict[str, str]:
    """Return what options such as Z1=1 or Z1=1,Z2=0 say, name by name.

    Parameters
    ----------
    texts : sequence of str
    option : str
        As errors call it.
    names : collection of str
        Those that can be meant.
    """

    def known(part: str) -> bool:
        return part.rpartition("=")[0].strip() in names

    out: dict[str, str] = {}
    for text in texts:
        for part in split_known(text, known):
            name, sign, value = (word.strip() for word in part.rpartition("="))
            if not sign or not name or not value:
                raise SettingError(f"{option} takes NAME=VALUE, such as Z1=1, got {part!r}")
            if name in out:
                raise SettingError(f"{option} names {name} twice")
            out[name] = value
    return out


def read_arrows(texts: Sequence[str], option: str, names: Collection[str]) -> list[tuple[str, str]]:
    """Return what options such as A->B or A->B,B->C say, as pairs of cause and effect."""

    def known(part: str) -> bool:
        ends = [end.strip() for end in part.split("->")]
        return len(ends) == 2 and all(end in names for end in ends)

    out = []
    for text in texts:
        for part in split_known(text, known):
            cause, arrow, effect = (word.strip() for word in part.partition("->"))
            if not arrow or not cause or not effect or "->" in effect:
                raise SettingError(f"{option} takes CAUSE->EFFECT, such as 'Z1->Z2', got {part!r}")
            out.append((cause, effect))
    return out
