"""The overhead of Aftershock: throughput of the word count without faults, under Aftershock and started by hand.

`.venv/bin/python -m benchmarks.orchestration.no_fault_overhead` makes a cluster, fills a topic, and lets the same query
read it in batches of one size, in alternating runs: started by hand with spark-submit, and as a benchmark starts it
(supervisor, driver with its listener and watch, sampler, armed injector). Prints records per second of each turn, how
many TCP connections were opened while its warm batches ran, and the ratio of the medians. The kernel counts connections
by network namespace: `unshare --net sh -c 'ip link set lo up && .venv/bin/python -m
benchmarks.orchestration.no_fault_overhead'` counts no others.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, cast

from aftershock.run.engines.engine import spark_conf
from aftershock.run.engines.structured_streaming import job_config
from benchmarks.log_end import end_of
from benchmarks.one_line_errors import one_line_errors
from benchmarks.provisioned import provisioned
from benchmarks.sigterm import end_by_sigterm
from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from experiments import spec
from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind
from experiments.workloads.catalogue import WordCountSpec
from infra.cluster import Driver, Handle
from infra.launch import REPOSITORY
from infra.services import kafka, spark
from journal.reader import raw_entries
from spark_jobs.calibration import Calibration
from workloads.inputs import records
from workloads.schedule import Schedule
from workloads.sending.input_sender import InputSender
from workloads.topics import INPUT, OUTPUT

TURNS, BATCHES, WARM_BATCHES, BATCH_RECORDS, RATE = 3, 14, 5, 20_000, 6_000.0
COUNTERS, COUNT_INTERVAL_S = Path("/proc/net/snmp"), 0.1


@one_line_errors()
def main() -> None:
    """Measure both ways in alternating runs on one cluster, and print the rate of each."""
    _arguments()
    end_by_sigterm()  # so that the cluster ends
    experiment = spec.load()
    with provisioned(experiment.cluster, "overhead") as (driver, handle):
        _fill(handle, experiment)
        rates: dict[str, list[float]] = {"by hand": [], "aftershock": []}
        for turn in range(TURNS):
            for name, run in (("by hand", _by_hand), ("aftershock", _benchmarked)):
                folder = Path(handle.root) / f"{name.replace(' ', '-')}-{turn}"
                with _connections() as opened_by:
                    progress = run(driver, handle, experiment, folder)
                warm = _warm(progress)
                rates[name].append(_rate(warm))
                opened = opened_by(_ended_s(warm[-1])) - opened_by(_started_s(warm[0]))
                print(f"turn {turn + 1}  {name:10}  {rates[name][-1]:8,.0f} records/s  {opened:3} opened", flush=True)
        ratio = median(rates["aftershock"]) / median(rates["by hand"])
        print(f"aftershock / by hand, medians of {TURNS} turns: {ratio:.3f}")


def _arguments() -> argparse.Namespace:
    return argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()


def _fill(handle: Handle, experiment: spec.Experiment) -> None:
    partitions = experiment.engine.partitions
    kafka.create_topics(handle.kafka, {INPUT: partitions, OUTPUT: partitions})
    schedule = Schedule(time.time_ns(), RATE, partitions)
    feed = InputSender(handle.kafka, INPUT, records(cast(WordCountSpec, experiment.workload), schedule), schedule)
    feed.send_until(BATCHES * BATCH_RECORDS)
    feed.require(BATCHES * BATCH_RECORDS)


def _config(handle: Handle, experiment: spec.Experiment, folder: Path) -> Path:
    """The query's configuration, without any wait between batches, and a batch size as if it had been calibrated."""
    events, config = folder / "events", folder / "query.json"
    events.mkdir(parents=True)
    engine = experiment.engine.model_copy(update={"checkpoint_interval_s": 0.01})
    unpaced = experiment.model_copy(update={"engine": engine})
    job = job_config(unpaced, handle, checkpoint=folder / "checkpoint", event_log=events)
    config.write_text(json.dumps(job.to_json()), encoding="utf-8")
    calibration = Calibration(RATE, 0.0, RATE, BATCH_RECORDS)
    (folder / "calibration.json").write_text(json.dumps(calibration.to_json()), encoding="utf-8")
    return config


def _by_hand(driver: Driver, handle: Handle, experiment: spec.Experiment, folder: Path) -> list[dict[str, Any]]:
    config, conf = _config(handle, experiment, folder), spark_conf(experiment, handle)
    program, progress = REPOSITORY / "benchmarks" / "orchestration" / "by_hand.py", folder / "progress.jsonl"
    words = (str(config), str(progress), str((BATCHES - 1) * BATCH_RECORDS))
    driver.spawn(handle, "gateway", "query", spark.submit_command(handle.master, program, *words, conf=conf))
    while "query" in driver.running(handle, "gateway"):
        time.sleep(1)
    if not progress.exists():
        raise _ended_early(handle)
    return [json.loads(line) for line in progress.read_text(encoding="utf-8").splitlines()]


def _benchmarked(driver: Driver, handle: Handle, experiment: spec.Experiment, folder: Path) -> list[dict[str, Any]]:
    config, conf = _config(handle, experiment, folder), spark_conf(experiment, handle)
    program, journal = REPOSITORY / "spark_jobs" / "streaming" / "driver.py", folder / "query.jsonl"
    plan = folder / "plan.json"
    late_ns = time.time_ns() + 3600 * 10**9
    never = FaultEvent(0.0, "never in this benchmark", ("worker-1",), FaultKind.KILL, 0.0)
    plan.write_text(json.dumps(FaultPlan(late_ns, late_ns, (never,)).to_json()), encoding="utf-8")
    paths = (config, journal, folder / "calibration.json")
    submit = spark.submit_command(handle.master, program, *map(str, paths), conf=conf)
    module = [sys.executable, "-m"]
    driver.spawn(
        handle, "gateway", "query", [*module, "infra.services.supervisor", str(folder / "supervisor.jsonl"), *submit]
    )
    driver.spawn(handle, "gateway", "sampler", [*module, "infra.sampler", handle.root, str(folder / "hosts.jsonl")])
    words = [handle.root, str(plan), str(folder / "injector.jsonl")]
    driver.spawn(handle, "gateway", "injector", [*module, "chaos.injector", *words])
    while sum(progress["numInputRows"] for progress in _progress(journal)) < (BATCHES - 1) * BATCH_RECORDS:
        if "query" not in driver.running(handle, "gateway"):
            raise _ended_early(handle)
        time.sleep(1)
    for service in ("injector", "sampler", "query"):
        driver.stop(handle, "gateway", service, 30.0)
    return _progress(journal)


def _ended_early(handle: Handle) -> EnvironmentFailure:
    told = end_of(handle.directory("gateway") / "logs" / "query.log")
    return EnvironmentFailure(f"the query has ended before it had read all records: {told}", "mend that and try again")


def _progress(journal: Path) -> list[dict[str, Any]]:
    return [entry["progress"] for entry in raw_entries(journal) if entry["event"] == "progress"]


def _warm(progress: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The batches that ran once the executors were warm."""
    return [found for found in progress if found["numInputRows"]][WARM_BATCHES:]


def _rate(warm: list[dict[str, Any]]) -> float:
    """Records per second of trigger time."""
    rows, busy_ms = sum(p["numInputRows"] for p in warm), sum(p["durationMs"]["triggerExecution"] for p in warm)
    return float(rows / busy_ms * 1000)


def _started_s(progress: dict[str, Any]) -> float:
    return datetime.fromisoformat(progress["timestamp"]).timestamp()


def _ended_s(progress: dict[str, Any]) -> float:
    return _started_s(progress) + float(progress["durationMs"]["triggerExecution"]) / 1000


@contextmanager
def _connections() -> Iterator[Callable[[float], int]]:
    """Counts while it is entered; gives a function from a time to the connections that had been opened by then."""
    counts, over = [(time.time(), _opened())], threading.Event()

    def count() -> None:
        while not over.wait(COUNT_INTERVAL_S):
            counts.append((time.time(), _opened()))

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield lambda at_s: [opened for when_s, opened in counts if when_s <= at_s][-1]
    finally:
        over.set()
        thread.join()


def _opened() -> int:
    """TCP connections opened in this network namespace since it began."""
    names, values = (row.split() for row in COUNTERS.read_text().splitlines() if row.startswith("Tcp:"))
    return int(dict(zip(names, values, strict=True))["ActiveOpens"])


if __name__ == "__main__":
    main()
