"""Means and errors of a comparison, by hand."""

import pandas as pd
import pytest

from reproductions.comparison import by_algorithm, summarize


def row(setting, share, algorithm, value, **more):
    return {"setting": setting, "share": share, "algorithm": algorithm, "value": value} | more


def test_means_and_errors_by_hand():
    rows = [row("s", 0.5, "A", value) for value in (1.0, 2.0, 3.0)] + [
        row("s", 0.5, "B", value) for value in (0.5, 1.5)
    ]
    table = summarize(rows).set_index("algorithm")
    assert table.loc["A", ["problems", "mean", "std"]].tolist() == [3, 2.0, 1.0]
    assert table.loc["A", "standard_error"] == pytest.approx(1 / 3**0.5)
    assert table.loc["B", "standard_error"] == pytest.approx(0.5)
    assert "proved_share" not in table


def test_the_share_that_is_proved_is_of_the_algorithm_that_proves():
    rows = [
        row("s", 0.5, "exact", 1.0, proved=True),
        row("s", 0.5, "exact", 1.0, proved=False),
        row("s", 0.5, "A", 1.0),
    ]
    shares = summarize(rows).set_index("algorithm")["proved_share"]
    assert shares["exact"] == 0.5
    assert pd.isna(shares["A"])


def test_algorithms_become_columns():
    rows = [row("s", share, name, share * factor) for share in (0.1, 0.2) for name, factor in (("A", 1), ("B", 2))]
    means = by_algorithm(summarize(rows))
    assert means["B"].tolist() == [0.2, 0.4]
    assert means.loc[("s", 0.2), "A"] == 0.2
