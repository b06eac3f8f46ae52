"""Whether what a slot tells fits the dataflow. Types are read elsewhere: here it is which partitions and channels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import NoReturn

from testbed.core.checkpoints import OUTSIDE, Checkpoint
from testbed.core.control import Ready, Stored, ToCoordinator, ToPartition
from testbed.core.layout import Layout
from testbed.core.shapes import UnknownMessage
from testbed.runtime.messages import Hello, Kept, Loaded, Reached, SlotStatus

KEY = re.compile(r"(?P<owner>.+)/(?:state|log)-\d+-\d+")  # as `snapshots` names objects
MOST_NUMBERED = 1 << 16
OLDEST_S = 86_400.0


class Vetting:
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
        """Hold partitions, channels and ages against the dataflow."""
        moments: tuple[Kept | Loaded | Reached, ...] = (*status.kept, *status.loaded, *status.reached)
        if any(not 0 <= each.age_s <= OLDEST_S for each in moments):
            _refuse(f"what was not in the last {OLDEST_S:g} s")
        told = (each.partition for each in moments)
        sources = status.positions, status.copied
        for partitions in (status.tallies, *sources, status.finished, status.progress, status.logs, told):
            self._partitions(partitions)
        for number, progress in status.progress.items():
            if not progress.keys() <= (self._inputs[number] or {OUTSIDE}):
                _refuse(f"the progress of {self._names[number]} on channels of others")

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


def _refuse(what: str) -> NoReturn:
    raise UnknownMessage(f"no slot of this run would tell {what}")
