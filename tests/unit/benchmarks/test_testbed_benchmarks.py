"""What the testbed's benchmarks say of themselves, and when there is nothing to measure."""

import re
import time
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from types import ModuleType

import pytest

from benchmarks.testbed import (
    copies_throughput,
    kafka_throughput,
    kills,
    memory,
    pause,
    record_path,
    slot,
    throughput,
)
from benchmarks.testbed.memory import _behind_s, _slot_mb
from benchmarks.testbed.throughput import BenchmarkCluster, _figures, job_of
from infra.cluster import Handle

JOB = job_of("q1-none-0", "q1", "none", 2, Path("root"))
REPORT = {"at_ns": 1, "positions": {}, "cpu_s": 1.0, "sent_bytes": 0, "tallies": {}}


@pytest.mark.parametrize(
    "program",
    [
        copies_throughput,
        kills,
        memory,
        pause,
        slot,
        throughput,
        kafka_throughput,
        record_path,
    ],
)
def test_a_benchmark_explains_itself(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [program.__name__, "--help"])
    with pytest.raises(SystemExit, match="0"):
        program.main()
    assert "options:" in capsys.readouterr().out


@pytest.mark.parametrize("reports", [[], [REPORT]])
def test_a_window_without_reports_is_told_in_one_line(reports):
    with pytest.raises(SystemExit, match="q1-none-0: no window to measure in"):
        _figures(JOB, reports)


def test_a_host_whose_slot_was_lost_is_told_in_one_line(tmp_path):
    handle = Handle("run-1", "local", token_hex(8), str(tmp_path))
    logs = re.escape(str(tmp_path / "hosts" / "worker-1" / "logs"))
    with pytest.raises(SystemExit, match=f"worker-1 has no slot: .*{logs}"):
        _slot_mb(BenchmarkCluster(None, handle, tmp_path), "worker-1")


def test_sources_that_have_reported_nothing_are_behind_all_that_is_due(tmp_path):
    job = replace(JOB, input=replace(JOB.input, start_ns=time.time_ns() - 9 * 10**9))
    assert _behind_s(job, tmp_path / "journal.jsonl") >= 9.0
