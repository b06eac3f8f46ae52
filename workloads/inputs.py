"""The input of each workload: what the generator sends. Free of Spark, which would cost the generator seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from experiments.workloads import GeneratedSpec, InputSpec, OwnJobSpec, WorkloadName, WorkloadSpec
from workloads import reachability, recorded
from workloads.nexmark import messages
from workloads.schedule import Schedule
from workloads.wordcount import corpus

Input: TypeAlias = Callable[[int, int], Sequence[bytes]]
"""The values of the records at positions start to before stop: the same ones for the same positions."""
Keys: TypeAlias = Callable[[int, int], Sequence[bytes | None]]

INPUTS: dict[WorkloadName, Callable[..., Input]] = {
    WorkloadName.WORDCOUNT: corpus.records,
    WorkloadName.NEXMARK: messages.records,
    WorkloadName.REACHABILITY: reachability.records,
}


@dataclass(frozen=True)
class Stream:
    """What one topic is sent, and when; records have a key only where their source has."""

    topic: str
    values: Input
    schedule: Schedule
    keys: Keys | None = None


def records(spec: GeneratedSpec, schedule: Schedule) -> Input:
    """The input of a workload under a schedule; raises `BadInput` when the spec names what is not there."""
    return INPUTS[spec.name](spec, schedule)


def streams(spec: WorkloadSpec, schedule: Schedule) -> list[Stream]:
    """The input of any workload by topic; those of an own job take turns, so that all together keep the schedule."""
    if not isinstance(spec, OwnJobSpec):
        return [Stream(topic, records(spec, schedule), schedule) for topic in spec.input_topics]
    return [
        _stream(topic, source, schedule.turn(number, len(spec.inputs)))
        for number, (topic, source) in enumerate(spec.inputs.items())
    ]


def _stream(topic: str, source: InputSpec, schedule: Schedule) -> Stream:
    """Of a source that is replayed there is nothing before its records have been copied into a file."""
    if source.workload:
        return Stream(topic, records(source.workload, schedule), schedule)
    if source.replay:
        return Stream(topic, lambda start, stop: [], schedule)
    found = recorded.read(Path(source.file or ""), f"workload.inputs.{topic}.file")
    return Stream(topic, found.values_by(schedule), schedule, found.keys_by_position())
