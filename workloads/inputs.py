"""The input of each workload, which the generator sends. Imports no Spark, which would cost the generator seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from experiments.workloads.base import WorkloadName
from experiments.workloads.catalogue import GeneratedSpec, InputSpec, OwnJobSpec, WorkloadSpec
from workloads import recorded
from workloads.cec_prices import input as cec_prices
from workloads.hashtags import input as hashtags
from workloads.incidents import input as incidents
from workloads.nexmark import messages
from workloads.reachability import input as reachability
from workloads.schedule import Schedule
from workloads.top_100 import input as top_100
from workloads.window_tree import input as window_tree
from workloads.wordcount import corpus

Input: TypeAlias = Callable[[int, int], Sequence[bytes]]
"""The values of the records at positions start to before stop: the same ones for the same positions."""
Keys: TypeAlias = Callable[[int, int], Sequence[bytes | None]]

INPUTS: dict[WorkloadName, Callable[..., Input]] = {
    WorkloadName.WORDCOUNT: corpus.records,
    WorkloadName.NEXMARK: messages.records,
    WorkloadName.REACHABILITY: reachability.records,
    WorkloadName.WINDOW_TREE: window_tree.records,
    WorkloadName.TOP_100: top_100.records,
    WorkloadName.INCIDENTS: incidents.records,
    WorkloadName.HASHTAGS: hashtags.records,
    WorkloadName.CEC_PRICES: cec_prices.records,
}


@dataclass(frozen=True)
class TopicStream:
    """What one topic is sent, and when; records have a key only where their source has."""

    topic: str
    values: Input
    schedule: Schedule
    keys: Keys | None = None


@dataclass(frozen=True)
class TopicSource:
    """The input of one topic under any schedule. It is number `number` of the topics that take turns."""

    topic: str
    values: Callable[[Schedule], Input]
    keys: Keys | None = None
    number: int = 0
    of: int = 1

    def under(self, schedule: Schedule) -> TopicStream:
        """The records of this topic under a schedule of all topics, of which this one takes its turns."""
        own = schedule.turn(self.number, self.of)
        return TopicStream(self.topic, self.values(own), own, self.keys)


def records(spec: GeneratedSpec, schedule: Schedule) -> Input:
    """The input of a workload under a schedule; raises `BadInput` when the spec names what is not there."""
    return INPUTS[spec.name](spec, schedule)


def streams(spec: WorkloadSpec, schedule: Schedule) -> list[TopicStream]:
    """The input of any workload by topic; raises `BadInput` when the spec names what is not there."""
    return [source.under(schedule) for source in sources(spec)]


def sources(spec: WorkloadSpec) -> list[TopicSource]:
    """What the topics of any workload are sent; those of an own job take turns, so that all together keep a schedule.

    Files of records are read here, once for all later schedules; raises `BadInput` for a file that can't be read.
    """
    if not isinstance(spec, OwnJobSpec):
        return [TopicSource(topic, partial(records, spec)) for topic in spec.input_topics]
    turns = len(spec.inputs)
    return [
        TopicSource(topic, *_of(topic, each), number, turns) for number, (topic, each) in enumerate(spec.inputs.items())
    ]


def _of(topic: str, source: InputSpec) -> tuple[Callable[[Schedule], Input], Keys | None]:
    """Values and keys of a source. A replayed source has none before its records have been copied into a file."""
    if source.workload:
        return partial(records, source.workload), None
    if source.replay:
        return lambda _schedule: lambda _start, _stop: [], None
    found = recorded.read(Path(source.file or ""), f"workload.inputs.{topic}.file")
    return found.values_by, found.keys_by_position()
