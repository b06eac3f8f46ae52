"""How figures look on a page."""

import pytest

from plugins.present import significant


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.012345, "0.0123"),
        (999.4, "999"),
        (999.5, "1,000"),
        (999.99, "1,000"),
        (-999.7, "-1,000"),
        (1234.5, "1,234"),
        (1e6, "1,000,000"),
        (float("nan"), "nan"),
    ],
)
def test_a_figure_has_three_digits_and_never_an_exponent_for_a_thousand(value, text):
    assert significant(value) == text
