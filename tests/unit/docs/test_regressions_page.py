"""The page of regressions lists each metric, with the change that counts."""

import re
from pathlib import Path

from results.summary.metrics import METRICS, Scale

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "regressions.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n### Metrics\n")[2].partition("\n### ")[0]


def told(section):
    """The minimum effect of each metric, in the words of the page."""
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {name: cells[-1] for cells in rows for name in re.findall(r"`(\w+)`", cells[0])}


def in_words(metric):
    if metric.scale is Scale.COUNT:
        return "[other rules](#counts-and-change-points)"
    return f"{100 * metric.minimum_effect:g} %" if metric.scale is Scale.RATIO else f"{metric.minimum_effect:g}"


def test_each_metric_is_listed_with_its_minimum_effect():
    assert told(SECTION) == {name: in_words(metric) for name, metric in METRICS.items()}
