"""A fit as text for the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from hidag.cli.console import columns, say
from hidag.data.type_inference import AS_SCORES
from hidag.formatting import format_number, plural, shorten
from hidag.identifiability.findings import join_names
from hidag.measurement.families import default_family
from hidag.reporting.fit_description import count_families, format_edges
from hidag.reporting.model_description import (
    all_binary,
    describe_effects,
    list_interactions,
    summarize_latents,
)
from hidag.results import FitResult

#: Longer matrices are cut on the terminal; the files hold them whole.
_SHOWN_ITEMS = 40
_SHOWN_LATENTS = 16
_SHOWN_NAMES = 4
_SHOWN_LEVELS = 8
_LONGEST_NAME = 24


def say_types(result: FitResult) -> None:
    """Print the families of the items, alike ones in one line."""
    n_given = sum(reason == "set by the user" for reason in result.family_reasons)
    how = "given" if n_given == len(result.families) else "inferred"
    if 0 < n_given < len(result.families):
        how = f"{n_given} given, {len(result.families) - n_given} inferred"
    say(f"types ({how})")
    rows = []
    for family, count, meaning in count_families(result):
        names = [n for n, f in zip(result.item_names, result.families, strict=True) if f == family]
        more = f", ... {names[-1]}" if count > _SHOWN_NAMES else ""
        shown = ", ".join(names[: _SHOWN_NAMES - 1] if more else names) + more
        rows.append([f"  {family}", str(count), f"{meaning}: {shown}"])
    for line in columns(rows, right=(1,)):
        say(line)
    reasons = zip(result.item_names, result.family_reasons, strict=True)
    scores = [name for name, reason in reasons if AS_SCORES in reason]
    if scores:
        # The one guess that stands between two families of which either could be meant.
        say(
            f"  whole numbers {AS_SCORES}: {join_names(scores, limit=_SHOWN_NAMES)}; say --family "
            f"ITEM={default_family('count')} if an item counts something"
        )


def say_levels(result: FitResult) -> None:
    """Print how common the levels of the latents are; nothing where all latents are binary."""
    if all_binary(result):
        return
    say("levels of the latents, and the share of rows at each")
    shown = min(max(result.terms.levels), _SHOWN_LEVELS)
    rows = [["", *(str(level) for level in range(shown))]]
    latents = summarize_latents(result)[:_SHOWN_LATENTS]
    for name, one in zip(cut_apart([one.name for one in latents]), latents, strict=True):
        more = "..." if len(one.shares) > shown else ""
        shares = [f"{share:.3f}" for share in one.shares[:shown]]
        rows.append([name, *shares, *[""] * (shown - len(shares)), more])
    rows[0].append("")
    for line in columns(rows, right=range(1, shown + 1)):
        say(f"  {line}".rstrip())
    if len(result.latent_names) > _SHOWN_LATENTS:
        say(f"  ... {len(result.latent_names) - _SHOWN_LATENTS} more in latent_tables.csv")
    say()


def say_effects(result: FitResult) -> None:
    """Print which effects were fitted and the interactions that are in; nothing for main ones."""
    found = list_interactions(result)
    if not found and result.settings.get("effects", "main") in ("main", "acdm", 1):
        return
    say(describe_effects(result))
    if found:
        rows = [["  item", "interaction", "coefficient", "rarest combination"]]
        names = cut_apart([one.item for one in found[:_SHOWN_ITEMS]])
        rows += [
            [f"  {name}", one.term, format_number(one.coefficient), one.describe_rarest()]
            for name, one in zip(names, found, strict=False)
        ]
        for line in columns(rows, right=(2, 3)):
            say(line)
    if len(found) > _SHOWN_ITEMS:
        say(f"  ... {len(found) - _SHOWN_ITEMS} more in loadings.csv")
    say()


def say_q(result: FitResult, *, heading: str = "Q (which latent drives which item)") -> None:
    """Print Q, or how many items each latent has where Q is large."""
    q, names = result.q_matrix, result.latent_names
    if q.shape[0] > _SHOWN_ITEMS or q.shape[1] > _SHOWN_LATENTS:
        say(f"{heading}: {int(q.sum()):,} of {q.size:,} entries")
        rows = [
            [f"  {name}", plural(int(q[:, k].sum()), "item")]
            for k, name in enumerate(cut_apart(names))
        ]
        for line in columns(rows, right=(1,)):
            say(line)
        return
    say(heading)
    for line in q_lines(q.tolist(), result.item_names, names):
        say(f"  {line}")


def q_lines(q: Sequence[Sequence[int]], items: Sequence[str], latents: Sequence[str]) -> list[str]:
    """Return Q as lines: 1 where a latent drives an item, a point elsewhere."""
    rows = [["", *cut_apart(latents)]]
    rows += [
        [item, *("1" if entry else "." for entry in row)]
        for item, row in zip(cut_apart(items), q, strict=True)
    ]
    return columns(rows, right=range(1, len(latents) + 1))


def say_graph(result: FitResult) -> None:
    """Print the graph in words."""
    if len(result.latent_names) == 1:
        say("graph among the latents: none, there is a single latent")
        return
    edges = format_edges(result.graph)
    n_free = len(result.graph.undirected_edges)
    note = " (-> cause and effect, - direction not determined)" if n_free else ""
    say(f"graph among the latents{note}")
    for edge in edges:
        say(f"  {edge}")
    if not edges:
        say("  no edges")


def say_numbers(result: FitResult) -> None:
    """Print how good the fit is and how it was found."""
    steps = "step" if result.n_iter == 1 else "steps"
    if math.isnan(result.log_likelihood):
        say(f"latents sampled for {result.n_iter} {steps}; the log-likelihood is not computed")
    else:
        say(f"log-likelihood {result.log_likelihood:,.2f} after {result.n_iter} {steps}")
    if len(result.starts) < 2 or result.all_starts_stopped:
        # The only one is the best of its kind, and where none settled nobody knows the best.
        return
    given_up = len(result.starts) - result.n_finished
    after = f" ({given_up} were given up after a rough look)" if given_up else ""
    say(f"{result.n_reached} of {len(result.starts)} starts reached the best solution{after}")


def say_result(result: FitResult) -> None:
    """Print all of a fit."""
    say_types(result)
    say()
    say_levels(result)
    say_q(result)
    say()
    say_effects(result)
    say_graph(result)
    say()
    say_numbers(result)


def cut_apart(names: Sequence[str]) -> list[str]:
    """Return names short enough for a column, as long as it takes to tell them from each other."""
    longest = dict.fromkeys(names, _LONGEST_NAME)
    while True:
        # Points, as not every terminal has the letter for them.
        texts = {name: shorten(name, length, "...") for name, length in longest.items()}
        seen = Counter(texts.values())
        alike = [name for name, text in texts.items() if seen[text] > 1]
        if not alike:
            return [texts[name] for name in names]
        for name in alike:
            longest[name] += 1
