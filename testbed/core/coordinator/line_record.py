"""The record that outlives a coordinator: the recovery line and the layout, from which a second one can continue.

Source: `incremental`, section 6, where ZooKeeper has the configuration of the topology, the progress of checkpoints and
what partitions consume.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.errors import EnvironmentFailure
from testbed.core.coordinator.history import KeptHistory
from testbed.core.dataflow.layout import Layout
from testbed.core.shapes import UnknownMessage, decode_as, encode_as


@dataclass(frozen=True)
class LineRecord:
    """
    partitions  the names of all partitions
    channels    sender and receiver of each channel
    protocol    the name of the protocol
    epoch       of the last recovery: none that comes may use it again
    history     the checkpoints that are kept, and the lines that they make
    ends        by index, where the sources end, once that is decided
    costs       the cores that partitions took, by their numbers, where that is measured
    """

    partitions: tuple[str, ...]
    channels: tuple[tuple[int, int], ...]
    protocol: str
    epoch: int
    history: KeptHistory
    ends: dict[int, int] = field(default_factory=dict)
    costs: dict[int, float] = field(default_factory=dict)

    def check(self, layout: Layout, protocol: str) -> None:
        """Raises `EnvironmentFailure` if it is of another dataflow."""
        own = partitions_and_channels(layout)
        if (*own, protocol) != (self.partitions, self.channels, self.protocol):
            raise EnvironmentFailure("the checkpoints in the store are of another dataflow", "start with another store")

    def encode(self) -> bytes:
        """The bytes of the record: JSON."""
        return encode_as(self)


def decode_record(data: bytes) -> LineRecord:
    """The record that was encoded; raises `EnvironmentFailure` for anything else."""
    try:
        return decode_as({LineRecord.__name__: LineRecord}, data)
    except UnknownMessage as error:
        raise EnvironmentFailure("the record of the previous driver can't be read", "start the run again") from error


def partitions_and_channels(layout: Layout) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """The names of the partitions, and both ends of each channel."""
    names = tuple(each.name for each in layout.partitions)
    return names, tuple((each.sender, each.receiver) for each in layout.channels)
