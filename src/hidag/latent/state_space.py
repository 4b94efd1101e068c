"""Joint states of K discrete latents and their mixed-radix numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Setting, SettingError

#: Largest number of joint states that are listed.
MAX_LISTED_STATES = 1 << 20
#: Levels are stored as uint8.
MAX_LEVELS = 255


@dataclass(frozen=True)
class StateSpace:
    """Joint states of K latents with ``levels[k]`` values each, numbered as in C-ordered arrays."""

    levels: tuple[int, ...]
    # The last so many are nuisances, independent of all others, with binomial probabilities.
    n_nuisances: int = 0

    def __post_init__(self) -> None:
        if not self.levels or min(self.levels) < 2 or max(self.levels) > MAX_LEVELS:
            raise SettingError(
                "too-few-levels",
                f"every latent needs 2 to {MAX_LEVELS} levels, got {{levels}}",
                levels=Setting("levels", self.levels),
            )

    @classmethod
    def binary(cls, n_latents: int) -> StateSpace:
        """Return the space of ``n_latents`` binary latents."""
        return cls((2,) * n_latents)

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return len(self.levels)

    @property
    def real(self) -> StateSpace:
        """The space without nuisances."""
        if not self.n_nuisances:
            return self
        return StateSpace(self.levels[: -self.n_nuisances])

    def widened(self, levels: tuple[int, ...]) -> StateSpace:
        """Return the space of these latents and, with more ``levels``, of nuisances."""
        return StateSpace(levels, len(levels) - self.n_latents)

    def nuisance_law(self) -> NDArray[np.float64]:
        """Return the probabilities of the nuisances' joint states, shape (U,).

        A binomial law has equal steps between its levels and nears a normal one.
        """
        out = np.ones(1)
        for m in self.levels[len(self.levels) - self.n_nuisances :]:
            row = np.array([comb(m - 1, u) for u in range(m)], dtype=np.float64)
            out = np.multiply.outer(out, row / row.sum()).ravel()
        return out

    def with_nuisances(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the joint distribution with the nuisances, (S,), from that of the others."""
        if not self.n_nuisances:
            return probabilities
        return np.multiply.outer(probabilities, self.nuisance_law()).ravel()

    def without_nuisances(self, sums: NDArray[Any]) -> NDArray[Any]:
        """Return sums over the nuisances' states, (..., S) to (..., S of the others)."""
        if not self.n_nuisances:
            return sums
        parts = sums.reshape(*sums.shape[:-1], self.real.n_states, -1)
        return np.asarray(parts.sum(axis=-1))

    @property
    def n_states(self) -> int:
        """Number of joint states, the product of the levels (an exact Python integer)."""
        return prod(self.levels)

    def n_states_text(self) -> str:
        """Return the number of joint states for people: 2^50, or 72."""
        return f"2^{self.n_latents}" if set(self.levels) == {2} else f"{self.n_states}"

    @property
    def listable(self) -> bool:
        """Whether the joint states may be listed."""
        return self.n_states <= MAX_LISTED_STATES

    def states(self) -> NDArray[np.int64]:
        """Return all joint states, shape (n_states, K), row ``s`` holding state number ``s``."""
        if not self.listable:
            raise SettingError(
                "too-many-states",
                "{n} latents have {n_states} joint states, too many to list (at most {maximum})",
                {"n": self.n_latents, "n_states": self.n_states, "maximum": MAX_LISTED_STATES},
            )
        return np.stack(np.unravel_index(np.arange(self.n_states), self.levels), axis=1)

    def uniform(self) -> NDArray[np.float64]:
        """Return the uniform distribution, shape (n_states,)."""
        return np.full(self.n_states, 1.0 / self.n_states)

    def strides(self) -> NDArray[np.int64]:
        """Return the increase of the state number per level of each latent, shape (K,)."""
        return np.cumprod([1, *self.levels[:0:-1]], dtype=np.int64)[::-1].copy()

    def number(self, states: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the numbers of joint states given as rows of levels, shape (n,)."""
        return np.asarray(states, dtype=np.int64) @ self.strides()
