"""How a metric of one run is told relative to that of the first."""

import pytest

from results.summary.index import IndexRow
from results.views import side_by_side


@pytest.mark.parametrize(
    ("restarts_s", "text"),
    [
        ((10, 11), "+10 %"),
        ((10, 5), "-50 %"),
        ((1, 10.9), "+990 %"),
        ((1, 11), "11 times"),
        ((1, 20), "20 times"),
        ((0, 10.4), "1,040 times"),
    ],
)
def test_a_change_above_a_thousand_percent_is_told_as_a_factor(restarts_s, text):
    rows = [IndexRow(f"run-{n}", "done", "wordcount", n, metrics={"restart_s": at}) for n, at in enumerate(restarts_s)]
    first, second = side_by_side.metric_table(rows)["restart_s"]
    assert (first.text, second.text) == (None, text)
