"""A fit as text for the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hidag.cli.console import columns, say, say_columns
from hidag.data.item_types import GIVEN_FAMILY
from hidag.data.rows import MANY_EMPTY_ROWS, describe_empty_rows
from hidag.fitting.fit_warnings import boundary_estimates
from hidag.formatting import format_number, join_names, plural, shorten
from hidag.measurement.families import default_family
from hidag.reporting import fit_description as about
from hidag.results import FitResult
from hidag.results.claims import claim_level_of

#: Larger matrices are summarized; the files contain them.
_MAX_ITEMS, _MAX_LATENTS, _MAX_LEVELS = 40, 16, 8
_MAX_NAMES, _MAX_NAME_LENGTH = 4, 24


def say_result(result: FitResult, values: NDArray[np.float64] | None = None) -> None:
    """Print a fit; with its data, shape (N, J), also a hint on whole numbers as measurements."""
    say_types(result, values)
    say()
    _say_levels(result)
    _say_q(result)
    say()
    _say_effects(result)
    _say_graph(result)
    say()
    say_convergence(result)


def say_data(result: FitResult, table: Path) -> None:
    """Print the size of the data and how the number of latents was selected."""
    share = result.missing_share
    missing = f"{share:.1%} of the cells missing" if share else "no cells missing"
    say(f"{table}: {result.n_samples:,} rows, {plural(len(result.item_names), 'item')}, {missing}")
    # Many empty rows are a warning of the fit.
    if 0 < result.n_unanswered <= MANY_EMPTY_ROWS * result.n_samples:
        say(describe_empty_rows(result.n_unanswered, result.n_samples))
    if result.n_latents_reason:
        say(f"number of latents: {len(result.latent_names)}, as {result.n_latents_reason}")
    for one in result.nuisance:
        say(f"nuisance {one.name}: standard deviation {one.sd.max():.2f} on the link scale")
    if result.levels_reason:
        say(f"levels: {result.levels_reason}")


def say_types(result: FitResult, values: NDArray[np.float64] | None = None) -> None:
    """Print the types of the items; arguments as in `say_result`."""
    given = np.array([reason == GIVEN_FAMILY for reason in result.family_reasons])
    how = "given" if given.all() else "inferred"
    if 0 < given.sum() < len(given):
        how = f"{given.sum()} given, {(~given).sum()} inferred"
    say(f"types ({how})")
    rows = []
    for family, count, meaning in about.count_families(result):
        names = [n for n, f in zip(result.item_names, result.families, strict=True) if f == family]
        more = f", ... {names[-1]}" if count > _MAX_NAMES else ""
        shown = ", ".join(names[: _MAX_NAMES - 1] if more else names) + more
        rows.append([f"  {family}", str(count), f"{meaning}: {shown}"])
    say_columns(rows, right=(1,))
    if values is None:
        return
    continuous = np.array(result.families) == default_family("real")
    whole = np.all((values == np.round(values)) | np.isnan(values), axis=0)
    scores = [result.item_names[j] for j in np.flatnonzero(continuous & whole & ~given)]
    if scores:
        say(
            f"  whole numbers treated as continuous: {join_names(scores, limit=_MAX_NAMES)}; use "
            f"--family ITEM={default_family('count')} for counts"
        )


def _say_levels(result: FitResult) -> None:
    """Print the distribution of the latents, unless all are binary."""
    if about.all_binary(result):
        return
    say("latent distribution: probability of each level")
    shown = min(max(result.terms.levels), _MAX_LEVELS)
    rows = [["", *(str(level) for level in range(shown)), ""]]
    latents = about.summarize_latents(result)[:_MAX_LATENTS]
    for name, one in zip(shorten_names([one.name for one in latents]), latents, strict=True):
        more = "..." if len(one.shares) > shown else ""
        shares = [f"{share:.3f}" for share in one.shares[:shown]]
        rows.append([name, *shares, *[""] * (shown - len(shares)), more])
    say_columns(rows, right=range(1, shown + 1), indent="  ")
    if len(result.latent_names) > _MAX_LATENTS:
        say(f"  ... {len(result.latent_names) - _MAX_LATENTS} more in latent_tables.csv")
    say()


def _say_effects(result: FitResult) -> None:
    """Print the interactions, unless only main effects were fitted."""
    found = about.list_interactions(result)
    if not found and result.settings.get("effects", "main") in ("main", "acdm", 1):
        return
    say(about.describe_effects(result))
    if found:
        rows = [["  item", "interaction", "coefficient", "rarest combination"]]
        names = shorten_names([one.item for one in found[:_MAX_ITEMS]])
        rows += [
            [f"  {name}", one.term, format_number(one.coefficient), one.describe_rarest()]
            for name, one in zip(names, found, strict=False)
        ]
        say_columns(rows, right=(2, 3))
    if len(found) > _MAX_ITEMS:
        say(f"  ... {len(found) - _MAX_ITEMS} more in loadings.csv")
    say()


def _say_q(result: FitResult) -> None:
    """Print Q, or the number of items of each latent if Q is large."""
    q, names = result.q_matrix, result.latent_names
    heading = "Q-matrix (which latent each item measures)"
    if q.shape[0] > _MAX_ITEMS or q.shape[1] > _MAX_LATENTS:
        say(f"{heading}: {int(q.sum()):,} of {q.size:,} entries")
        counts = zip(shorten_names(names), q.sum(axis=0).tolist(), strict=True)
        say_columns([[f"  {name}", plural(n, "item")] for name, n in counts], right=(1,))
        return
    say(heading)
    for line in format_q(q.tolist(), result.item_names, names):
        say(f"  {line}")


def format_q(q: Sequence[Sequence[int]], items: Sequence[str], latents: Sequence[str]) -> list[str]:
    """Return Q as lines, with a point for each 0."""
    marks = ["".join("1" if entry else "." for entry in row) for row in q]
    rows = [[item, *row] for item, row in zip(shorten_names(items), marks, strict=True)]
    return columns([["", *shorten_names(latents)], *rows], right=range(1, len(latents) + 1))


def _say_graph(result: FitResult) -> None:
    """Print the edges of the graph."""
    if len(result.latent_names) == 1:
        say("graph: none, there is a single latent")
        return
    claims, level = result.claims(), claim_level_of(result.settings)
    if any(math.isnan(claim.adjacency) for claim in claims):
        note = result.uncertainty_note and f": {result.uncertainty_note}"
        say(f"best graph of the latents (probabilities of edges were not computed{note})")
    else:
        say(
            f"edges among the latents with their probabilities (-> cause and effect, at least "
            f"{level:g}; - directly related; ... improbable)"
        )
    say_columns([[f"  {claim.mark}", claim.shown] for claim in claims] or [["  no edges"]])


def say_convergence(result: FitResult) -> None:
    """Print the log-likelihood and how many starts reached it."""
    iterations = plural(result.n_iter, "iteration")
    if math.isnan(result.log_likelihood):
        say(f"latents sampled in {iterations}; the log-likelihood is not computed")
    else:
        say(f"log-likelihood {result.log_likelihood:,.2f} after {iterations}")
    for sentence in boundary_estimates(result):
        say(sentence)
    if len(result.starts) < 2 or result.all_starts_stopped:
        return
    stopped = len(result.starts) - result.n_finished
    early = f" ({stopped} stopped early)" if stopped else ""
    say(f"{result.n_reached} of {len(result.starts)} starts reached the best solution{early}")


def shorten_names(names: Sequence[str]) -> list[str]:
    """Return names that fit into a column and remain distinct."""
    lengths = dict.fromkeys(names, _MAX_NAME_LENGTH)
    while True:
        # ASCII dots, since not every terminal encoding has the ellipsis.
        texts = {name: shorten(name, length, "...") for name, length in lengths.items()}
        seen = Counter(texts.values())
        ambiguous = [name for name, text in texts.items() if seen[text] > 1]
        if not ambiguous:
            return [texts[name] for name in names]
        for name in ambiguous:
            lengths[name] += 1
