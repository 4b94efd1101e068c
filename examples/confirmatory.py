"""A confirmatory fit: Q is given, the graph among its latents is estimated.

    python examples/confirmatory.py FOLDER

FOLDER holds responses.csv (one column per item), q.csv (the column item, then one column of 1 and
0 per latent) and optionally types.csv (the columns item and type).
"""

from __future__ import annotations

import sys
from pathlib import Path

from hidag import DCRL, FitResult
from hidag.data import read_folder


def describe_graph(result: FitResult) -> list[str]:
    """Return the graph as sentences, then the tests of weak edges on the observed data."""
    graph = result.graph
    lines = [f"{cause} causes {effect}." for cause, effect in graph.directed_edges]
    lines += [
        f"{a} and {b} are adjacent; the data do not identify the direction."
        for a, b in graph.undirected_edges
    ]
    lines = lines or ["No two latents are adjacent."]
    for test in result.edge_tests:
        verdict = "retained" if test.kept else "removed"
        lines.append(
            f"Tested {test.pair[0]} - {test.pair[1]}, {verdict}: without it the log-likelihood "
            f"changes by {-test.likelihood_loss:+.1f}, the cost of parameters by "
            f"{-test.saved:+.1f}."
        )
    return lines


def main(folder: str) -> None:
    source = read_folder(Path(folder))
    if source.q is None:
        sys.exit(f"{folder} has no q.csv; for an exploratory fit see examples/exploratory.py")
    model = DCRL(
        n_latents=source.q.num_columns - 1,
        family=source.types or "auto",
        q_matrix=source.q,
        random_state=0,
    ).fit(source.table)
    for line in describe_graph(model.result_):
        print(line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
