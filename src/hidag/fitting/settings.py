"""Settings of a fit: validation, with errors that name the setting, and the estimation task."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from hidag.config import CONFIG
from hidag.data.item_types import FamilyChoice, resolve_families
from hidag.data.q_matrix import QSpec, read_q_matrix
from hidag.data.rows import select_weighted_rows, warn_of_empty_rows
from hidag.data.table import Observations, check_names
from hidag.data.value_checks import (
    check_values,
    warn_of_codes,
    warn_of_dates,
    warn_of_duplicate_columns,
    warn_of_row_ids,
    warn_of_values,
)
from hidag.em.em import Schedule
from hidag.exceptions import (
    Choices,
    HidagWarning,
    IdentifiabilityWarning,
    KnowledgeWarning,
    Setting,
    SettingError,
    invalid_setting,
)
from hidag.formatting import plural
from hidag.latent.counts import ResampleRule, resample_size
from hidag.latent.state_space import MAX_LEVELS, StateSpace
from hidag.measurement.parameters import Responses
from hidag.measurement.penalties import Penalty, default_penalty
from hidag.measurement.terms import Effects, Terms
from hidag.parallel import total_memory
from hidag.strategy.estimation import LAWS, StageOneSettings
from hidag.strategy.problem import Nuisance
from hidag.structure.graph_search import SEARCHES, check_exact_size
from hidag.structure.knowledge import Knowledge, check_knowledge
from hidag.structure.scores import SCORES

UNCERTAINTY = ("none", "quick", "full")
CHECKS = ("none", "quick")
#: Frames between ``warnings.warn`` and the caller of ``fit``.
_STACK = 4
#: Key of the text of a setting that is a function or an object.
NOT_STORED = "not stored"
#: Settings that may be arrays.
_ARRAYS = ("q_matrix", "levels", "family", "latent_names")


def refuse_arrays(settings: Mapping[str, Any]) -> None:
    """Raise if a setting that has one value is an array, or words are no mapping."""
    for name, value in settings.items():
        if isinstance(value, np.ndarray) and name not in _ARRAYS:
            raise invalid_setting(name, "one value, not an array", f"shape {value.shape}")
    words = settings.get("words")
    if words is not None and not isinstance(words, Mapping):
        raise invalid_setting("words", "a mapping from items to their labels", words)


def checked_count(name: str, value: Any) -> int:
    """Return an integer from 1 to its limit, or raise a `SettingError`."""
    if not _is_whole(value) or value < 1:
        raise invalid_setting(name, "a whole number of at least 1", value)
    most = getattr(CONFIG.limits, name, CONFIG.limits.count)
    if value > most:
        raise invalid_setting(name, f"at most {most:,}", value)
    return int(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


#: Ending of a number of levels with linear steps.
LINEAR = "-linear"
_NUISANCE = "a list of items, or a mapping from names to such lists"


def checked_levels(value: Any, n_latents: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return each latent's number of levels, and those with linear steps, or raise an error."""
    many = not isinstance(value, (str, bytes)) and hasattr(value, "__iter__")
    given = list(value) if many else [value] * n_latents
    linear = [isinstance(m, str) and m.endswith(LINEAR) for m in given]
    texts = [m.removesuffix(LINEAR) if isinstance(m, str) else m for m in given]
    counts: list[Any] = [int(m) if isinstance(m, str) and m.isdecimal() else m for m in texts]
    whole = all(_is_whole(m) and 2 <= m <= MAX_LEVELS for m in counts)
    if not whole or len(given) != n_latents:
        each = f"{n_latents} of them (one for each latent), also with equal steps ('4{LINEAR}')"
        expected = f"'auto', a whole number from 2 to {MAX_LEVELS}, or {each}"
        raise invalid_setting("levels", expected, value)
    steps = tuple(k for k, m in enumerate(counts) if linear[k] and m > 2)
    return tuple(int(m) for m in counts), steps


def levels_setting(terms: Terms) -> list[int | str]:
    """Return the setting of the levels that some terms have."""
    return [f"{m}{LINEAR}" if k in terms.linear else m for k, m in enumerate(terms.levels)]


def read_nuisances(
    nuisance: Any, doublets: Any, names: Sequence[str], responses: Responses
) -> tuple[Nuisance, ...]:
    """Return the nuisances that the settings of these names describe."""
    out: list[Nuisance] = []
    nominal = np.bincount(responses.item, minlength=len(names)) > 1

    def add(name: str, items: Any, paired: bool) -> None:
        setting = "doublets" if paired else "nuisance"
        if isinstance(items, str) or not hasattr(items, "__iter__"):
            whole = doublets if paired else nuisance
            raise invalid_setting(setting, "lists of names or numbers of items", whole)
        found = []
        for one in (items := list(items)):
            place = names.index(str(one)) if str(one) in names else one
            if not _is_whole(place) or not 0 <= place < len(names):
                raise invalid_setting(setting, "names or numbers of items", one)
            found.append(int(place))
        needed = 2 if paired else 3
        if len(set(found)) < needed or (paired and len(found) > 2) or nominal[found].any():
            kind = "two different items" if paired else "three or more items"
            raise invalid_setting(setting, f"{kind} that are not nominal", items)
        signs = np.isin(responses.item, found).astype(np.int8)
        levels = CONFIG.nuisance.pair_levels if paired else CONFIG.nuisance.style_levels
        out.append(Nuisance(name, signs, levels, paired))

    if isinstance(nuisance, str):
        if nuisance != "style":
            raise invalid_setting("nuisance", Choices(("style",), _NUISANCE), nuisance)
        add("style", np.flatnonzero(~nominal).tolist(), paired=False)
    elif isinstance(nuisance, Mapping):
        for name, items in nuisance.items():
            add(str(name), items, paired=False)
    elif nuisance is not None:
        if not hasattr(nuisance, "__iter__"):
            raise invalid_setting("nuisance", Choices(("style",), _NUISANCE), nuisance)
        add("style", nuisance, paired=False)
    if isinstance(doublets, str) or (not hasattr(doublets, "__iter__") and doublets is not None):
        raise invalid_setting("doublets", "a list of pairs of items", doublets)
    for pair in () if doublets is None else doublets:
        shown = pair if hasattr(pair, "__iter__") else ()
        add(" & ".join(map(str, shown)), pair, paired=True)
    return tuple(out)


def root_seed(random_state: Any) -> int:
    """Return the seed of all random numbers of a fit."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(2))
    if _is_whole(random_state):
        if random_state < 0 or int(random_state).bit_length() > CONFIG.limits.seed_bits:
            expected = f"at least 0 and below 2^{CONFIG.limits.seed_bits}"
            raise invalid_setting("random_state", expected, random_state)
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 62))
    try:
        return int(check_random_state(random_state).randint(0, 2**31 - 1))
    except ValueError as error:
        expected = "a whole number, a NumPy generator or None"
        raise invalid_setting("random_state", expected, random_state) from error


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads: 1 for None, all available ones for -1."""
    if n_jobs is None:
        return 1
    if n_jobs == -1:
        return max(1, int(cpu_count(only_physical_cores=False)))
    most = CONFIG.limits.n_jobs
    if not _is_whole(n_jobs) or not 1 <= n_jobs <= most:
        raise invalid_setting("n_jobs", f"-1 or from 1 to {most:,}", n_jobs)
    return int(n_jobs)


def chosen_penalty(
    name: str | None,
    n_samples: float,
    n_latents: int,
    strength: float | None = None,
    threshold: float | None = None,
) -> Penalty:
    """Return the initial penalty; ``strength`` and ``threshold`` have defaults for None."""
    for setting, given in (("penalty_strength", strength), ("penalty_threshold", threshold)):
        if given is not None and not isinstance(given, Real):
            raise invalid_setting(setting, "a number or None", given)
    chosen = default_penalty(name, n_samples, n_latents)
    if strength is not None:
        chosen = replace(chosen, strength=float(strength))
    if threshold is not None:
        chosen = replace(chosen, threshold=float(threshold))
    if not 0 <= chosen.strength < np.inf:
        raise invalid_setting("penalty_strength", "a finite number >= 0", chosen.strength)
    if not 0 < chosen.threshold < np.inf:
        raise invalid_setting("penalty_threshold", "a finite number > 0", chosen.threshold)
    return chosen


def plain_value(value: Any) -> Any:
    """Return a setting as a value that JSON can represent."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(entry) for entry in value]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, Knowledge):
        return plain_value(value.to_dict())
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return repr(value)


def plain_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimator's settings as plain values, except those stored elsewhere."""
    # The Q-matrix and the seed are stored elsewhere, and the observer is not stored.
    elsewhere = ("observer", "q_matrix", "random_state")
    return {
        name: {NOT_STORED: repr(value)}
        if callable(value) or hasattr(value, "local")
        else plain_value(value)
        for name, value in given.items()
        if name not in elsewhere
    }


def latent_names_of(
    given: Any, n_latents: int, from_q: tuple[str, ...] | None, items: Sequence[str]
) -> tuple[str, ...]:
    """Return the latents' names: given, of Q, or Z1, ... (ZZ1, ... if items are called so)."""
    if given is None and from_q is None:
        letters = "Z"
        while set(items) & {f"{letters}{k + 1}" for k in range(n_latents)}:
            letters += "Z"
        return tuple(f"{letters}{k + 1}" for k in range(n_latents))
    if given is None:
        check_names(from_q or (), "the name of a latent")
        _refuse_names_of_items(from_q or (), items, "its column of the Q-matrix")
        return from_q or ()
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise invalid_setting("latent_names", f"{n_latents} different names", given)
    names = tuple(str(name) for name in given)
    check_names(names, "the name of a latent")
    if len(names) != n_latents or len(set(names)) != n_latents:
        raise invalid_setting("latent_names", f"{n_latents} different names", list(names))
    _refuse_names_of_items(names, items, "the latent")
    return names


def _refuse_names_of_items(names: Sequence[str], items: Sequence[str], what: str) -> None:
    both = [name for name in names if name in set(items)]
    if both:
        raise SettingError(
            "latent-named-as-item",
            "latents and items must have different names, but {name!r} is the name of both ({n} of "
            "{n_latents} latents)",
            {"name": both[0], "n": len(both), "n_latents": len(names), "what": what},
            advice="rename {what} or the item",
        )


def check_search(given: GraphSettings, names: tuple[str, ...]) -> None:
    """Check the settings of Stage III before the costly Stage I."""
    search, score, sample_size = given.search, given.score, given.equivalent_sample_size
    if not callable(search) and (not isinstance(search, str) or search not in SEARCHES):
        raise invalid_setting("search", Choices(tuple(SEARCHES), python_only="a callable"), search)
    if isinstance(search, str) and search == "exact":
        check_exact_size(len(names))
    if not hasattr(score, "local") and score not in ("auto", *SCORES):
        choices = Choices(("auto", *SCORES), python_only="a local score")
        raise invalid_setting("graph_score", choices, score)
    number = isinstance(sample_size, Real) and 0 < float(sample_size) < np.inf
    if not number and sample_size != "auto":
        raise invalid_setting("equivalent_sample_size", "a positive number or 'auto'", sample_size)
    if given.uncertainty not in UNCERTAINTY:
        raise invalid_setting("uncertainty", Choices(UNCERTAINTY), given.uncertainty)
    known = check_knowledge(given.knowledge)
    if known is not None:
        known.constraints(names)


@dataclass(frozen=True)
class GraphSettings:
    """Settings of Stages II and III, as `DCRL` takes them."""

    resample: ResampleRule = "expected"  # Stage II: expected or resampled counts
    effective_size: str | float = "auto"  # sample size of expected counts
    score: Any = "auto"  # Stage III; the setting ``graph_score`` of `DCRL`
    equivalent_sample_size: float | str = "auto"
    search: str | Callable[..., Any] = "xges"
    knowledge: Knowledge | None = None
    law: str = "auto"  # with "saturated" the law does not obey the knowledge, but the graph does
    seed: int = 0  # of the resampling
    uncertainty: str = "none"  # {"none", "quick", "full"}: probabilities of edges

    @property
    def expected(self) -> bool:
        """Whether Stage II uses expected counts."""
        return isinstance(self.resample, str) and self.resample == "expected"

    @property
    def calibrated(self) -> bool:
        """Whether expected counts have the effective sample size for edges."""
        return self.expected and self.effective_size == "auto"


def effective_share(effective_size: str | float, calibrated: float) -> float:
    """Return the sample size of expected counts as a share of N."""
    if effective_size == "auto":
        return calibrated
    if effective_size == "all":
        return 1.0
    if isinstance(effective_size, (int, float)) and 0 < effective_size <= 1:
        return float(effective_size)
    expected = Choices(("auto", "all"), "a share of N between 0 and 1")
    raise invalid_setting("effective_size", expected, effective_size)


@dataclass(frozen=True, eq=False)
class FitTask:
    """A table and validated settings."""

    table: Observations  # all N rows
    counted: Observations  # the n rows with an observed cell and a positive weight
    weights: NDArray[np.float64] | None  # (n,); None if all are 1
    n_rows: float  # sum of the weights
    families: FamilyChoice
    q_spec: QSpec | None
    latent_names: tuple[str, ...]  # length K
    measurement: StageOneSettings
    graph: GraphSettings

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return len(self.latent_names)

    @property
    def responses(self) -> Responses:
        """Responses of the items; a nominal item has several."""
        return Responses.of(self.families.families)


def min_items(n_latents: int) -> int:
    """Return the number of items that K latents need: two blocks of K, and one more."""
    return 2 * n_latents + 1


def read_task(table: Observations, sample_weight: Any, settings: Mapping[str, Any]) -> FitTask:
    """Return the task, or raise a `DataError` or `SettingError`."""
    counted, weights = select_weighted_rows(table, sample_weight)
    n_rows = counted.n_samples if weights is None else float(weights.sum())
    n_latents = checked_count("n_latents", settings["n_latents"])
    _check_number(n_latents, table.n_items)
    select_levels = isinstance(settings["levels"], str) and settings["levels"] == "auto"
    levels, linear = checked_levels(2 if select_levels else settings["levels"], n_latents)
    effects = Effects.of(settings["effects"])
    _check_stages(settings, counted.n_samples)
    warn_of_empty_rows(table, stacklevel=_STACK)
    families = resolve_families(counted, settings["family"], weights)
    check_values(counted, families.families)
    warn_of_values(counted, families.families)
    warn_of_codes(counted, families.families)
    warn_of_row_ids(counted, families.families, families.inferred)
    warn_of_dates(counted)
    warn_of_duplicate_columns(counted, stacklevel=_STACK)
    q_spec = q_names = entries = known = None
    if settings["q_matrix"] is not None:
        q_spec = read_q_matrix(settings["q_matrix"], table.names, n_latents)
        q_names = q_spec.latent_names if q_spec.named else None
        entries = Responses.of(families.families).of_items(q_spec.entries)
    names = latent_names_of(settings["latent_names"], n_latents, q_names, table.names)
    own = (
        "resample", "effective_size", "equivalent_sample_size", "search", "knowledge", "law",
        "uncertainty",
    )  # fmt: skip
    graph = GraphSettings(
        score=settings["graph_score"],
        seed=root_seed(settings["random_state"]),
        **{name: settings[name] for name in own},
    )
    check_search(graph, names)
    if graph.knowledge is not None:
        _warn_of_unnamed_latents(graph.knowledge, names, q_spec)
        known = graph.knowledge.reindex(names)
    strength, threshold = settings["penalty_strength"], settings["penalty_threshold"]
    measurement = StageOneSettings(
        levels,
        chosen_penalty(settings["penalty"], n_rows, n_latents, strength, threshold),
        Schedule(settings["max_iter"], settings["tol"], n_sweeps=settings["n_sweeps"]),
        q_entries=entries,
        effects=effects,
        linear=linear,
        nuisances=read_nuisances(
            settings["nuisance"],
            settings["doublets"],
            table.names,
            Responses.of(families.families),
        ),
        select_levels=select_levels,
        method=settings["method"],
        law=graph.law,
        knowledge=known,
        adapt=strength is None,
        n_starts=settings["n_starts"],
        seed=graph.seed,
        n_threads=thread_count(settings["n_jobs"]),
    )
    n_responses = len(Responses.of(families.families).item)
    _check_memory(len(counted.values), n_responses, measurement)
    return FitTask(table, counted, weights, n_rows, families, q_spec, names, measurement, graph)


def _check_memory(n_rows: int, n_responses: int, model: StageOneSettings) -> None:
    """Refuse a fit whose largest arrays cannot fit into the memory of this machine."""
    space = StateSpace(model.levels)
    # The responses, their working copy and that of the distinct rows; the responses' tables over
    # joint states with their expected sums, or the sampled latents.
    listed = space.n_states <= CONFIG.enumeration.largest_exact_states or model.method == "em"
    states = space.n_states if listed else 0
    numbers = 3 * n_rows * n_responses + n_rows * space.n_latents + 3 * n_responses * states
    has = total_memory()
    if numbers * 8 > CONFIG.limits.memory_share * has:
        raise SettingError(
            "too-large",
            "a fit of {n_rows:,} rows, {n_responses:,} responses and {states} joint states needs "
            "at least {needed:,.1f} GB, but this machine has {has:,.1f} GB",
            {"n_rows": n_rows, "n_responses": n_responses, "states": space.n_states_text()},
            advice="use fewer latents, or {method}",
            needed=numbers * 8 / 1e9,
            has=has / 1e9,
            method=Setting("method", "saem"),
        )


def _check_number(n_latents: int, n_items: int) -> None:
    """Raise if there are more latents than items, warn if they cannot be identified."""
    items, fewer = plural(n_items, "item"), (n_items - 1) // 2
    if n_latents > n_items:
        advice = "add items: even one latent needs {least} items to be identified"
        raise SettingError(
            "more-latents-than-items",
            "{n_latents} is more than the {items} of the table, and each latent needs at least one "
            "item of its own",
            {"items": items, "most": Setting("n_latents", fewer), "least": min_items(1)},
            n_latents=Setting("n_latents", n_latents),
            advice="use at most {most}, which {items} can identify" if fewer else advice,
        )
    if n_items < min_items(n_latents):
        sentence = "{latents} cannot be identified from {items}: at least {least} are needed"
        if n_latents > 1:
            sentence = (
                "{latents} cannot be identified from {items}: two blocks of {n_latents} items that "
                "each measure every latent and at least one more item are needed, {least} in all"
            )
        size = {"latents": plural(n_latents, "latent"), "n_latents": n_latents, "items": items}
        advice = "use fewer latents or add items" if fewer else "add items"
        warning = IdentifiabilityWarning(
            "too-few-items", sentence, size, least=min_items(n_latents), advice=advice
        )
        warnings.warn(warning, stacklevel=_STACK)


def _warn_of_unnamed_latents(
    knowledge: Knowledge, names: tuple[str, ...], q_spec: QSpec | None
) -> None:
    """Warn about knowledge that names latents without a given column of Q.

    A hierarchy without Q is an error, raised elsewhere. Knowledge that treats all pairs equally
    does not depend on the labels.
    """
    if knowledge.hierarchy or len(names) < 2:
        return
    rules = knowledge.constraints(names)
    pairs = rules[~np.eye(len(names), dtype=bool)]
    if (pairs == pairs[0]).all():
        return
    named = rules.any(axis=0) | rules.any(axis=1)
    if q_spec is not None:
        named &= (q_spec.entries < 0).all(axis=0)
    if named.any():
        name = names[int(np.flatnonzero(named)[0])]
        warning = KnowledgeWarning(
            "knowledge-without-q",
            "the prior knowledge names the latent {name}, but without a Q-matrix the fit orders "
            "the latents by the strength of their loadings, and the knowledge applies to "
            "whichever latent is called {name}",
            {"name": name, "q_matrix": Setting("q_matrix")},
            advice="fit without it, inspect the estimated Q, and give {q_matrix} with names for "
            "its latents",
        )
        warnings.warn(warning, stacklevel=_STACK)


def _check_stages(settings: Mapping[str, Any], n_samples: int) -> None:
    """Check the settings of Stages I and II."""
    law, observer, tol = settings["law"], settings["observer"], settings["tol"]
    if law not in LAWS:
        raise invalid_setting("law", Choices(LAWS), law)
    if observer is not None and not callable(observer):
        raise invalid_setting("observer", "callable", observer)
    if settings["n_starts"] != "auto":
        checked_count("n_starts", settings["n_starts"])
    for name in ("max_iter", "n_sweeps"):
        checked_count(name, settings[name])
    if not (isinstance(tol, Real) and 0 < float(tol) <= CONFIG.limits.tol):
        raise invalid_setting("tol", f"a number above 0 and at most {CONFIG.limits.tol:g}", tol)
    if settings["checks"] not in CHECKS:
        raise invalid_setting("checks", Choices(CHECKS), settings["checks"])
    level = settings["claim_level"]
    if not (isinstance(level, Real) and 0.5 < float(level) <= 1.0):
        raise invalid_setting("claim_level", "a probability above .5", level)
    rule = settings["resample"]
    if isinstance(rule, str) and rule == "expected":
        effective_share(settings["effective_size"], 1.0)
    else:
        with warnings.catch_warnings():
            # Stage II warns again.
            warnings.simplefilter("ignore", HidagWarning)
            resample_size(rule, n_samples)
