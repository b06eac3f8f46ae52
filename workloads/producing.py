"""How the generator's feeds produce to Kafka."""

from __future__ import annotations

from typing import Any

SETTINGS: dict[str, Any] = {
    "linger.ms": 20,
    "batch.num.messages": 50_000,
    "queue.buffering.max.messages": 2_000_000,
    "acks": "all",
    # When the broker dies and comes back, each partition must go on as if nothing had been: nothing twice, nothing
    # swapped.
    "enable.idempotence": True,
    "reconnect.backoff.max.ms": 500,
}
