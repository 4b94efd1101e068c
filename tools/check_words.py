"""Report words of our own where the field has a standard term.

    python tools/check_words.py                 # the whole repository
    python tools/check_words.py src/hidag/em    # some folders or files

Names, docstrings, comments, messages and pages are all read as text; underscores are spaces.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "benchmarks", "examples", "docs", "tools")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
ENDINGS = {".py", ".md", ".js", ".html", ".css", ".toml", ".txt"}
#: Pattern of the word, and the term to use.
WORDS = {
    r"told|tells?|telling|untold": "report, indicate, identify, distinguish",
    r"speaks? (?:for|of|against)|spoken of": "support, describe, contradict",
    r"hang(?:s|ing)? together": "treewidth, correlated",
    r"borne out": "supported by the observed-data likelihood",
    r"worth (?:its|their) (?:price|cost|penalty)|dear": "selected by the criterion, expensive",
    r"rows? (?:are|is) worth|rows worth": "effective sample size",
    r"takes? this road|roads?": "algorithm, path",
    r"(?:had|has|have) not settled|unsettled|settled?": "converge, determine",
    r"mend(?:s|ed|ing)?": "fix",
    r"strangers": "independent siblings",
    r"(?:set|sets) free": "unconstrained update",
    r"meets? (?:latents )?by halves": "factorises the state space into two blocks",
    r"are heard|is heard": "may raise or lower",
    r"how sure|who is where|is q right|does it fit": "Uncertainty, Classification, Q-matrix "
    "validation, Goodness of fit",
    r"hardly (?:show|shows|say|says|tell|tells|shown)|say little|says little": "low information",
    r"ways? round|keyed the other way": "polarity, reference level, reverse-keyed",
    r"left open": "not determined, undecided",
    r"says? the same": "agree, give the same result",
    r"made smaller": "shrunk",
    r"remembered|begun|beginnings?": "stored, started, initial values",
    r"doubts?|doubted": "warning, ambiguity",
    r"renewal|two in one": "recombination, restart, split move",
    r"twins": "duplicate columns",
    r"alike": "identical, similar",
    r"holes": "missing cells",
    r"hops": "basin hopping",
    r"thin evidence": "weak evidence",
    r"cures?": "remedy, advice",
}
_PATTERNS = [
    (re.compile(rf"(?<![A-Za-z])(?:{pattern.replace(' ', '[ _]')})(?![A-Za-z])", re.I), term)
    for pattern, term in WORDS.items()
]


def files_of(places: list[Path]) -> list[Path]:
    """Return the text files of some folders or files, this one excluded."""
    found = [
        path for place in places for path in ([place] if place.is_file() else place.rglob("*"))
    ]
    return sorted(
        path
        for path in found
        if (path.suffix in ENDINGS or path.name == "Makefile") and path != Path(__file__).resolve()
    )


def findings(path: Path) -> list[str]:
    """Return a line for each word of a file that has a standard term."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {found[0]!r}: {term}"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for pattern, term in _PATTERNS
        if (found := pattern.search(line))
    ]


def main(arguments: list[str]) -> int:
    """Print the findings, and return 1 if there are any."""
    places = [Path(word).resolve() for word in arguments]
    places = places or [ROOT / name for name in (*FOLDERS, *PAGES)]
    lines = [line for path in files_of(places) for line in findings(path)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
