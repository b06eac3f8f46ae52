"""Copies the files of an own job onto a cluster: its program, its modules, its input.

All that it needs is copied into the cluster's folder, which every host sees, and from there into the run's logs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from experiments.errors import BadInput
from experiments.workloads.catalogue import InputSpec, OwnJobSpec
from infra.broker import Broker
from infra.services import kafka
from workloads.recorded import PARQUET, write

PROGRAM, INPUTS = "program", "inputs"  # folders below that of the job
REPLAY_LIMIT = 1_000_000  # records of a topic that are replayed


def check(job: OwnJobSpec) -> None:
    """Raise `BadInput` for a program, a module or a broker that is not there, and for two files of one name.

    Its other inputs are read elsewhere.
    """
    for field, path in (("program", job.program), ("oracle", job.oracle)):
        if path and not Path(path).is_file():
            raise BadInput(f"workload.{field}", path, "a Python file that exists")
    names = {Path(job.program).name}
    for index, module in enumerate(job.modules):
        if not Path(module).exists():
            raise BadInput(f"workload.modules.{index}", module, "a file or folder that exists")
        if (name := Path(module).name) in names:
            allowed = f"one file or folder named {name}: program and modules are put beside each other"
            raise BadInput(f"workload.modules.{index}", module, allowed)
        names.add(name)
    for topic, source in job.inputs.items():
        if source.replay and not kafka.is_ready(Broker(source.replay.partition("/")[0]).for_librdkafka(), limit_s=5.0):
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
