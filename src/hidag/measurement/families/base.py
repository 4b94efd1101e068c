"""Interfaces of item types and response families, and their registry by name.

Every response family writes its log density as

    log f(x | eta, aux) = sum_d T_d(x) theta_d(eta, aux) - A(eta, aux) + base(x, aux)

with one or more columns ``T_d``. The E-step needs only tables of ``theta_d`` and ``A`` over latent
states, and the M-step only sums of the columns.

A family with one column takes and returns arrays of the shape of ``eta``; with several columns,
``T`` and ``theta`` have a leading axis of length D. ``aux`` holds the parameters that an item has
besides its linear predictor: one dispersion, or the cutpoints of an ordered response along a last
axis. It broadcasts against ``eta``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.exceptions import Advice, Setting, SettingError
from hidag.formatting import format_value

Array = NDArray[np.float64]


class ValueProblem(NamedTuple):
    """What is wrong with an item's values (completes "item 'x' has ..."), and what to do."""

    problem: str
    advice: Advice


class AnalyticCondition(NamedTuple):
    """Whether Assumption 2 "holds" (for some families if predictors are positive) or is open."""

    verdict: str
    reason: str
    holds_if_positive: bool = False


#: For families whose predictor and scale follow from the distribution.
ANALYTIC_WITH_SCALE = AnalyticCondition(
    "holds", "its law is analytic in predictor and scale, and determines both"
)


class ItemType:
    """What an item measures: a response family, or nominal categories made of several responses."""

    name: str  # The name; types with an argument have it in parentheses, as ``binomial(20)``.
    aliases: tuple[str, ...] = ()  # Other names accepted from users.
    #: Meaning of the argument; None for types without one.
    argument_name: ClassVar[str | None] = None
    example_argument: ClassVar[str] = ""
    #: Values from which the argument can be determined; "" if users have to give it.
    argument_source: ClassVar[str] = ""
    allowed_values: str = "numbers"  # The values that an item may take.
    description: str  # One phrase for users.
    #: Assumption 2 of the paper.
    analytic_condition: ClassVar[AnalyticCondition] = AnalyticCondition(
        "undecided", "the family does not declare whether it satisfies the assumption"
    )
    is_binary: bool = False
    is_nominal: bool = False

    @classmethod
    def from_argument(cls, text: str) -> ItemType:
        """Return the type with the argument in its name; ValueError if it cannot be parsed."""
        return cls.from_number(check_size(float(text), MAX_ARGUMENT, text))

    @classmethod
    def from_number(cls, number: float) -> ItemType:
        """Return the type with a numeric argument."""
        raise NotImplementedError

    @classmethod
    def name_from_values(cls, x: Array, weights: Array | None = None) -> str | None:
        """Return the name with the argument that values (n,) with weights (n,) imply, or None."""
        return None

    @classmethod
    def recognize(cls, x: Array) -> str | None:
        """Return why "auto" is to choose this type for values (n,), after "item 'x'", or None."""
        return None

    @property
    def response_families(self) -> tuple[str, ...]:
        """Names of the families of the item's responses."""
        return (self.name,)

    @property
    def categories(self) -> tuple[float, ...] | None:
        """The categories of a categorical response, ascending; None for quantities."""
        return None

    def possible_values(self) -> Array | None:
        """Return all values of the response, ascending; None if there is no finite list."""
        return None

    def find_invalid(self, x: Array) -> ValueProblem | None:
        """Return the problem with values (n,) that the type does not allow, each by itself."""
        return None

    def find_unfittable(self, x: Array) -> ValueProblem | None:
        """Return the problem of a column (n,) of allowed values that cannot be fitted."""
        return None

    def find_suspicious(self, x: Array) -> ValueProblem | None:
        """Return the problem of a column (n,) that can be fitted but is probably misspecified."""
        return None

    def as_observed(self, x: Array) -> Array:
        """Return responses reduced to the part that the density depends on."""
        return x

    def expand(self, x: Array) -> Array:
        """Return the responses (N, R) of an item's values (N,)."""
        return x[:, None]

    def collapse(self, responses: Array) -> Array:
        """Return an item's values (N,) from complete responses (N, R)."""
        return np.asarray(responses[:, 0])


class Family(ItemType, ABC):
    """A response family with its link; arrays broadcast, the last axis of eta runs over states."""

    is_count: bool = False
    effect_scale: str = "linear predictor"  # What the predictor is, for notes on loadings.
    n_columns: int = 1  # Number of columns, D.
    has_dispersion: bool = False
    dispersion_meaning: str = ""  # Meaning of the dispersion, for tables.
    #: Whether the dispersion is the residual variance on the scale of the predictor, so that
    #: standardized loadings divide by its square root.
    dispersion_is_variance: bool = False
    dispersion_bounds: tuple[float, float] = (0.0, np.inf)
    #: Distribution of items at the smallest dispersion, if it is not degenerate.
    limiting_distribution: str = ""
    #: Of Poisson distributions, with any link: the family for counts with more variance.
    overdispersed_alternative: str | None = None
    base_has_parameters: bool = True  # Whether ``base`` depends on the auxiliary.
    n_cutpoints: int = 0  # Number of cutpoints besides the intercept.
    smallest_gap: float = 0.0  # Neighbouring cutpoints at most this far apart are at their bound.
    #: Whether the density is Gaussian after ``to_working``: such items are standardized.
    is_location_scale: bool = False
    has_unit_mean: bool = False  # Whether the mean is in [0, 1] by definition, for axes of plots.
    #: Below this predictor theta is a multiple of eta (``-inf``: nowhere), which simplifies sums.
    canonical_below: float = -np.inf
    lowest_predictor: float = -np.inf  # Smallest admissible linear predictor.
    #: Largest linear predictor from which responses can be simulated.
    largest_simulated_predictor: float = np.inf
    #: Whether one response may carry arbitrarily much information about its latents.
    has_unbounded_information: bool = False

    @property
    def is_logistic(self) -> bool:
        """Whether the response is binary with a logit link."""
        return self.is_binary and self.canonical_below == np.inf

    def to_working(self, x: Array) -> Array:
        """Return the columns ``T(x)`` of responses on the user's scale."""
        return x

    def from_working(self, columns: Array) -> Array:
        """Return responses on the user's scale; the inverse of ``to_working``."""
        return columns

    @abstractmethod
    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta`` and ``A`` at the predictor."""

    @abstractmethod
    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``theta'``, ``A'`` and the Fisher information of one response about ``eta``."""

    @abstractmethod
    def base(self, x: Array, aux: Array) -> Array:
        """Return the part of the log density, on the user's scale, without the predictor."""

    def working_base(self, x: Array, aux: Array) -> Array:
        """Return ``base`` without the Jacobian of a transformation to a working scale."""
        return self.base(x, aux)

    @abstractmethod
    def response_mean(self, eta: Array, aux: Array) -> Array:
        """Return the mean on the user's scale."""

    @abstractmethod
    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        """Return draws on the user's scale."""

    @abstractmethod
    def fit_null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return rough predictors and auxiliaries without latents from moments, (n,) or (D, n)."""

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return the size of a typical coefficient, (n,), from the moments of the columns."""
        return np.ones_like(mean if self.n_columns == 1 else mean[0])

    def noise_variance(self, mean: Array) -> Array | None:
        """Return the predictor's variance given a response, in squared coefficient scales, (n,)."""
        return None

    def linearize(self, columns: Array) -> Array:
        """Return one number per response that is about linear in the latents."""
        return columns

    def predictor_effects(self, changes: Array, spread: float, scale: float, mean: Array) -> Array:
        """Return changes of the predictor, in ``scale``, from those of the linearized response."""
        return changes * (spread / scale)

    def moment_label(self, item: str) -> str:
        """Return the label of the quantity whose moments are compared with the data."""
        return item

    def second_moment(self, eta: Array, aux: Array) -> Array:
        """Return ``E X^2`` of a response with finitely many values at predictors (S,)."""
        values = self.possible_values()
        assert values is not None
        columns = self.to_working(values)
        theta, partition = self.natural(eta, aux)
        if self.n_columns == 1:
            columns, theta = columns[None], theta[None]
        logs = columns.T @ theta - partition + self.base(values, np.ones(1))[:, None]
        return np.asarray(values**2 @ np.exp(logs))

    def log_density_moments(self, eta: float, aux: Array) -> tuple[float, float] | None:
        """Return mean and variance of a draw's log density (on the working scale), if known."""
        return None

    # Families with a dispersion or cutpoints.

    def base_statistics(self, x: Array, counts: Array | None = None) -> Array:
        """Return what sums of ``base`` need: values and frequencies (2, m), or the sum."""
        if not self.base_has_parameters:
            base = self.base(x, np.ones(1))
            return np.array([base.sum() if counts is None else base @ counts])
        values, place = np.unique(x, return_inverse=True)
        frequencies = np.bincount(place, counts, minlength=len(values))
        return np.asarray(np.stack([values, frequencies]), dtype=np.float64)

    def base_sums(self, statistics: Sequence[Array], aux: Array) -> Array:
        """Return the sum of ``base`` over the responses of each item, shape (n,)."""
        if not self.base_has_parameters:
            return np.concatenate(list(statistics))
        # All items at once: with hundreds of items of few values the calls dominate the cost.
        sizes = np.array([one.shape[1] for one in statistics])
        values, counts = np.concatenate(statistics, axis=1)
        each = counts * self.base(values, np.repeat(aux, sizes))
        # Items without a response have no values, and a sum of zero.
        item = np.repeat(np.arange(len(sizes)), sizes)
        return np.asarray(np.bincount(item, weights=each, minlength=len(sizes)), dtype=np.float64)

    def to_unbounded(self, dispersion: Array) -> Array:
        """Return dispersions on an unbounded scale."""
        return np.log(dispersion)

    def from_unbounded(self, free: Array) -> Array:
        """Return dispersions from the unbounded scale."""
        return np.exp(free)

    def update_auxiliary(
        self,
        aux: Array,
        eta: Array,
        sums: Array,
        counts: Array,
        statistics: Sequence[Array],
        mass: Array,
    ) -> tuple[Array, Array]:
        """Return auxiliaries, (n,) or (n, C), that do not lower the objective, and a shift.

        ``eta`` and expected rows ``counts`` are (n, S), ``sums`` of columns (n, S) or (D, n, S);
        ``statistics`` are ``base_statistics``, ``mass`` (n,) the rows in ``counts`` for each of
        them: above one where an initializer or sampler spreads mass over states.
        """

        def objective(free: Array) -> Array:
            dispersion = self.from_unbounded(free)
            value = self.expected_without_base(dispersion, eta, sums, counts)
            return np.asarray(value + mass * self.base_sums(statistics, dispersion))

        bounds = self.to_unbounded(np.array(self.dispersion_bounds))
        start = self.to_unbounded(np.clip(aux, *self.dispersion_bounds))
        found = maximize_items(objective, start, float(bounds[0]), float(bounds[1]))
        found = np.clip(self.from_unbounded(found), *self.dispersion_bounds)
        return found, np.zeros(len(aux))

    def expected_without_base(self, aux: Array, eta: Array, sums: Array, counts: Array) -> Array:
        """Return each item's expected complete-data log-likelihood without ``base``, (n,)."""
        theta, partition = self.natural(eta, aux[:, None])
        pattern = "js,js->j" if self.n_columns == 1 else "djs,djs->j"
        value = np.einsum(pattern, sums, theta) - np.einsum("js,js->j", counts, partition)
        return np.asarray(value)


class MeanFamily(Family):
    """A family with one column whose mean is a function of the predictor alone."""

    start_distance: float = 1e-4  # Distance of start values of means from the ends of their range.

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Return the mean of the column."""

    @abstractmethod
    def predictor(self, mean: Array) -> Array:
        """Return the predictor of a mean; the inverse of ``mean``."""

    @abstractmethod
    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return means moved into their range, at distance ``epsilon`` from its ends."""

    def response_mean(self, eta: Array, aux: Array) -> Array:
        """Return the mean of the column."""
        return self.mean(eta)

    def fit_null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return the predictors of the items' means, and their dispersions."""
        inside = self.clip_mean(mean, self.start_distance)
        return self.predictor(inside), self.null_dispersion(inside, variance)

    def null_dispersion(self, mean: Array, variance: Array) -> Array:
        """Return dispersions of items without latents; 1 for families without a dispersion."""
        return np.ones_like(mean)


def maximize_items(
    objective: Callable[[Array], Array], start: Array, lower: float, upper: float, n_steps: int = 2
) -> Array:
    """Return points (n,) in bounds at which no objective is lower, after halved Newton steps."""
    config = CONFIG.families
    change, longest = config.difference, config.longest_step
    here = np.clip(start, lower, upper)
    value = objective(here)
    for _ in range(n_steps):
        ahead, behind = objective(here + change), objective(here - change)
        slope = (ahead - behind) / (2.0 * change)
        bend = (ahead - 2.0 * value + behind) / change**2
        # Where the objective is not concave, the gradient gives the direction only.
        newton = -slope / np.where(bend < 0.0, bend, -1.0)
        step = np.where(bend < 0.0, newton, longest * np.sign(slope))
        step = np.clip(step, -longest, longest)
        waiting = np.ones(len(here), dtype=bool)
        for _ in range(config.max_halvings):
            trial = np.where(waiting, np.clip(here + step, lower, upper), here)
            there = objective(trial)
            gains = waiting & (there > value)
            here = np.where(gains, trial, here)
            value = np.where(gains, there, value)
            waiting &= ~gains & (np.abs(step) > config.smallest_step)
            if not waiting.any():
                break
            step *= 0.5
    return here


def softplus(x: Array) -> Array:
    """Return ``log(1 + exp(x))`` to full precision, faster than ``np.logaddexp(0, x)``."""
    out = np.array(x, dtype=np.float64)
    np.abs(out, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out += np.maximum(x, 0.0)
    return np.asarray(out)


def normal_base(x: Array, variance: Array) -> Array:
    """Return ``-x**2 / (2 variance) - log(2 pi variance) / 2``."""
    return np.asarray(-0.5 * (x * x / variance + np.log(2.0 * np.pi * variance)))


def log_normal_density(x: Array) -> Array:
    """Return the log density of the standard normal."""
    return np.asarray(-0.5 * (x * x + np.log(2.0 * np.pi)))


def use_family(text: str, **families: str) -> Advice:
    """Return the advice to name other families; the fields of ``text`` are families."""
    return Advice(
        "name-family", text, {field: Setting("family", name) for field, name in families.items()}
    )


def describe_invalid(x: Array, invalid: NDArray[np.bool_]) -> str:
    """Return which of the values (n,) are invalid (n,), at least one of them, after "has"."""
    odd = x[invalid]
    cells = f"in {len(odd)} of {len(x)} cells"
    if (odd == odd[0]).all():
        return f"{format_value(odd[0])} {cells}"
    return f"other values {cells}, such as {format_value(odd[0])}"


# The registry.

#: Largest number in the argument of a type, and number of categories, whose tables are stored.
MAX_ARGUMENT, MAX_CATEGORIES = 1_000_000, 1000
ITEM_TYPES: dict[str, type[ItemType]] = {}  # Registered classes by name without argument.
#: Names of the default types by kind of values: see :func:`default_family`.
_DEFAULTS: dict[str, str] = {}

_Class = TypeVar("_Class", bound=type[ItemType])
_PARTS = re.compile(r"([a-z][a-z-]*)\s*(?:\(\s*([^()]*?)\s*\))?\Z")


def register(name: str, *, default_for: str | None = None) -> Callable[[_Class], _Class]:
    """Return a class decorator that registers an item type, perhaps as :func:`default_family`."""

    def add(cls: _Class) -> _Class:
        ITEM_TYPES[name] = cls
        if cls.argument_name is None:
            cls.name = name
        if default_for is not None:
            _DEFAULTS[default_for] = name
        # A class may replace one of the same name, as in a notebook cell that is run again.
        item_type.cache_clear()
        family_named.cache_clear()
        return cls

    return add


def default_family(kind: str) -> str:
    """Return the default for "binary", "count", "real", "positive", "grades" or "categories"."""
    return _DEFAULTS[kind]


def split_name(name: str) -> tuple[str, str | None]:
    """Return the name before the parentheses, and the argument in them or None."""
    parts = _PARTS.match(name)
    return (name, None) if parts is None else (parts[1], parts[2])


def canonical_name(word: str) -> str:
    """Return a name as typed by a user in lower case, with hyphens, and without aliases."""
    name, argument = split_name(word.strip().lower().replace("_", "-"))
    own = next((key for key, cls in ITEM_TYPES.items() if name in cls.aliases), name)
    return own if argument is None else f"{own}({argument})"


def format_argument(number: float) -> str:
    """Return a number as it stands in the name of a family: the shortest text that reads back."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def family_names() -> tuple[str, ...]:
    """Return the names of all item types; arguments are replaced by their meaning."""
    return tuple(
        name if (argument := ITEM_TYPES[name].argument_name) is None else f"{name}({argument})"
        for name in sorted(ITEM_TYPES)
    )


@cache
def item_type(name: str) -> ItemType:
    """Return the item type of a name, such as "poisson", "binomial(20)" or "categorical(3)"."""
    kind, argument = split_name(name)
    if kind not in ITEM_TYPES:
        known = ", ".join(map(repr, family_names()))
        raise SettingError(
            "unknown-family", "family must be one of {known}, got {name!r}", known=known, name=name
        )
    cls = ITEM_TYPES[kind]
    if cls.argument_name is None:
        if argument is None:
            return cls()
        text = "family={kind!r} takes no argument in parentheses, got {name!r}"
        raise SettingError("family-argument", text, {"kind": kind, "name": name})
    if argument is not None:
        try:
            return cls.from_argument(argument)
        except SettingError:
            raise
        except (ValueError, OverflowError):
            pass
    verb = "needs" if argument is None else "must have"
    example = {"kind": kind, "example": cls.example_argument}
    text = "family={name!r} {verb} its {argument} in parentheses"
    params = {"name": name, "verb": verb, "argument": cls.argument_name}
    advice = Advice("family-argument", "use for instance '{kind}({example})'", example)
    raise SettingError("family-argument", text, params, advice=advice) from None


def check_size(number: float, most: int, argument: str) -> float:
    """Return a number in the argument of a type unless it is larger than any use of it."""
    if not abs(number) <= most:
        text = "the argument {argument!r} of a type must be at most {most:,}"
        raise SettingError("family-argument", text, argument=argument[:40], most=most)
    return number


@cache
def family_named(name: str) -> Family:
    """Return the response family of a name; a nominal item has no single one."""
    found = item_type(name)
    if not isinstance(found, Family):
        text = "family={name!r} consists of several responses; a family of one response is needed"
        raise SettingError("not-a-response-family", text, name=name)
    return found
