"""CPU seconds of default binary main-effect fits, compared with an earlier commit.

    python benchmarks/against_commit.py ca7a360 --methods em saem --rounds 4

Extracts the sources of the earlier commit from the repository and fits the same tables (K=10,
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
from hidag import DCRL
from hidag.simulate import design, simulate
warnings.simplefilter("ignore")
model, q_matrix, family, method, rows, seed, repeats = json.loads(sys.argv[1])
truth = design(model, q_matrix, family, design="research-code", rng=seed)
X = simulate(truth, rows, rng=seed + 1).X
times = []
for _ in range(1 + repeats):
    begin = time.process_time()
    DCRL(truth.n_latents, family=truth.families[0], method=method, random_state=seed).fit(X)
    times.append(time.process_time() - begin)
print(json.dumps(times[1:]))
"""


def seconds(tree: Path, cache: Path, job: list) -> list[float]:
    """Return the CPU seconds of repeated fits with the sources of one tree."""
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
        compare(settings, Path(folder), earlier)


def compare(settings: argparse.Namespace, folder: Path, earlier: Path) -> None:
    """Print one line a table: lowest CPU seconds of both trees, and their ratio."""
    ratios = []
    print("| method | table | family | earlier | now | ratio |")
    print("|---|---|---|---|---|---|")
    for method in settings.methods:
        for model in settings.models:
            for family in FAMILIES:
                job = [*model.split(":"), family, method]
                job += [settings.rows, settings.seed, settings.repeats]
                before, now = np.inf, np.inf
                for _ in range(settings.rounds):
                    before = min(before, *seconds(earlier, folder / "numba-earlier", job))
                    now = min(now, *seconds(ROOT, folder / "numba-now", job))
                ratios.append(now / before)
                print(
                    f"| {method} | {model} | {family} | {before:.2f} | {now:.2f} "
                    f"| {ratios[-1]:.2f} |",
                    flush=True,
                )
    print(f"\nGeometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
