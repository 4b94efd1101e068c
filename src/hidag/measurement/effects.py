"""What an item's latents may do together, by name: main effects, all, up to an order, one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError
from hidag.measurement.terms import Terms, interactions_within

#: The names that cognitive diagnosis has for the same restrictions.
NAMED_EFFECTS = ("main", "all", "acdm", "gdina", "dina", "dino")
#: More terms than this are not fitted at once: their products would fill the memory.
MOST_TERMS = 400


@dataclass(frozen=True)
class Effects:
    """What a linear predictor may contain.

    Attributes
    ----------
    highest : int
        Most latents in a product; 1 means main effects only.
    conjunctive : bool
        Whether an item with several latents answers to all of them together only (DINA).
    reversed : bool
        Whether that holds for the latents' absence: any of them is enough (DINO).
    """

    highest: int = 1
    conjunctive: bool = False
    reversed: bool = False

    @classmethod
    def of(cls, given: Any) -> Effects:
        """Return the effects that a user asks for by name or by their highest order."""
        if isinstance(given, Effects):
            return given
        if isinstance(given, str) and given in NAMED_EFFECTS:
            if given in ("main", "acdm"):
                return cls()
            together = given in ("dina", "dino")
            return cls(ALL_ORDERS, conjunctive=together, reversed=given == "dino")
        whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
        if whole and given >= 1:
            return cls(int(given))
        names = ", ".join(repr(name) for name in NAMED_EFFECTS)
        raise SettingError(
            f"effects must be {names} or the highest order of an interaction (1, 2, ...), got "
            f"{given!r}"
        )

    @property
    def main_only(self) -> bool:
        """Whether nothing but main effects is allowed."""
        return self.highest == 1

    def terms(self, q_matrix: NDArray[np.integer], levels: tuple[int, ...]) -> Terms:
        """Return the terms that items with these latents, (J, K), may have.

        Those of conjunctive items come with the products below them, so that levels can be
        reversed.
        """
        terms = Terms(levels, interactions_within(q_matrix, levels, self.highest))
        if terms.n_terms > MOST_TERMS:
            raise SettingError(
                f"these items would have {terms.n_terms} different terms, more than {MOST_TERMS}; "
                f"ask for a lower order, such as effects=2, or give a sparser Q"
            )
        return terms

    def support(self, terms: Terms, q_matrix: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which terms each item may have, shape (J, T)."""
        out = terms.support(q_matrix)
        if self.conjunctive:
            # An item's own product is the one with as many latents as the item.
            widths = (np.asarray(q_matrix) != 0).sum(axis=1)
            out &= terms.involved.sum(axis=1)[None, :] == widths[:, None]
        return out


#: An order that no item reaches.
ALL_ORDERS = 1 << 30
MAIN_EFFECTS = Effects()
