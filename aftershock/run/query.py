"""How the query of an experiment is configured and submitted, and what its journal says of its progress."""

from __future__ import annotations

import json
from bisect import bisect_right, insort
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.engines import OF_THE_TESTBED, EngineName, Protocol
from experiments.spec import Experiment, LoadMode
from infra.cluster import STORE, Handle
from infra.launch import REPOSITORY
from infra.services import spark
from infra.services.jars import ensure_jars
from results.runs.store import Run
from spark_jobs.streaming.progress import records_read
from testbed.progress import events_read

CONFIG_FILE, DRAIN_FILE = "query.json", "query.drain"  # the second asks the testbed's driver to come to an end
PROGRAMS = {EngineName.STRUCTURED_STREAMING: "streaming", EngineName.DATAFLOW: "testbed"}


def submission(experiment: Experiment, handle: Handle, root: Path, run: Run) -> list[str]:
    """Write the query driver's configuration to the gateway; returns the command that submits it.

    `root`: of the cluster. The driver leaves `calibration.json` on the gateway when the load is to saturate it.
    """
    config, checkpoint = handle.orders / CONFIG_FILE, root / STORE / "checkpoint"
    words: Sequence[Path] = (config, run.raw / "query.jsonl")
    if experiment.load.mode is LoadMode.SATURATING:
        words = (*words, handle.directory(handle.gateway.name) / "calibration.json")
    if experiment.engine.name is EngineName.DATAFLOW:
        document = testbed_job(experiment, handle, checkpoint, run.run_id)
    else:
        document = job_config(experiment, handle, checkpoint=checkpoint, event_log=run.raw / "spark-events")
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps(document), encoding="utf-8")
    program = REPOSITORY / "spark_jobs" / PROGRAMS[experiment.engine.name] / "driver.py"
    return spark.submit_command(handle.master, program, *map(str, words), conf=spark_conf(experiment, handle))


def job_config(experiment: Experiment, handle: Handle, *, checkpoint: Path, event_log: Path) -> dict[str, Any]:
    """The query driver's configuration, as `spark_jobs.streaming.job.JobConfig` reads it."""
    return {
        "broker": handle.kafka.to_json(),
        "master": handle.master,
        "workload": experiment.workload.model_dump(mode="json"),
        "engine": experiment.engine.model_dump(mode="json", exclude=set(OF_THE_TESTBED)),
        "workers": experiment.cluster.workers,
        "cores": experiment.cores,
        "checkpoint": str(checkpoint),
        "event_log": str(event_log),
    }


def testbed_job(experiment: Experiment, handle: Handle, store: Path, run_id: str) -> dict[str, Any]:
    """The testbed's job, from topic to topic; without checkpoints no output is ever safe, so it goes out at once."""
    from testbed.core.partition import PartitionLimits
    from testbed.operators import Delivery
    from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec

    engine = experiment.engine
    delivery = Delivery.PLAIN if engine.protocol_run is Protocol.NONE else Delivery.EXACTLY_ONCE
    return Job(
        run_id=run_id,
        workload=experiment.workload,
        protocol=engine.protocol_run.value,
        slots=experiment.cores,
        parallelism=engine.partitions,
        input=JobInput(InputKind.KAFKA, None, broker=handle.kafka),
        output=OutputSpec(OutputKind.KAFKA, delivery, broker=handle.kafka),
        store=engine.objects_of(run_id) or str(store),
        store_endpoint=engine.store_endpoint,
        chaining=engine.chaining_run,
        checkpoint_interval_s=engine.checkpoint_interval_s,
        limits=PartitionLimits(records_per_message=engine.records_per_message_run),
    ).to_json()


def spark_conf(experiment: Experiment, handle: Handle) -> dict[str, str]:
    """Where driver and executors bind, what they may use, and where they find the Kafka connector."""
    connector = ":".join(str(jar) for jar in ensure_jars().connector)
    address = handle.gateway.address
    return {
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.driver.extraClassPath": connector,
        "spark.executor.extraClassPath": connector,
        "spark.executor.cores": str(experiment.cluster.worker_cores),
        "spark.executor.memory": f"{experiment.cluster.worker_memory_mb}m",
    }


class Commits:
    """When the query committed something: a digest of its journal (`journal.reader.Digest`).

    That is a micro-batch, or a line of the testbed's checkpoints. Without checkpoints nothing is committed: there it
    counts that the sources are at work.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._by_batch = experiment.engine.name is EngineName.STRUCTURED_STREAMING
        never_commits = not self._by_batch and experiment.engine.protocol_run is Protocol.NONE
        self._told_by = "progress" if self._by_batch or never_commits else "committed"
        self._moments_ns: list[int] = []

    def take(self, entry: dict[str, Any]) -> None:
        if entry["event"] != self._told_by:
            return
        if entry["progress"]["numInputRows"] if self._by_batch else any(entry["positions"].values()):
            insort(self._moments_ns, entry["at_ns"])

    def since(self, after_ns: int) -> int:
        """How often it did after a moment."""
        return len(self._moments_ns) - bisect_right(self._moments_ns, after_ns)


class Reads:
    """When [ns] the query had read how many records: a digest of its journal (`journal.reader.Digest`).

    Each micro-batch tells it, or each report of the testbed; the first of `counts` says that it began with none.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._by_report = experiment.engine.name is EngineName.DATAFLOW
        self.counts: list[tuple[int, int]] = [(0, 0)]

    def take(self, entry: dict[str, Any]) -> None:
        if entry["event"] != "progress":
            return
        if self._by_report:
            if entry["phase"] == "running" and entry["positions"]:
                self.counts.append((entry["at_ns"], events_read(entry["positions"])))
        elif entry["progress"]["numInputRows"]:
            self.counts.append((entry["at_ns"], self.counts[-1][1] + records_read(entry["progress"])))
