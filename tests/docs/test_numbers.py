"""The pages state the numbers that the code has."""

from __future__ import annotations

import importlib
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from hidag.config import CONFIG
from hidag.exceptions import SettingError

from .pages import ROOT

WORDS = {3: "three", 4: "four", 5: "five", 6: "six", 8: "eight", 10: "ten"}


def page(name: str) -> str:
    """Return a page as one line of text."""
    return " ".join((ROOT / name).read_text("utf-8").split())


def constant(path: str) -> Any:
    """Return a constant of ``CONFIG``, or of the module with a given name."""
    if path.startswith("CONFIG."):
        return attrgetter(path.removeprefix("CONFIG."))(CONFIG)
    stem, name = path.split(".")
    definition = re.compile(rf"^(?:\w+, )*{name}\b", re.M)
    files = [
        file
        for file in (ROOT / "src").rglob(f"{stem}.py")
        if definition.search(file.read_text("utf-8"))
    ]
    assert len(files) == 1, f"{path} is defined {len(files)} times"
    return getattr(importlib.import_module(module_name(files[0])), name)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)


def power(value: int) -> int:
    """Return the exponent of a power of two."""
    assert value & (value - 1) == 0
    return value.bit_length() - 1


def decimal(value: float) -> str:
    return f"{value:g}".replace("0.", ".", 1)


def test_constants_are_found_by_their_modules_name() -> None:
    assert constant("CONFIG.fit_warnings.low_information") == 0.05
    with pytest.raises(AssertionError):
        constant("measurement.NO_SUCH_NAME")


def test_the_readme_states_the_largest_number_of_latents() -> None:
    from hidag.latent import StateSpace
    from hidag.strategy.problem import choose_method

    assert "K up to 16" in page("README.md")
    assert choose_method("saem", 100, 40, StateSpace.binary(16), saturated=True) == "saem"
    assert choose_method("auto", 100, 400, StateSpace.binary(100), saturated=False) == "saem"
    with pytest.raises(SettingError):
        choose_method("saem", 100, 40, StateSpace.binary(17), saturated=True)


def test_the_page_on_baselines_states_the_numbers_that_the_code_has() -> None:
    from hidag_paper.baselines import (
        BASELINES,
        factor_ges,
        latent_class,
        mixture_oracle,
        research_code,
    )

    text = page("docs/baselines.md")
    stated = [
        f"At most {mixture_oracle.MAX_ITEMS} items and {mixture_oracle.MAX_LATENTS} latents",
        f"counted in {mixture_oracle.ROWS_FOR_TRIPLES:,} rows at most",
        f"one start of {mixture_oracle.N_RANDOM_STARTS + 1};",
        f"{latent_class.N_STARTS} starts from k-means",
        f"from {latent_class.N_ROTATIONS} rotations",
        f"At most {latent_class.MAX_LATENTS} latents.",
        f"at least {decimal(factor_ges.MIN_LOADING)}",
        f"for {research_code.MAX_ITER} steps at most",
        *(f"`{name}`" for name in BASELINES),
    ]
    assert [sentence for sentence in stated if sentence not in text] == []
    assert mixture_oracle.SLACK == 1


#: Constants and the sentence of the specification that states them.
SPECIFICATION = [
    (
        ("CONFIG.enumeration.largest_exact_states", "CONFIG.enumeration.largest_exact_work"),
        lambda s, w: f"2^K <= 2^{power(s)} and N J 2^K <= {w / 1e9:g}e9",
    ),
    (("CONFIG.enumeration.largest_states",), lambda s: f"exact EM, up to K = {power(s)}"),
    (
        ("CONFIG.saturated_saem.states_for_sampled_start",),
        lambda s: f"From 2^{power(s)} joint states on",
    ),
    (
        ("CONFIG.initialization.loading_shares", "CONFIG.initialization.max_item_latents"),
        lambda shares, most: (
            f"at least {decimal(shares[0])} of its largest ({decimal(shares[1])} in every other "
            f"start of this kind), {WORDS[most]} at most"
        ),
    ),
    (
        ("CONFIG.exploratory.same_directions", "CONFIG.exploratory.starts_on_disagreement"),
        lambda cosine, n: (
            f"a cosine of at least {decimal(cosine)}, and latents are binary, the first is used "
            f"alone, with more levels both; otherwise {WORDS[n]} are used"
        ),
    ),
    (
        ("CONFIG.exploratory.rows_for_first_steps", "CONFIG.exploratory.brief_tolerance"),
        lambda n, t: (
            f"fitted to up to {n:,} rows: ten SAEM steps on its own support, a few EM steps under "
            f"a saturated law with a tolerance of {t:g} times the final one"
        ),
    ),
    (
        ("CONFIG.exploratory.steps_under_independence", "CONFIG.exploratory.rows_for_weak_items"),
        lambda s, n: f"take {s} EM steps under *independent* latents on up to {n:,} rows",
    ),
    (
        ("CONFIG.optima.most_ends", "CONFIG.optima.same_optimum_cosine"),
        lambda n, cosine: (
            f"Up to {WORDS[n]} candidates that lead to different optima (some latent's loadings "
            f"have a cosine below {decimal(cosine)})"
        ),
    ),
    (
        ("CONFIG.optima.ends_tolerance",),
        lambda t: f"at {WORDS[t]} times the final tolerance",
    ),
    (
        ("CONFIG.optima.largest_share_against",),
        lambda s: f"more than {'a quarter' if s == 0.25 else s} of the loadings are negative",
    ),
    (
        ("CONFIG.unpenalised_steps.n_steps", "CONFIG.unpenalised_steps.steps_on_support"),
        lambda steps, brief: f"{steps} EM steps without the penalty, then {WORDS[brief]} with",
    ),
    (
        ("CONFIG.unpenalised_steps.loading_shares",),
        lambda shares: f"at least {decimal(shares[0])} (or {decimal(shares[1])}) of each item's",
    ),
    (
        ("CONFIG.unpenalised_steps.most_moves", "CONFIG.unpenalised_steps.least_gain"),
        lambda most, gain: f"up to {most} from the best while they raise the criterion by {gain:g}",
    ),
    (("CONFIG.optima.unused_latent_cost",), lambda cost: f"costs another {cost:g} units"),
    (
        ("CONFIG.confirmatory.fewest_starts", "CONFIG.confirmatory.most_starts"),
        lambda low, high: f"**Starts**: {low} to {high}, as many as the cost",
    ),
    (("CONFIG.confirmatory.short_steps",), lambda s: f"**Short runs** of {s} EM steps"),
    (
        ("CONFIG.confirmatory.final_tolerance",),
        lambda t: f"**A final run** at {decimal(t)} of the tolerance",
    ),
    (
        ("CONFIG.structural_em.unconstrained_updates", "CONFIG.structural_em.max_rounds"),
        lambda n, rounds: (
            f"takes {WORDS[n]} unconstrained updates with fixed coefficients, each as long as two "
            "EM steps. The next graph is learned from that law. This is repeated until the graph "
            f"is unchanged, for {WORDS[rounds]} rounds at most"
        ),
    ),
    (
        ("CONFIG.structural_em.unconstrained_steps",),
        lambda m: f"with m = {m} ([effective_size.md]",
    ),
    (("CONFIG.levels.n_rows",), lambda n: f"common variance, on up to {n:,} rows"),
    (("CONFIG.levels.root_states",), lambda n: f"at most {n:,} joint states"),
    (
        ("CONFIG.graph_search.max_exact_lean_variables",),
        lambda n: f'`search="xges"` is exact with at most {n} latents',
    ),
    (
        ("CONFIG.graph_search.max_lean_states",),
        lambda n: f"than 2^{power(n)} joint states, and while latents",
    ),
    (
        ("CONFIG.graph_search.equivalent_sample_sizes",),
        lambda w: f"the weights {', '.join(f'{one:g}' for one in w[:-1])} and {w[-1]:g}",
    ),
    (
        ("CONFIG.interactions.rows_for_starts",),
        lambda n: f"on up to {n:,} rows under a saturated law",
    ),
    (
        ("CONFIG.interactions.max_rounds",),
        lambda n: f"takes its products along; up to {WORDS[n]} rounds",
    ),
    (("CONFIG.saem_network.n_draws",), lambda n: f"uses {n} draws of the latents"),
    (("CONFIG.saem_network.max_row_multiple",), lambda n: f"count for N / r rows, at most {n:g} N"),
    (
        ("CONFIG.saem_network.most_choices",),
        lambda n: f"alternate for {WORDS[n]} selections at most",
    ),
    (("CONFIG.saem_network.most_splits",), lambda n: f"least used latent, up to {WORDS[n]} times"),
    (("CONFIG.structural_em.max_parents",), lambda n: f"A latent has at most {WORDS[n]} parents"),
    (("CONFIG.graph_stage.max_edge_tests",), lambda n: f"or {n} tests were made"),
    (
        ("CONFIG.likelihood_search.fewest_fits",),
        lambda n: f"E-steps cheap enough for {WORDS[n]} fits or more",
    ),
    (("CONFIG.likelihood_search.most_members",), lambda n: f"of the equivalence class (up to {n})"),
    (
        ("CONFIG.likelihood_search.most_tried",),
        lambda n: f"after {WORDS[n]} failures edges are reversed",
    ),
    (("CONFIG.likelihood_search.most_fits",), lambda n: f"or {n} graphs were fitted"),
    (
        ("CONFIG.factor_count.n_permutations",),
        lambda n: f"those of {n} tables whose columns were permuted",
    ),
    (("CONFIG.selection.near_tie",), lambda n: f"whose fit has a BIC within {n:g} of the best"),
    (
        ("CONFIG.selection.max_auto_fits",),
        lambda n: f"while the criterion improves, {n} numbers at most",
    ),
    (("CONFIG.selection.max_select_fits",), lambda n: f"same rule with up to {n} numbers"),
    (
        ("CONFIG.selection.n_neighbours", "CONFIG.selection.max_low_information_fits"),
        lambda n, most: f"until {n} numbers on either side of the best are worse, {most} numbers",
    ),
    (
        ("CONFIG.selection.min_items", "CONFIG.selection.no_evidence"),
        lambda items, tie: (
            f"counting only latents with at least {items} items; a latent without {items} pure "
            f"items costs one parameter more; among numbers within {tie:g} of the best"
        ),
    ),
    (
        ("CONFIG.selection.max_neighbour_starts", "CONFIG.selection.max_neighbour_rounds"),
        lambda n, rounds: (
            f"at most {n} latents of a fit are tried in each direction, in at most {rounds} rounds"
        ),
    ),
]


@pytest.mark.parametrize(
    ("names", "sentence"), SPECIFICATION, ids=[names[0] for names, _ in SPECIFICATION]
)
def test_the_specification_states_constants_of_the_code(names, sentence) -> None:
    assert sentence(*map(constant, names)) in page("docs/specification.md")


def test_the_specification_states_the_configuration() -> None:
    information, network, em = CONFIG.information, CONFIG.network_em, CONFIG.em
    text = page("docs/specification.md")
    stated = [
        f"information ratio r below {decimal(information.low_ratio)}",
        f"Below r = {decimal(information.low_ratio)}, with binary latents",
        f"{information.max_effective_ratio:g} at most, with m",
        f"from the first {information.n_rows:,} rows",
        f"grow by {em.relaxation_growth:g} up to {'five' if em.max_relaxation == 5 else em}",
        f"from the last {em.gain_window} iterations",
        f"(at most {em.max_tolerance_rows} rows count)",
        f"noise share below {decimal(CONFIG.m_step.low_noise_share)}",
        f"from at least {WORDS[CONFIG.support.min_loadings]} loadings",
        f"log(N)/2 + {CONFIG.support.log_terms_factor:g} log(K)",
        f"higher; up to {WORDS[CONFIG.support.max_rounds]} rounds",
        f"screens {WORDS[network.max_candidates]} candidates at most",
        f"selects at most {WORDS[network.max_item_latents]} latents",
        f"at most {network.max_iter} steps of junction-tree EM",
        f"below {decimal(network.remaining_gain)} of log-likelihood",
        f"up to K = {power(network.max_listed_states)}; beyond, where no clique has more than "
        f"2^{power(network.max_clique_cells)} states",
        f"finds the best graph of at most {CONFIG.graph_search.max_exact_variables} latents",
    ]
    assert [sentence for sentence in stated if sentence not in text] == []


def test_rationale_and_readme_state_the_numbers_that_the_code_has() -> None:
    from hidag.cli.output_files import LISTED_STATES
    from hidag.latent.state_space import MAX_LISTED_STATES

    enumerable = power(MAX_LISTED_STATES)
    low = decimal(constant("CONFIG.fit_warnings.low_information"))
    rationale = page("docs/rationale.md")
    assert f"Below r = {low} `fit` warns" in rationale
    assert f"can be enumerated (K <= {enumerable})" in rationale
    readme = page("README.md")
    listed = power(constant("CONFIG.enumeration.largest_exact_states"))
    exact = power(CONFIG.network_em.max_listed_states)
    for sentence in (
        f"(more than 2^{listed} joint states",
        f"beyond {listed} latents `log_likelihood_`, fit statistics and",
        f"beyond {exact} latents `predict_proba` and `predict` are sampled there",
        f"`.probabilities` up to {enumerable} latents",
        f"(joint states, up to {LISTED_STATES:,} of them)",
    ):
        assert sentence in readme


def test_reasons_for_caution_have_the_numbers_that_the_code_has() -> None:
    from hidag.reporting.fit_description import HIGH_MISSING_SHARE, MIN_ITEMS

    text = page("docs/after_the_fit.md")
    for sentence in (
        f"latents with fewer than {MIN_ITEMS} items",
        f"an information ratio below {decimal(CONFIG.information.low_ratio)}",
        f"more than {decimal(HIGH_MISSING_SHARE)} of the cells missing",
    ):
        assert sentence in text


def test_effective_rows_are_those_of_the_page() -> None:
    from hidag.em.information import effective_sample_ratio

    steps = constant("CONFIG.structural_em.unconstrained_steps")
    text = (ROOT / "docs" / "effective_size.md").read_text("utf-8")
    rows = re.findall(r"^\| (0\.\d+) \| (\d\.\d\d) \| (\d\.\d\d) \|$", text, re.M)
    assert len(rows) == 8
    for ratio, attenuation, effective in rows:
        assert f"{1 - (1 - float(ratio)) ** steps:.2f}" == attenuation
        assert f"{effective_sample_ratio(float(ratio), steps):.2f}" == effective
    # After one step N / r rows, after many r N.
    assert effective_sample_ratio(0.5, 1) == pytest.approx(2.0)
    assert effective_sample_ratio(0.3, 1000) == pytest.approx(0.3)
