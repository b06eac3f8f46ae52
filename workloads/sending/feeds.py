"""Chooses how a topic gets its input: record by record, or in Arrow batches."""

from __future__ import annotations

from typing import TypeAlias, cast

from experiments.workloads.catalogue import NexmarkSpec, WorkloadSpec
from infra.broker import Broker
from workloads.inputs import TopicStream
from workloads.sending.batch_sender import BatchSender
from workloads.sending.input_sender import InputSender

Feed: TypeAlias = InputSender | BatchSender


def feed_of(broker: Broker, workload: WorkloadSpec, stream: TopicStream, batch_records: int | None) -> Feed:
    """The sender of a stream of this workload, with `batch_records` of a partition in each message (None: one)."""
    if batch_records is None:
        return InputSender(broker, stream.topic, stream.values, stream.schedule, stream.keys)
    spec = cast(NexmarkSpec, workload)  # experiments with batches of anything else are refused
    return BatchSender(broker, stream.topic, spec, stream.schedule, batch_records)
