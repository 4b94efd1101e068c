"""The documents keep their word: examples run, links lead somewhere, names exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import runpy
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from hidag import DCRL
from hidag.errors import SettingError

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
NOTATION = ROOT / "docs" / "notation.md"
PATHS = r"`((?:src|tests|examples|benchmarks|docs)/[\w./-]+)`"
LARGEST_PICTURE = 150_000


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_blocks(path: Path) -> str:
    """Return all Python of a page as one program: later blocks may use earlier ones."""
    return "\n".join(re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.S))


@pytest.fixture(scope="module")
def readme() -> dict:
    names: dict = {}
    exec(compile(python_blocks(ROOT / "README.md"), "README.md", "exec"), names)
    return names


def test_the_readme_example_finds_the_truth(readme, capsys) -> None:
    import hidag

    assert hidag.evaluate(readme["model"], readme["truth"]).shd == 0


def test_the_readme_examples_are_short() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    lengths = [len([line for line in block.splitlines() if line.strip()]) for block in blocks]
    assert lengths[0] <= 10
    assert max(lengths[1:]) <= 5


def test_the_readme_says_what_its_other_examples_find(readme) -> None:
    import hidag

    names = readme["steps"].terms_.names(readme["steps"].latent_names_)
    assert names == ["Z1>=1", "Z1>=2", "Z2", "Z3", "Z4", "Z5"]
    assert hidag.evaluate(readme["steps"], readme["graded"]).shd == 0
    assert (readme["pairs"].loadings_[:, 5:] != 0).sum() == 0
    assert readme["dina"].log_likelihood_ < readme["model"].log_likelihood_


def test_the_readme_lists_every_family() -> None:
    from hidag.observations.types import known_families

    text = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[^|]*) \| [^|]* \| [^|]* \|$", text.split("### Families")[1], re.M)
    listed = {name for row in rows for name in re.findall(r"`([a-z-]+)(?:\(\d+\))?`", row)}
    assert set(known_families()) <= listed


def test_the_readme_lists_every_command() -> None:
    from hidag.cli.app import app

    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    line = (ROOT / "README.md").read_text("utf-8").split("The other commands: `hidag ")[1]
    line = line.split(".")[0]
    assert names == {"fit", *re.findall(r"[\w-]+(?=`)", line)}


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in DOCUMENTS
        if path.name in ("baselines.md", "how_to_add.md", "how_to_add_a_family.md", "method.md")
    ],
    ids=relative,
)
def test_python_in_the_pages_runs(path, capsys) -> None:
    from hidag.measurement.families import KINDS

    before = dict(KINDS)
    try:
        exec(compile(python_blocks(path), path.name, "exec"), {"__name__": "page"})
    finally:
        for name in set(KINDS) - set(before):
            del KINDS[name]


def test_the_family_of_the_page_finds_its_effects(capsys) -> None:
    from hidag.measurement.families import KINDS

    names: dict = {"__name__": "page"}
    page = ROOT / "docs" / "how_to_add_a_family.md"
    try:
        exec(compile(python_blocks(page), page.name, "exec"), names)
    finally:
        KINDS.pop("geometric", None)
    assert abs(names["model"].loadings_ - 2.0).max() < 0.4


def test_the_papers_settings_fit() -> None:
    from hidag import design, simulate
    from hidag.latent import SaturatedLaw

    names: dict = {"__name__": "page"}
    exec(compile(python_blocks(ROOT / "docs" / "method.md"), "method.md", "exec"), names)
    truth = design("Chain-5", "Q1", "gaussian", rng=1)
    model = names["paper"].set_params(n_latents=5, family="gaussian", random_state=0)
    model.fit(simulate(truth, 500, rng=2).X)
    assert model.result_.method == "saem"
    assert isinstance(model.latent_law_, SaturatedLaw)
    assert model.result_.graph_rows == 500
    assert model.result_.edge_tests == ()


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_every_relative_link_leads_somewhere(path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
    missing = [
        target
        for target in targets
        if not target.startswith(("http://", "https://")) and not (path.parent / target).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_every_file_that_is_named_exists(path) -> None:
    named = re.findall(PATHS, path.read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    text = "\n".join(path.read_text("utf-8") for path in DOCUMENTS)
    named = set(re.findall(r"(?:^|`)make (\w+)", text, re.M))
    assert {"demo", "test"} <= named <= targets


def test_names_in_tables_of_how_to_add_are_in_their_files() -> None:
    pages = ("how_to_add.md", "how_to_add_a_family.md")
    text = "\n".join((ROOT / "docs" / page).read_text("utf-8") for page in pages)
    seen = 0
    for line in text.splitlines():
        files = re.findall(PATHS, line)
        if not line.startswith("|") or len(files) != 1 or not files[0].endswith(".py"):
            continue
        source = (ROOT / files[0]).read_text("utf-8")
        for name in re.findall(r"`([A-Za-z_]\w+(?:\.\w+)?)`", line.split("|")[2]):
            if (ROOT / Path(files[0]).parent / name).exists():
                continue
            assert name.split(".")[-1] in source, f"{name} is not in {files[0]}"
            seen += 1
    assert seen >= 12


def code_names() -> list[str]:
    """Return the names in the second column of the tables of notation.md."""
    rows = [line for line in NOTATION.read_text("utf-8").splitlines() if line.startswith("|")]
    cells = [row.split("|")[2] for row in rows]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def resolved(path: str) -> bool:
    """Return whether a dotted path leads to a module, a thing in it, or a field of that."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if is_dataclass(thing) and name in thing.__dataclass_fields__:
                return name == parts[-1]
            if not hasattr(thing, name):
                return False
            thing = getattr(thing, name)
        return True
    return False


def test_notation_has_the_papers_symbols() -> None:
    assert len(code_names()) >= 35


@pytest.mark.parametrize("name", sorted(set(code_names())))
def test_names_of_the_notation_exist(name, readme) -> None:
    setting = re.fullmatch(r"DCRL\((\w+)\)", name)
    if setting:
        assert setting[1] in inspect.signature(DCRL).parameters
    elif name.startswith("DCRL."):
        assert hasattr(readme["model"], name.removeprefix("DCRL."))
    else:
        assert name.startswith("hidag.")
        assert resolved(name)


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert not resolved("hidag.latent.StateSpace.nothing")
    assert not resolved("hidag.nothing")


def test_attributes_in_the_readme_exist(readme) -> None:
    rows = re.findall(r"^\| (`\w+_`[^|]*)\|", (ROOT / "README.md").read_text("utf-8"), re.M)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) >= 12
    assert [name for name in names if not hasattr(readme["model"], name)] == []
    documented = re.findall(r"(\w+_)\b(?=[ ,:])", DCRL.__doc__.split("Attributes")[1])
    assert set(documented) <= set(names)


def test_the_readme_says_how_many_latents_are_too_many() -> None:
    from hidag.latent import StateSpace
    from hidag.start.budget import choose_method

    assert "K up to 16" in (ROOT / "README.md").read_text("utf-8")
    assert choose_method("saem", 100, 40, StateSpace.binary(16), saturated=True) == "saem"
    assert choose_method("auto", 100, 400, StateSpace.binary(100), saturated=False) == "saem"
    with pytest.raises(SettingError):
        choose_method("saem", 100, 40, StateSpace.binary(17), saturated=True)


def test_the_page_on_baselines_states_the_numbers_that_the_code_has() -> None:
    from hidag.studies.baselines import (
        BASELINES,
        class_matching,
        component_counts,
        count_decomposition,
        factor_ges,
        latent_class,
        mixture_oracle,
        research_code,
    )

    text = " ".join((ROOT / "docs" / "baselines.md").read_text("utf-8").split())
    most = f"At most {mixture_oracle.MOST_ITEMS} items and {mixture_oracle.MOST_LATENTS} latents"
    stated = [
        most,
        f"counted in {component_counts.ROWS_FOR_TRIPLES:,} rows at the most",
        f"one beginning of {count_decomposition.RANDOM_BEGINNINGS + 1};",
        f"{latent_class.BEGINNINGS} beginnings from k-means",
        f"from {class_matching.BEGINNINGS} rotations",
        f"At most {latent_class.MOST_LATENTS} latents.",
        f"at least {factor_ges.LEAST_LOADING:g}".replace("0.", "."),
        f"for {research_code.MAX_ITER} steps at the most",
        *(f"## {name} " for name in BASELINES),
    ]
    assert [sentence for sentence in stated if sentence not in text] == []
    assert component_counts.SLACK == 1


def test_method_and_readme_state_the_numbers_that_the_code_has() -> None:
    from hidag import pipeline
    from hidag.cli.tables import LISTED_STATES
    from hidag.discover.score_choice import MOST_LEAN_STATES
    from hidag.discover.search import FEW_VARIABLES, PRIOR_WEIGHTS
    from hidag.estimate import law_rounds, posterior
    from hidag.estimate.network_support import MOST_CANDIDATES, MOST_CHOSEN_PARENTS
    from hidag.evidence import edge_tests, likelihood_search, single_changes
    from hidag.how_many import choice, neighbour_fits
    from hidag.how_many.rule import (
        LEAST_ITEMS,
        LOOK_BEYOND,
        MOST_BOTH_WAYS,
        NEAR_TIE,
        NO_EVIDENCE,
    )
    from hidag.latent.state_space import MAX_LISTED_STATES
    from hidag.row_posteriors import MOST_EXACT_STATES
    from hidag.select.run import MOST_NUMBERS
    from hidag.stage_one import effects
    from hidag.stage_one.run import STATES_FOR_SAMPLED_START
    from hidag.stage_one.sampled import MOST_PARENTS
    from hidag.start import (
        budget,
        by_sampling,
        crossing,
        exchange_levels,
        factor_count,
        graph_first,
        hops,
        levels,
        network_start,
        one_direction,
        sampling_road,
        splits,
        under_graph,
        with_law,
    )
    from hidag.thin_evidence import LITTLE_INFORMATION

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
        f"less than {under_graph.HARDLY_SEEN:g} of the latents' information".replace("0.", "."),
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
        f"from the first {posterior.ROWS_FOR_AVERAGES:,}",
        f"takes {words[law_rounds.FREE_STEPS]} unrestricted steps",
        f"for {words[law_rounds.MAX_ROUNDS]} rounds at the most",
        f"steps count as m = {law_rounds.STEPS_FREE}",
        f"{posterior.MOST_ROWS_WORTH:g} at the most: so an edge",
        f"{by_sampling.N_DRAWS} draws of the latents are retained",
        f"{words[MOST_CANDIDATES]} candidates at the most",
        f"at most {words[MOST_CHOSEN_PARENTS]} latents on its own choice",
        f"at most {sampling_road.THICKEST:g} N",
        f"for {words[by_sampling.MOST_CHOICES]} choices at the most",
        f"there, up to {words[by_sampling.MOST_SPLITS]} times",
        f"a latent at most {words[MOST_PARENTS]} parents",
        f"beyond doubt ({edge_tests.BEYOND_DOUBT:g} units",
        f"or {pipeline.MAX_EDGE_TESTS} tests were made",
        f"Below r = {posterior.HARDLY_SEEN:g} a test".replace("0.", "."),
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
        f"up to K = {MOST_EXACT_STATES.bit_length() - 1} | beyond: `predict_proba`",
        f"can be listed (K <= {MAX_LISTED_STATES.bit_length() - 1})",
        f"below r = {LITTLE_INFORMATION:.2f} `fit` warns".replace("0.", "."),
        f"on up to {levels.ROWS_FOR_LEVELS:,} rows. The assignment",
        f"the weights {', '.join(f'{w:g}' for w in PRIOR_WEIGHTS[:-1])} and {PRIOR_WEIGHTS[-1]:g}",
        f"({exchange_levels.MOST_EXCHANGES} exchanges at the most)",
        f"if it gains, for up to {words[exchange_levels.MOST_ROUNDS]} rounds",
        f'With at most {FEW_VARIABLES} latents `search="xges"` therefore',
        f"more than 2^{MOST_LEAN_STATES.bit_length() - 1} joint states, and while latents are",
        f"on up to {effects.ROWS_FOR_STARTS:,} rows under a saturated law",
        f"there are up to {words[effects.MAX_ROUNDS]} rounds.",
        f"those of {factor_count.N_SHUFFLES} tables whose columns were shuffled",
        f"have a BIC within {NEAR_TIE:g} of the best is taken",
        f"while fewer are better, {choice.MOST_NUMBERS} numbers at the most",
        f"goes down likewise, up to {MOST_NUMBERS} numbers, and",
        f"counting only latents with at least {LEAST_ITEMS} items",
        f"of numbers within {NO_EVIDENCE:g} of the best, the nearest to what was counted",
        f"At most {neighbour_fits.MOST_TRIED} latents of a fit are tried each way, in at most "
        f"{neighbour_fits.MOST_ROUNDS} rounds",
        f"until {LOOK_BEYOND} numbers on either side of the best are worse, {MOST_BOTH_WAYS} "
        "numbers at the most",
    ]
    assert [sentence for sentence in stated if sentence not in text] == []
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    listed, exact = budget.LARGEST_EXACT_STATES, MOST_EXACT_STATES
    for sentence in (
        f"(more than 2^{listed.bit_length() - 1} joint states",
        f"`log_likelihood_` is NaN past {listed.bit_length() - 1} latents",
        f"past {exact.bit_length() - 1} latents `predict_proba` and `predict` are sampled",
        f"`.probabilities` up to {MAX_LISTED_STATES.bit_length() - 1} latents",
        f"(joint states, up to {LISTED_STATES:,} of them)",
    ):
        assert sentence in readme


def test_reasons_for_caution_have_the_numbers_that_the_code_has() -> None:
    from hidag.estimate.posterior import HARDLY_SEEN
    from hidag.report.words import FEWEST_ITEMS, MUCH_MISSING

    text = " ".join((ROOT / "docs" / "after_the_fit.md").read_text("utf-8").split())
    for sentence in (
        f"latents with fewer than {FEWEST_ITEMS} items",
        f"less than {HARDLY_SEEN:g} of what seeing them would tell".replace("0.", "."),
        f"more than {MUCH_MISSING:g} of the cells missing".replace("0.", "."),
    ):
        assert sentence in text


def test_rows_that_counts_are_worth_are_those_of_the_page() -> None:
    from hidag.estimate.law_rounds import STEPS_FREE
    from hidag.estimate.posterior import rows_worth

    text = (ROOT / "docs" / "effective_size.md").read_text("utf-8")
    rows = re.findall(r"^\| (0\.\d+) \| (\d\.\d\d) \| (\d\.\d\d) \|$", text, re.M)
    assert len(rows) == 8
    for ratio, shown, worth in rows:
        assert f"{1 - (1 - float(ratio)) ** STEPS_FREE:.2f}" == shown
        assert f"{rows_worth(float(ratio), STEPS_FREE):.2f}" == worth
    # After one step N / r rows, after many r N.
    assert rows_worth(0.5, 1) == pytest.approx(2.0)
    assert rows_worth(0.3, 1000) == pytest.approx(0.3)


def test_readme_lists_every_benchmark() -> None:
    named = re.findall(r"benchmarks/(\w+\.py)", (ROOT / "README.md").read_text("utf-8"))
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert set(named) == scripts
    plain = {path.name for path in (ROOT / "benchmarks").glob("*.py") if has_no_options(path)}
    assert plain == {"fit.py"}


def has_no_options(path: Path) -> bool:
    return "argparse" not in path.read_text("utf-8")


#: Written in two parts, so that this file does not name them itself.
PRIVATE = [
    re.compile(pattern, re.I)
    for pattern in (
        r"(?<![\w.])/" + r"(?:work|home|root|Users|tmp|mnt)/",
        r"[A-Z]:\\" + r"Users",
        r"\bses" + r"sions?\b",
        r"\bissue" + r"s? #?\d",
        r"\bissue" + r" #",
        r"\bTO" + r"DO\b",
    )
]


@pytest.mark.parametrize(
    "path",
    [
        *DOCUMENTS,
        ROOT / "LICENSE",
        ROOT / ".pre-commit-config.yaml",
        *sorted((ROOT / "examples").glob("*.py")),
    ],
    ids=relative,
)
def test_documents_speak_of_the_project_alone(path) -> None:
    text = path.read_text("utf-8")
    assert [found[0] for pattern in PRIVATE if (found := pattern.search(text))] == []


def test_pictures_are_small() -> None:
    pictures = sorted((ROOT / "docs" / "images").glob("*.png"))
    assert pictures
    assert [p.name for p in pictures if p.stat().st_size >= LARGEST_PICTURE] == []


def test_hooks_are_those_of_continuous_integration() -> None:
    hooks = re.findall(r"entry: \.venv/bin/(.+)", (ROOT / ".pre-commit-config.yaml").read_text())
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert len(hooks) == 4
    assert [hook for hook in hooks if f"$(BIN)/{hook}\n" not in makefile] == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=relative)
def test_examples_say_what_they_are(path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def test_the_exploratory_example_finds_its_truth(capsys) -> None:
    runpy.run_path(str(ROOT / "examples" / "exploratory.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Z1" in printed
    assert "(0 latent pairs, 0 entries of Q)" in printed


def test_the_example_with_levels_finds_its_truth(capsys) -> None:
    runpy.run_path(str(ROOT / "examples" / "levels.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Z1>=1  Z1>=2  Z1>=3  Z2>=1  Z2>=2  Z3" in printed
    assert "(0 latent pairs, 0 entries of Q)" in printed


def test_the_example_with_interactions_prefers_the_true_model(capsys) -> None:
    runpy.run_path(str(ROOT / "examples" / "interactions.py"), run_name="__main__")
    printed = capsys.readouterr().out
    rows = re.findall(r"^  (main|dina|all) +(-[\d.]+) +(\d+) +([\d.]+)$", printed, re.M)
    bic = {name: float(value) for name, _, _, value in rows}
    height = {name: float(value) for name, value, _, _ in rows}
    assert min(bic, key=bic.__getitem__) == "dina"
    assert height["main"] < height["dina"] <= height["all"]
    assert len(re.findall(r"^  item_1[2-7] ", printed, re.M)) == 6


def test_the_confirmatory_example_says_the_graph_in_words(tmp_path, monkeypatch, capsys) -> None:
    import numpy as np

    from hidag import design, simulate

    truth = design("Chain-5", "Q1", "gaussian", rng=1)
    X = simulate(truth, 1500, rng=2).X
    np.savetxt(
        tmp_path / "responses.csv", X, "%.6g", ",", header=",".join(truth.item_names), comments=""
    )
    lines = ["item,A,B,C,D,E"]
    lines += [
        f"{name},{','.join(str(q) for q in row)}"
        for name, row in zip(truth.item_names, truth.q_matrix.tolist(), strict=True)
    ]
    (tmp_path / "q.csv").write_text("\n".join(lines) + "\n", "utf-8")
    monkeypatch.setattr(sys, "argv", ["confirmatory.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "confirmatory.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "A and B are joined; the data cannot tell which one is the cause.\n" in printed
