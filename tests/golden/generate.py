"""Write or compare the golden master: every number of some 45 fits and what is said after a fit.

    python tests/golden/generate.py --out before.json          # before a structural change
    python tests/golden/generate.py --compare before.json      # after it, on the same machine
    python tests/golden/generate.py --suite                    # renew the part kept in the suite

Other processors differ in the last digits, so the whole is never committed; the part in the suite
(``expected.json``) holds values and is compared to 1e-6.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES, arrays

EXPECTED = Path(__file__).with_name("expected.json")
#: After-fit commands on a small fit, with {fit}, {table}, {out} filled in.
COMMANDS = {
    "report": "report {fit} --out {out}/page.html",
    "info": "info {fit}",
    "standard-errors": "standard-errors {fit} {table}",
    "goodness": "goodness {fit} {table}",
    "classify": "classify {fit} {table} --out {out}/rows.csv",
    "validate-q": "validate-q {table} --q {q} --family bernoulli",
    "bootstrap": "bootstrap {fit} {table} --resamples 4 --seed 1",
    "whatif": "whatif {fit} --do Z1=1",
    "effects": "whatif {fit} --effects --draws 20",
    "export bif": "export {fit} --format bif --out {out}/net.bif",
    "select": "select {table} --family bernoulli -k 2..3 --folds 2 --seed 1 --out {out}/select",
    "check": "check {q}",
    "evaluate": "evaluate {fit} {truth}",
}


def digest(value: Any) -> str:
    """Return a digest of an array, number or text, NaNs same."""
    if isinstance(value, str):
        raw = value.encode()
    else:
        array = np.ascontiguousarray(value)
        raw = str(array.dtype).encode() + str(array.shape).encode() + array.tobytes()
    return hashlib.sha256(raw).hexdigest()[:16]


def fits(names: list[str]) -> dict[str, dict[str, str]]:
    """Return digests of all that each fit found."""
    out: dict[str, dict[str, str]] = {}
    for name in names:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = arrays(CASES[name].fit())
        found["n_warnings"] = len(caught)
        out[name] = {key: digest(value) for key, value in found.items()}
        print(name, found["log_likelihood"], flush=True)
    return out


def normalised(text: str, folder: Path) -> str:
    """Return text without paths, times and versions."""
    text = text.replace(str(folder), "DIR")
    text = re.sub(r"\d+(\.\d+)? ?(s|ms|min|seconds?)\b", "TIME", text)
    return re.sub(r"\b\d+\.\d+\.\d+\S*", "VERSION", text)


def commands() -> dict[str, str]:
    """Return digests of what commands print and write after a small simulated fit."""
    out: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)

        def run(line: str) -> str:
            words = [sys.executable, "-m", "hidag", *line.split()]
            done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
            return f"{done.returncode}\n{done.stdout}\n{done.stderr}"

        run("simulate --out sim --model Chain-5 --family bernoulli --design research-code "
            "-n 600 --seed 1")  # fmt: skip
        places = {
            "fit": "fit",
            "table": "sim/responses.csv",
            "truth": "sim/truth.json",
            "q": "fit/q.csv",
            "out": ".",
        }
        out["fit"] = run("fit sim/responses.csv -k 5 --family bernoulli --seed 1 --out fit")
        for name, line in COMMANDS.items():
            out[name] = run(line.format(**places))
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".csv", ".json", ".bif", ".txt", ".md") and path.is_file():
                out[f"file {path.relative_to(folder)}"] = path.read_text()
        out = {name: normalised(text, folder) for name, text in out.items()}
        for name, text in out.items():
            print(name, text.splitlines()[0][:60] if text else "", flush=True)
    return {name: digest(text) for name, text in out.items()}


def suite_values() -> dict[str, dict[str, Any]]:
    """Return the numbers of the fits that the suite compares."""
    keys = ("loadings", "intercept", "law", "q_matrix", "log_likelihood", "graph")
    out: dict[str, dict[str, Any]] = {}
    for name, case in CASES.items():
        if case.in_suite:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = arrays(case.fit())
            out[name] = {
                key: found[key] if isinstance(found[key], str) else np.asarray(found[key]).tolist()
                for key in keys
            }
    return out


def main() -> None:
    """Write, compare or renew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--only", default="", help="Fits whose names contain this.")
    parser.add_argument("--no-commands", action="store_true")
    parser.add_argument("--suite", action="store_true")
    options = parser.parse_args()
    if options.suite:
        EXPECTED.write_text(json.dumps(suite_values(), indent=None) + "\n")
        return
    found: dict[str, Any] = {"fits": fits([name for name in CASES if options.only in name])}
    if not options.no_commands:
        found["commands"] = commands()
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))
    if options.compare:
        before = json.loads(options.compare.read_text())
        changed = [
            f"{part}: {name}"
            for part, entries in found.items()
            for name, value in entries.items()
            if before[part].get(name) != value
        ]
        count = sum(len(entries) for entries in found.values())
        print("\n".join(["changed:", *changed]) if changed else f"unchanged: {count} entries")
        sys.exit(bool(changed))


if __name__ == "__main__":
    main()
