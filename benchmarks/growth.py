"""Growth of the cost of a fit with the number of rows and with the number of loadings.

    python benchmarks/growth.py --replicates 3 --out docs/images/growth.png

Prints CPU seconds and the slopes of straight lines through them on log-log scales (1 is
proportional growth), and draws them. K=10 throughout; rows grow at J=30, loadings by more items at
N=5,000, and for a Gibbs sweep by more latents per item at J=36 and K=12.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from hidag import DCRL, simulate
from hidag.em.design_data import WorkingData
from hidag.em.saem import GibbsSampler
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters
from hidag.plotting import style
from hidag.simulation import Truth, make_truth, random_dag, random_law, random_q

K = 10
FAMILIES = {"gaussian": style.BLUE, "bernoulli": style.VERMILION}
ROWS = (2_500, 5_000, 10_000, 20_000, 40_000, 80_000)
ITEMS = (20, 40, 80, 160)
SWEEP_LATENTS, SWEEP_ITEMS, PARENTS = 12, 36, (1, 2, 4, 8)
SWEEP_REPEATS = 5


def draw_truth(n_items: int, family: str, rng: np.random.Generator) -> Truth:
    law = random_law(random_dag(K, 1.0, rng=rng), rng=rng)
    return make_truth(law, random_q(n_items, K, rng=rng), family)


def fit_seconds(truth: Truth, X: np.ndarray, seed: int, method: str) -> tuple[float, int]:
    """Return the CPU seconds of a whole fit, and its steps."""
    model = DCRL(K, family=list(truth.families), method=method, random_state=seed)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return time.process_time() - begin, model.n_iter_


def slope(x, y) -> float:
    """Return the slope of the least-squares line on log-log scales."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def by_rows(family: str, rows: list[int], replicates: int, seed: int) -> list[float]:
    """Return the mean CPU seconds of a fit at each number of rows; smaller tables are parts."""
    total = np.zeros(len(rows))
    steps = np.zeros(len(rows))
    for replicate in range(replicates):
        rng = np.random.default_rng((seed, replicate))
        truth = draw_truth(3 * K, family, rng)
        X = simulate(truth, max(rows), rng=rng).X
        for i, n in enumerate(rows):
            seconds, n_iter = fit_seconds(truth, X[:n], replicate, "auto")
            total[i] += seconds
            steps[i] += n_iter
    print(f"\nwhole fit against N, {family}, K={K}, J={3 * K}")
    print("       N    CPU s   steps   CPU microseconds a row")
    for n, seconds, n_iter in zip(rows, total / replicates, steps / replicates, strict=True):
        print(f"{n:8d} {seconds:8.2f} {n_iter:7.1f} {seconds / n * 1e6:12.1f}")
    out = (total / replicates).tolist()
    print(
        f"log-log slope {slope(rows, out):.2f}, of a step's cost {slope(rows, total / steps):.2f}"
    )
    return out


def by_loadings(
    family: str, items: list[int], n: int, replicates: int, seed: int
) -> tuple[list[float], list[float]]:
    """Return the mean number of loadings and the mean CPU seconds of a sampled fit."""
    total, loadings, steps = (np.zeros(len(items)) for _ in range(3))
    for replicate in range(replicates):
        for i, n_items in enumerate(items):
            rng = np.random.default_rng((seed, replicate, n_items))
            truth = draw_truth(n_items, family, rng)
            seconds, n_iter = fit_seconds(truth, simulate(truth, n, rng=rng).X, replicate, "saem")
            total[i] += seconds
            steps[i] += n_iter
            loadings[i] += truth.q_matrix.sum()
    print(f"\nwhole fit by sampling against nnz(Q), {family}, K={K}, N={n}")
    print("   J   nnz(Q)    CPU s   steps")
    for j, nnz, seconds, n_iter in zip(items, loadings, total, steps, strict=True):
        print(
            f"{j:4d} {nnz / replicates:8.1f} {seconds / replicates:8.2f} {n_iter / replicates:7.1f}"
        )
    x, y = (loadings / replicates).tolist(), (total / replicates).tolist()
    print(f"log-log slope {slope(x, y):.2f}, of a step's cost {slope(x, total / steps):.2f}")
    return x, y


def by_sweep(n: int, seed: int) -> tuple[list[float], list[float]]:
    """Return numbers of loadings and the CPU seconds of a Gibbs sweep over Bernoulli items."""
    rng = np.random.default_rng(seed)
    values = (rng.random((n, SWEEP_ITEMS)) < 0.5).astype(float)
    space = StateSpace.binary(SWEEP_LATENTS)
    law = np.full(space.n_states, 1.0 / space.n_states)
    x, y = [], []
    print(f"\nGibbs sweep against nnz(Q), K={SWEEP_LATENTS}, J={SWEEP_ITEMS}, N={n}")
    print("  nnz(Q)   ms a sweep   ns a row and entry")
    for parents in PARENTS:
        q = np.zeros((SWEEP_ITEMS, SWEEP_LATENTS))
        for j in range(SWEEP_ITEMS):
            q[j, (j + np.arange(parents)) % SWEEP_LATENTS] = 1
        parameters = MeasurementParameters(
            ("bernoulli",) * SWEEP_ITEMS,
            np.full(SWEEP_ITEMS, -1.0),
            q * 3.0 / parents,
            np.ones(SWEEP_ITEMS),
        )
        data = WorkingData.from_values(values, parameters.families)
        sampler = GibbsSampler(data, space, np.zeros(n, dtype=np.int64), seed)
        sampler.draw(parameters, law)
        best = np.inf
        for _ in range(SWEEP_REPEATS):
            begin = time.process_time()
            sampler.draw(parameters, law)
            best = min(best, time.process_time() - begin)
        x.append(float(q.sum()))
        y.append(best)
        print(f"{q.sum():8.0f} {best * 1e3:12.2f} {best / n / q.sum() * 1e9:14.1f}")
    print(f"log-log slope {slope(x, y):.2f}")
    return x, y


def draw(rows: dict, loadings: dict, sweep: tuple, path: Path) -> None:
    """Save the three panels as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.6), layout="constrained")
    panels = (
        ("whole fit against rows", "rows, N", rows),
        ("whole fit by sampling against loadings", "loadings, nnz(Q)", loadings),
        ("Gibbs sweep against loadings", "loadings, nnz(Q)", {"bernoulli": sweep}),
    )
    for ax, (title, label, lines) in zip(axes, panels, strict=True):
        for family, (x, y) in lines.items():
            name = f"{family}, slope {slope(x, y):.2f}"
            ax.loglog(x, y, "-o", color=FAMILIES.get(family, style.PURPLE), label=name)
        ticks, costs = next(iter(lines.values()))
        # Through the middle of the first line: what proportional growth would look like.
        middle = np.exp(np.log(costs).mean() - np.log(ticks).mean())
        ax.loglog(ticks, middle * np.array(ticks), ":", color=style.FAINT, label="proportional")
        ax.set_title(title, fontsize=style.FONT_SIZE)
        ax.set_xlabel(label)
        plain_ticks(ax, ticks)
        ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE)
    axes[0].set_ylabel("CPU seconds")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"\ndrew {path}")


def plain_ticks(ax, ticks: list[float]) -> None:
    """Put ticks where the numbers were measured, and write numbers without powers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(FixedLocator([]))
        axis.set_minor_formatter(NullFormatter())
    ax.tick_params(labelsize=style.SMALL_FONT_SIZE)
    ax.tick_params(axis="x", rotation=30)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=style.HAIR, linewidth=0.6)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicates", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="N, with commas")
    parser.add_argument("--items", default=",".join(map(str, ITEMS)), help="J, with commas")
    parser.add_argument("--n", type=int, default=5000, help="rows while loadings grow")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--out", type=Path, default=Path("docs/images/growth.png"))
    args = parser.parse_args()
    rows = [int(part) for part in args.rows.split(",")]
    items = [int(part) for part in args.items.split(",")]
    families = args.families.split(",")
    for family in families:  # what a process loads once is not the fit's cost
        truth = draw_truth(3 * K, family, np.random.default_rng(0))
        for method in ("auto", "saem"):
            fit_seconds(truth, simulate(truth, 300, rng=0).X, 0, method)
    cost_by_rows = {f: (rows, by_rows(f, rows, args.replicates, args.seed)) for f in families}
    cost_by_loadings = {
        f: by_loadings(f, items, args.n, args.replicates, args.seed) for f in families
    }
    draw(cost_by_rows, cost_by_loadings, by_sweep(4 * args.n, args.seed), args.out)


if __name__ == "__main__":
    main()
