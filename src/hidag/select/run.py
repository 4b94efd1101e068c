"""`hidag.select`: correlations first, then fits near what they say, then cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hidag.errors import SettingError
from hidag.how_many.choice import count_in_table
from hidag.how_many.common_strength import refit_at_common_strength
from hidag.how_many.neighbour_fits import Neighbours, Place
from hidag.how_many.rule import Comparison, nearest, next_both_ways, next_to_fit
from hidag.observations import Observations, read_table, resolve_families
from hidag.observations.twins import warn_of_twins
from hidag.row_weights import warn_of_unanswered, weighted_rows
from hidag.select.candidates import (
    Candidate,
    Table,
    fit_candidate,
    folds_of,
    held_out_likelihood,
)
from hidag.select.selection import Selection
from hidag.settings import checked_count, root_seed
from hidag.start.factor_count import FactorCount, largest_count

#: Numbers of latents that are fitted at most when fits go where they are needed and items show
#: their latents.
MOST_NUMBERS = 7
FITS = ("near", "all", "none")
#: Settings of the estimator that a comparison over numbers of latents cannot have.
_TOLD = ("n_latents", "q_matrix", "latent_names", "penalty_strength", "random_state", "family")


def select(
    X: Any,
    latents: Iterable[int] | None = None,
    *,
    family: str | Sequence[str] | Mapping[Any, str] = "auto",
    penalty_strengths: Sequence[float | None] = (None,),
    fits: str = "near",
    folds: int = 3,
    sample_weight: Any = None,
    random_state: Any = None,
    tell: Callable[[str], None] | None = None,
    **settings: Any,
) -> Selection:
    """Return how many latents a table speaks for, by several criteria side by side.

    Parameters
    ----------
    X : array or frame, shape (N, J)
    latents : iterable of int, optional
        Numbers that may be chosen, such as ``range(2, 9)``; by default from 1 to as many as J
        items can identify, at most 40.
    family : as in `DCRL`
    penalty_strengths : sequence of float or None
        Strengths that are tried with each number of latents; None lets the fit learn its own. No
        number loses for a stronger penalty than the best one's: it is fitted with that one too.
    fits : {"near", "all", "none"}
        Which numbers are fitted: what the correlations say and its neighbours, and fewer while
        these are better (or more, where items hardly show their latents); all; or none.
    folds : int
        Of the cross-validation, which the best number of latents and its two neighbours go
        through; 0 or 1 leaves it out.
    sample_weight : array, shape (N,), optional
        As in ``DCRL.fit``.
    random_state : int, RandomState or None
    tell : callable, optional
        Called with a sentence before each fit.
    **settings
        Of the estimator, the same for all fits; not those that say how many latents there are.

    Returns
    -------
    Selection
        ``.recommended``, ``.margin``, ``.votes``, ``.rows()``, ``.verdict()``, ``.result``.
    """
    refused = [name for name in _TOLD if name in settings]
    if refused:
        raise SettingError(
            f"select compares numbers of latents, so {refused[0]} cannot be set for all fits; "
            "leave it out"
        )
    if fits not in FITS:
        raise SettingError(f"fits must be 'near', 'all' or 'none', got {fits!r}")
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 0:
        raise SettingError(f"folds must be a whole number of at least 0, got {folds!r}")
    table = read_table(X, min_rows=2)
    numbers = _checked_latents(latents, table)
    counted, weights = weighted_rows(table, sample_weight)
    # The line that called: the warning function, this one, the caller.
    warn_of_unanswered(table, stacklevel=3)
    warn_of_twins(counted, stacklevel=3)
    # Correlations are asked without regard to what may be chosen: they may say more than that.
    largest = max(numbers[-1], largest_count(table.n_items))
    count = count_in_table(counted, family, weights, largest=largest)
    families = resolve_families(counted, family, weights).families
    rows = Table(counted, families, weights)
    shared = {**settings, "random_state": root_seed(random_state)}
    say = tell or (lambda sentence: None)
    strengths = tuple(penalty_strengths)
    if not strengths:
        raise SettingError("penalty_strengths must have at least one entry; None learns it")

    def fit_number(k: int) -> list[Candidate]:
        say(f"fitting {k} {'latent' if k == 1 else 'latents'}")
        return [fit_candidate(rows, k, strength, shared) for strength in strengths]

    def fit_again(k: int, strength: float) -> Candidate:
        say(f"fitting {k} {'latent' if k == 1 else 'latents'} with the best fit's penalty")
        return replace(fit_candidate(rows, k, strength, shared), again=True)

    def begun(k: int, place: Place) -> Candidate:
        return fit_candidate(rows, k, strengths[0], shared, place)

    done: dict[int, list[Candidate]] = {}
    neighbours = Neighbours(done, begun, counted.values, weights)
    candidates = _fitted(fits, numbers, count, fit_number, fit_again, neighbours)
    if folds > 1 and candidates:
        candidates = _cross_validated(
            Selection(numbers, count, candidates, 0), rows, shared, folds, say
        )
    return Selection(numbers, count, candidates, folds if folds > 1 else 0)


def _checked_latents(latents: Iterable[int] | None, table: Observations) -> tuple[int, ...]:
    if latents is None:
        return tuple(range(1, largest_count(table.n_items) + 1))
    if isinstance(latents, (str, bytes)) or not hasattr(latents, "__iter__"):
        raise SettingError(
            f"latents must be whole numbers to choose from, such as range(2, 9), got {latents!r}"
        )
    numbers = tuple(sorted({checked_count("each entry of latents", k) for k in latents}))
    if not numbers:
        raise SettingError("latents must have at least one number to choose from")
    if numbers[-1] > table.n_items:
        raise SettingError(
            f"latents go up to {numbers[-1]}, more than the {table.n_items} items of the table; "
            f"each latent needs items of its own: ask for at most {largest_count(table.n_items)}"
        )
    return numbers


def _fitted(
    fits: str,
    numbers: tuple[int, ...],
    count: FactorCount,
    fit_number: Callable[[int], list[Candidate]],
    fit_again: Callable[[int, float], Candidate],
    neighbours: Neighbours[Candidate],
) -> tuple[Candidate, ...]:
    """Return the candidates that are to be fitted, by number of latents.

    Where strengths were learned, numbers are compared at a common one.
    """
    if fits == "none":
        return ()
    done = neighbours.fits
    compared = Comparison(count.span[1], done)
    if fits == "all":
        done.update({k: fit_number(k) for k in numbers})
        refit_at_common_strength(done, fit_again, compared.ratio)
        while neighbours.tell(compared):
            pass
    else:
        # The number that stands unless fewer do, what one more would bring, and the way from there.
        high = numbers.index(nearest(count.span[1], numbers))
        for place in range(max(high - 1, 0), min(high + 1, len(numbers) - 1) + 1):
            done[numbers[place]] = fit_number(numbers[place])
        refit_at_common_strength(done, fit_again, compared.ratio)
        while True:
            k = _next_number(numbers, count, compared)
            if k is not None:
                done[k] = fit_number(k)
                refit_at_common_strength(done, fit_again, compared.ratio)
            elif not neighbours.tell(compared):
                break
    return tuple(one for k in sorted(done) for one in done[k])


def _next_number(numbers: tuple[int, ...], count: FactorCount, compared: Comparison) -> int | None:
    """Return the number of latents to fit next, None when there were enough."""
    bic = {numbers.index(k): value for k, value in compared.bic.items()}
    further = None
    if compared.hardly_seen:
        settled = nearest(compared.settled or compared.counted, numbers)
        further = next_both_ways(bic, 0, len(numbers) - 1)
        if further is None and settled not in compared.fits:
            # Some latents of the best fit have no items: the fit without them is the answer.
            return settled
    elif len(bic) < MOST_NUMBERS:
        low, high = (numbers.index(nearest(k, numbers)) for k in count.span)
        further = next_to_fit(high, low, bic)
    return None if further is None else numbers[further]


def _cross_validated(
    found: Selection,
    table: Table,
    settings: Mapping[str, Any],
    n_folds: int,
    say: Callable[[str], None],
) -> tuple[Candidate, ...]:
    """Return the candidates, the best number and its neighbours with held-out likelihoods."""
    fitted = list(found.fitted)
    if found.recommended not in fitted:
        return found.candidates
    place = fitted.index(found.recommended)
    near = fitted[max(place - 1, 0) : place + 2]
    folds = folds_of(table, n_folds)
    out = []
    for one in found.candidates:
        if one.n_latents in near and one.criteria is not None and not one.begun:
            say(f"cross-validating {one.n_latents} in {n_folds} folds")
            held_out = held_out_likelihood(
                table, one.n_latents, one.penalty_strength, settings, folds
            )
            one = replace(one, held_out=held_out)
        out.append(one)
    return tuple(out)
