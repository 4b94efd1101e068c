"""Bad inputs of every class: count tracebacks, hangs and silent acceptances.

    python benchmarks/bad_inputs.py [--n 2400] [--only CLASS] [--seed 0]

Inputs are drawn from a seed, without regard to how the library treats them. Each runs in this
process, through the command line or the estimator. It must be refused in a sentence, or asked about
by a warning, or, if nothing is wrong with it (class "any"), it may be accepted.
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hidag
from hidag.exceptions import HidagError, HidagWarning

#: Seconds of CPU after which an input counts as a hang.
PATIENCE = 10
NAMES = [f"i{j}" for j in range(7)]
QUICK = ("--no-plots", "--no-statistics", "--uncertainty", "none", "--starts", "1")
HUGE = ("1e308", "-1e308", "99999999999999999999", "9" * 400, "1e-320", "inf", "nan", "-1", "0", "")
ODD = (
    "",
    " ",
    "x",
    "=1",
    "\ud800",
    "\x00",
    "\u202e",
    "a" * 300,
    "0x10",
    "1_0",
    "NaN",
    "None",
    "[]",
)


class Hang(BaseException):
    """An input took too long."""


class Maker:
    """Inputs of all classes, from one generator of random numbers."""

    def __init__(self, folder: Path, rng: np.random.Generator) -> None:
        self.folder, self.rng = folder, rng
        causes = rng.random((60, 1)) < 0.5
        self.X = (rng.random((60, 7)) < np.where(causes, 0.9, 0.1)).astype(float)
        self.good = self.write("good.csv", self.text(self.X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.fit = self.model().fit(self.X).result_
        (folder / "fit").mkdir()
        self.fit.save(folder / "fit" / "result.npz")

    @staticmethod
    def model(**settings: Any) -> hidag.DCRL:
        own = {"n_starts": 1, "uncertainty": "none", "random_state": 0, "family": "auto"}
        return hidag.DCRL(**{"n_latents": 1, **own, **settings})

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        path.write_bytes(data)
        return path

    def text(self, rows: Any, names: list[str] | None = None, delimiter: str = ",") -> str:
        lines = [delimiter.join(names or NAMES)]
        lines += [delimiter.join(f"{v:g}" if v == v else "" for v in row) for row in rows]
        return "\n".join(lines) + "\n"

    def one_of(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def option(self) -> tuple[str, str, Callable[[], Any]]:
        """An extreme value of an option."""
        names = ("latents", "levels", "starts", "max-iter", "tol", "jobs", "seed", "resample")
        names += ("penalty-strength", "effective-size", "claim-level", "family", "missing", "drop")
        names += ("words", "q", "id", "weights", "effects", "law", "method", "search", "require")
        name = self.one_of(names)
        family = [f"{f}({v})" for f in ("categorical", "ordinal", "binomial") for v in HUGE]
        value = self.one_of([*HUGE, *ODD, *family] if name == "family" else [*HUGE, *ODD])
        words = ("fit", self.good, *QUICK, f"--{name}={value}")
        return f"--{name}={value!r:.30}", "any", lambda: command(*words, k=name != "latents")

    def other_command(self) -> tuple[str, str, Callable[[], Any]]:
        """An extreme value of an option of another command."""
        value = self.one_of([*HUGE, *ODD])
        words = self.one_of(
            [
                ("select", self.good, f"--latents={value}", "--fits", "none"),
                ("simulate", f"--rows={value}", "--out", self.folder / "sim"),
                ("bootstrap", self.folder / "fit", self.good, f"--resamples={value}", "--jobs=1"),
                ("whatif", self.folder / "fit", f"--do=Z1={value}"),
                ("goodness", self.folder / "fit", self.good, f"--tables={value}"),
                ("standard-errors", self.folder / "fit", self.good, f"--level={value}"),
                ("classify", self.folder / "fit", self.good, f"--id={value}"),
                ("check", self.good, f"--levels={value}"),
            ]
        )
        if words[-1] in ("--resamples=1e308",):
            return self.option()
        return f"{words[0]} {value!r:.30}", "any", lambda: command(*words)

    def bytes_of_table(self) -> tuple[str, str, Callable[[], Any]]:
        """A file that is no table, or a damaged one."""
        good = self.text(self.X).encode()
        at = int(self.rng.integers(len(good)))
        kinds = {
            "html": b"<html>\n<p>a, b</p>\n</html>" * 3,
            "json": b'{"a": [1, 2], "b": [3, 4]}\n[1, 2]',
            "zero bytes": good[:at] + b"\0" * 9 + good[at:],
            "long cell": good[: good.index(b"\n") + 1] + b"1" * 131_073 + b",0,1,0,1,0,1\n" + good,
            "cut": good[: max(at, 1)],
            "quotes": good[:at] + b'"' + good[at:],
            "header only": good[: good.index(b"\n") + 1],
            "utf-16": good.decode().encode("utf-16"),
            "latin": good.replace(b"i0", b"\xe9"),
            "delimiters": good.replace(b",", self.one_of([b",,", b";,", b"\t,", b" "])),
            "empty": b"",
            "blank": b"\n" * 40,
            "noise": self.rng.bytes(200),
            "comments": b"# made by x\n" + good,
        }
        name = self.one_of(list(kinds))
        path = self.write(self.one_of(["t.csv", "t.tsv", "t.csv.gz", "t.parquet"]), kinds[name])
        bad = name in ("html", "json", "header only", "empty", "noise", "blank")
        return name, "refuse" if bad else "any", lambda: command("fit", path, *QUICK)

    def cells(self) -> tuple[str, str, Callable[[], Any]]:
        """A table with some cells that are wrong."""
        kind = self.one_of(["code", "repeated", "far", "fraction", "text", "infinite"])
        measured = kind in ("code", "repeated", "far")
        rows = self.rng.normal(size=(60, 7)) + 3 * self.X[:, :1] if measured else self.X.copy()
        where = self.rng.choice(60, size=3 if measured and kind != "far" else 1, replace=False)
        lines = self.text(rows).splitlines()
        value = {
            "code": self.one_of(["99", "999", "-99", "-999", "9999", "-9"]),
            "repeated": self.one_of(["10000", "500", "-1000", "88888"]),
            "far": self.one_of(["123456.7", "-4e5", "1e9"]),
            "fraction": self.one_of([".5", "0.25", "1.5"]),
            "text": self.one_of(["n/a!", "1,5", "12 kg", "?", "=1", "--"]),
            "infinite": self.one_of(["inf", "1e999", "-inf"]),
        }[kind]
        for row in where:
            cells = lines[row + 1].split(",")
            lines[row + 1] = ",".join([*cells[:2], f'"{value}"', *cells[3:]])
        path = self.write("cells.csv", "\n".join(lines) + "\n")
        expected = "refuse" if kind in ("fraction", "text", "infinite") else "ask"
        return f"{kind} {value}", expected, lambda: command("fit", path, *QUICK)

    def names(self) -> tuple[str, str, Callable[[], Any]]:
        """Odd names of columns in files and frames."""
        import pandas as pd

        odd = self.one_of([*ODD, "i1", None, float("nan"), ("a", 1), 3, 2.5, b"x", True])
        labels = [odd, *NAMES[1:]]
        if isinstance(odd, str) and self.rng.random() < 0.5:
            path = self.write("n.csv", self.text(self.X, labels))
            return f"file {odd!r:.20}", "any", lambda: command("fit", path, *QUICK)

        def run() -> Any:
            frame = pd.DataFrame(self.X)
            frame.columns = pd.Index(labels, dtype=object)
            return estimate(self.model(), frame)

        plain = isinstance(odd, str) and odd.strip() and odd not in ("\ud800", "i1")
        return f"frame {odd!r:.20}", "any" if plain else "refuse", run

    def weights(self) -> tuple[str, str, Callable[[], Any]]:
        """Odd weights."""
        value = self.one_of([1e308, 1e-300, 0.0, -1.0, np.nan, np.inf, 5e-324, 1e15, 1e-10, 1.0])
        given = np.full(60, value)
        if self.rng.random() < 0.5:
            given[1:] = 1.0
        kind = self.one_of(["float", "text", "short", "matrix", "objects"])
        weights: Any = {
            "float": given,
            "text": given.astype(str),
            "short": given[:-1],
            "matrix": given[:, None],
            "objects": [None, *given[1:]],
        }[kind]
        return f"{kind} {value}", "any", lambda: estimate(self.model(), self.X, weights)

    def python_settings(self) -> tuple[str, str, Callable[[], Any]]:
        """Settings of other types, through Python."""
        known = [n for n in self.model().get_params() if n not in ("verbose", "observer")]
        name = self.one_of(known)
        value = self.one_of(
            [None, -1, 0, 2.5, 10**30, 1e308, np.nan, "x", "", [], [1, "a"], {}, {"a": 1}, b"x",
             True, object(), lambda n: "x", lambda n: 1 / 0 if n < 0 else -1, np.zeros((0, 0)),
             np.full((7, 1), np.nan), np.full((7, 1), 7), [["i0"]], "\ud800", 1e-320, 10**9]
        )  # fmt: skip
        return f"{name}={value!r:.25}", "any", lambda: estimate(self.model(**{name: value}), self.X)

    def arrays(self) -> tuple[str, str, Callable[[], Any]]:
        """Tables of other types and shapes."""
        import polars as pl

        X = self.X
        given = {
            "empty": X[:0], "one row": X[:1], "one column": X[:, :1], "constant": X * 0,
            "all missing": X * np.nan, "complex": X.astype(complex), "3d": X[None], "1d": X[0],
            "text": X.astype(str), "dates": X.astype("datetime64[D]"), "huge": X * 1e300,
            "tiny": X * 1e-300, "none": None, "scalar": 3, "dict": {"a": [1, 2]}, "objects":
            np.array([[object()] * 7] * 60), "ragged": [[1, 2], [1]], "strings": [["a"] * 7] * 60,
            "int128": pl.DataFrame({n: pl.Series(X[:, j].astype(int), dtype=pl.Int128)
                                    for j, n in enumerate(NAMES)}),
            "lists": pl.DataFrame({"a": [[1], [2]], "b": [[3], [4]]}), "infinite": X + np.inf,
            "masked": np.ma.masked_all((60, 7)), "structured": np.zeros(60, dtype=[("a", "f8")]),
            "half": X.astype(np.float16), "bool": X > 0, "long": X.astype(np.longdouble),
        }  # fmt: skip
        name = self.one_of(list(given))
        fine = name in ("text", "int128", "half", "bool", "long", "masked")
        return name, "any" if fine else "refuse", lambda: estimate(self.model(), given[name])

    def saved(self) -> tuple[str, str, Callable[[], Any]]:
        """An edited saved fit."""
        path = self.folder / "fit" / "result.npz"
        with np.load(path) as stored:
            arrays = dict(stored)
        header = json.loads(arrays.pop("header").tobytes())
        label = "bytes"
        if (kind := self.rng.random()) < 0.4:
            name = self.one_of(sorted(arrays))
            change = self.one_of([np.transpose, np.ravel, np.isnan, np.negative, np.atleast_3d])
            arrays[name], label = change(arrays[name]), f"{name} {change.__name__}"
        elif kind < 0.8:
            name = self.one_of(sorted(header))
            header[name], label = self.one_of([None, -1, "x", [], {}, [[[]]], 1e308, True]), name
        stream = io.BytesIO()
        np.savez(
            stream, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays
        )
        data = bytearray(stream.getvalue())
        if label == "bytes":
            at = int(self.rng.integers(len(data)))
            data = data[:at] if self.rng.random() < 0.5 else data
            data[at % max(len(data), 1) : at + 3] = self.rng.bytes(3)
        edited = self.write("edited.npz", bytes(data))
        return label, "any", lambda: command("info", edited)


CLASSES = ("option", "other_command", "bytes_of_table", "cells", "names", "weights")
CLASSES += ("python_settings", "arrays", "saved")


def command(*words: Any, k: bool = True) -> str:
    """Run a command; return "refused", "asked" or "accepted", or raise its exception."""
    from typer.testing import CliRunner

    from hidag.cli.app import app

    latents = ("-k", 1) if words[0] == "fit" and k else ()
    ran = CliRunner().invoke(app, [str(word) for word in (*words, *latents)])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    if ran.exit_code:
        return "refused" if ran.stderr.strip() else "silent failure"
    return "asked" if "warning" in ran.stderr or "warning" in ran.stdout else "accepted"


def estimate(model: hidag.DCRL, X: Any, weights: Any = None) -> str:
    """Fit; return "refused", "asked" or "accepted", or raise another exception."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            model.fit(X, sample_weight=weights)
        except HidagError:
            return "refused"
    return "asked" if any(isinstance(w.message, HidagWarning) for w in issued) else "accepted"


def run(n: int, only: str | None = None, seed: int = 0) -> tuple[Counter[Any], list[str]]:
    """Return counts by class and outcome, and a line for each input with a wrong outcome."""

    def stop(*_: object) -> None:
        raise Hang

    counts: Counter[Any] = Counter()
    wrong = []
    chosen = [name for name in CLASSES if only in (None, name)]
    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
            maker = Maker(Path(folder), np.random.default_rng(seed))
            for number in range(n):
                kind = chosen[number % len(chosen)]
                label, expected, trial = getattr(maker, kind)()
                signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
                try:
                    outcome = trial()
                except Hang:
                    outcome = "hang"
                except (Exception, SystemExit) as error:
                    outcome = f"traceback {type(error).__name__}"
                    label += f": {error}"[:90]
                finally:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                if outcome == "accepted" and expected != "any":
                    outcome = "silent acceptance"
                counts[kind, outcome.split()[0] if "traceback" in outcome else outcome] += 1
                if outcome not in ("refused", "asked", "accepted"):
                    wrong.append(f"{kind}: {outcome}: {label!r}")
    finally:
        signal.signal(signal.SIGVTALRM, before)
    return counts, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=2400)
    parser.add_argument("--only", choices=CLASSES)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start = time.process_time()
    counts, wrong = run(given.n, given.only, given.seed)
    outcomes = sorted({outcome for _, outcome in counts})
    print(f"{'class':16}", *(f"{outcome:>18}" for outcome in outcomes))
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:16}", *(f"{counts[kind, outcome]:18}" for outcome in outcomes))
    for line in sorted(set(wrong)):
        print(line)
    print(
        f"{sum(counts.values())} inputs, {time.process_time() - start:.0f} CPU s, seed {given.seed}"
    )


if __name__ == "__main__":
    main()
