"""The library's sentences in the words of the command line."""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Iterable, Mapping, Sequence

from hidag.cli.read_options import reading_of
from hidag.data.nonnumeric_cells import BadCellError
from hidag.exceptions import DataError, HidagError, Setting, Style
from hidag.fitting.fit_warnings import OVERDISPERSED_FAMILY, overdispersion_message
from hidag.formatting import is_hidden, plural
from hidag.inference.fitted_rows import MissingWeightsError
from hidag.results import FitResult

_SHOWN_OPTIONS = 3
#: Settings as the library's sentences name them, and the options that set them.
_OPTIONS = {
    "n_latents=": "--latents ",
    "n_latents must": "--latents must",
    "n_starts must": "--starts must",
    "n_resamples must": "--resamples must",
    "kind must": "--kind must",
    "start must": "--start must",
    "give the same weights as sample_weight": "give the same column as --weights",
    "folds must": "--folds must",
    "fits must": "--fits must",
    "n_jobs must be None, -1 or at least 1": "--jobs must be -1 or at least 1",
    "n_jobs must": "--jobs must",
    "penalty must be 'tlp', 'scad', 'mcp' or None": "--penalty must be tlp, scad, mcp or none",
    "tol must": "--tol must",
    "effective_size must": "--effective-size must",
    "method must": "--method must",
    "law must": "--law must",
    "score must be 'auto', 'bdeu', 'bic', 'lean' or a local score": "--score must be auto, bdeu, "
    "bic or lean",
    "search must be 'xges', 'ges', 'exact' or a callable": "--search must be xges, ges or exact",
    "resample must be 'expected', a multiple of N such as '2N', a number of rows or a function of "
    "N": "--resample must be expected, a multiple of N such as 2N, or a number of rows",
    "a larger max_iter": "a larger --max-iter",
    "raise max_iter": "raise --max-iter",
    "with more starts": "with more --starts",
    " or tol (now": " or --tol (now",
    "max_iter=": "--max-iter ",
    "max_iter must": "--max-iter must",
    "penalty_strength must": "--penalty-strength must",
    "levels must": "--levels must",
    "effects must": "--effects must",
    "effects=": "--effects ",
    "law='network'": "--law network",
    "method='em'": "--method em",
    "its steps as required edges instead": "its steps with --require instead",
    "give q_matrix": "give --q",
    "leave it out, or say its family": "leave it out with --id COLUMN or --drop COLUMN, or say its "
    "family with --family COLUMN=TYPE",
    "the days since a start, or leave it out": "the days since a start, or leave it out with "
    "--drop COLUMN",
    "recode the text as numbers, use None": "recode the text as numbers, name its words with "
    "--words COLUMN=WORDS, use None",
    "drop one of the two if": "leave one of the two out with --drop if",
    "to go on, or choose another folder": "to go on, or remove that folder",
}
#: A list of levels at the end of a sentence, which options take without brackets.
_LIST = re.compile(r"(?<=got )\[([\d, ]+)\]\Z")
#: A code for missing answers, and what the library says to do about it.
_CODE = re.compile(r"(-?\d+)( in \d+ of \d+ cells, apart from [^:]*: )replace it with NaN if")
#: What scikit-learn's checks look for in a sentence, for people who know neither.
_TOO_FEW = re.compile(r"Found a table with (\d+) sample\(s\) .*? while a minimum of (\d+) is.*")
#: The remedy for a column that cannot be used, at the end of a sentence.
_DROP = re.compile(r"drop the column\Z")
#: What counts items of one kind, and what tells them apart after a mark.
_NUMBER_AT_END, _AFTER_MARK = re.compile(r"\d+\Z"), re.compile(r"(?<=[_.\- ])[^_.\- ]+\Z")


def in_options(error: HidagError, items: Sequence[str] = ()) -> HidagError:
    """Return the error with options in place of the settings that its sentence names.

    With the names of all items, families are said by patterns where these match no other item.
    """
    if isinstance(error, BadCellError):
        error = with_missing_option(error)
    text = _LIST.sub(lambda found: found[1].replace(" ", ""), str(error))
    result = error.result if isinstance(error, MissingWeightsError) else None
    text = options_for_settings(text) if result is None else in_own_options(text, result)
    pasted = re.search(r"family=(\{.*?\});", text)
    if pasted:
        text = text.replace(pasted[0], _pasted_options(pasted[1], items) + ";")
    elif "not supported yet" in text or "use family=" in text:
        text += "; say so with --family 'ITEM=TYPE' or in a types.csv"
    return type(error)(text)


def with_missing_option(error: BadCellError) -> DataError:
    """Return the error about a cell with the option that takes its text for a missing answer."""
    # The option would take these signs for its own.
    if error.missing_code is None or set(error.missing_code) & set(",="):
        return error
    option = f"or say --missing {quoted(error.missing_code)}"
    advice = error.remedy.replace("leave the cell empty", f"leave the cell empty {option}")
    advice = advice.replace("use None", f"use None {option}")
    return DataError(str(error).replace(error.remedy, advice))


def in_own_options(sentence: str, result: FitResult) -> str:
    """Return a sentence about a fit with options in place of settings, weights as the fit had."""
    text = options_for_settings(sentence)
    column = reading_of(result).weights_column
    if column is None:
        return text
    again = f"add --weights {quoted(column)}, as at the fit"
    return text.replace("give the same column as --weights", again)


def as_typed(words: Iterable[str]) -> str:
    """Return a command as it can be typed again, hidden characters written out as bash has them."""
    # All that is hidden stands inside the quotes that the shell needs, which are ended for it.
    return "".join(
        f"'$'\\u{ord(letter):04x}''" if is_hidden(letter) else letter
        for letter in shlex.join(words)
    )


def quoted(word: str) -> str:
    """Return a word as a shell takes it, in double quotes where they alone do."""
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)


def options_for_settings(text: str) -> str:
    """Return a sentence with options in place of the settings and remedies that it names."""
    for setting, option in _OPTIONS.items():
        text = text.replace(setting, option)
    text = _CODE.sub(r"\1\2say --missing \1 if", text)
    text = _TOO_FEW.sub(_too_few_rows, text)
    return _DROP.sub("leave the column out with --drop", text)


def _too_few_rows(found: re.Match[str]) -> str:
    rows = plural(int(found[1]), "row")
    return f"the table has {rows} below the names, but at least {found[2]} are needed"


def overdispersion_in_options(sentence: str, result: FitResult) -> str:
    """Return a warning of a fit, with options if it says that counts vary too much for Poisson."""
    message = overdispersion_message(result)
    if message is None or str(message) != sentence:
        return sentence
    varied, items = result.overdispersed, result.item_names
    families = dict.fromkeys(varied, OVERDISPERSED_FAMILY)
    return message.render(_FamilyOptions(_family_options(families, items)))


class _FamilyOptions(Style):
    """Families as options."""

    def __init__(self, options: str) -> None:
        self.options = options

    def setting(self, setting: Setting) -> str:
        """Return the options for any setting, as there is only one."""
        return self.options


def _pasted_options(mapping: str, items: Sequence[str]) -> str:
    """Return the options that say what the text of a dictionary from item to family says."""
    try:
        return _family_options(dict(literal_eval(mapping)), items)
    except (ValueError, SyntaxError):
        return "--family ITEM=TYPE"


def _family_options(chosen: Mapping[str, str], items: Sequence[str]) -> str:
    """Return the options that give items their families, the first few."""
    if len(chosen) == len(items) and len(set(chosen.values())) == 1:
        return f"--family {next(iter(chosen.values()))}"
    words = [f"{name}={family}" for name, family in by_patterns(chosen, items).items()]
    options = [f"--family {shlex.quote(word)}" for word in words]
    return " ".join(options[:_SHOWN_OPTIONS]) + (" ..." if len(options) > _SHOWN_OPTIONS else "")


def by_patterns(chosen: Mapping[str, str], items: Sequence[str]) -> dict[str, str]:
    """Return families by item, alike ones by the pattern that only they match."""
    out: dict[str, str] = {}
    covered: set[str] = set()
    for item, family in chosen.items():
        if item in covered:
            continue
        for start in (_NUMBER_AT_END.sub("", item), _AFTER_MARK.sub("", item)):
            matched = [name for name in items if name.startswith(start)] if start else []
            alike = len(matched) > 1 and all(chosen.get(name) == family for name in matched)
            # Brackets and stars in a name mean something else in a pattern.
            if alike and start != item and not set(start) & set("*?[]="):
                out[f"{start}*"] = family
                covered |= set(matched)
                break
        else:
            out[item] = family
    return out
