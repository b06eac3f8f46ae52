"""Engine for own jobs: submits a user's streaming program to Spark with the settings that let its run be measured."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aftershock.run.engines import program_source, staging
from aftershock.run.engines.engine import JARS, PROGRAMS, spark_conf
from aftershock.run.engines.structured_streaming import StructuredStreaming, checkpoint_of
from experiments.spec import Experiment
from experiments.workloads.catalogue import OwnJobSpec, WorkloadSpec
from infra.cluster import JOB, Handle
from infra.launch import GUARD
from infra.services import spark
from results.runs.store import Run
from spark_jobs.streaming.config import OwnJobConfig
from workloads.own_job import ORACLE

RUNNER = PROGRAMS / "streaming" / "own_job.py"


@dataclass(frozen=True)
class OwnJob(StructuredStreaming):
    """The engine `structured-streaming` for an own job; `job` is the experiment's workload."""

    job: OwnJobSpec

    def check(self) -> None:
        staging.check(self.job)
        program_source.check(self.job)

    def submission(self, handle: Handle, run: Run) -> list[str]:
        folder = _folder(handle)
        config = folder / "own-job.json"
        self._copy_files(folder, run)
        program = staging.staged(self.job, folder).program
        told = OwnJobConfig(handle.master, handle.kafka, program, self._arguments(handle))
        config.write_text(json.dumps(told.to_json()), encoding="utf-8")
        own, needed = self.job.conf, spark_conf(self.experiment, handle)
        conf = own | needed | _logged(run.raw / spark.EVENT_LOG)
        if JARS in own and JARS in needed:
            conf[JARS] = f"{needed[JARS]},{own[JARS]}"
        conf.setdefault("spark.sql.shuffle.partitions", str(self.experiment.engine.partitions))
        conf["spark.executorEnv.PYTHONPATH"] = f"{folder / staging.PROGRAM}{os.pathsep}{GUARD}"
        return spark.submit_command(handle.master, RUNNER, str(config), str(run.journal_path("query")), conf=conf)

    def workload_on(self, handle: Handle) -> WorkloadSpec:
        return staging.staged(self.job, _folder(handle))

    def _copy_files(self, folder: Path, run: Run) -> None:
        """Copy what the job needs to the cluster, and its code to the run's logs."""
        staging.stage(self.job, folder)
        shutil.copytree(folder / staging.PROGRAM, run.raw / "job", dirs_exist_ok=True)
        if self.job.oracle:
            shutil.copy(self.job.oracle, run.raw / ORACLE)

    def _arguments(self, handle: Handle) -> list[str]:
        values = placeholders(self.experiment, handle, checkpoint_of(handle))
        return [filled(argument, values) for argument in self.job.arguments]


def _folder(handle: Handle) -> Path:
    """Where a run's own job is on its cluster."""
    return Path(handle.root) / JOB


def placeholders(experiment: Experiment, handle: Handle, checkpoint: Path | str) -> dict[str, str]:
    """What the placeholders in a job's arguments stand for, by name (`PLACEHOLDERS` of the spec)."""
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
