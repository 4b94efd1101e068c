"""Cost of a fit by family and N, and of a Gibbs sweep by the density of Q; ratios within one run.

python benchmarks/fit.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings

import numpy as np

from hidag import DCRL, design, simulate
from hidag.em.design_data import WorkingData
from hidag.em.saem import GibbsSampler
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters


def cpu(task, repeats: int = 1) -> float:
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        task()
        best = min(best, time.process_time() - begin)
    return best


def fit_cost() -> None:
    print("whole fit, Tree-10 Q2 (K=10, J=30), one start, CPU seconds")
    print("family               N=5000   N=50000   ratio   steps")
    for family, link in (
        ("gaussian", "gaussian"),
        ("poisson", "poisson-identity"),
        ("bernoulli", "bernoulli"),
    ):
        truth = design("Tree-10", "Q2", family, design="research-code", rng=1)
        data = simulate(truth, 50_000, rng=2)
        model = DCRL(10, family=link, n_starts=1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            DCRL(10, family=link, n_starts=1, random_state=0, max_iter=3).fit(data.X[:500])
        small = cpu(lambda model=model, data=data: model.fit(data.X[:5000]), 2)
        steps = model.n_iter_
        large = cpu(lambda model=model, data=data: model.fit(data.X))
        print(
            f"{link:18s} {small:8.2f} {large:9.2f} {large / small:7.1f}   {steps} and "
            f"{model.n_iter_}"
        )


def sweep_cost() -> None:
    print("\nGibbs sweep, N=20000: nanoseconds per row and entry of Q (flat means O(N nnz(Q)))")
    print("  K    J   parents per item   nnz(Q)   ms a sweep   ns per row and entry")
    rng = np.random.default_rng(0)
    for n_latents, per_item in ((4, 1), (8, 1), (12, 1), (12, 2), (12, 4), (12, 8), (16, 2)):
        n_items = 3 * n_latents
        q = np.zeros((n_items, n_latents))
        for j in range(n_items):
            q[j, (j + np.arange(per_item)) % n_latents] = 1
        parameters = MeasurementParameters(
            ("bernoulli",) * n_items, np.full(n_items, -1.0), q * 3.0 / per_item, np.ones(n_items)
        )
        values = (rng.random((20_000, n_items)) < 0.5).astype(float)
        data = WorkingData.from_values(values, parameters.families)
        space = StateSpace.binary(n_latents)
        law = np.full(space.n_states, 1.0 / space.n_states)
        sampler = GibbsSampler(data, space, np.zeros(20_000, dtype=np.int64), 1)
        sampler.draw(parameters, law)
        seconds = cpu(lambda s=sampler, p=parameters, law=law: s.draw(p, law), 5)
        nnz = int(q.sum())
        print(
            f"{n_latents:4d} {n_items:4d} {per_item:12d} {nnz:14d} {seconds * 1e3:12.1f} "
            f"{seconds / 20_000 / nnz * 1e9:14.1f}"
        )


_MEMORY = """
import resource, sys
import numpy as np
from hidag import DCRL, design, simulate
truth = design("Tree-10", "Q2", "gaussian", design="research-code", rng=1)
n = int(sys.argv[1])
X = np.array(simulate(truth, n, rng=2).X)
DCRL(10, family="gaussian", n_starts=1, random_state=0).fit(X[:2000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
DCRL(10, family="gaussian", n_starts=1, random_state=0).fit(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) / 1024, X.nbytes / 2**20)
"""


def memory() -> None:
    print(
        "\npeak memory a fit adds, against the table's own size (K=10: N x 2^K would be 34 times)"
    )
    for n in (200_000,):
        out = subprocess.run(
            [sys.executable, "-c", _MEMORY, str(n)], capture_output=True, text=True, check=True
        ).stdout.split()
        added, table = float(out[0]), float(out[1])
        print(f"N={n}: table {table:.0f} MiB, added {added:.0f} MiB, ratio {added / table:.1f}")


def start_up() -> None:
    print("\nstart-up in a new process, seconds of wall time")
    for label, code in (
        ("python -c pass", "pass"),
        ("import hidag", "import hidag"),
        ("from hidag import DCRL", "from hidag import DCRL"),
    ):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        print(f"{label:24s} {time.perf_counter() - begin:.2f}")


if __name__ == "__main__":
    fit_cost()
    sweep_cost()
    memory()
    start_up()
    print(
        f"\nthis process peaked at {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB"
    )
