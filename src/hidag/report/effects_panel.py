"""The part of the report about what would happen if a latent were set."""

from __future__ import annotations

from hidag.explain.average_effects import AverageEffects, average_effects
from hidag.explain.inference import DrawnLaw, beliefs
from hidag.explain.law_draws import draws_or_reason, why_no_draws
from hidag.explain.outcome_spreads import effect_sizes
from hidag.report.headings import EFFECTS_HEADING
from hidag.report.parts import Section, Table
from hidag.result import FitResult

#: Up to so many joint states intervals are a matter of a second.
STATES_FOR_INTERVALS = 1 << 6
N_DRAWS = 100
#: Sets of parents that are looked at for each latent, at the most.
MOST_CHOICES = 32
#: With more latents than this, effects on items are left to `hidag whatif --effects`.
LATENTS_WITH_ITEMS = 20
BY_REFITS = "`hidag bootstrap` makes them by refits"
#: Smaller effects are not worth a line: on levels, and on items in their standard deviations.
_NOTHING = 5e-4
_SHOWN_ITEMS = 200


def effects_of(result: FitResult) -> tuple[AverageEffects, str | None]:
    """Return the average effects that a page shows, with intervals where that is quick.

    And why there are none, in words, with a command that makes them if there is one; None where
    there are.
    """
    if result.law.space.n_states <= STATES_FOR_INTERVALS:
        draws, reason = draws_or_reason(result, N_DRAWS, instead=BY_REFITS)
    else:
        draws, reason = None, _why_left_out(result)
    items = len(result.latent_names) <= LATENTS_WITH_ITEMS
    found = average_effects(result, items=items, replicates=draws, held=True, limit=MOST_CHOICES)
    return found, reason


def _why_left_out(result: FitResult) -> str:
    """Return why intervals that are not quick are left out, with a command that makes them."""
    return why_no_draws(result, instead=BY_REFITS) or (
        "they take a while with so many joint states; `hidag whatif --effects` makes them, and "
        "`hidag bootstrap` by refits"
    )


def effects_panel(
    result: FitResult, found: AverageEffects | None = None
) -> tuple[Section, tuple[Table, ...]]:
    """Return what the page says about setting latents.

    Parameters
    ----------
    result : FitResult
    found : AverageEffects, optional
        With intervals of a bootstrap, for instance; computed unless given.
    """
    if found is None and isinstance(beliefs(result.law), DrawnLaw):
        wait = "The graph is so dense that effects take long to compute: hidag whatif does so."
        return Section(EFFECTS_HEADING, (wait,)), ()
    found, reason = effects_of(result) if found is None else (found, None)
    words = [
        "What setting a latent from its lowest to its highest level in everybody would add, on "
        "average, if the graph has the causes right and nothing outside it causes two of them. "
        "Seeing a latent at its highest level is another question: that also tells of its causes."
    ]
    n_open = len(result.graph.undirected_edges)
    if n_open:
        words.append(
            f"The data leave the direction of {n_open} "
            f"{'edge' if n_open == 1 else 'edges'} open, so some effects are known only to lie "
            "between the least and the most that the possible directions allow."
        )
    if found.lower is not None:
        held = "held" in found.how
        words.append(
            f"Lower and upper are {found.level:.0%} intervals, from {found.how}"
            + (
                "; where the graph or Q is in doubt itself they are too narrow, and `hidag "
                "bootstrap` gives intervals that allow for it."
                if held
                else ", so that they also say how unsure the graph is."
            )
        )
    elif reason is not None:
        words.append(f"There are no intervals here: {reason}.")
    if len(result.latent_names) > LATENTS_WITH_ITEMS:
        words.append(
            f"Effects on items are left out for more than {LATENTS_WITH_ITEMS} latents; `hidag "
            "whatif --effects` computes them."
        )
    untold = found.about_untold()
    for sentence in (found.about_intervals(), found.about_choices(), untold):
        if sentence is not None:
            words.append(f"{sentence[0].upper()}{sentence[1:]}.")
    tables = []
    everything = found.rows()
    sizes = effect_sizes(everything, result)
    for kind, name, caption in (
        ("latent", "effects_on_latents", "Effects of latents on the levels of others"),
        ("item", "effects_on_items", "Effects of latents on items"),
    ):
        order = sorted(range(len(everything)), key=lambda r: -sizes[r])
        rows = [
            everything[r] for r in order if everything[r]["kind"] == kind and sizes[r] > _NOTHING
        ]
        if not rows and kind == "latent" and untold is None:
            words.append("No latent has an effect on another.")
        if not rows:
            continue
        columns = ["cause", "effect", "low", "high"]
        columns += ["lower", "upper"] if found.lower is not None else []
        left = f", the {_SHOWN_ITEMS} largest" if len(rows) > _SHOWN_ITEMS else ""
        tables.append(
            Table(
                name,
                caption + left,
                tuple({"low": "least", "high": "most"}.get(c, c) for c in columns),
                tuple(tuple(row[c] for c in columns) for row in rows[:_SHOWN_ITEMS]),
            )
        )
    names = tuple(table.name for table in tables)
    return Section(EFFECTS_HEADING, tuple(words), (), names), tuple(tables)
