"""The pages state the numbers that the code has."""

from __future__ import annotations

import re

import pytest

from hidag.exceptions import SettingError

from .pages import ROOT


def test_the_readme_says_how_many_latents_are_too_many() -> None:
    from hidag.latent import StateSpace
    from hidag.strategy.algorithm_choice import choose_method

    assert "K up to 16" in (ROOT / "README.md").read_text("utf-8")
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
    from hidag_paper.baselines import latent_class as class_matching
    from hidag_paper.baselines import mixture_oracle as component_counts
    from hidag_paper.baselines import mixture_oracle as count_decomposition

    text = " ".join((ROOT / "docs" / "baselines.md").read_text("utf-8").split())
    most = f"At most {mixture_oracle.MOST_ITEMS} items and {mixture_oracle.MOST_LATENTS} latents"
    stated = [
        most,
        f"counted in {component_counts.ROWS_FOR_TRIPLES:,} rows at the most",
        f"one beginning of {count_decomposition.RANDOM_BEGINNINGS + 1};",
        f"{latent_class.BEGINNINGS} beginnings from k-means",
        f"from {class_matching.N_ROTATIONS} rotations",
        f"At most {latent_class.MOST_LATENTS} latents.",
        f"at least {factor_ges.LEAST_LOADING:g}".replace("0.", "."),
        f"for {research_code.MAX_ITER} steps at the most",
        *(f"## {name} " for name in BASELINES),
    ]
    assert [sentence for sentence in stated if sentence not in text] == []
    assert component_counts.SLACK == 1


def test_method_and_readme_state_the_numbers_that_the_code_has() -> None:
    from hidag.cli.output_files import LISTED_STATES
    from hidag.config import CONFIG
    from hidag.fitting import graph_stage as pipeline
    from hidag.fitting import number_of_latents as choice
    from hidag.fitting import number_of_latents as neighbour_fits
    from hidag.fitting.fit_warnings import LOW_INFORMATION
    from hidag.fitting.number_of_latents import (
        LEAST_ITEMS,
        LOOK_BEYOND,
        MOST_BOTH_WAYS,
        NEAR_TIE,
        NO_EVIDENCE,
    )
    from hidag.initialization import common_factors as network_start
    from hidag.initialization import factor_count, levels
    from hidag.initialization import levels as exchange_levels
    from hidag.latent.state_space import MAX_LISTED_STATES
    from hidag.model_selection.selection import MOST_NUMBERS
    from hidag.strategy import algorithm_choice as budget
    from hidag.strategy import algorithm_choice as with_law
    from hidag.strategy import interactions as effects
    from hidag.strategy import saem_network as by_sampling
    from hidag.strategy import saem_network as sampling_road
    from hidag.strategy import structural_em as law_rounds
    from hidag.strategy import structural_multistart as graph_first
    from hidag.strategy import structural_multistart as under_graph
    from hidag.strategy.estimation import STATES_FOR_SAMPLED_START
    from hidag.strategy.measurement import MOST_PARENTS
    from hidag.strategy.moves import basin_hopping as hops
    from hidag.strategy.moves import recombination as crossing
    from hidag.strategy.moves import recombination as one_direction
    from hidag.strategy.moves import split_moves as splits
    from hidag.strategy.observed_likelihood import edge_tests, likelihood_search
    from hidag.strategy.observed_likelihood import likelihood_search as single_changes
    from hidag.structure.graph_search import (
        EQUIVALENT_SAMPLE_SIZES,
        MAX_EXACT_LEAN_VARIABLES,
    )
    from hidag.structure.scores import MAX_LEAN_STATES

    text = " ".join((ROOT / "docs" / "method.md").read_text("utf-8").split())
    words = {3: "three", 4: "four", 6: "six", 8: "eight", 10: "ten"}
    shares = {0.25: "a quarter"}
    stated = [
        f"2^K <= 2^{budget.LARGEST_EXACT_STATES.bit_length() - 1} and "
        f"N J 2^K <= {budget.LARGEST_EXACT_WORK / 1e9:g}e9",
        f"listed, up to K = {budget.LARGEST_STATES.bit_length() - 1}",
        f"From 2^{STATES_FOR_SAMPLED_START.bit_length() - 1} joint states on",
        f"at least {network_start.KEPT_SHARE:.2f} of".replace("0.", "."),
        f"a cosine of at least {under_graph.SAME_DIRECTIONS:.2f}".replace("0.", "."),
        f"else {words[under_graph.STARTS_IN_DOUBT]} are run",
        f"less than {CONFIG.information.low_ratio:g} of the latents' information".replace(
            "0.", "."
        ),
        f"up to {words[crossing.MOST_ENDS]} starts that lead to different places",
        f"a cosine below {crossing.SAME_PLACE:.2f})".replace("0.", "."),
        f"with {words[int(crossing.ENDS_TOLERANCE)]} times the final tolerance",
        f"after {words[crossing.STEPS_OF_EXCHANGE]} steps of EM",
        f"{hops.STEPS_OF_LAW} steps of EM in which items move along",
        f"lifted*: {hops.STEPS_LIFTED} steps of EM without it",
        "at least {:.2f} of its largest ({:.1f} if".format(*hops.KEPT_SHARES).replace("0.", "."),
        f"{words[network_start.MOST_START_PARENTS]} at the most, for "
        f"{words[hops.STEPS_ON_SUPPORT]} steps",
        f"for {hops.MOST_HOPS} hops at the most",
        f"then others, up to {words[hops.MOST_HOPPING]}, until the best so far",
        f"more than {shares[one_direction.LARGEST_SHARE_AGAINST]} of the loadings",
        f"on up to {under_graph.ROWS_FOR_FIRST_STEPS:,} rows",
        f"At most {with_law.FEW_STATES} joint states".lower(),
        f"{under_graph.BRIEF_TOLERANCE:g} times the final one",
        f"from the first {CONFIG.information.n_rows:,}",
        f"takes {words[law_rounds.FREE_STEPS]} unrestricted steps",
        f"for {words[law_rounds.MAX_ROUNDS]} rounds at the most",
        f"steps count as m = {law_rounds.STEPS_FREE}",
        f"{CONFIG.information.max_effective_ratio:g} at the most: so an edge",
        f"{by_sampling.N_DRAWS} draws of the latents are retained",
        f"{words[CONFIG.network_em.max_candidates]} candidates at the most",
        f"at most {words[CONFIG.network_em.max_item_latents]} latents on its own choice",
        f"at most {sampling_road.THICKEST:g} N",
        f"for {words[by_sampling.MOST_CHOICES]} choices at the most",
        f"there, up to {words[by_sampling.MOST_SPLITS]} times",
        f"a latent at most {words[MOST_PARENTS]} parents",
        f"beyond doubt ({edge_tests.BEYOND_DOUBT:g} units",
        f"or {pipeline.MAX_EDGE_TESTS} tests were made",
        f"Below r = {CONFIG.information.low_ratio:g} a test".replace("0.", "."),
        f"cheap enough for {words[likelihood_search.FEWEST_FITS]} fits or more",
        f"members of the graph's class (up to {single_changes.MOST_MEMBERS})",
        f"after {words[likelihood_search.MOST_TRIED]} that are not, edges are turned round",
        f"or {likelihood_search.MOST_FITS} graphs were fitted",
        f"in {graph_first.STEPS_ALONE} steps under *independent* latents",
        f"taken on up to {graph_first.ROWS_FOR_GRAPH:,} rows",
        f"in the same state in {splits.HALVES_AGREE:g} of the rows".replace("0.", "."),
        f"their side in {splits.STEPS_APART} steps without penalty",
        f"{words[splits.MOST_SPLITS].capitalize()} latents are tried",
        f"for up to {words[splits.MOST_ROUNDS]} rounds",
        f"costs another {crossing.PRICE_OF_IDLE:g} units",
        f"up to K = {CONFIG.network_em.max_listed_states.bit_length() - 1}; beyond, "
        "where no group of latents that hang together has more than "
        f"2^{CONFIG.network_em.max_clique_cells.bit_length() - 1} "
        "states",
        f"can be listed (K <= {MAX_LISTED_STATES.bit_length() - 1})",
        f"below r = {LOW_INFORMATION:.2f} `fit` warns".replace("0.", "."),
        f"on up to {levels.ROWS_FOR_LEVELS:,} rows. The assignment",
        f"the weights {', '.join(f'{w:g}' for w in EQUIVALENT_SAMPLE_SIZES[:-1])} "
        f"and {EQUIVALENT_SAMPLE_SIZES[-1]:g}",
        f"({exchange_levels.MOST_EXCHANGES} exchanges at the most)",
        f"if it gains, for up to {words[exchange_levels.MOST_ROUNDS]} rounds",
        f'With at most {MAX_EXACT_LEAN_VARIABLES} latents `search="xges"` therefore',
        f"more than 2^{MAX_LEAN_STATES.bit_length() - 1} joint states, and while latents are",
        f"on up to {effects.ROWS_FOR_STARTS:,} rows under a saturated law",
        f"there are up to {words[effects.MAX_ROUNDS]} rounds.",
        f"those of {factor_count.N_SHUFFLES} tables whose columns were shuffled",
        f"have a BIC within {NEAR_TIE:g} of the best is taken",
        f"while fewer are better, {choice.MOST_NUMBERS} numbers at the most",
        f"goes down likewise, up to {MOST_NUMBERS} numbers, and",
        f"counting only latents with at least {LEAST_ITEMS} items",
        f"of numbers within {NO_EVIDENCE:g} of the best, the largest",
        f"At most {neighbour_fits.MOST_TRIED} latents of a fit are tried each way, in at most "
        f"{neighbour_fits.MOST_ROUNDS} rounds",
        f"until {LOOK_BEYOND} numbers on either side of the best are worse, {MOST_BOTH_WAYS} "
        "numbers at the most",
    ]
    assert [sentence for sentence in stated if sentence not in text] == []
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    listed, exact = budget.LARGEST_EXACT_STATES, CONFIG.network_em.max_listed_states
    for sentence in (
        f"(more than 2^{listed.bit_length() - 1} joint states",
        f"past {listed.bit_length() - 1} latents `log_likelihood_`, statistics of fit and",
        f"past {exact.bit_length() - 1} latents `predict_proba` and `predict` are sampled there",
        f"`.probabilities` up to {MAX_LISTED_STATES.bit_length() - 1} latents",
        f"(joint states, up to {LISTED_STATES:,} of them)",
    ):
        assert sentence in readme


def test_reasons_for_caution_have_the_numbers_that_the_code_has() -> None:
    from hidag.config import CONFIG
    from hidag.reporting.fit_description import HIGH_MISSING_SHARE, MIN_ITEMS

    text = " ".join((ROOT / "docs" / "after_the_fit.md").read_text("utf-8").split())
    for sentence in (
        f"latents with fewer than {MIN_ITEMS} items",
        f"less than {CONFIG.information.low_ratio:g} of what seeing them would tell".replace(
            "0.", "."
        ),
        f"more than {HIGH_MISSING_SHARE:g} of the cells missing".replace("0.", "."),
    ):
        assert sentence in text


def test_rows_that_counts_are_worth_are_those_of_the_page() -> None:
    from hidag.em.information import effective_sample_ratio
    from hidag.strategy.structural_em import STEPS_FREE

    text = (ROOT / "docs" / "effective_size.md").read_text("utf-8")
    rows = re.findall(r"^\| (0\.\d+) \| (\d\.\d\d) \| (\d\.\d\d) \|$", text, re.M)
    assert len(rows) == 8
    for ratio, shown, worth in rows:
        assert f"{1 - (1 - float(ratio)) ** STEPS_FREE:.2f}" == shown
        assert f"{effective_sample_ratio(float(ratio), STEPS_FREE):.2f}" == worth
    # After one step N / r rows, after many r N.
    assert effective_sample_ratio(0.5, 1) == pytest.approx(2.0)
    assert effective_sample_ratio(0.3, 1000) == pytest.approx(0.3)
