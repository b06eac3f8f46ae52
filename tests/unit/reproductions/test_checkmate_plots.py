"""What the plots of `checkmate` say of what they draw."""

from __future__ import annotations

import pandas as pd

from reproductions.catalogue import CATALOGUE


def test_the_figure_of_checkpoint_times_says_what_its_bars_are() -> None:
    about = {"query": "q3", "workers": 2, "replicate": 1, "simulated": False, "samples": 9, "std": 0.1}
    rows = [about | {"protocol": name, "mean": mean_s} for name, mean_s in (("COOR", 2.0), ("UNC", 0.5), ("CIC", 0.6))]
    (legend,) = CATALOGUE["checkmate/fig-08"].plot(pd.DataFrame(rows)).legends
    assert legend.get_title().get_text() == "bars: 95 % confidence interval of the mean"


def test_the_figure_of_skew_says_whose_checkpoint_times_they_are() -> None:
    about = {"query": "q3", "workers": 2, "replicate": 1, "simulated": False, "hot_share": 0.1, "protocol": "COOR"}
    rows = [about | {"quantity": name, "mean": 1.0} for name in ("p50 of latency", "checkpoint time")]
    figure = CATALOGUE["checkmate/fig-12b"].plot(pd.DataFrame(rows))
    labels = [panel.get_ylabel().replace("\n", " ") for panel in figure.axes[::3]]
    assert labels == ["p50 of latency [s]", "time of rounds (COOR), of partitions' checkpoints [s]"]
