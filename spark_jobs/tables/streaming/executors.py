"""When hosts that a fault struck had Spark executors again.

A host that is healed joins the cluster well before that: its worker registers first, and starts a JVM then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from spark_jobs.tables.streaming.batches import MS

ADDED = "SparkListenerExecutorAdded"
Registered = Mapping[str, list[int]]  # when executors registered, by host, ascending [ns]


def registered(events: Iterable[dict[str, Any]], names: Mapping[str, str]) -> Registered:
    """From the Spark event log; `names` has those of the hosts by their addresses."""
    found: dict[str, list[int]] = defaultdict(list)
    for event in events:
        if event["Event"] == ADDED and (host := names.get(event["Executor Info"]["Host"])):
            found[host].append(event["Timestamp"] * MS)
    return {host: sorted(moments_ns) for host, moments_ns in found.items()}


def all_back_ns(hosts: Iterable[str], struck_ns: int | None, up: Registered) -> int | None:
    """When the last of the hosts had an executor again; None if one never had, there are none, or none was struck."""
    if struck_ns is None:
        return None
    back_ns = [next((at_ns for at_ns in up.get(host, ()) if at_ns > struck_ns), None) for host in hosts]
    return None if None in back_ns else max((at_ns for at_ns in back_ns if at_ns is not None), default=None)
