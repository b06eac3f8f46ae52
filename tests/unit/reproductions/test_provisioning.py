"""The plot of figure 7 of `incremental`, on made-up delays."""

import pandas as pd
import pytest

from reproductions.catalogue import CATALOGUE


def test_hosts_that_never_came_back_count_among_all_hosts():
    executors = [None, 4.0, None, None]
    table = pd.DataFrame({"host": list("abcd"), "back_min": [5.0, 3.0, None, 4.0], "executor_min": executors})
    (axes,) = CATALOGUE["incremental/fig-07"].plot(table).axes
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["host is back"].get_xdata() == pytest.approx([3, 4, 5])
    assert lines["host is back"].get_ydata() == pytest.approx([0.25, 0.5, 0.75])
    assert lines["host has an executor"].get_ydata() == pytest.approx([0.25])
