"""The input of each workload: what the generator sends. Free of Spark, which would cost the generator seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from experiments.workloads import WorkloadName, WorkloadSpec
from workloads.nexmark import messages
from workloads.schedule import Schedule
from workloads.wordcount import corpus

Input: TypeAlias = Callable[[int, int], Sequence[bytes]]
"""The values of the records at positions start to before stop: the same ones for the same positions."""

INPUTS: dict[WorkloadName, Callable[..., Input]] = {
    WorkloadName.WORDCOUNT: corpus.records,
    WorkloadName.NEXMARK: messages.records,
}


def records(spec: WorkloadSpec, schedule: Schedule) -> Input:
    """The input of a workload under a schedule; raises `BadInput` when the spec names what is not there."""
    return INPUTS[spec.name](spec, schedule)
