"""The choice between exact EM over enumerated joint states and sampled latents."""

from __future__ import annotations

from hidag.exceptions import Setting, SettingError
from hidag.latent.state_space import StateSpace

#: Exact E-steps cost about N * J * 2^K multiplications; beyond this many sampling is cheaper.
LARGEST_EXACT_WORK = 4e9
#: The largest number of joint states that method="auto" enumerates, and that any method does.
LARGEST_EXACT_STATES, LARGEST_STATES = 1 << 13, 1 << 16


def choose_method(
    method: str, n_samples: int, n_items: int, space: StateSpace, *, saturated: bool
) -> str:
    """Return "em" or "saem"; "auto" depends on the cost of enumerating all joint states."""
    if method not in ("auto", "em", "saem"):
        raise SettingError(
            "method",
            "{setting} must be 'auto', 'em' or 'saem', got {value!r}",
            setting=Setting("method"),
            value=method,
        )
    if space.n_states > LARGEST_STATES and (saturated or method == "em"):
        raise SettingError(
            "too-many-states",
            "{n_latents} means {states} joint states; {limited} is limited to 2^{most}",
            advice="use {law} and {method}, or fewer latents",
            n_latents=Setting("n_latents", space.n_latents),
            states=space.n_states_text(),
            limited=Setting("law", "saturated") if saturated else Setting("method", "em"),
            most=LARGEST_STATES.bit_length() - 1,
            law=Setting("law", "auto"),
            method=Setting("method", "auto"),
        )
    if method != "auto":
        return method
    work = float(n_samples) * n_items * space.n_states
    small = space.n_states <= LARGEST_EXACT_STATES and work <= LARGEST_EXACT_WORK
    return "em" if small else "saem"
