"""Interactions: how often they are found where there are some, and where there are none.

    python benchmarks/interactions.py --replicates 50 --n 1000 --seed 1
    python benchmarks/interactions.py --part none --replicates 40 --seed 1
    python benchmarks/interactions.py --part off --replicates 8 --seed 1 --kinds "heavy tails"

Part "power": three latents in a chain or with a collider, eight items, half of them binary and half
continuous, four with two latents. Prints for effects "main", "auto" and "all" the share of fits
that warn of interactions left out, the share with an interaction, SHD of the graph, wrong entries
of Q, CPU seconds of a fit and their ratio to those of main effects.

Part "none": tables of main effects, 500 to 4,000 rows, strong and weak items, every third with a
given Q (and 8 starts); the paper's designs with 5 latents, and 3 latents with 10 items of other
families. Part "off": the same size, off the model in another respect. Prints by kind of table the
number of tables, in how many main effects warn, in how many "auto" has interactions, the CPU
seconds of the tests as a share of those of the fit, and the means over the tables where "auto" has
interactions of SHD and of wrong entries of Q (0 if it was given) with main effects and with "auto".
Without a significant test "auto" is the fit of main effects, and is not repeated.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hidag import DCRL, evaluate, simulate
from hidag.fitting.fit_warnings import interactions_message
from hidag.measurement.parameters import Responses
from hidag.simulation import Truth, dag_from_parents, design, random_law, random_truth
from hidag.strategy import estimation

PARENTS = {"chain": ((), (0,), (1,)), "collider": ((), (), (0, 1))}
Q = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
)
FAMILIES = ("bernoulli", "gaussian") * 4
#: Items of the tables without interactions: six of one latent, three of two, one of three.
WIDE_Q = np.vstack([np.tile(np.eye(3, dtype=int), (2, 1)), Q[5:], np.ones((1, 3), dtype=int)])
WEAK = 0.6  # Size of weak items' loadings, relative to those of strong ones.
ROWS = (500, 1000, 2000, 4000)

#: Items (N, J), their families, and the truth by which a fit is evaluated.
Table = tuple[np.ndarray, list[str], Truth]
Make = Callable[[np.random.Generator, int, bool], Table]


def wide_truth(
    rng: np.random.Generator, families: tuple[str, ...], strong: bool, levels: int = 2
) -> Truth:
    """Return a truth with main effects, three latents and ten items."""
    graph = str(rng.choice(list(PARENTS)))
    law = random_law(dag_from_parents(PARENTS[graph]), levels=(levels,) * 3, rng=rng)
    cycled = [families[j % len(families)] for j in range(len(WIDE_Q))]
    truth = random_truth(law, WIDE_Q, cycled, rng=rng)
    loadings = truth.loadings * (1.0 if strong else WEAK)
    middle = truth.intercept + 0.5 * truth.loadings.sum(axis=1)
    return replace(truth, loadings=loadings, intercept=middle - 0.5 * loadings.sum(axis=1))


def of_design(family: str) -> Make:
    """Return a maker of the paper's tables; weak items are those of the text design."""

    def make(rng: np.random.Generator, n: int, strong: bool) -> Table:
        place = str(rng.choice(["Chain-5", "Tree-5", "Model-5"])), str(rng.choice(["Q1", "Q2"]))
        truth = design(*place, family, design="research-code" if strong else "text", rng=rng)
        return simulate(truth, n, rng=rng).X, list(truth.families), truth

    return make


def of_families(*families: str) -> Make:
    """Return a maker of tables of three latents and items of some families in turn."""

    def make(rng: np.random.Generator, n: int, strong: bool) -> Table:
        truth = wide_truth(rng, families, strong)
        return simulate(truth, n, rng=rng).X, list(truth.families), truth

    return make


def ordinal(rng: np.random.Generator, n: int, strong: bool) -> Table:
    """Return items of four grades."""
    truth, n_items = wide_truth(rng, ("bernoulli",), strong), len(WIDE_Q)
    cutpoints = np.column_stack([rng.uniform(0.7, 1.3, n_items), rng.uniform(1.6, 2.4, n_items)])
    families = ("ordinal(4)",) * n_items
    graded = replace(truth, families=families, cutpoints=cutpoints, intercept=truth.intercept + 1.0)
    return simulate(graded, n, rng=rng).X, list(families), graded


def nominal(rng: np.random.Generator, n: int, strong: bool) -> Table:
    """Return items of three unordered categories, whose two responses have the same latents."""
    truth = wide_truth(rng, ("bernoulli",), strong)
    z, names = truth.law.sample(n, rng), ["categorical(3)"] * len(WIDE_Q)
    responses = np.empty((n, 2 * len(WIDE_Q)))
    for response in range(2):
        sign = rng.choice([-1.0, 1.0], truth.loadings.shape)
        eta = (
            truth.intercept
            + 0.5 * truth.loadings.sum(axis=1)
            + (z - 0.5) @ (sign * truth.loadings).T
        )
        responses[:, response::2] = rng.random(eta.shape) < 1.0 / (1.0 + np.exp(-eta))
    return Responses.of(names).collapse(responses), names, truth


def several_levels(rng: np.random.Generator, n: int, strong: bool) -> Table:
    """Return items of three families and latents with three, two and four levels.

    Binary items of several latents are nearly certain at high levels.
    """
    law = random_law(dag_from_parents(PARENTS["collider"]), levels=(3, 2, 4), rng=rng)
    families = tuple(("gaussian", "bernoulli", "poisson")[j % 3] for j in range(len(WIDE_Q)))
    intercept = np.array(
        [{"gaussian": 0.0, "bernoulli": -2.0, "poisson": 0.3}[f] for f in families]
    )
    step = np.array([{"gaussian": 2.0, "bernoulli": 2.5, "poisson": 0.5}[f] for f in families])
    loadings = WIDE_Q * step[:, None] * (1.0 if strong else WEAK)
    truth = Truth(WIDE_Q, intercept, loadings, np.ones(len(WIDE_Q)), families, law)
    return simulate(truth, n, rng=rng).X, list(families), truth


def continuous(family: str) -> Make:
    """Return a maker of tables whose latents are normal, in a chain or with a collider."""

    def make(rng: np.random.Generator, n: int, strong: bool) -> Table:
        truth = wide_truth(rng, (family,), strong)
        z = rng.standard_normal((n, 3))
        for k, parents in enumerate(truth.law.parents):
            z[:, k] += sum(0.75 * rng.choice([-1.0, 1.0]) * z[:, a] for a in parents)
        eta = 0.5 * z @ truth.loadings.T
        if family == "bernoulli":
            return (
                1.0 * (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))),
                list(truth.families),
                truth,
            )
        return eta + rng.standard_normal(eta.shape), list(truth.families), truth

    return make


def from_predictor(
    family: str, draw: Callable[[np.ndarray, np.random.Generator], np.ndarray]
) -> Make:
    """Return a maker of tables with another distribution given the predictors (N, J)."""

    def make(rng: np.random.Generator, n: int, strong: bool) -> Table:
        truth = wide_truth(rng, (family,), strong)
        eta = truth.predictor(truth.law.sample(n, rng))
        return draw(eta, rng), list(truth.families), truth

    return make


def missing_latent(family: str) -> Make:
    """Return a maker of tables with a fourth latent, an effect of the first, not fitted."""

    def make(rng: np.random.Generator, n: int, strong: bool) -> Table:
        truth = wide_truth(rng, (family,), strong)
        more = truth.law.sample(n, rng)
        fourth = rng.random(n) < np.where(more[:, 0] == 1, 0.7, 0.3)
        eta = truth.predictor(more)
        own = np.isin(np.arange(len(WIDE_Q)), (0, 1, 6, 7, 8))
        eta += np.outer(fourth - 0.5, own * truth.loadings.max(axis=1))
        drawn = eta + rng.standard_normal(eta.shape)
        if family == "bernoulli":
            drawn = 1.0 * (rng.random(eta.shape) < 1.0 / (1.0 + np.exp(-eta)))
        return drawn, list(truth.families), truth

    return make


def three_levels(rng: np.random.Generator, n: int, strong: bool) -> Table:
    """Return a table whose latents have three levels; two are fitted."""
    truth = wide_truth(rng, ("gaussian",), strong, levels=3)
    law = random_law(truth.dag, rng=rng)
    return (
        simulate(truth, n, rng=rng).X,
        list(truth.families),
        replace(truth, law=law, terms=None, loadings=1.0 * WIDE_Q),
    )


NONE: dict[str, Make] = {
    **{
        f"paper's {name}": of_design(name)
        for name in ("gaussian", "bernoulli", "poisson", "lognormal")
    },
    **{name: of_families(name) for name in ("gaussian", "bernoulli", "poisson")},
    "mixed": of_families("bernoulli", "gaussian", "poisson"),
    "ordinal": ordinal,
    "nominal": nominal,
    "several levels": several_levels,
}
OFF: dict[str, Make] = {
    "overdispersed counts": from_predictor(
        "poisson",
        lambda eta, rng: 1.0 * rng.poisson(np.exp(eta) * rng.gamma(3.0, 1 / 3.0, eta.shape)),
    ),
    "three levels": three_levels,
    "complementary log-log": from_predictor(
        "bernoulli",
        lambda eta, rng: 1.0 * (rng.random(eta.shape) > np.exp(-np.exp(0.7 * eta - 0.3))),
    ),
    "heavy tails": from_predictor(
        "gaussian", lambda eta, rng: eta + rng.standard_t(3.0, eta.shape)
    ),
    "response style": from_predictor(
        "bernoulli",
        lambda eta, rng: (
            1.0 * (rng.logistic(size=eta.shape) < eta + 0.8 * rng.standard_normal((len(eta), 1)))
        ),
    ),
    "missing latent, gaussian": missing_latent("gaussian"),
    "missing latent, bernoulli": missing_latent("bernoulli"),
    "continuous, gaussian": continuous("gaussian"),
    "continuous, bernoulli": continuous("bernoulli"),
}
#: CPU seconds of the tests of main effects.
TEST_SECONDS: list[float] = []


def time_tests() -> None:
    """Make fits record the CPU seconds of their tests."""
    plain = estimation.interacting_items

    def timed(*given):  # type: ignore[no-untyped-def]
        begin = time.process_time()
        found = plain(*given)
        TEST_SECONDS.append(time.process_time() - begin)
        return found

    estimation.interacting_items = timed


def compare(make: Make, seed: int, replicate: int) -> list[float]:
    """Return whether a table warns and has interactions, CPU seconds, SHD and Q of two fits."""
    rng = np.random.default_rng(seed)
    n, strong = ROWS[replicate % 4], (replicate // 4) % 2 == 0
    values, families, truth = make(rng, n, strong)
    given = {"q_matrix": truth.q_matrix, "n_starts": 8} if replicate % 3 == 2 else {}
    levels = truth.law.space.levels
    settings = {"family": families, "levels": levels, "random_state": seed, **given}
    TEST_SECONDS.clear()
    begin = time.process_time()
    main = DCRL(truth.n_latents, **settings).fit(values)
    seconds, tests = time.process_time() - begin, sum(TEST_SECONDS)
    auto = main
    if main.result_.interacting:
        auto = DCRL(truth.n_latents, effects="auto", **settings).fit(values)
    found = [evaluate(model, truth) for model in (main, auto)]
    warned = interactions_message(main.result_) is not None
    facts = [float(warned), float(bool(auto.terms_.interactions)), tests, seconds - tests]
    return facts + [value for one in found for value in (one.shd_graph, one.shd_q)]


def print_comparison(kinds: dict[str, Make], replicates: int, seed: int) -> None:
    """Print the table of part "none" or "off"."""
    for make in (of_families("gaussian"), of_design("gaussian")):
        compare(make, 0, 0)  # Compiles.
    print(f"{'':40} where interactions are found: SHD  wrong in Q")
    print("table                      number warned  found  tests/fit   main  auto   main  auto")
    rows: dict[str, np.ndarray] = {}
    for kind, make in kinds.items():
        seeds = np.random.SeedSequence([seed, *kind.encode()]).generate_state(replicates)
        rows[kind] = np.array([compare(make, int(s), r) for r, s in enumerate(seeds)])
        print_row(kind, rows[kind])
    print_row("all", np.concatenate(list(rows.values())))


def print_row(kind: str, facts: np.ndarray) -> None:
    """Print one line: numbers of tables, and means over those with interactions."""
    share = facts[:, 2].sum() / facts[:, 3].sum()
    changed = facts[facts[:, 1] == 1, 4:]
    means = changed.mean(axis=0)[[0, 2, 1, 3]] if len(changed) else np.full(4, np.nan)
    print(
        f"{kind:26} {len(facts):6} {int(facts[:, 0].sum()):6} {int(facts[:, 1].sum()):6} "
        f"{share:10.3f} " + " ".join(f"{value:6.2f}" for value in means),
        flush=True,
    )


def run(graph: str, effects: str, n: int, seed: int, asked: str, given_q: bool) -> list[float]:
    """Return whether a fit warns and has an interaction, SHD, wrong entries of Q, CPU seconds."""
    rng = np.random.default_rng(seed)
    law = random_law(dag_from_parents(PARENTS[graph]), rng=rng)
    truth = random_truth(law, Q, FAMILIES, effects=effects, rng=rng)
    values = simulate(truth, n, rng=rng).X
    given = {"q_matrix": Q} if given_q else {}
    begin = time.process_time()
    model = DCRL(3, effects=asked, family=list(FAMILIES), random_state=seed, **given).fit(values)
    seconds = time.process_time() - begin
    found = evaluate(model, truth)
    products = model.loadings_[:, model.terms_.n_main :]
    warned = interactions_message(model.result_) is not None
    return [float(warned), float(products.any()), found.shd_graph, found.shd_q, seconds]


def print_power(given: argparse.Namespace) -> None:
    """Print the table of part "power"."""
    run("chain", "all", 500, 0, "auto", False)  # Compiles.
    seeds = np.random.SeedSequence(given.seed).generate_state(given.replicates)
    print("graph     truth  fit    warned  interactions    SHD  wrong in Q   CPU s  ratio")
    for graph in given.graphs.split(","):
        for truth in given.truths.split(","):
            first = 0.0
            for asked in given.fits.split(","):
                rows = [
                    run(graph, truth, given.n, int(seed), asked, given.given_q) for seed in seeds
                ]
                mean = np.mean(rows, axis=0)
                first = first or mean[4]
                print(
                    f"{graph:9} {truth:6} {asked:6} {mean[0]:6.3f} {mean[1]:13.3f} {mean[2]:6.2f} "
                    f"{mean[3]:11.2f} {mean[4]:7.2f} {mean[4] / first:6.2f}",
                    flush=True,
                )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="power", choices=["power", "none", "off"])
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--truths", default="main,all", help="effects of the truths")
    parser.add_argument("--fits", default="main,auto,all", help="effects of the fits, main first")
    parser.add_argument("--graphs", default="chain,collider")
    parser.add_argument("--given-q", action="store_true")
    parser.add_argument("--kinds", help="kinds of tables of the other parts, separated by ;")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.part == "power":
        print_power(given)
        return
    time_tests()
    kinds = NONE if given.part == "none" else OFF
    if given.kinds:
        kinds = {kind: kinds[kind] for kind in given.kinds.split(";")}
    print_comparison(kinds, given.replicates, given.seed)


if __name__ == "__main__":
    main()
