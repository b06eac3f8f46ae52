"""Campaigns of simulated schedules, in parts: `make test-all` runs the first ones, `-m slow` the others."""

import pytest


def parts(count, of_each_run=1):
    """Numbers of the parts, as parameters of a test."""
    return [pytest.param(part, marks=[pytest.mark.slow] * (part >= of_each_run)) for part in range(count)]


def quick(of, chosen):
    """Parameters of a test: `make unit` runs the chosen ones, `make test-all` the others, too."""
    return [pytest.param(each, marks=[pytest.mark.extended] * (each not in chosen)) for each in of]


def first_and_rest(of, first):
    """The first so many of a sequence, and the rest, as parameters of a test: `make test-all` runs the rest."""
    return [pytest.param(of[:first], id="first"), pytest.param(of[first:], id="rest", marks=pytest.mark.extended)]
