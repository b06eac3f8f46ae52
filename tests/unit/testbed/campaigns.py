"""Campaigns of simulated schedules, in parts: `make test-all` runs the first ones, `-m slow` the others."""

import pytest


def parts(count, of_each_run=2):
    """Numbers of the parts, as parameters of a test."""
    return [pytest.param(part, marks=[pytest.mark.slow] * (part >= of_each_run)) for part in range(count)]
