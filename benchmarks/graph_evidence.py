"""Graph search by counts and by the observed-data likelihood, with the true items fixed.

    python benchmarks/graph_evidence.py --design text --replicates 3 --seed 1
    python benchmarks/graph_evidence.py --design research-code --replicates 3

Binary items. Only the latent law is unknown: it starts uniform, takes some unconstrained EM steps,
and a search on its expected counts finds a graph. From there the search by likelihood continues,
with half log N and with half log(r N) per parameter of the law (r is the information ratio).
Prints the mean SHD of these graphs, the number of tables in which the graph found with half log N
has at least the criterion of the true graph, and CPU seconds of that search.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from hidag import design, discover, simulate
from hidag.em.design_data import WorkingData
from hidag.em.em import LawEStep, fit_law, normalise_counts
from hidag.em.information import effective_sample_ratio, information_ratio
from hidag.latent import SaturatedLaw, expected_counts
from hidag.metrics import evaluate_graph
from hidag.strategy.observed_likelihood.likelihood_search import LikelihoodSearch, ObservedFit
from hidag.structure import DAG

#: Steps of EM in which the law is free.
FREE_STEPS = 16
#: Criteria that differ by less are level: laws are fitted with a tolerance.
LEVEL = 0.5


class DiscountedSearch(LikelihoodSearch):
    """The search with half log(r N) for a number of the law."""

    ratio = 1.0

    @property
    def cost(self) -> float:
        return 0.5 * float(np.log(max(self.ratio * self.observed.data.n_counted, 2.0)))


def compared(truth, values: np.ndarray) -> list[float]:
    """Return the three distances, whether ours is as good as the true graph, seconds, and r."""
    space, items = truth.law.space, truth.items
    data = WorkingData.from_values(values, truth.families)
    features = np.ascontiguousarray(items.terms.features(space.states()))
    e_step = LawEStep(items, data, features)
    even = np.full(space.n_states, 1.0 / space.n_states)
    law, _ = fit_law(e_step.run, even, normalise_counts, tolerance=0.0, max_steps=FREE_STEPS)
    shown = SaturatedLaw(space, law / law.sum())
    ratio = information_ratio(items, shown, data)
    rows = effective_sample_ratio(ratio, FREE_STEPS) * len(values)
    counted = discover(expected_counts(shown, rows, truth.latent_names))
    observed = ObservedFit(data, items, space, np.asarray(shown.probabilities))
    begin = time.process_time()
    search = LikelihoodSearch(observed)
    best = search.best_from(counted.to_dag().parents)
    seconds = time.process_time() - begin
    true = search.fitted(truth.law.parents, np.asarray(truth.law.probabilities))
    discounted = DiscountedSearch(observed)
    discounted.ratio = ratio
    other = discounted.best_from(counted.to_dag().parents)
    graphs = [counted, *(DAG.from_parents(one.parents).to_cpdag() for one in (best, other))]
    distances = [float(evaluate_graph(graph, truth.cpdag).shd) for graph in graphs]
    return [*distances, float(best.criterion >= true.criterion - LEVEL), seconds, ratio]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="Chain-10,Tree-10,Model-7,Model-8")
    parser.add_argument("--n", default="3000,7000")
    parser.add_argument("--q", default="Q1")
    parser.add_argument("--design", default="text", choices=["research-code", "text"])
    parser.add_argument("--replicates", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"SHD of the graph, true items held, {args.design} design, seed {args.seed}")
    heads = "counts | half log N | half log(r N) | as good as the true graph | CPU s | r"
    print(f"| cell | N | {heads} |\n|---|---|---|---|---|---|---|---|")
    everything = []
    for model in args.models.split(","):
        for n in map(int, args.n.split(",")):
            rows = []
            for replicate in range(args.replicates):
                rng = np.random.default_rng((args.seed, n, replicate, *f"{model}{args.q}".encode()))
                truth = design(model, args.q, "bernoulli", design=args.design, rng=rng)
                values = np.array(simulate(truth, n, rng=rng).X)
                with threadpool_limits(limits=1, user_api="blas"):
                    rows.append(compared(truth, values))
            everything += rows
            print(line(f"{model} {args.q}", f"{n}", rows), flush=True)
    print(line("all", "", everything))


def line(cell: str, n: str, rows: list[list[float]]) -> str:
    """Return one line of the table."""
    counts, best, other, _, seconds, ratio = np.mean(rows, axis=0)
    good = f"{int(sum(row[3] for row in rows))} of {len(rows)}"
    numbers = f"{counts:.2f} | {best:.2f} | {other:.2f} | {good} | {seconds:.1f} | {ratio:.2f}"
    return f"| {cell} | {n} | {numbers} |"


if __name__ == "__main__":
    main()
