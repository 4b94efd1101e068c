"""`hidag select`, `check` and `validate-q`: the number of latents and the Q-matrix."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

import hidag
from hidag.cli import options as opt
from hidag.cli.console import collected_warnings, progress_bar, say, say_columns, show_warning
from hidag.cli.folders import check_folder
from hidag.cli.messages import render
from hidag.cli.options import item_option, option
from hidag.exceptions import FileError
from hidag.files import Content, fill_folder
from hidag.formatting import plural

if TYPE_CHECKING:
    from hidag.model_selection import Selection

app = typer.Typer()

#: Commas between families, not those inside the parentheses of a family's arguments.
_BETWEEN_FAMILIES = re.compile(r",(?![^()]*\))")

#: selection.json is written last and marks a complete folder.
SELECT_FILES = ("selection.csv", "selection.png", "selection.svg", "selection.json")
#: Printed columns with their headings and decimals.
_PRINTED = {
    "latents": ("latents", 0), "eigenvalue": ("eigenvalue", 2), "noise": ("noise", 2),
    "gap": ("gap", 2), "factor_bic": ("factor BIC", 1), "penalty_strength": ("penalty", 2),
    "log_likelihood": ("log-lik.", 1), "parameters": ("param.", 0), "bic": ("BIC", 1),
    "ebic": ("EBIC", 1), "held_out": ("held-out", 4), "held_out_error": ("s.e. of diff.", 4),
}  # fmt: skip


@app.command(
    epilog="Examples:\n\n"
    "`hidag select answers.csv --latents 2..8 --out numbers`\n\n"
    "`hidag select answers.csv --fits none` (from the correlations alone, in a second)"
)
def select(
    table: Path = typer.Argument(
        help="CSV, TSV or Parquet file with one column per item; or a folder with responses.csv "
        "and optionally types.csv.",
        show_default=False,
    ),
    latents: str | None = option(
        None,
        "Candidates: a range (2..8), or numbers separated by commas.",
        "--latents",
        "-k",
        shown="0 (independent items) to the largest number that the items can identify",
    ),
    id_column: opt.IdColumn = None,
    weights: opt.WeightsColumn = None,
    missing: opt.MissingCodes = None,
    drop: opt.DroppedColumns = None,
    words: opt.Words = None,
    types: opt.Types = None,
    family: list[str] | None = item_option(
        None,
        "Type of all items, or ITEM=TYPE, as in `hidag fit`; may be given several times.",
        shown="auto",
    ),
    fits: str = option(
        "near",
        "Candidates that are fitted: near (the number that the correlations indicate, and its "
        "neighbours), all, or none.",
    ),
    folds: int = option(3, "Number of folds of the cross-validation; 0 omits it."),
    penalty_strengths: str | None = option(
        None,
        "Log-likelihoods that a loading must gain, to compare (4,auto); auto selects one.",
        shown="auto",
    ),
    out: Path | None = option(
        None, "Folder for the table and the figure; without it they are not written."
    ),
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    no_plots: opt.NoPlots = False,
    json_: opt.Json = False,
) -> None:
    """Compare numbers of latents by several criteria and recommend one."""
    from hidag.cli.data_source import ReadOptions, read_source
    from hidag.results import resumable

    candidates, strengths = opt.parse_range(latents), opt.parse_strengths(penalty_strengths)
    reading = ReadOptions(id_column, weights, missing or (), drop or (), words or ())
    source = read_source(table, types, family=family, use_folder_q=False, reading=reading)
    if out is not None:
        check_folder(out, SELECT_FILES, source.files, sign=SELECT_FILES[-1])
    if not json_:
        for note in source.notes:
            say(note)
    with collected_warnings(), resumable(out):
        selection = hidag.select(
            source.table,
            candidates,
            family=source.family,
            sample_weight=source.weights,
            progress=None if json_ else lambda sentence: say(f"  {sentence}"),
            fits=cast(Any, fits),
            folds=folds,
            penalty_strengths=strengths,
            random_state=seed,
            n_jobs=jobs,
        )
    if out is not None:
        fill_folder(out, _selection_files(selection, plots=not no_plots), SELECT_FILES)
    if json_:
        say(json.dumps(selection.to_dict(), indent=1))
        return
    _say_selection(selection)
    if out is not None:
        say(f"\nwrote the table and the figure into {out}")


def _selection_files(selection: Selection, *, plots: bool) -> dict[str, Content]:
    """Return the content of each file of a selection, in the order of `SELECT_FILES`."""
    from hidag.cli.output_files import csv_content
    from hidag.model_selection.selection import COLUMNS
    from hidag.plotting.figure import Format, render_figure
    from hidag.plotting.selection import SIZE, plot_selection

    draw = partial(plot_selection, selection)
    rows = [["" if v is None else v for v in row.values()] for row in selection.rows()]
    text = json.dumps(selection.to_dict(), indent=1) + "\n"
    endings: tuple[Format, ...] = ("png", "svg") if plots else ()
    return {
        "selection.csv": csv_content(COLUMNS, rows),
        **{f"selection.{e}": render_figure(draw, SIZE, file_format=e) for e in endings},
        "selection.json": text,
    }


def _say_selection(selection: Selection) -> None:
    rows = selection.rows()
    shown = [name for name in _PRINTED if any(_format(row[name], 0) for row in rows)]
    lines = [[_PRINTED[name][0] for name in shown]]
    lines += [[_format(row[name], _PRINTED[name][1]) for name in shown] for row in rows]
    say()
    say_columns(lines, right=range(len(shown)))
    say()
    say_columns([[f"  {name}", str(k)] for name, k in selection.votes.items()], right=(1,))
    for one in selection.candidates:
        if one.reason is not None:
            say(f"  {plural(one.n_latents, 'latent')} could not be fitted: {render(one.reason)}")
    say(f"\nrecommended: {selection.verdict()}")


def _format(value: float | int | None, decimals: int) -> str:
    """Return a number with thousands separators; empty if there is none."""
    return "" if value is None or value != value else f"{value:,.{decimals}f}"


@app.command(
    epilog="Examples:\n\n"
    "`hidag check q.csv`\n\n"
    "`hidag check q.csv --effects all --families bernoulli`\n\n"
    "`hidag check q.csv --levels 2,3,3 --families types.csv`"
)
def check(
    q: Path = typer.Argument(
        help="CSV with the column item, then one column of 1 and 0 per latent; or a folder with "
        "q.csv.",
        show_default=False,
    ),
    levels: str = option(
        "2", "Number of levels of the latents: one for all, or one per latent (2,3,2)."
    ),
    effects: str = option(
        "main",
        "As in fit: main or acdm, all or gdina, the highest order of interactions, dina or dino.",
    ),
    families: str | None = option(
        None,
        "Types of the items: one for all (bernoulli), one per item separated by commas, or a "
        "types.csv. Without them, conditions that depend on types stay undecided.",
    ),
    json_: opt.Json = False,
) -> None:
    """Check whether a Q-matrix identifies the model, and which items to add if not."""
    from hidag.data.readers import check_file_exists, find_part, read_q

    level_numbers = opt.parse_levels(levels)
    file = find_part(q, "q") if q.is_dir() else check_file_exists(q)
    if file is None:
        template, advice = "the folder {folder} holds no q.csv", "name the file with the Q-matrix"
        raise FileError("no-q-matrix", template, advice=advice, folder=q)
    matrix = read_q(file)
    certificate = hidag.check_identifiability(
        matrix, effects=effects, levels=level_numbers, families=_read_families(families, matrix)
    )
    say(json.dumps(certificate.to_dict(), indent=1) if json_ else certificate.summary())


def _read_families(text: str | None, matrix: Any) -> str | list[str] | dict[str, str] | None:
    """Return the families of an option or of the file that it names."""
    from hidag.data.readers import check_file_exists, read_types

    if text is None:
        return None
    if text.lower().endswith((".csv", ".tsv", ".parquet")):
        items = tuple(str(name) for name in matrix.column(0).to_pylist())
        return dict(read_types(check_file_exists(Path(text)), items))
    names = [name.strip() for name in _BETWEEN_FAMILIES.split(text)]
    return names[0] if len(names) == 1 else names


@app.command(
    "validate-q",
    epilog="Examples:\n\n"
    "`hidag validate-q answers.csv --q q.csv`\n\n"
    "`hidag validate-q study/ --effects all --resamples 50 --estimate --out entries.csv`",
)
def validate_q(
    table: Path = typer.Argument(
        help="CSV, TSV or Parquet file, or a folder with responses.csv and q.csv."
    ),
    q: Path | None = option(
        None, "CSV with the column item, then one of 1 and 0 per latent.", "--q"
    ),
    id_column: opt.IdColumn = None,
    weights: opt.WeightsColumn = None,
    missing: opt.MissingCodes = None,
    drop: opt.DroppedColumns = None,
    words: opt.Words = None,
    types: opt.Types = None,
    family: list[str] | None = item_option(
        None, "Type of all items, or ITEM=TYPE, as in `hidag fit`.", shown="auto"
    ),
    levels: str = option("2", "Number of levels of the latents, as in `hidag fit` (2, or 2,3,2)."),
    effects: str = option(
        "main", "How the latents of an item combine, as in `hidag fit` (main, all, dina)."
    ),
    resamples: int = option(
        0, "Number of bootstrap samples on which uncertain entries are tested.", least=0
    ),
    estimate: bool = option(False, "Also estimate Q from the data, for comparison.", "--estimate"),
    changes: int = option(20, "Maximum number of suggested changes.", least=0),
    seed: opt.Seed = 0,
    out: opt.NumbersFile = None,
    json_: opt.Json = False,
) -> None:
    """Test which entries of a provisional Q-matrix the data would add or drop."""
    from hidag.cli.data_source import ReadOptions, read_source
    from hidag.cli.output_files import check_file, present_table

    check_file(out, [table, q, types])
    level_numbers = opt.parse_levels(levels)
    reading = ReadOptions(id_column, weights, missing or (), drop or (), words or ())
    source = read_source(table, types, q, family=family, optional_q=False, reading=reading)
    if source.q is None:
        advice = "give one with --q, or give a folder that holds q.csv"
        raise FileError("no-q-matrix", "there is no Q-matrix to validate", advice=advice)
    if not json_:
        for note in source.notes:
            say(note)
    with collected_warnings() as issued, progress_bar() as observer:
        model = hidag.DCRL(
            source.q.num_columns - 1,
            levels=level_numbers,
            effects=cast(Any, opt.parse_effects(effects)),
            family=source.family,
            random_state=seed,
            observer=observer,
        )
        free = None
        if estimate:
            fitted = hidag.DCRL(**model.get_params()).fit(
                source.table, sample_weight=source.weights
            )
            free = fitted.result_
        found = hidag.validate_q(
            model,
            source.table,
            source.q,
            estimated=free,
            sample_weight=source.weights,
            n_resamples=resamples,
            max_changes=changes,
            random_state=seed,
        )
    for warning in issued:
        show_warning(warning)
    present_table(found.entries, out, found.to_rows() if json_ else found.summary())
