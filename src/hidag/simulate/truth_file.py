"""A simulation's truth as a JSON file, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hidag.errors import FileError, HidagError
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import Terms
from hidag.simulate.truth import Truth

_FORMAT = "hidag-truth"
_VERSION = 1


def write_truth(truth: Truth, path: Path) -> None:
    """Write all of a truth; numbers read back exactly."""
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "item_names": truth.item_names,
        "latent_names": truth.latent_names,
        "families": truth.families,
        "q_matrix": truth.q_matrix.tolist(),
        "intercept": truth.intercept.tolist(),
        "loadings": truth.loadings.tolist(),
        "dispersion": [None if np.isnan(v) else v for v in truth.dispersion.tolist()],
        "cutpoints": [[None if np.isnan(v) else v for v in row] for row in truth.cutpoints],
        "levels": truth.law.space.levels,
        "interactions": truth.terms.interactions,
        "parents": truth.law.parents,
        "tables": [table.tolist() for table in truth.law.tables],
        "graph": json.loads(truth.cpdag.to_json()),
    }
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_truth(path: Path) -> Truth:
    """Return the truth of a file that `write_truth` wrote, or of the folder that holds it."""
    file = path / "truth.json" if path.is_dir() else path
    if not file.is_file():
        raise FileError(f"no truth at {file}: expected a truth.json written by hidag simulate")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise KeyError("format")
        return _truth_of(content)
    except (OSError, ValueError, KeyError, TypeError, IndexError, HidagError) as error:
        raise FileError(
            f"{file} is not a truth written by hidag simulate, or it is cut off; write it again"
        ) from error


def _truth_of(content: dict[str, Any]) -> Truth:
    law = NetworkLaw(
        StateSpace(tuple(content["levels"])),
        tuple(tuple(parents) for parents in content["parents"]),
        tuple(np.array(table, dtype=np.float64) for table in content["tables"]),
    )
    return Truth(
        np.array(content["q_matrix"], dtype=np.int8),
        np.array(content["intercept"], dtype=np.float64),
        np.array(content["loadings"], dtype=np.float64),
        np.array(content["dispersion"], dtype=np.float64),
        tuple(content["families"]),
        law,
        item_names=tuple(content["item_names"]),
        latent_names=tuple(content["latent_names"]),
        terms=Terms(
            law.space.levels,
            tuple(
                tuple((int(k), int(u)) for k, u in pairs)
                for pairs in content.get("interactions", ())
            ),
        ),
        cutpoints=np.array(
            content.get("cutpoints", [[]] * len(content["families"])), dtype=np.float64
        ),
    )
