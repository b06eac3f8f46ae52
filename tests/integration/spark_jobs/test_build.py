"""All tables of a run from hand-made raw logs, built as the run does: by spark-submit on the run's directory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aftershock.run import batch_job
from aftershock.run.recompute import recompute
from experiments.errors import BadInput, EnvironmentFailure
from experiments.fault_kinds import FaultKind
from experiments.spec import Experiment
from infra.cluster import Handle
from journal.event import Event
from journal.events.common import DriverStarted, ExecutorsLost
from journal.events.injector import Armed, Healed, Injected
from journal.events.query import BatchCommitted, QueryReady
from journal.events.search import Found, ProbeJudged
from journal.events.services import HostSample, LoadRescheduled, LoadStarted, ProgramStarted
from journal.writer import Journal
from results.runs import store
from results.runs.store import Run, write_json
from results.tables.schema import SCHEMA_VERSION, TABLES, VERSION_KEY, LedgerClass

PREDICTED = {"predictions", "replayed_recoveries", "useful_time", "verdicts"}  # not by the job
NOBODY = Handle("test", "local", "test", "")
START = datetime(2026, 11, 20, 12, tzinfo=UTC)
START_NS, S = round(START.timestamp()) * 10**9, 10**9
WINDOW_S, INTERVAL_S, RATE, RECORDS = 60, 10, 100.0, 800
QUERY, FIRST_RUN, SECOND_RUN = "query-id", "first-run", "second-run"
DEATH_S, NOTICE_S, READY_S = 34.0, 34.5, 38.0
BATCHES_S = ((-10, -1), (0, 9), (10, 19), (20, 29), (38, 49), (50, 59), (60, 69))  # the one from 30 was cut off


def at(second: float) -> int:
    return START_NS + round(second * S)


def stamp(second: float) -> str:
    return f"{datetime.fromtimestamp(at(second) / S, UTC):%Y-%m-%dT%H:%M:%S.000Z}"


def progress(batch: int, start_s: float, end_s: float) -> dict[str, Any]:
    total_ms = round((end_s - start_s) * 1000)
    offsets = [{"input": {"0": n * RECORDS}} for n in (batch, batch + 1)]
    return {
        "id": QUERY,
        "batchId": batch,
        "timestamp": stamp(start_s),
        "numInputRows": RECORDS,
        "durationMs": {"addBatch": total_ms - 900, "walCommit": 100, "commitOffsets": 50, "triggerExecution": total_ms},
        "eventTime": {"watermark": stamp(start_s - 2)},
        "stateOperators": [{"commitTimeMs": 300, "numRowsTotal": 10, "memoryUsedBytes": 100}],
        "sources": [{"startOffset": offsets[0], "endOffset": offsets[1]}],
    }


def spark_events() -> Iterable[dict[str, Any]]:
    yield {"Event": "SparkListenerApplicationStart", "App Name": "aftershock"}
    for batch, (start_s, _) in enumerate(BATCHES_S):
        stages, run = [{"Stage ID": 2 * batch + i} for i in (0, 1)], FIRST_RUN if batch < 4 else SECOND_RUN
        properties = {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": str(batch), "spark.jobGroup.id": run}
        told = {"Event": "SparkListenerJobStart", "Submission Time": at(start_s + 1) // 10**6}
        yield told | {"Stage Infos": stages, "Properties": properties}
        for i, stage in enumerate(stages):
            span = [at(start_s + 1 + i * 3 + edge) // 10**6 for edge in (0.05 * i, 3)]
            times = dict(zip(("Submission Time", "Completion Time"), span, strict=True))
            yield {"Event": "SparkListenerStageCompleted", "Stage Info": stage | times}


def journal(raw: Path, name: str, *events: Event) -> None:
    log = Journal(raw / f"{name}.jsonl")
    for event in events:
        log.record(event)
    log.close()


def write_journals(raw: Path) -> None:
    spans = enumerate(BATCHES_S)
    done = [BatchCommitted(progress(batch, start_s, end_s), at_ns=at(end_s)) for batch, (start_s, end_s) in spans]
    lost, back = ExecutorsLost(("1",), at_ns=at(NOTICE_S)), QueryReady(("2",), at_ns=at(READY_S))
    began = [DriverStarted(at_ns=at(-30)), QueryReady(("1",), at_ns=at(-20))]
    journal(raw, "query", *began, *done[:4], lost, back, *done[4:])
    journal(raw, "supervisor", ProgramStarted(7, at_ns=at(-40)))
    first, then = LoadStarted(at(-40), 9.0, 1, at_ns=at(-40)), LoadRescheduled(at(-12), RATE, 1, at_ns=at(-12))
    journal(raw, "generator", first, then)
    counts = dict.fromkeys(("due", "delivered", "read", "lag_begin", "lag_end", "lag", "growth"), 1.0)
    moments = {"started_ns": at(-40), "watched_ns": at(-36), "ended_ns": at(-20)}
    judged = {"outcome": "sustained", "why": "lag is bounded"}
    probe = ProbeJudged(probe=0, rate=9.0, **moments, **counts, **judged, at_ns=at(-20))
    journal(raw, "search", probe, Found(9.0, None, "probes", at_ns=at(-20)))
    struck = {"fault": 0, "host": "worker-1", "kind": FaultKind.KILL}
    times = {"fired_ns": at(DEATH_S), "proved_ns": at(DEATH_S) + 10**7}
    proof = {"done": {"processes killed": 4}, "left": {"survivors": 0, "open ports": 0}}
    kill = Injected(**struck, planned_ns=at(33.99), **times, **proof, at_ns=at(DEATH_S))
    healed = Healed(**struck, fired_ns=at(36), proved_ns=at(36), done={}, left={}, at_ns=at(36))
    journal(raw, "injector", Armed(1, at_ns=at(-1)), kill, healed)
    samples = [HostSample("worker-1", second / 2, 9, at_ns=at(second + 0.5)) for second in range(5)]
    journal(raw, "hosts", *samples)


def write_records(raw: Path) -> None:
    offsets = range(RECORDS * len(BATCHES_S))
    due_ms = [at(-12 + offset / RATE) // 10**6 for offset in offsets]
    records = pa.table({"partition": [0] * len(due_ms), "offset": offsets, "due_ms": due_ms})
    pq.write_table(records, raw / "input.parquet")
    columns, counts = ("start_ms", "end_ms", "key", "value"), {"an": "3", "x": "1"}
    spans = [(at(second) // 10**6, at(second + 10) // 10**6) for second in range(-10, 70, 5)]
    exact = [(*span, key, count) for span in spans for key, count in counts.items()]
    missing, twice = (at(5) // 10**6, at(15) // 10**6, "x", "1"), exact[0]
    for name, rows in (("oracle", exact), ("sink", [row for row in exact if row != missing] + [twice])):
        pq.write_table(pa.table(dict(zip(columns, zip(*rows, strict=True), strict=True))), raw / f"{name}.parquet")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("AFTERSHOCK_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = Run("run-1", tmp_path_factory.mktemp("live") / "run-1" / "result")
    experiment = {
        "cluster": {"workers": 1},
        "engine": {"checkpoint_interval_s": INTERVAL_S},
        "load": {"mode": "rate", "rate": RATE},
        "faults": {"processes": [{"rate": 0.02}]},
        "window_s": WINDOW_S,
    }
    write_json(made.root / "experiment.json", Experiment.model_validate(experiment).model_dump(mode="json"))
    event = {"at": 33.99, "kind": "kill", "targets": ["worker-1"], "cause": "clock", "heal_after": 2.0}
    window = {"window_start_ns": at(0), "window_end_ns": at(WINDOW_S)}
    write_json(made.raw / "plan.json", {**window, "events": [event]})
    write_journals(made.raw)
    write_records(made.raw)
    (made.raw / "spark-events").mkdir()
    lines = (json.dumps(event, separators=(",", ":")) for event in spark_events())
    (made.raw / "spark-events" / "app-1").write_text("\n".join(lines) + "\n", encoding="utf-8")
    batch_job.carry_out("build", made, owner=NOBODY)
    return made


@pytest.mark.parametrize("name", sorted(set(TABLES) - PREDICTED))
def test_every_table_has_the_columns_of_its_schema(run: Run, name: str) -> None:
    found = pq.read_table(run.tables / f"{name}.parquet")
    of_the_testbed = {"partition_checkpoints", "partition_recoveries", "query_recoveries", "output_logs", "tentative"}
    of_the_testbed |= {"query_latencies", "copies", "partition_rates"}
    assert bool(found.num_rows) == (name not in of_the_testbed | {"spark_tasks"})
    assert found.schema.metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()
    assert (run.tables / f"{name}.parquet").is_file()  # so that it can be handed to a user as it is
    assert [(field.name, field.type) for field in found.schema] == [(f.name, f.type) for f in TABLES[name]]
    required = [field.name for field in TABLES[name] if not field.nullable]
    assert {column: found[column].null_count for column in required} == dict.fromkeys(required, 0)


def test_the_ledger_covers_the_window_and_shows_the_outage(run: Run) -> None:
    ledger = run.table("ledger")
    seconds = ledger.groupby("class")["seconds"].sum().to_dict()
    assert sum(seconds.values()) == pytest.approx(WINDOW_S, abs=1e-9)
    assert set(seconds) <= set(LedgerClass)
    assert seconds["detect"] == pytest.approx(NOTICE_S - DEATH_S)
    assert seconds["lost"] == pytest.approx(DEATH_S - 30)
    warm_up_s = (49 - 38) - 9
    assert seconds["restart"] == pytest.approx(READY_S - NOTICE_S)
    assert seconds["warm-up"] == pytest.approx(warm_up_s)
    assert seconds["checkpoint"] == pytest.approx(5 * 1.2)
    row = run.table("runs").iloc[0]
    assert row["utilization"] == pytest.approx((seconds["useful"] + seconds["idle"]) / WINDOW_S)
    assert (row["run_id"], row["records_committed"]) == ("run-1", 5 * RECORDS)


def test_the_fault_and_its_recovery(run: Run) -> None:
    (fault,), (recovery,) = (run.table(name).to_dict("records") for name in ("faults", "recoveries"))
    assert fault["lateness_s"] == pytest.approx(0.01)
    assert (recovery["fault"], recovery["detect_s"]) == (0, pytest.approx(0.5))
    assert recovery["restored_ns"] == at(49)


def test_checkpoints_know_their_chain(run: Run) -> None:
    checkpoints = run.table("checkpoints").set_index("batch")
    assert checkpoints["in_window"].tolist() == [False, True, True, True, True, True, False]
    assert set(checkpoints["stages"]) == {2}
    assert checkpoints["hop_delay_s"].tolist() == pytest.approx([0.05] * len(BATCHES_S))


def test_latency_shows_the_outage_as_late_records(run: Run) -> None:
    latency = run.table("latency").set_index("second")
    assert sorted(latency.index) == [9, 19, 29, 49, 59]
    assert set(latency["records"]) == {RECORDS}
    middle_of_the_first_s = -12 + 1.5 * RECORDS / RATE
    assert latency["p50_s"][9] == pytest.approx(9 - middle_of_the_first_s, abs=0.02)
    assert latency["p50_s"][49] > latency["p50_s"][29] + 10


def test_quality_counts_what_is_missing_and_what_came_twice(run: Run) -> None:
    quality = run.table("quality")
    by_start = {(row.window_start_ns - START_NS) // S: row for row in quality.itertuples()}
    assert (by_start[5].lost, by_start[5].exact, by_start[5].emitted) == (1, 2, 1)
    assert (by_start[-10].duplicated, by_start[-10].emitted) == (1, 3)
    assert quality[["lost", "duplicated", "wrong"]].sum().tolist() == [1, 1, 0]
    assert max(by_start) == 45, "the last watermark is at 58 s"


def test_a_job_that_fails_names_its_cause_and_log(tmp_path: Path) -> None:
    broken = Run("run-1", tmp_path / "run-1" / "result")
    broken.root.mkdir(parents=True)
    with pytest.raises(
        EnvironmentFailure, match=r"the job build failed \(.*experiment\.json.*see tables\.log"
    ) as failure:
        batch_job.carry_out("build", broken, owner=replace(NOBODY, token="another"))
    assert "\n" not in str(failure.value)


STATUS = {"run_id": "run-1", "experiment": "wordcount", "state": "done", "started_ns": 1, "ended_ns": 2, "error": None}


def put_into_the_store(run: Run, **changed: Any) -> Run:
    """A finished run with the same logs, whose tables are of an older version of the code, or lost."""
    finished = store.Run("run-1", store.home() / "runs" / "run-1")
    shutil.rmtree(finished.root, ignore_errors=True)
    shutil.copytree(run.root, finished.root, ignore=shutil.ignore_patterns("tables", "checks", "plots", "*.html"))
    pq.write_table(pa.table({"of_an_older_version": [1]}), finished.root / "ledger.parquet")
    write_json(finished.root / "status.json", STATUS | changed)
    return finished


def test_results_are_computed_again_from_the_logs(home: Path, run: Run) -> None:
    finished = put_into_the_store(run)
    logs = {
        path: path.stat().st_ino for path in finished.raw.rglob("*") if path.is_file() and path.name != batch_job.LOG
    }
    assert recompute("run-1") == finished
    for name in set(TABLES) - PREDICTED:
        assert finished.table(name).equals(run.table(name))
    assert set(TABLES) == {path.stem for path in finished.tables.iterdir()}
    assert finished.report.is_file()
    assert not (finished.root / "ledger.parquet").exists()
    status = finished.status().to_json()
    assert status["schema_version"] == SCHEMA_VERSION
    assert {name: status[name] for name in STATUS} == STATUS
    assert status["recomputed_ns"] > 2
    assert {path: path.stat().st_ino for path in logs} == logs
    assert [path.name for path in home.iterdir()] == ["runs"]


def test_a_run_whose_logs_are_lost_stays_as_it_was(home: Path, run: Run) -> None:
    finished = put_into_the_store(run)
    (finished.raw / "plan.json").unlink()
    before = {path: path.read_bytes() for path in finished.root.rglob("*") if path.is_file()}
    with pytest.raises(EnvironmentFailure, match=r"plan\.json"):
        recompute("run-1")
    assert {path: path.read_bytes() for path in finished.root.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in home.iterdir()) == ["logs", "runs"]  # the log of the job that failed stays


def test_a_run_that_failed_is_not_computed_again(home: Path, run: Run) -> None:
    put_into_the_store(run, state="failed", error="no disk")
    with pytest.raises(BadInput, match="a run that is done"):
        recompute("run-1")
