"""What is drawn of the measured figures 7 and 18 of `incremental`, on made-up tables."""

import pandas as pd
import pytest

from reproductions.catalogue import CATALOGUE
from reproductions.incremental.experiments import Order


def test_hosts_that_never_came_back_count_among_all_hosts():
    executors = [None, 4.0, None, None]
    table = pd.DataFrame({"host": list("abcd"), "back_min": [5.0, 3.0, None, 4.0], "executor_min": executors})
    (axes,) = CATALOGUE["incremental/fig-07"].plot(table).axes
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["host is back"].get_xdata() == pytest.approx([3, 4, 5])
    assert lines["host is back"].get_ydata() == pytest.approx([0.25, 0.5, 0.75])
    assert lines["host has an executor"].get_ydata() == pytest.approx([0.25])


def test_throughput_is_drawn_beside_latency():
    rows = [
        {"order": order.value, "replicate": 1, "rate": rate, "throughput": throughput, "latency_s": latency_s}
        for order, full in ((Order.TUPLES, 9000.0), (Order.BATCHES, 8800.0))
        for rate, throughput, latency_s in ((None, full, None), (1000.0, None, 0.5), (2000.0, None, 0.6))
    ]
    at_full_load, by_load = CATALOGUE["incremental/fig-18"].plot(pd.DataFrame(rows)).axes
    assert at_full_load.get_ylabel() == "throughput [records/s]"
    assert sorted(float(line.get_ydata()[0]) for line in at_full_load.lines) == [8800.0, 9000.0]
    assert [list(line.get_xdata()) for line in by_load.lines] == [[1000.0, 2000.0]] * 2
