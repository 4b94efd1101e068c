"""What a table of this size can afford: exact or sampled steps, and how many starts."""

from __future__ import annotations

import numpy as np

from hidag.errors import SettingError
from hidag.latent import StateSpace

#: Exact E-steps cost about N * J * 2^K; past this many multiplications sampling is cheaper.
LARGEST_EXACT_WORK = 4e9
#: More joint states than this are not listed by the exact E-step on its own choice.
LARGEST_EXACT_STATES = 1 << 13
#: Neither method lists more joint states than this.
LARGEST_STATES = 1 << 16
#: Multiplications that all starts' E-steps together may take per step, when the user does not say.
WORK_FOR_STARTS = 3e8
#: Bounds on the number of starts: a given Q has more local optima, and cheaper fits.
FEWEST_STARTS, MOST_STARTS = {True: 4, False: 1}, {True: 90, False: 4}
#: Starts at least when latents differ in their numbers of levels.
FEWEST_WHEN_UNEVEN = 8


def choose_method(
    method: str, n_samples: int, n_items: int, space: StateSpace, *, saturated: bool
) -> str:
    """Return "em" or "saem"; "auto" goes by the cost of listing all states."""
    if method not in ("auto", "em", "saem"):
        raise SettingError(f"method must be 'auto', 'em' or 'saem', got {method!r}")
    if space.n_states > LARGEST_STATES and (saturated or method == "em"):
        given = "a saturated latent law" if saturated else "method='em'"
        most = LARGEST_STATES.bit_length() - 1
        raise SettingError(
            f"n_latents={space.n_latents} means {space.count_in_words()} latent states; {given} is "
            f"limited to 2^{most}: use law='auto' and method='auto', or ask for fewer latents"
        )
    if method != "auto":
        return method
    work = float(n_samples) * n_items * space.n_states
    small = space.n_states <= LARGEST_EXACT_STATES and work <= LARGEST_EXACT_WORK
    return "em" if small else "saem"


def choose_n_starts(n_samples: int, n_items: int, space: StateSpace, *, known: bool) -> int:
    """Return how many starts are worth their cost; ``known`` says whether Q is given in full."""
    work = float(n_samples) * n_items * space.n_states
    count = int(np.clip(WORK_FOR_STARTS // work, FEWEST_STARTS[known], MOST_STARTS[known]))
    # Which latent has how many levels is one more thing to go wrong.
    uneven = not known and len(set(space.levels)) > 1
    return max(count, FEWEST_WHEN_UNEVEN) if uneven else count
