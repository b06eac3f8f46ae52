"""How a streaming program of the user's own is brought onto a cluster: its files, its input, its arguments.

All that it needs is copied into the cluster's folder, which every host sees, and from there into the run's logs.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from aftershock.run.live_run import LiveRun
from aftershock.run.query import spark_conf
from experiments.errors import BadInput
from experiments.spec import Experiment
from experiments.workloads import InputSpec, OwnJobSpec
from infra.broker import Broker
from infra.cluster import JOB, STORE, Handle
from infra.launch import GUARD, REPOSITORY
from infra.services import kafka, spark
from workloads.own_job import ORACLE
from workloads.recorded import PARQUET, write

PROGRAM, INPUTS = "program", "inputs"  # folders below that of the job
RUNNER = REPOSITORY / "spark_jobs" / "streaming" / "own_job.py"
REPLAY_LIMIT = 1_000_000  # records of a topic that are replayed


def check(job: OwnJobSpec) -> None:
    """Raise `BadInput` for a program, a module or a broker that is not there; its other inputs are read elsewhere."""
    for field, path in (("program", job.program), ("oracle", job.oracle)):
        if path and not Path(path).is_file():
            raise BadInput(f"workload.{field}", path, "a Python file that exists")
    for index, module in enumerate(job.modules):
        if not Path(module).exists():
            raise BadInput(f"workload.modules.{index}", module, "a file or folder that exists")
    for topic, source in job.inputs.items():
        if source.replay and not kafka.is_ready(Broker(source.replay.partition("/")[0]), limit_s=5.0):
            raise BadInput(f"workload.inputs.{topic}.replay", source.replay, "a topic of a broker that answers")


def staged(job: OwnJobSpec, folder: Path) -> OwnJobSpec:
    """The job as it is once `stage` has copied what it needs into that folder."""
    inputs = {topic: _staged_input(topic, source, folder) for topic, source in job.inputs.items()}
    return job.model_copy(update={"program": str(folder / PROGRAM / Path(job.program).name), "inputs": inputs})


def _staged_input(topic: str, source: InputSpec, folder: Path) -> InputSpec:
    if source.workload:
        return source
    ending = PARQUET if source.replay else Path(source.file or "").suffix
    return InputSpec(file=str(folder / INPUTS / f"{topic}{ending}"))


def stage(job: OwnJobSpec, folder: Path) -> None:
    """Copy program, modules and input; raises `BadInput` for a topic to be replayed that is empty or not there."""
    for part in (PROGRAM, INPUTS):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for path in map(Path, (job.program, *job.modules)):
        if path.is_dir():
            shutil.copytree(path, folder / PROGRAM / path.name, dirs_exist_ok=True)
        else:
            shutil.copy(path, folder / PROGRAM)
    for topic, copy in staged(job, folder).inputs.items():
        source = job.inputs[topic]
        if source.file:
            shutil.copy(source.file, str(copy.file))
        elif source.replay:
            _copy_topic(source.replay, Path(str(copy.file)), f"workload.inputs.{topic}.replay")


def _copy_topic(replay: str, path: Path, field: str) -> None:
    broker, _, topic = replay.partition("/")
    found = kafka.records_of(Broker(broker), topic, REPLAY_LIMIT)
    if not found:
        raise BadInput(field, replay, "a topic with one record or more")
    write(path, [value for _, value in found], [key for key, _ in found])


def submit_command(live: LiveRun) -> list[str]:
    """Bring the job onto the cluster; returns the spark-submit that runs it there."""
    experiment, handle = live.experiment, live.handle
    job, folder = experiment.workload, folder_of(live)
    stage(job, folder)
    shutil.copytree(folder / PROGRAM, live.run.raw / "job", dirs_exist_ok=True)
    if job.oracle:
        shutil.copy(job.oracle, live.run.raw / ORACLE)
    config = folder / "own-job.json"
    values = placeholders(experiment, handle, live.root / STORE / "checkpoint")
    arguments = [filled(argument, values) for argument in job.arguments]
    program, broker = staged(job, folder).program, handle.kafka.to_json()
    document = {"master": handle.master, "broker": broker, "program": program, "arguments": arguments}
    config.write_text(json.dumps(document), encoding="utf-8")
    conf = job.conf | spark_conf(experiment, handle) | _logged(live.run.raw / "spark-events")
    conf.setdefault("spark.sql.shuffle.partitions", str(experiment.engine.partitions))
    conf["spark.executorEnv.PYTHONPATH"] = f"{folder / PROGRAM}{os.pathsep}{GUARD}"
    return spark.submit_command(handle.master, RUNNER, str(config), str(live.journal_path("query")), conf=conf)


def folder_of(live: LiveRun) -> Path:
    """Where a run's own job is on its cluster."""
    return live.root / JOB


def placeholders(experiment: Experiment, handle: Handle, checkpoint: Path) -> dict[str, str]:
    """What the placeholders in a job's arguments stand for, by name (`experiments.workloads.PLACEHOLDERS`)."""
    job = experiment.workload
    return {
        "bootstrap_servers": handle.kafka.address,
        "kafka_credentials": str(handle.kafka.credentials),
        "input_topic": ",".join(job.input_topics),  # of several, as Kafka's option `subscribe` takes them
        "output_topic": job.output_topic or "",
        "checkpoint_dir": str(checkpoint),
        "checkpoint_interval_s": f"{experiment.engine.checkpoint_interval_s:g}",
    }


def filled(argument: str, values: Mapping[str, str]) -> str:
    """An argument with its placeholders filled in; other braces, as of JSON, stay."""
    for name, value in values.items():
        argument = argument.replace(f"{{{name}}}", value)
    return argument


def _logged(events: Path) -> dict[str, str]:
    """Settings without which the run could not be measured; the job's own cannot undo them."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
    }
