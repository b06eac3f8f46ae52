"""A comparison of protocols between two topics: turns and shares."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks.testbed import protocol_shares
from benchmarks.testbed.protocol_shares import SlotRates
from infra.cluster import Handle

HANDLE = Handle("run", "local", "token", "root", broker="127.0.0.1:9092")
WORDS = "--events 1000 --queries q1 --records 1024 --protocols none coordinated --turns 2"


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that were run; `coordinated` has .8 times the rates of `none`."""
    run = []

    def measured(handle, job, events, rounds):
        run.append(job)
        rate = 100.0 if job.protocol == "none" else 80.0
        return SlotRates(rate, 2 * rate, 0.01, 1.0)

    monkeypatch.setattr(protocol_shares, "filled_broker", lambda *_: nullcontext(HANDLE))
    monkeypatch.setattr(protocol_shares, "measured", measured)
    monkeypatch.setattr("sys.argv", ["protocol_shares", *WORDS.split()])
    return run


def test_each_protocol_has_its_turn_after_a_run_that_does_not_count(jobs, capsys):
    protocol_shares.main()
    turns = [f"q1-1024-{protocol}-{turn}" for turn in (0, 1) for protocol in ("none", "coordinated")]
    assert [job.run_id for job in jobs] == ["q1-1024-first", *turns]
    assert {job.slots for job in jobs} == {1}
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["q1", "coordinated", "1024", "80", "160", "1.00%", "1"]
    assert lines[-3:] == [
        "coordinated, checkpoints: 1.00% to 1.00% of CPU time",
        "coordinated / none, events/CPU s: 0.800 (0.800 to 0.800)",
        "coordinated / none, events/s: 0.800 (0.800 to 0.800)",
    ]


def test_a_single_turn_has_no_limits_and_so_no_shares(jobs, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["protocol_shares", *WORDS.split(), "--turns", "1"])
    protocol_shares.main()
    assert "coordinated / none" not in capsys.readouterr().out
