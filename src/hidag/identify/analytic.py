"""The analytic-family condition (Assumption 2), family by family."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "undecided"]


@dataclass(frozen=True)
class FamilyFact:
    """What is known about a response family.

    Attributes
    ----------
    verdict : {"holds", "undecided"}
    reason : str
    """

    verdict: Verdict
    reason: str


_SCALE = "its law is analytic in predictor and scale, and determines both"
_MORE_PREDICTORS = (
    "the assumption is about one predictor per item, and this family has one per category"
)

#: By name, without the arguments in parentheses.
FACTS = {
    "bernoulli": FamilyFact("holds", "a regular exponential family with the logit link"),
    "bernoulli-probit": FamilyFact("holds", "the probit link is analytic and one to one"),
    "bernoulli-cloglog": FamilyFact(
        "holds", "the complementary log-log link is analytic and one to one"
    ),
    "binomial": FamilyFact(
        "holds",
        "a regular exponential family with the logit link; the number of trials is known",
    ),
    "poisson": FamilyFact("holds", "a regular exponential family with the log link"),
    "poisson-identity": FamilyFact(
        "undecided",
        "the assumption asks for a link that turns every real number into a mean, and the identity "
        "link does so only for positive ones; it holds on the set of parameters where every mean "
        "is positive, which is convex and open, so the argument can be repeated there, but the "
        "paper does not do so",
    ),
    "gaussian": FamilyFact("holds", _SCALE),
    "lognormal": FamilyFact("holds", _SCALE),
    "gamma": FamilyFact("holds", _SCALE),
    "beta": FamilyFact("holds", _SCALE),
    "negative-binomial": FamilyFact("holds", _SCALE),
    "censored-lognormal": FamilyFact(
        "holds",
        "the limit is known; the share beyond it and the law up to it are analytic in predictor "
        "and scale and determine both",
    ),
    "zero-inflated-poisson": FamilyFact(
        "holds",
        "its law is analytic in predictor and share of extra zeros, and determines both",
    ),
    "ordinal": FamilyFact(
        "holds",
        "its law is analytic in predictor and cutpoints and determines both; the paper writes one "
        "dispersion per item, and its proof needs no more of it than cutpoints offer",
    ),
    "categorical": FamilyFact("undecided", _MORE_PREDICTORS),
    "nominal": FamilyFact("undecided", _MORE_PREDICTORS),
}

_NAME = re.compile(r"^\s*([a-z][a-z0-9_-]*)\s*(?:\(\s*([^()]*?)\s*\))?\s*$")

_GRADES = re.compile(r"^(-?\d+)\.\.(-?\d+)$")

#: Families whose items take finitely many values: how many, given the number in parentheses.
_VALUES_BEYOND_ARGUMENT = {"binomial": 1, "ordinal": 0, "categorical": 0, "nominal": 0}


def family_fact(name: str) -> FamilyFact:
    """Return what is known about the family of that name, whatever the name."""
    parts = _NAME.match(name.lower())
    base = parts.group(1).replace("_", "-") if parts else ""
    unknown = FamilyFact("undecided", f"nothing is known here about a family called {name!r}")
    return FACTS.get(base, unknown)


def number_of_values(name: str) -> int | None:
    """Return how many values an item of the family can take, None if unknown or unlimited."""
    parts = _NAME.match(name.lower())
    if parts is None:
        return None
    base, argument = parts.group(1).replace("_", "-"), parts.group(2)
    if base in ("bernoulli", "bernoulli-probit", "bernoulli-cloglog"):
        return 2
    if base == "ordinal" and argument and (grades := _GRADES.match(argument)):
        return int(grades.group(2)) - int(grades.group(1)) + 1
    if base in _VALUES_BEYOND_ARGUMENT and argument and argument.isdigit():
        return int(argument) + _VALUES_BEYOND_ARGUMENT[base]
    return None
