"""Tentative output over the time of a run: when there was some, and how accurate each window was."""

from __future__ import annotations

import pandas as pd

from results.runs.store import Run
from results.summary.findings import seconds_from, table_or_empty, the_run


def tentative_windows(run: Run) -> pd.DataFrame:
    """Every window with tentative output, by its end; moments in seconds from the start of the measurement window.

    end_s, first_s, corrected_s  of the window, of its first tentative result, and of the last exact one
    accuracy, predicted          None where the window has no exact results, or nothing was absent
    throughout                   whether it lacked the same input until its results came out, as predictions take it
    exact, absent                as in the table `tentative`
    """
    table, facts = table_or_empty(run, "tentative").sort_values("window_end_ns"), the_run(run)
    start_ns = None if facts is None else int(facts["window_start_ns"])
    moments = {"end_s": "window_end_ns", "first_s": "first_ns", "corrected_s": "corrected_ns"}
    found = pd.DataFrame({name: seconds_from(start_ns, table[column]) for name, column in moments.items()})
    return found.assign(
        accuracy=table["accuracy"],
        predicted=table["output_fidelity"],
        throughout=table["throughout"],
        exact=table["exact"],
        absent=table["absent"],
    )


def tentative_spans(windows: pd.DataFrame, end_s: float) -> list[tuple[float, float]]:
    """From when to when tentative results were out that were not yet corrected: to `end_s` if they never were."""
    times = windows[["first_s", "corrected_s"]].astype("float64").fillna({"corrected_s": end_s}).sort_values("first_s")
    spans: list[tuple[float, float]] = []
    for first_s, corrected_s in times.itertuples(index=False):
        if spans and first_s <= spans[-1][1]:
            began_s, reached_s = spans.pop()
            spans.append((began_s, max(reached_s, corrected_s)))
        else:
            spans.append((first_s, corrected_s))
    return spans
