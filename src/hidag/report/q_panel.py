"""The part of the report about a Q-matrix that was given: what the data would change in it."""

from __future__ import annotations

from hidag.explain.q_verdict import QValidation
from hidag.report.headings import Q_HEADING
from hidag.report.parts import Section, Table, in_words

_DOUBTS = ("item", "latent", "provisional", "action", "likelihood_ratio", "price", "p_value")


def q_panel(found: QValidation) -> tuple[Section, tuple[Table, ...]]:
    """Return what the page says about a given Q."""
    n_changed = int((found.provisional != found.suggested).sum())
    if n_changed:
        words = [
            f"The data would change {n_changed} of {found.provisional.size} entries of the "
            f"Q-matrix that was given, from a log-likelihood of {found.log_likelihood:,.2f} to "
            f"{found.suggested_log_likelihood:,.2f}. Nothing was changed: whether an entry makes "
            "sense is not for the data alone to say.",
            "A change is worth while if twice the log-likelihood pays log N for each coefficient "
            "and log K for the choice (price). Changes were made one at a time, the best first, "
            "because wrong entries make right ones look wrong.",
        ]
    else:
        words = [
            f"The data would change none of the {found.provisional.size} entries of the Q-matrix "
            f"that was given ({found.rows_in_words()})."
        ]
    words += [f"{line[0].upper()}{line[1:]}." for line in found.not_judged_in_words()]
    words.append("`hidag validate-q --resamples 50` also says how often other samples would agree.")
    doubts = found.doubtful()
    places = [doubts.columns.index(name) for name in _DOUBTS]
    steps = found.steps
    tables = [
        Table("q_changes", "Changes, one at a time", in_words(steps.columns), steps.rows),
        Table(
            "q_doubts",
            "Entries in doubt, each judged alone",
            in_words(_DOUBTS),
            tuple(tuple(row[place] for place in places) for row in doubts.rows),
        ),
    ]
    tables = [table for table in tables if table.rows]
    names = tuple(table.name for table in tables)
    return Section(Q_HEADING, tuple(words), (), names), tuple(tables)
