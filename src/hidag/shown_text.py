"""Names that people gave, made fit to be shown: short enough, and nothing hidden in them."""

from __future__ import annotations

#: Stands for what was cut out.
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def shortened(name: str, longest: int, mark: str = ELLIPSIS) -> str:
    """Return a name of at most so many letters; what is too much is cut out of its middle.

    Questions of a survey begin alike and variables of a wave end alike, so that names cut at one
    end would all read the same: both ends stay.

    Parameters
    ----------
    name : str
    longest : int
        Letters, the mark among them.
    mark : str
        Stands where something was cut out.
    """
    if len(name) <= longest:
        return name
    room = max(longest - len(mark), 0)
    end = room // 2
    return name[: room - end].rstrip() + mark + (name[-end:].lstrip() if end else "")
