"""Checks that the messages of a slot fit the dataflow: their partitions, channels and counts.

`testbed.core.shapes` checks their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from ipaddress import IPv4Address
from typing import NoReturn

from testbed.core.checkpoints import OUTSIDE, Checkpoint
from testbed.core.control import Ready, Stored, ToCoordinator, ToPartition
from testbed.core.dataflow.layout import Layout
from testbed.core.partition.counts_and_watermarks import Tally
from testbed.core.shapes import UnknownMessage
from testbed.output_log.recorded import COUNTS
from testbed.runtime.network.messages import Hello, Kept, Loaded, Reached, SlotStatus

KEY = re.compile(r"(?P<owner>.+)/(?:state|log)-\d+-\d+")  # as `snapshots` names objects
MOST_NUMBERED = 1 << 16
OLDEST_S = 86_400.0
MOST_CPU_S = 1e9  # 30 years of a core: differences and quotients of such times stay finite
MOST_COUNTED = 2**53  # a count of a log comes as a float, which is exact up to here and fits an integer column
TALLIED = frozenset(each.name for each in fields(Tally))
LOGGED = frozenset((*COUNTS, "check_s"))


class MessageValidation:
    """Every method raises `UnknownMessage` for what no slot of this dataflow would tell."""

    def __init__(self, layout: Layout) -> None:
        self._names = [each.name for each in layout.partitions]
        self._inputs = [{channel.id for channel in each.inputs} for each in layout.partitions]
        self._outputs = [{channel.id for channel in each.outputs} for each in layout.partitions]

    def hello(self, hello: Hello) -> None:
        """Hold the address against IPv4 and the range of ports."""
        host, port = hello.address
        try:
            IPv4Address(host)
        except ValueError:
            _refuse(f"the address {host!r}")
        if not 0 < port < MOST_NUMBERED:
            _refuse(f"the port {port}")

    def status(self, status: SlotStatus) -> None:
        """Hold partitions, channels and ages against the dataflow, and counts against what slots count."""
        moments: tuple[Kept | Loaded | Reached, ...] = (*status.kept, *status.loaded, *status.reached)
        if any(not 0 <= each.age_s <= OLDEST_S for each in moments):
            _refuse(f"what was not in the last {OLDEST_S:g} s")
        told = (each.partition for each in moments)
        refused = (each.partition for each in status.refused)
        sources = status.positions, status.copied
        of_partitions = status.tallies, status.finished, status.progress, status.logs, status.costs
        for partitions in (*of_partitions, *sources, told, refused):
            self._partitions(partitions)
        for number, progress in status.progress.items():
            if not progress.keys() <= (self._inputs[number] or {OUTSIDE}):
                _refuse(f"the progress of {self._names[number]} on channels of others")
        if not 0 <= status.cpu_s <= MOST_CPU_S:
            _refuse(f"the CPU time {status.cpu_s:g} s")
        if status.store_s < 0:
            _refuse(f"a wait of {status.store_s:g} s for the store")
        for number, tally in status.tallies.items():
            if tally.keys() != TALLIED or min(tally.values()) < 0:
                _refuse(f"this tally of {self._names[number]}")
        for number, cost in status.costs.items():
            if not (0 <= cost.processing_s <= MOST_CPU_S and 0 <= cost.checkpoint_s <= MOST_CPU_S):
                _refuse(f"the CPU time of {self._names[number]}")
            if min(cost.records, cost.input_bytes, cost.retained_bytes) < 0:
                _refuse(f"what {self._names[number]} has taken in or keeps")
        for number, log in status.logs.items():
            if not _is_log(log):
                _refuse(f"this log of {self._names[number]}")

    def report(self, message: ToCoordinator | ToPartition) -> ToCoordinator:
        """The message, if its partitions, channels and objects are those of the dataflow."""
        if not isinstance(message, ToCoordinator):
            _refuse(f"a {type(message).__name__}, which only the coordinator says")
        if isinstance(message, Stored):
            self._checkpoint(message.checkpoint)
        else:
            self._partitions([message.partition])
        if isinstance(message, Ready) and not message.arrived.keys() <= self._inputs[message.partition]:
            _refuse(f"what arrived at {self._names[message.partition]} on channels of others")
        return message

    def _checkpoint(self, told: Checkpoint) -> None:
        self._partitions([told.partition])
        inputs, outputs = self._inputs[told.partition], self._outputs[told.partition]
        if (
            told.sent.keys() != outputs
            or told.received.keys() != inputs
            or not told.logged.keys() <= {OUTSIDE, *outputs}
        ):
            _refuse(f"a checkpoint of {self._names[told.partition]} with channels of others")
        if not 0 <= told.input_from <= told.number:
            _refuse(f"a checkpoint {told.number} that needs input from after it, from {told.input_from} on")
        for key in (*told.state_keys, *(() if told.log_key is None else (told.log_key,))):
            found = KEY.fullmatch(key)
            if found is None or found["owner"] != self._names[told.partition]:
                _refuse(f"the object {key!r} of {self._names[told.partition]}")

    def _partitions(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if not 0 <= number < len(self._names):
                _refuse(f"the partition {number} of {len(self._names)}")


def _is_log(log: Mapping[str, float]) -> bool:
    """Whether these are the counts of an output log: whole numbers, beside the time in seconds."""
    if log.keys() != LOGGED or log["check_s"] < 0:
        return False
    return all(0 <= log[name] <= MOST_COUNTED and float(log[name]).is_integer() for name in COUNTS)


def _refuse(what: str) -> NoReturn:
    raise UnknownMessage(f"no slot of this run would tell {what}")
