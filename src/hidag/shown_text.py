"""Names made fit to be shown, short enough and with nothing hidden in them; nouns counted."""

from __future__ import annotations

import unicodedata

#: Stands for what was cut out.
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
#: Bidirectional classes of characters that turn the text after them around.
_TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def hidden(letter: str) -> bool:
    """Return whether a character is not seen itself but steers what shows it."""
    return unicodedata.category(letter) == "Cc" or unicodedata.bidirectional(letter) in _TURNING


def visible(text: str, keep: str = "\n\t") -> str:
    """Return a text in which a mark that readers see stands for each hidden character.

    A name can hold a character that turns around all that follows (U+202E): what is read is then
    not what is there.

    Parameters
    ----------
    text : str
    keep : str
        Hidden characters that may stay.
    """
    # Pages have many thousand cells, nearly all of them plain.
    if text.isprintable():
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if letter not in keep and hidden(letter) else letter
        for letter in text
    )


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: 1 item, 1,000 items.

    Parameters
    ----------
    number : int
    one, many : str
        The noun after 1 and after other numbers; by default the latter ends in an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def shortened(name: str, longest: int, mark: str = ELLIPSIS) -> str:
    """Return a name of at most so many letters; what is too much is cut out of its middle.

    Questions of a survey begin alike and variables of a wave end alike, so that names cut at one
    end would all read the same: both ends stay. Numbers are not cut in two if there is room:
    items 100 to 109 would read alike, and a part of a number is another number.

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
    head = room - end
    past = _end_of_number(name, head)
    if past - head <= end // 2:
        head, end = past, end - (past - head)
    past = _end_of_number(name, len(name) - end)
    if past < len(name):
        end = len(name) - past
    return name[:head].rstrip() + mark + (name[-end:].lstrip() if end else "")


def _end_of_number(name: str, cut: int) -> int:
    """Return the first place from a cut on that is not inside a number."""
    if cut and name[cut - 1].isdigit():
        while cut < len(name) and name[cut].isdigit():
            cut += 1
    return cut
