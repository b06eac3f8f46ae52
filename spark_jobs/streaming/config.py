"""The configuration of the programs of `streaming`, a JSON file."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.spec import EngineSpec
from experiments.typed_json import TypedJson
from experiments.workloads.catalogue import WorkloadSpec
from infra.broker import Broker


@dataclass(frozen=True)
class JobConfig(TypedJson):
    """For the query driver.

    master      the URL of the Spark master
    checkpoint  the folder of the query's checkpoints
    event_log   the folder of Spark's event log
    """

    broker: Broker
    master: str
    workload: WorkloadSpec
    engine: EngineSpec
    workers: int
    cores: int
    checkpoint: str
    event_log: str


@dataclass(frozen=True)
class OwnJobConfig(TypedJson):
    """For the runner of an own job: the file of the user's program, and its arguments."""

    master: str
    broker: Broker
    program: str
    arguments: list[str]
