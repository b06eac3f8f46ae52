"""The configuration of the generator: a JSON file, which is replaced to change the load."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.typed_json import TypedJson
from experiments.workloads.catalogue import WorkloadSpec
from infra.broker import Broker
from workloads.schedule import Schedule

LOAD_FILE = "generator.json"  # of the gateway's orders


@dataclass(frozen=True)
class LoadConfig(TypedJson):
    """Which input goes to which broker, and when.

    batch_records   records of a partition in one message, as an Arrow batch: only with NexMark; None: one, as JSON
    """

    broker: Broker
    workload: WorkloadSpec
    schedule: Schedule
    batch_records: int | None = None
