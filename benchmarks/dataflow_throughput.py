"""Throughput of NexMark's Q1 and Q12 on the testbed by protocol: Spark tasks as slots, a saturating source, 2 workers.

`.venv/bin/python benchmarks/dataflow_throughput.py [--queries q1 q12] [--protocols none ...] [--window S]`
makes a local cluster and runs one driver program after another. Events are made inside the sources and results are
forgotten, so that the figure is the runtime's own; the generator's cost is in it. Prints events per second of wall
clock and of the slots' CPU time over the window, each as a share of that of `none`, and the bytes of protocols per byte
that was sent between slots. Wall clock means little on a machine that has other work: the load is printed, too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from experiments.spec import ClusterSpec
from experiments.workloads import NexmarkQuery, NexmarkSpec
from infra import spark
from infra.cluster import Driver, Handle
from infra.drivers import driver_of
from infra.journal import read_journal
from infra.services import REPOSITORY
from spark_jobs.dataflow.operators import Delivery
from spark_jobs.dataflow.partition import Limits
from spark_jobs.dataflow.protocols import PROTOCOLS
from spark_jobs.dataflow.runtime.job import InputKind, InputSpec, Job, OutputKind, OutputSpec
from workloads.nexmark.stream import CYCLE, FIRST_BID

CLUSTER = ClusterSpec(workers=2, worker_memory_mb=512)
WARM_S, START_LIMIT_S, POLL_S = 5.0, 120.0, 0.5
EVENTS_PER_BID = CYCLE / (CYCLE - FIRST_BID)
EVENT_RATE = 100_000.0  # only dates the events: they are all overdue


def main() -> None:
    given = _arguments()
    root = Path(tempfile.mkdtemp(prefix="aftershock-dataflow-"))
    driver = driver_of(CLUSTER.driver)
    handle = driver.provision(CLUSTER, "dataflow-throughput", root)
    try:
        for query in given.queries:
            base = None
            for protocol in given.protocols:
                progress = _run(driver, handle, _job(query, protocol, given, root), given.window)
                found = _figures(progress)
                base = base or found
                shares = [f"{mine:11,.0f} ({mine / other:5.0%})" for mine, other in zip(found, base, strict=True)]
                wall, cpu = shares
                line = f"{query} {protocol:22} {wall} events/s {cpu} events/CPU s  +{_overhead(progress):.3%}"
                print(f"{line}  load {os.getloadavg()[0]:.0f}", flush=True)
    finally:
        driver.destroy(handle)
        shutil.rmtree(root)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", nargs="+", default=["q1", "q12"])
    parser.add_argument("--protocols", nargs="+", default=list(PROTOCOLS))
    parser.add_argument("--records", type=int, default=1024, help="records per message")
    parser.add_argument("--window", type=float, default=20.0, help="seconds that are measured")
    return parser.parse_args()


def _job(query: str, protocol: str, given: argparse.Namespace, root: Path) -> Job:
    folder = root / f"{query}-{protocol}"
    return Job(
        run_id=folder.name,
        workload=NexmarkSpec(query=NexmarkQuery(query)),
        protocol=protocol,
        slots=2,
        parallelism=2,
        input=InputSpec(InputKind.GENERATED, None, 0, EVENT_RATE),
        output=OutputSpec(OutputKind.NOWHERE, Delivery.PLAIN),
        store=str(folder / "store"),
        checkpoint_interval_s=5.0,
        limits=Limits(records_per_message=given.records),
    )


def _run(driver: Driver, handle: Handle, job: Job, window_s: float) -> list[dict]:
    """The journal's progress over the window, which begins when the run is warm."""
    folder = Path(job.store).parent
    folder.mkdir()
    (folder / "job.json").write_text(json.dumps(job.to_json()), encoding="utf-8")
    journal, address = folder / "journal.jsonl", handle.gateway.address
    conf = {"spark.driver.host": address, "spark.driver.bindAddress": address, "spark.executor.memory": "512m"}
    program = REPOSITORY / "spark_jobs" / "dataflow" / "driver.py"
    words = (str(folder / "job.json"), str(journal))
    driver.spawn(handle, "gateway", "dataflow", spark.submit_command(handle.master, program, *words, conf=conf))
    deadline_s = time.monotonic() + START_LIMIT_S
    while not _times(journal, "ready"):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{job.run_id} has not begun: see {handle.directory('gateway') / 'logs'}")
        time.sleep(POLL_S)
    time.sleep(WARM_S + window_s)
    driver.stop(handle, "gateway", "dataflow", 30.0)
    shutil.rmtree(job.store, ignore_errors=True)
    begin_ns = _times(journal, "ready")[0] + WARM_S * 1e9
    entries = [entry for entry in read_journal(journal) if entry["event"] == "progress"]
    return [e for e in entries if e["at_ns"] >= begin_ns and e["cpu_s"] and e["epoch"] == 1]


def _times(journal: Path, event: str) -> list[int]:
    return [entry["at_ns"] for entry in read_journal(journal) if entry["event"] == event]


def _figures(progress: list[dict]) -> tuple[float, float]:
    """Events per second of wall clock, and of CPU time."""
    first, last = progress[0], progress[-1]
    bids = _count(last, "records_out", "bids.") - _count(first, "records_out", "bids.")
    seconds, cpu_s = (last["at_ns"] - first["at_ns"]) / 1e9, last["cpu_s"] - first["cpu_s"]
    return bids * EVENTS_PER_BID / seconds, bids * EVENTS_PER_BID / cpu_s


def _overhead(progress: list[dict]) -> float:
    """Protocol bytes over the other bytes that were sent; the former also count what stays within a slot."""
    last = progress[-1]
    protocol_bytes = _count(last, "protocol_bytes", "")
    return protocol_bytes / last["sent_bytes"] if last["sent_bytes"] else 0.0


def _count(entry: dict, name: str, partitions: str) -> int:
    return sum(tally[name] for key, tally in entry["tallies"].items() if key.startswith(partitions))


if __name__ == "__main__":
    main()
