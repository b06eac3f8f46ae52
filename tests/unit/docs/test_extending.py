"""The examples of docs/guides/extending.md at work, and every place that must know the name of a new one."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from docs.examples.extending.check import CHECKS
from docs.examples.extending.fault_kind import FilesUp, let_open
from docs.examples.extending.protocol import ByWork
from infra.processes import members
from results.checks.evidence import Evidence
from testbed.protocols import PROTOCOLS, by_name
from tests.unit.marked_processes import start, wait_for
from tests.unit.results import synthetic
from tests.unit.results.judging import judged, move, null
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.runs import faults, oracle, simulated

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (A [^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
POINTS = re.findall(r"^\| \[([^\]]+)\]\(\.\./\.\./([^)]+)\) \| (.+?) \|", PAGE, re.MULTILINE)
OPENS_AGAIN_AND_AGAIN = """
import os, sys, time
told = os.open(sys.argv[1], os.O_WRONLY)
while True:
    try:
        os.close(os.open("/dev/null", os.O_RDONLY))
        word = b"open   "
    except OSError as error:
        word = b"refused"
    os.pwrite(told, word, 0)
    time.sleep(0.01)
"""


def test_there_is_a_section_for_each_with_its_points_and_its_example():
    assert list(SECTIONS) == ["A workload", "A protocol", "A fault kind", "A driver", "A check"]
    for title, text in SECTIONS.items():
        (example,) = re.findall(r"\]\(\.\./(examples/extending/\w+\.py)\)", text)
        assert (ROOT / "docs" / example).is_file(), title
        assert "| place |" in text, title


@pytest.mark.parametrize(("shown", "path", "names"), POINTS, ids=[f"{path}: {names}" for _, path, names in POINTS])
def test_a_place_that_must_know_a_new_one_is_there(shown, path, names):
    assert path.startswith(shown)
    text = (ROOT / path).read_text(encoding="utf-8")
    for name in re.findall(r"`([^`]+)`", names):
        assert name in text, f"{path} has no {name}"


@pytest.mark.parametrize("seeds", first_and_rest(range(8), 2))
def test_the_protocol_loses_nothing_and_repeats_nothing(monkeypatch, seeds):
    monkeypatch.setitem(PROTOCOLS, ByWork.name, ByWork)
    assert by_name("by-work") is ByWork
    crashes = 0
    for flow in ("tiny", "joined", "cyclic"):
        for seed in seeds:
            outcome = simulated(flow, "by-work", seed, faults=faults(flow, "uncoordinated", seed)).run()
            assert outcome.published == oracle(flow), f"{flow}, seed {seed}"
            crashes += outcome.crashes
    assert crashes > len(seeds)


def test_the_protocol_takes_checkpoints_by_work_done(monkeypatch):
    monkeypatch.setitem(PROTOCOLS, ByWork.name, ByWork)
    by_time, by_work = (
        simulated("chain", protocol, 1, faults=[], timers=0.0).run().tally.checkpoints
        for protocol in ("uncoordinated", "by-work")
    )
    assert by_time < by_work


@pytest.fixture
def opening(token, tmp_path):
    """A host with a process that opens a file again and again, and what it says of it."""
    told = tmp_path / "told"
    told.write_bytes(b"       ")
    start(f"{token}/worker-1/service", sys.executable, "-c", OPENS_AGAIN_AND_AGAIN, str(told))
    wait_for(lambda: told.read_bytes() == b"open   ")
    return f"{token}/worker-1", told


def test_the_fault_holds_until_it_is_undone(opening):
    host, told = opening
    strike = FilesUp(host)
    assert strike.refresh()
    due_ns = time.time_ns() + 20_000_000
    strike.shoot(due_ns)
    proof = strike.fire()
    assert proof.holds
    assert proof.done == {"processes limited": len(members(host))}
    assert due_ns <= proof.fired_ns <= proof.proved_ns
    wait_for(lambda: told.read_bytes() == b"refused")
    healed = let_open(host)
    assert healed.holds
    assert healed.done == {"processes let open": 1}
    wait_for(lambda: told.read_bytes() == b"open   ")


def test_the_fault_finds_nothing_on_a_host_that_is_down(token):
    strike = FilesUp(f"{token}/worker-1")
    assert not strike.refresh()
    assert strike.fire().done == {"processes limited": 0}
    assert let_open(f"{token}/worker-1").holds


@pytest.mark.extended
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda rows: rows, "pass"),
        (move("ready_ns", 1, 60 * 10**9), "fail"),
        (null("ready_ns", 1), "fail"),  # the query never worked again
        (lambda rows: rows[:0], "unknown"),
    ],
)
def test_the_check_notices_a_long_outage_and_one_without_end(tmp_path, change, verdict):
    run = synthetic.make_run(tmp_path, changes={"recoveries": change})
    (check,) = CHECKS
    assert check.applies(synthetic.experiment())
    assert judged(check, Evidence(run, synthetic.experiment()), tmp_path)["verdict"] == verdict
