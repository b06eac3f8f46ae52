"""The settings of librdkafka at both ends of the testbed: how to reach the broker, how to read, and how to write."""

from __future__ import annotations

from experiments.errors import BadInput
from infra.broker import Broker

READING = {"enable.auto.commit": False, "auto.offset.reset": "error", "queued.max.messages.kbytes": 16_384}
READING |= {"reconnect.backoff.max.ms": 500, "fetch.wait.max.ms": 50}
READING |= {"fetch.queue.backoff.ms": 10}  # after its queue was full a partition is fetched again; 1 s by default
WRITING = {"linger.ms": 5, "batch.num.messages": 50_000, "acks": "all", "reconnect.backoff.max.ms": 500}
POLL_S = 0.1


def reach(broker: Broker | None) -> dict[str, str]:
    """What librdkafka needs to reach the broker of a job; raises `BadInput` for a job without one."""
    if broker is None:
        raise BadInput("broker", None, "a broker, where events or results are those of a topic")
    return broker.for_librdkafka()
