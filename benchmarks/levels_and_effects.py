"""Recovery of Q and graph with several levels per latent and with interactions.

Four latents in a random graph (one parent on average), twenty items (12 with one latent, 8 with
two), N = 10,000; one step per level, and with effects "all" every interaction as strong as a step.
Prints, per cell, wrong entries of Q, SHD of the graph and of a search on the true latents, how
often levels were assigned to the right latents, and CPU seconds of a fit.

    python benchmarks/levels_and_effects.py --replicates 10 --seed 1
    python benchmarks/levels_and_effects.py --seed 86028 --cell 4,4,4,4/main/bernoulli
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from hidag import DCRL, evaluate
from hidag.latent import LatentCounts
from hidag.metrics import evaluate_graph
from hidag.simulation import random_dag, random_law, random_q, random_truth, simulate
from hidag.structure import discover
from hidag.structure.scores import choose_score

K, J, N = 4, 20, 10_000
LEVELS = ((2, 2, 2, 2), (3, 3, 3, 3), (2, 3, 4, 2), (4, 4, 4, 4))
EFFECTS = ("main", "all", "dina")
FAMILIES = ("gaussian", "bernoulli")


def run(levels, effects: str, family: str, seed: int) -> tuple[float, ...]:
    rng = np.random.default_rng(seed)
    law = random_law(random_dag(K, 1.0, rng=rng), rng=rng, levels=levels)
    q = random_q(J, K, pure_share=0.6, max_parents=2, rng=rng)
    truth = random_truth(law, q, family, effects=effects, rng=rng)
    data = simulate(truth, N, rng=rng)
    asked = "all" if effects == "dina" else effects
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DCRL(K, levels=levels, effects=asked, family=family, random_state=seed).fit(data.X)
    seconds = time.process_time() - begin
    found = evaluate(model, truth)
    known = discover(
        LatentCounts.from_rows(data.states, levels=tuple(levels)), score=choose_score(levels)
    )
    matched = [model.latent_law_.space.levels[k] for k in found.permutation]
    return (
        found.shd_q,
        found.shd_graph,
        evaluate_graph(known, truth.cpdag).shd,
        float(tuple(matched) == levels),
        seconds,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cell", action="append", help="levels/effects/family; all if not given")
    given = parser.parse_args()
    print("levels   effects family     wrong in Q  graph  true latents  levels right  CPU s")
    for levels in LEVELS:
        for effects in EFFECTS:
            if effects == "dina" and max(levels) > 2:
                continue
            for family in FAMILIES:
                name = f"{','.join(map(str, levels))}/{effects}/{family}"
                if given.cell and name not in given.cell:
                    continue
                seeds = np.random.SeedSequence(given.seed).generate_state(given.replicates)
                rows = np.array([run(levels, effects, family, int(seed)) for seed in seeds])
                mean = rows.mean(axis=0)
                print(
                    f"{','.join(map(str, levels)):8} {effects:7} {family:10} {mean[0]:10.2f} "
                    f"{mean[1]:6.2f} {mean[2]:13.2f} {mean[3]:13.2f} {mean[4]:6.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
