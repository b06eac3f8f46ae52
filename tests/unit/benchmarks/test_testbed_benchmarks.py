"""What the testbed's benchmarks say of themselves, what they judge by, and how they end if they fail."""

import os
import re
import time
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from secrets import token_hex
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from benchmarks import testbed
from benchmarks.one_line_errors import one_line_errors
from benchmarks.testbed import copies_throughput, intake_latency, memory, record_path, slot, throughput, watched_slots
from benchmarks.testbed.memory import _behind_s, _samples, _slot_mb, judged
from benchmarks.testbed.throughput import BenchmarkCluster, _figures, job_of
from experiments.errors import BadInput, EnvironmentFailure
from infra.cluster import Handle
from testbed.operators import Delivery
from testbed.runtime.connectors.sources import Generated

JOB = job_of("q1-none-0", "q1", "none", 2, Path("root"))
REPORT = {"at_ns": 1, "positions": {}, "cpu_s": 1.0}
MODULES = [import_module(f"{testbed.__name__}.{each.name}") for each in iter_modules(testbed.__path__)]
PROGRAMS = [each for each in MODULES if hasattr(each, "main")]


@pytest.mark.parametrize("program", PROGRAMS)
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
        _figures(JOB, reports, 0.0)


def test_a_host_whose_slot_was_lost_is_told_in_one_line(tmp_path):
    handle = Handle("run-1", "local", token_hex(8), str(tmp_path))
    logs = re.escape(str(tmp_path / "hosts" / "worker-1" / "logs"))
    with pytest.raises(SystemExit, match=f"worker-1 has no slot: .*{logs}"):
        _slot_mb(BenchmarkCluster(None, handle, tmp_path), "worker-1")


def test_sources_that_have_reported_nothing_are_behind_all_that_is_due(tmp_path):
    job = replace(JOB, input=replace(JOB.input, start_ns=time.time_ns() - 9 * 10**9))
    assert _behind_s(job, tmp_path / "journal.jsonl") >= 9.0


def test_sources_that_report_nothing_more_fall_behind(tmp_path, monkeypatch):
    start_ns = time.time_ns() - 99 * 10**9
    report = REPORT | {"event": "progress", "at_ns": start_ns + 10**9, "positions": {"bids.0": 1}}
    monkeypatch.setattr(throughput, "raw_entries", lambda _: iter([report]))
    monkeypatch.setattr(time, "time_ns", lambda: start_ns + 99 * 10**9)
    job = replace(JOB, input=replace(JOB.input, start_ns=start_ns, rate=8192.0))
    read_s = Generated.block_events(8192.0) / 8192.0
    assert _behind_s(job, tmp_path / "journal.jsonl") == pytest.approx(99.0 - read_s)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_failure_of_the_machine_is_one_line_and_its_exit_code(program, monkeypatch, capsys):
    def fail(*_):
        raise EnvironmentFailure("no broker", "start one")

    monkeypatch.setattr("argparse.ArgumentParser.parse_args", fail)
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 3
    assert capsys.readouterr().err == "no broker; start one\n"


def test_each_error_has_its_exit_code(capsys):
    with pytest.raises(SystemExit) as ended, one_line_errors():
        raise BadInput("rate", 0, "more than 0")
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_interruption_is_told_in_one_line(capsys):
    with pytest.raises(SystemExit) as ended, one_line_errors():
        raise KeyboardInterrupt
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("running", "limit_s", "why"),
    [({"dataflow"}, 0.0, "has not begun after 0 s"), (set(), 600.0, "has ended before it had begun")],
)
def test_a_program_that_does_not_begin_is_a_failure_of_the_machine(tmp_path, monkeypatch, running, limit_s, why):
    monkeypatch.setattr(throughput, "submit", lambda *_: tmp_path / "journal.jsonl")
    monkeypatch.setattr(throughput, "START_LIMIT_S", limit_s)
    monkeypatch.setattr(throughput, "POLL_S", 0.001)
    driver = SimpleNamespace(running=lambda *_: running)
    cluster = BenchmarkCluster(driver, Handle("run-1", "local", token_hex(8), str(tmp_path)), tmp_path)
    log = tmp_path / "hosts" / "gateway" / "logs" / "dataflow.log"
    log.parent.mkdir(parents=True)
    log.write_text("no worker came\n")
    with pytest.raises(EnvironmentFailure, match=f"q1-none-0 {why}: no worker came"):
        cluster.start(replace(JOB, store=str(tmp_path / "q1" / "store")))


class Machine(BenchmarkCluster):
    """A cluster, or anything else that runs a job: from its start on the machine has a load of 99, before that of 2."""

    load = 2.0

    def start(self, *_, **__):
        """Begin to work."""
        Machine.load = 99.0
        return self.root / "journal.jsonl"

    def stop(self, job):
        """Nothing to end."""
        return


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(Machine, "load", 2.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (Machine.load, 0.0, 0.0))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    reports = [REPORT | {"event": "progress", "at_ns": at_ns * 10**9, "cpu_s": at_ns} for at_ns in (6, 7)]
    monkeypatch.setattr(throughput, "raw_entries", lambda _: iter(reports))
    monkeypatch.setattr(throughput, "times", lambda _, event: [0] if event == "ready" else [])
    return Machine(None, Handle("run-1", "local", token_hex(8), str(tmp_path)), tmp_path)


def test_throughput_has_the_load_before_a_run(machine):
    found = throughput.measured(machine, JOB, 9.0)
    assert (found.load, Machine.load) == (2.0, 99.0)
    found = found._replace(wall=1.0, cpu=1.0)
    assert throughput._line("q1", JOB, found, found).endswith(" 2")


def test_copies_have_the_load_before_a_run(machine, monkeypatch):
    monkeypatch.setattr(copies_throughput, "_working_ns", lambda *_: 10**9)
    monkeypatch.setattr(copies_throughput, "events", lambda *_: iter(()))
    monkeypatch.setattr(copies_throughput, "cpu_shares", lambda *_: SimpleNamespace(copies_cpu_share=0.0))
    monkeypatch.setattr(copies_throughput, "figures_of", lambda *given: throughput.Figures(1.0, 1.0, given[-1]))
    found = copies_throughput._measured(machine, JOB, 0.5, 9.0)
    assert (found.load, Machine.load) == (2.0, 99.0)
    assert copies_throughput._line(0.5, found, found).endswith(" 2")


def test_a_slot_has_the_load_before_its_run(machine, monkeypatch, capsys):
    lone = SimpleNamespace(run=lambda _: machine.start() and slot.Spent(1, 1.0, 0.0, 1.0), close=lambda: None)
    monkeypatch.setattr(slot, "OneSlot", lambda _: lone)
    monkeypatch.setattr("sys.argv", ["slot", "--queries", "q1", "--protocols", "none", "--repeats", "1"])
    slot.main()
    assert Machine.load == 99.0
    assert capsys.readouterr().out.endswith(" 2\n")


def test_a_slot_is_judged_by_the_cpu_time_that_it_took(monkeypatch, capsys):
    lone = SimpleNamespace(run=lambda _: slot.Spent(events=30, cpu_s=10.0, checkpoint_s=1.0, seconds=12.0))
    lone.close = lambda: None
    monkeypatch.setattr(slot, "OneSlot", lambda _: lone)
    words = "--queries q1 --protocols none --repeats 1 --cpu 8"
    monkeypatch.setattr("sys.argv", ["slot", *words.split()])
    slot.main()
    assert capsys.readouterr().out.splitlines()[-1].split()[3:7] == ["3", "100%", "333333.333", "10.0%"]


def test_the_path_of_a_record_has_the_load_before_all_runs(machine, monkeypatch, capsys):
    monkeypatch.setattr(record_path, "measured", lambda *_: machine.start() and record_path.Path(1, 1, {"poll": 1.0}))
    monkeypatch.setattr("sys.argv", ["record_path"])
    record_path.main()
    assert Machine.load == 99.0
    assert capsys.readouterr().out.endswith("\nload 2\n")


def test_memory_has_the_load_before_all_runs(machine, monkeypatch, capsys):
    monkeypatch.setattr(memory, "cluster_of", lambda _: nullcontext(machine))
    monkeypatch.setattr(memory, "measured", lambda *_: machine.start() and throughput.Figures(10.0, 1.0, 2.0))
    monkeypatch.setattr(memory, "_samples", lambda *_: iter(series(mb_a_minute=1.0)))
    monkeypatch.setattr("sys.argv", ["memory"])
    with pytest.raises(SystemExit) as ended:
        memory.main()
    assert ended.value.code == 1
    assert Machine.load == 99.0
    assert "at 8 events/s, load 2\n" in capsys.readouterr().out


def test_latency_has_the_load_before_a_run(machine, monkeypatch, tmp_path):
    rig = SimpleNamespace(journal=None, close=lambda: None)
    watch = SimpleNamespace(wait_for=lambda *_: None, close=lambda: None)
    monkeypatch.setattr(watched_slots, "Slots", lambda *_: machine.start() and rig)
    monkeypatch.setattr(watched_slots, "Watch", lambda *_: watch)
    given, root = intake_latency.arguments(["--rate", "100"]), tmp_path / "run"
    root.mkdir()
    run = intake_latency._measured(
        intake_latency.case_of(given, "coordinated", Delivery.PLAIN, 1, root), root, seconds=1.0
    )
    assert (run.load, run.out, Machine.load) == (2.0, 0.0, 99.0)


def test_what_does_not_come_in_time_is_a_failure_of_the_machine_and_ends_the_slots(monkeypatch, tmp_path):
    ended = []
    rig = SimpleNamespace(journal=None, close=lambda: ended.append("slots"))
    watch = SimpleNamespace(close=lambda: ended.append("watch"))
    monkeypatch.setattr(watched_slots, "Slots", lambda *_: rig)
    monkeypatch.setattr(watched_slots, "Watch", lambda *_: watch)
    told = f"it has not come in 60 s; look at the files in {tmp_path}"
    with pytest.raises(EnvironmentFailure, match=re.escape(told)), watched_slots.watched_slots(JOB, tmp_path):
        raise TimeoutError("it has not come in 60 s")
    assert ended == ["watch", "slots"]


def series(mb_a_minute=0.0, behind_s=1.0, stalls_s=np.inf):
    """Half an hour of samples of one slot with 100 MB, whose sources stall at some moment."""
    rows = [[5.0 * n, np.nan, 100 + mb_a_minute * n / 12] for n in range(361)]
    for row in rows[::12]:
        row[1] = behind_s + max(0.0, row[0] - stalls_s)
    return np.array(rows)


@pytest.mark.parametrize(
    ("samples", "verdict"),
    [
        (series(), "bounded: below 5 % in half an hour"),
        (series(mb_a_minute=1.0), "not bounded: not below 5 % in half an hour"),
        (series(stalls_s=600.0), "failed: sources were 1201.0 s behind, more than 10 s"),
        (series(stalls_s=1795.0), "bounded: below 5 % in half an hour"),
    ],
)
def test_memory_is_bounded_only_where_sources_keep_up(samples, verdict):
    assert judged(samples) == (verdict, verdict.startswith("bounded"))


def test_sources_may_be_late_in_the_first_half():
    samples = series()
    samples[:12, 1] = 300.0
    assert judged(samples)[1]


def test_the_last_sample_says_how_far_sources_are_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_slot_mb", lambda *_: 100.0)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    start_ns = time.time_ns() - 99 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: start_ns + 99 * 10**9)
    job = replace(JOB, input=replace(JOB.input, start_ns=start_ns))
    handle = Handle("run-1", "local", token_hex(8), str(tmp_path))
    samples = list(_samples(BenchmarkCluster(None, handle, tmp_path), job, tmp_path / "journal.jsonl", 0.0))
    assert [sample[1] for sample in samples] == [pytest.approx(99.0)]
