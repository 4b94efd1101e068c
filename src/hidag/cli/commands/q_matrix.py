"""`hidag check` and `hidag validate-q`: identifiability and empirical support of a Q-matrix."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from hidag.cli.options import (
    ITEMS,
    DroppedColumns,
    IdColumn,
    Json,
    MissingCodes,
    NumbersFile,
    Seed,
    Types,
    WeightsColumn,
    Words,
    parse_effects,
    parse_levels,
)
from hidag.exceptions import FileError

app = typer.Typer()

#: Commas between families, not those inside the parentheses of a family's arguments.
_BETWEEN_FAMILIES = re.compile(r",(?![^()]*\))")


@app.command(
    epilog="Examples:\n\n"
    "`hidag check q.csv`\n\n"
    "`hidag check q.csv --effects all --families bernoulli`\n\n"
    "`hidag check q.csv --levels 2,3,3 --families types.csv`"
)
def check(
    q: Annotated[
        Path,
        typer.Argument(
            help="CSV with the column item, then one column of 1 and 0 per latent; or a folder "
            "with q.csv.",
            show_default=False,
        ),
    ],
    levels: Annotated[
        str, typer.Option(help="Levels per latent: one number, or one per latent (2,3,2).")
    ] = "2",
    effects: Annotated[
        str,
        typer.Option(
            help="As in fit: main or acdm, all or gdina, the highest order of interactions, dina "
            "or dino."
        ),
    ] = "main",
    families: Annotated[
        str | None,
        typer.Option(
            help="One type for all items, one per item separated by commas, or a types.csv.",
            show_default=False,
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Check whether a Q-matrix identifies the model, and which items to add if not."""
    from hidag.cli.console import say
    from hidag.data.readers import check_file_exists, find_part, read_q
    from hidag.identifiability.certificate import check_identifiability

    level_numbers = parse_levels(levels)
    file = find_part(q, "q") if q.is_dir() else check_file_exists(q)
    if file is None:
        raise FileError(
            "no-q-matrix",
            "the folder {folder} holds no q.csv",
            advice="name the file with the Q-matrix",
            folder=q,
        )
    matrix = read_q(file)
    certificate = check_identifiability(
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
    table: Annotated[
        Path,
        typer.Argument(help="CSV, TSV or Parquet file, or a folder with responses.csv and q.csv."),
    ],
    q: Annotated[
        Path | None,
        typer.Option("--q", help="CSV with the column item, then one of 1 and 0 per latent."),
    ] = None,
    id_column: IdColumn = None,
    weights: WeightsColumn = None,
    missing: MissingCodes = None,
    drop: DroppedColumns = None,
    words: Words = None,
    types: Types = None,
    family: Annotated[
        list[str] | None,
        typer.Option(help="As in `hidag fit`.", show_default="auto", rich_help_panel=ITEMS),
    ] = None,
    levels: Annotated[str, typer.Option(help="Levels per latent, as in `hidag fit`.")] = "2",
    effects: Annotated[
        str, typer.Option(help="How the latents of an item combine, as in `hidag fit`.")
    ] = "main",
    resamples: Annotated[
        int,
        typer.Option(min=0, help="Bootstrap samples on which uncertain entries are tested."),
    ] = 0,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Also estimate Q from the data, for comparison.")
    ] = False,
    changes: Annotated[int, typer.Option(min=0, help="Maximum number of suggested changes.")] = 20,
    seed: Seed = 0,
    out: NumbersFile = None,
    json_: Json = False,
) -> None:
    """Test which entries of a provisional Q-matrix the data would add or drop."""
    from hidag.cli.console import collected_warnings, progress_bar, say, show_warning
    from hidag.cli.data_source import choose_families, families_for_all, read_source
    from hidag.cli.output_files import check_file, present_table
    from hidag.cli.read_options import ReadOptions
    from hidag.diagnostics.q_validation import validate_q as validate
    from hidag.estimator import DCRL

    check_file(out, [table, q, types])
    settings: dict[str, Any] = {
        "levels": parse_levels(levels),
        "effects": parse_effects(effects),
        "random_state": seed,
    }
    source = read_source(
        table,
        types,
        q,
        use_folder_types=not families_for_all(family or []),
        optional_q=False,
        reading=ReadOptions(
            id_column, weights, tuple(missing or ()), tuple(drop or ()), tuple(words or ())
        ),
    )
    if source.q is None:
        raise FileError(
            "no-q-matrix",
            "there is no Q-matrix to validate",
            advice="give one with --q, or give a folder that holds q.csv",
        )
    settings["family"] = choose_families(
        family or [], source.types, tuple(source.table.column_names)
    )
    if not json_:
        for note in source.notes:
            say(note)
    with collected_warnings() as issued, progress_bar() as observer:
        model = DCRL(int(source.q.num_columns - 1), observer=observer, **settings)
        free = None
        if estimate:
            fitted = DCRL(**model.get_params()).fit(source.table, sample_weight=source.weights)
            free = fitted.result_
        found = validate(
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
