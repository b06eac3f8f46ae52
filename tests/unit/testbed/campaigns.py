"""Campaigns of simulated schedules, in parts: `make test-all` runs the first ones, `make test-night` the others."""

from itertools import product

import pytest
from hypothesis import settings


def examples(at_night):
    """How many examples a property test has: this number in `make test-night`, a quarter of it in the other tiers."""
    return at_night * settings.default.max_examples // 100


def parts(count, of_each_run=1):
    """Numbers of the parts, as parameters of a test."""
    return [pytest.param(part, marks=[pytest.mark.slow] * (part >= of_each_run)) for part in range(count)]


def quick(of, chosen):
    """Parameters of a test: `make unit` runs the chosen ones, `make test-all` the others, too."""
    return [pytest.param(each, marks=[pytest.mark.extended] * (each not in chosen)) for each in of]


def paired(first, second, left_out=()):
    """Two parameters of a test, each value with each. `make unit` runs pairs in which each value of both occurs, except
    those of the second that are left out; `make test-all` runs the other pairs."""
    first, second = list(first), list(second)
    short = [each for each in second if each not in left_out]
    chosen = {(first[i % len(first)], short[i % len(short)]) for i in range(max(len(first), len(short)))}
    return [pytest.param(*each, marks=[pytest.mark.extended] * (each not in chosen)) for each in product(first, second)]


def first_and_rest(of, first):
    """The first items of a sequence, and the rest, as parameters of a test: `make test-all` runs the rest."""
    return [pytest.param(of[:first], id="first"), pytest.param(of[first:], id="rest", marks=pytest.mark.extended)]
