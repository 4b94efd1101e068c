"""CPU seconds and errors of default binary main-effect fits, compared with an earlier commit.

    python benchmarks/against_commit.py ca7a360 --methods em saem --rounds 4
    python benchmarks/against_commit.py ca7a360 --errors 20 --methods auto --rows 3000

With --errors, fits that number of tables of each cell once with both and prints mean errors (SHD of
graph and Q together), the mean difference with its Monte Carlo error, and the median of the ratios
of CPU seconds. Otherwise it measures time:

extracts the sources of the earlier commit from the repository and fits the same tables (K=10,
J=30, N=5,000, designs of the paper's research code) with both in alternation, each in its own
process, so that other load on the machine affects both equally. The minimum over rounds is used
for each table. Prints the times, the ratios and their geometric mean.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = ("gaussian", "poisson", "bernoulli")
#: Run with either tree on the path, so only calls that both have are made.
TIMED = """
import json, sys, time, warnings
import hidag
from hidag import DCRL
try:
    from hidag.simulation import design, simulate
except ImportError:
    from hidag.simulate import design, simulate
warnings.simplefilter("ignore")
model, q_matrix, family, method, rows, seed, repeats, tables = json.loads(sys.argv[1])
found = []
for table in (seed, *range(seed, seed + tables)):
    truth = design(model, q_matrix, family, design="research-code", rng=table)
    X = simulate(truth, rows, rng=table + 100000).X
    for _ in range(repeats):
        begin = time.process_time()
        fit = DCRL(truth.n_latents, family=truth.families[0], method=method, random_state=table)
        fit.fit(X)
        spent = time.process_time() - begin
        found.append((spent, float(hidag.evaluate(fit, truth).shd)))
print(json.dumps(found[repeats:]))
"""


def fits(tree: Path, cache: Path, job: list) -> list[tuple[float, float]]:
    """Return CPU seconds and errors of fits with the sources of one tree, after one to warm up."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "NUMBA_CACHE_DIR": str(cache),
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", TIMED, json.dumps(job)],
        env=environment,
        cwd=cache.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="the earlier commit")
    parser.add_argument("--models", nargs="+", default=["Chain-10:Q1", "Tree-10:Q2"])
    parser.add_argument("--methods", nargs="+", default=["em", "saem"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--errors", type=int, default=0, help="tables whose errors are compared")
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        earlier, archive = Path(folder) / "earlier", Path(folder) / "earlier.tar"
        # An archive leaves nothing behind in the repository, however the run ends.
        subprocess.run(
            ["git", "-C", str(ROOT), "archive", "--output", str(archive), settings.commit, "src"],
            check=True,
        )
        with tarfile.open(archive) as packed:
            packed.extractall(earlier, filter="data")
        (compare_errors if settings.errors else compare)(settings, Path(folder), earlier)


def compare(settings: argparse.Namespace, folder: Path, earlier: Path) -> None:
    """Print one line a table: lowest CPU seconds of both trees, and their ratio."""
    ratios = []
    print("| method | table | family | earlier | now | ratio |")
    print("|---|---|---|---|---|---|")
    for method in settings.methods:
        for model in settings.models:
            for family in FAMILIES:
                job = [*model.split(":"), family, method]
                job += [settings.rows, settings.seed, settings.repeats, 1]
                before, now = np.inf, np.inf
                for _ in range(settings.rounds):
                    old, new = (
                        fits(tree, folder / f"numba-{name}", job)
                        for tree, name in ((earlier, "earlier"), (ROOT, "now"))
                    )
                    before = min(before, *(one for one, _ in old))
                    now = min(now, *(one for one, _ in new))
                ratios.append(now / before)
                print(
                    f"| {method} | {model} | {family} | {before:.2f} | {now:.2f} "
                    f"| {ratios[-1]:.2f} |",
                    flush=True,
                )
    print(f"\nGeometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}")


def compare_errors(settings: argparse.Namespace, folder: Path, earlier: Path) -> None:
    """Print one line a cell: mean errors of both trees, their difference, the ratio of times."""
    print("| method | cell | family | earlier | now | difference (s.e.) | median CPU ratio |")
    print("|---|---|---|---|---|---|---|")
    for method in settings.methods:
        for model in settings.models:
            for family in FAMILIES:
                job = [*model.split(":"), family, method, settings.rows, settings.seed, 1]
                job.append(settings.errors)
                old, new = (
                    np.array(fits(tree, folder / f"numba-{name}", job)).T
                    for tree, name in ((earlier, "earlier"), (ROOT, "now"))
                )
                gap = new[1] - old[1]
                error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
                print(
                    f"| {method} | {model} | {family} | {old[1].mean():.2f} | {new[1].mean():.2f} "
                    f"| {gap.mean():+.2f} ({error:.2f}) | {np.median(new[0] / old[0]):.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
