"""The list of runs in a terminal: every column where there is room, and always the whole id."""

import re
from dataclasses import replace

from results.summary.findings import Utilization
from results.summary.index import IndexRow
from results.views.listing import listing, own_runs, published_runs

START_NS = 1_790_000_000_000_000_000
FACTS = {"engine": "dataflow", "protocol": "coordinated", "recovery": "global"}
DONE = IndexRow(
    "q1-20261122-021503-ab12",
    "done",
    "nexmark-q1",
    START_NS,
    facts=FACTS,
    utilization=Utilization(0.4943, None, None, None, None),
    verdicts={"unknown": 1, "pass": 30},
)
FAILED = IndexRow("mine-1", "failed", "mine", START_NS, error="the broker is gone; start it")


def columns(text):
    return re.split(" {2,}", text.splitlines()[0])


def test_a_wide_terminal_shows_all():
    head, done, failed = listing([DONE, FAILED], 200).splitlines()
    assert re.split(" {2,}", head) == [
        "started (UTC)", "state", "verdict", "U (predicted)", "experiment", "engine", "protocol", "recovery", "run"
    ]  # fmt: skip
    assert re.split(" {2,}", done) == [
        *("2026-09-21 14:13", "done", "unknown", "0.494 (-)", "nexmark-q1"),
        *("dataflow", "coordinated", "global", DONE.run_id),
    ]  # fmt: skip
    assert re.split(" {2,}", failed) == [
        "2026-09-21 14:13", "failed", "-", "-", "mine", "-", "-", "-", "mine-1", "the broker is gone; start it"
    ]  # fmt: skip


def test_a_narrow_one_shows_what_matters_most_and_the_whole_id():
    for width in range(1, 120):
        head, done, _ = listing([DONE, FAILED], width).splitlines()
        assert done.endswith(DONE.run_id)
        assert max(map(len, (head, done))) <= max(width, len(DONE.run_id))
    assert columns(listing([DONE], 80)) == ["started (UTC)", "state", "verdict", "U (predicted)", "run"]
    assert columns(listing([DONE], 92)) == [*columns(listing([DONE], 80))[:-1], "protocol", "run"]
    assert columns(listing([DONE], 50)) == ["started (UTC)", "verdict", "run"]
    assert columns(listing([DONE], 10)) == ["run"]


def test_nothing_says_how_to_start():
    assert own_runs([], 80, 0) == "no run yet: start one with `aftershock benchmark`"
    assert published_runs([], 80) == "no run is published"


def test_the_last_line_says_how_many_runs_are_published():
    told = "published runs came with the repository: see `aftershock results --published`"
    assert own_runs([DONE], 200, 24) == f"{listing([DONE], 200)}\n\n24 {told}"
    assert own_runs([], 80, 24).splitlines()[1:] == ["", f"24 {told}"]
    assert own_runs([DONE], 200, 0) == published_runs([DONE], 200) == listing([DONE], 200)


def test_no_text_of_a_run_acts_on_the_terminal_or_makes_a_line():
    hostile = replace(DONE, experiment="a\nb", facts=FACTS | {"engine": "\x1b[31m", "protocol": "\x1b[31m\n\x00"})
    head, line = listing([hostile], 200).splitlines()
    assert line.isprintable()
    assert re.split(" {2,}", line)[4:7] == [r"a\nb", r"\x1b[31m", r"\x1b[31m\n\x00"]
    assert len(head) == line.index(DONE.run_id) + len("run")
