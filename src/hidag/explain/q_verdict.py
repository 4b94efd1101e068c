"""What was found about a provisional Q: a table of entries, a way to a better Q, words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.explain.q_screening import NOT_JUDGED
from hidag.explain.tables import Table
from hidag.shown_text import counted

Q = NDArray[np.int8]

#: Entries that are named one by one.
_NAMED = 5


@dataclass(frozen=True)
class QValidation:
    """A provisional Q held against the data.

    Attributes
    ----------
    entries : Table
        A row for each entry of Q. *screening* is about what the change of this entry alone would
        gain in twice the log-likelihood (add) or cost (drop), without a refit; *likelihood_ratio*
        the same by a refit, for the entries that matter most; *price* what it has to exceed;
        *support* the share of resampled tables in which it does. A change is worth while if an
        addition gains more than its price, or a removal costs less. *action* is "not judged" where
        the change makes no difference in any state that prerequisites let occur.
    provisional, suggested : ndarray of int8, shape (J, K)
    estimated : ndarray of int8, shape (J, K), or None
        From a fit without a given Q, latents matched.
    steps : Table
        The changes that lead from the provisional to the suggested Q, one at a time, each refitted:
        twice the log-likelihood gained, and the price.
    log_likelihood, suggested_log_likelihood : float
    n_rows, n_resamples : int
    n_counted : float
        What the rows count for: their number, or the sum of their weights.
    item_names, latent_names : tuple of str
    """

    entries: Table
    provisional: Q
    suggested: Q
    estimated: Q | None
    steps: Table
    log_likelihood: float
    suggested_log_likelihood: float
    n_rows: int
    n_counted: float
    n_resamples: int
    item_names: tuple[str, ...]
    latent_names: tuple[str, ...]

    def rows_in_words(self) -> str:
        """Return how many rows there are, and what they count for where that is not the same."""
        whole = f"{self.n_rows:,} rows"
        return (
            whole if self.n_counted == self.n_rows else f"{whole} that count {self.n_counted:,.0f}"
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each entry of Q."""
        return self.entries.to_dicts()

    def doubtful(self) -> Table:
        """Return the entries that the data would change, one by one or on the way."""
        rows = [
            row
            for row, told in zip(self.entries.rows, self.entries.to_dicts(), strict=True)
            if told["provisional"] != told["suggested"] or _worth_while(told)
        ]
        return Table(self.entries.columns, tuple(rows))

    def not_judged_in_words(self) -> list[str]:
        """Return which entries no data can judge, as a sentence without a full stop if any."""
        rows = self.entries.to_dicts()
        names = [f"{row['item']} on {row['latent']}" for row in rows if row["action"] == NOT_JUDGED]
        if not names:
            return []
        more = ", ..." if len(names) > _NAMED else ""
        return [
            f"prerequisites leave {counted(len(names), 'entry', 'entries')} not judged and as they "
            f"were, because nobody is in a state in which they make a difference: "
            f"{', '.join(names[:_NAMED])}{more}"
        ]

    def summary(self, n_shown: int = 30) -> str:
        """Return the suggested changes and the two Q-matrices side by side."""
        n_changed = int((self.provisional != self.suggested).sum())
        lines = [
            f"provisional Q against {self.rows_in_words()}: log-likelihood "
            f"{self.log_likelihood:,.2f}; {n_changed} of {self.provisional.size} entries would be "
            f"changed, to {self.suggested_log_likelihood:,.2f}"
        ]
        if len(self.steps):
            heading = "changes, one after another, each judged in the Q that those before it made"
            lines += ["", heading, *self.steps.lines()]
        doubtful = self.doubtful()
        if len(doubtful):
            heading = "entries in doubt, each judged as the only change to the provisional Q"
            lines += ["", heading, *doubtful.lines(n_shown)]
        lines += [line for words in self.not_judged_in_words() for line in ("", words)]
        lines += ["", "Q side by side (+ added, - dropped by the data)", *self.side_by_side()]
        return "\n".join(lines)

    def side_by_side(self) -> list[str]:
        """Return the provisional, the suggested and, if there is one, the estimated Q as lines."""
        header = ["item", *self.latent_names]
        signs = {(1, 1): "1", (0, 0): ".", (0, 1): "+", (1, 0): "-"}
        if self.estimated is not None:
            header += [f"({name})" for name in self.latent_names]
        rows = []
        for j, name in enumerate(self.item_names):
            pairs = zip(self.provisional[j].tolist(), self.suggested[j].tolist(), strict=True)
            row = [name, *(signs[pair] for pair in pairs)]
            if self.estimated is not None:
                pairs = zip(self.provisional[j].tolist(), self.estimated[j].tolist(), strict=True)
                row += [signs[pair] for pair in pairs]
            rows.append(row)
        lines = Table.of(header, rows).lines()
        if self.estimated is not None:
            lines.append("in brackets: estimated without any given Q")
        return lines


def _worth_while(entry: dict[str, Any]) -> bool:
    """Return whether the change of one entry alone is worth while."""
    value = entry["likelihood_ratio"]
    if np.isnan(value):
        return False
    return bool(value > entry["price"] if entry["action"] == "add" else value < entry["price"])
