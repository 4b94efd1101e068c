"""Recovery of graph and Q from seesaw images, by seed.

For each seed images are drawn and fitted as `hidag app seesaw --seed` does. Prints wrong pairs of
the graph, wrong entries of Q, the fitted probabilities of Z4 (true: 0 and 0.99; the first is not
identified by images), the log-likelihood, and CPU seconds of drawing and of fitting. Seeds are
counted from `--first`; choose one that nothing in the project was tuned on.

    python benchmarks/seesaw.py --seeds 10 --first 500
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from hidag_paper.applications.seesaw import fit_pixels, match_to_truth
from hidag_paper.seesaw import N_IMAGES, SeesawGeometry, simulate_seesaw, true_effects


def run(seed: int, n_images: int, geometry: SeesawGeometry) -> tuple[float, ...]:
    for_images, for_fit = np.random.SeedSequence(seed).generate_state(2)
    begin = time.process_time()
    images = simulate_seesaw(n_images, rng=int(for_images), geometry=geometry)
    drawn = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit_pixels(images.pooled, 4, seed=int(for_fit))
    fitted = time.process_time()
    matched, _, evaluation = match_to_truth(found, true_effects(geometry))
    joint = matched.result.law.probabilities.reshape(4, 2, 2).sum(axis=0)
    shares = joint[:, 1] / joint.sum(axis=1)
    return (
        evaluation.shd_graph,
        evaluation.shd_q,
        *shares,
        matched.result.log_likelihood,
        drawn - begin,
        fitted - drawn,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=500)
    parser.add_argument("--images", type=int, default=N_IMAGES)
    parser.add_argument("--jitter", type=float, default=SeesawGeometry().jitter)
    given = parser.parse_args()
    geometry = SeesawGeometry(jitter=given.jitter)
    print(f"{given.images} images, jitter {given.jitter:g}")
    print("seed  graph  wrong in Q  Z4 if Z3=0  Z4 if Z3=1  log-likelihood  draw s   fit s")
    rows = []
    for seed in range(given.first, given.first + given.seeds):
        rows.append(run(seed, given.images, geometry))
        graph, q, low, high, value, drawing, fitting = rows[-1]
        print(
            f"{seed:4d}  {graph:5.0f}  {q:10.0f}  {low:10.3f}  {high:10.4f}  {value:14.1f}"
            f"  {drawing:6.1f}  {fitting:6.1f}",
            flush=True,
        )
    exact = sum(row[0] == 0 for row in rows)
    print(f"the graph is exact for {exact} of {len(rows)} seeds")


if __name__ == "__main__":
    main()
