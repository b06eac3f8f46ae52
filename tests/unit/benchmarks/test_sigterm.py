"""A benchmark that is told to end takes with it what it started."""

from __future__ import annotations

import signal
import subprocess
import sys
from argparse import Namespace
from types import ModuleType

import pytest

from benchmarks.engines import batch_compilers, nexmark_spark, side_by_side
from benchmarks.injector import burst_lateness, kill_lateness
from benchmarks.orchestration import no_fault_overhead, serve_idle, soak
from benchmarks.regressions import check_power
from benchmarks.testbed import first_tentative, intake_latency, kill_nights, kills, reached, throughput

PROGRAM = """
import time
from benchmarks.sigterm import end_by_sigterm
end_by_sigterm()
try:
    print("begun", flush=True)
    time.sleep(60)
finally:
    print("ended what was started", flush=True)
"""


AMID_THE_START = """
import sys, time
from tests.integration.testbed.kills.slots import Slots
Slots._start(time.sleep, 600)
sys.exit(143)
"""


class HandlerSet(Exception):
    """Instead of the handler: nothing else has begun yet."""


def handler_set() -> None:
    raise HandlerSet


def test_finally_blocks_run() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "begun\n"
        program.send_signal(signal.SIGTERM)
        assert program.stdout.read() == "ended what was started\n"
    assert program.returncode == 128 + signal.SIGTERM


def test_a_program_that_ends_while_slots_begin_does_not_wait_for_them() -> None:
    ended = subprocess.run([sys.executable, "-c", AMID_THE_START], check=False, timeout=100)
    assert ended.returncode == 143


PROGRAMS = [
    *(side_by_side, nexmark_spark, soak, no_fault_overhead, serve_idle, burst_lateness, kill_lateness),
    *(first_tentative, intake_latency, kill_nights, kills, reached, batch_compilers, check_power),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_start_processes_end_so(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["a benchmark"])
    monkeypatch.setattr(program, "_arguments", Namespace, raising=False)
    monkeypatch.setattr(program, "end_by_sigterm", handler_set)
    with pytest.raises(HandlerSet):
        program.main()


def test_programs_with_a_cluster_end_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "end_by_sigterm", handler_set)
    with pytest.raises(HandlerSet), throughput.cluster_of(1):
        pass
