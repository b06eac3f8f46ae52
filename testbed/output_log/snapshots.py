"""The checkpoints of a partition that keeps an output log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from testbed.core.checkpoints import Checkpoint
from testbed.core.control import NotStored, Restore, Stored
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import Store
from testbed.core.partition.snapshots import Core, Log, Snapshots
from testbed.operators.state import State
from testbed.output_log.objects import Border, Chain, LogObject, decode_object
from testbed.output_log.recorded import RecordedOperator

MOST_WAITING_BYTES = 64 << 20


@dataclass
class ReplayedCore(Core):
    """Where a partition goes on after it has rolled back to a checkpoint by reading a log. Its input begins before the
    checkpoint. Its output begins behind it.

    until     the batch that the checkpoint ends: nothing of what is processed up to there is sent, or stored, again
    at        the checkpoint
    links     by number of a checkpoint the object up to it and where that begins and ends
    """

    until: int = 0
    at: Border = field(kw_only=True)
    links: list[SegmentLink] = field(default_factory=list)


@dataclass(frozen=True)
class SegmentLink:
    """An object of the log in the store."""

    key: str
    begin: Border
    end: Border


class LogSnapshots(Snapshots):
    """Checkpoint n has an object with what the windows did since the one before. Its state is in these objects, back to
    the oldest footprint of a window that is open: the log is trimmed when no checkpoint needs its oldest object.

    No state is copied when a checkpoint is taken. So the time for a checkpoint depends on the number of entries since
    the last one, not on the size of the state.

    An object that the store refuses is written again until the store takes it, since no other object has what it has.
    """

    def __init__(self, layout: PartitionLayout) -> None:
        super().__init__(layout, 0)
        self._links: list[SegmentLink] = []
        self._sizes: dict[int, int] = {}  # of the objects that do not count yet, in memory [bytes]

    def rebuild(self, message: Restore, objects: Mapping[str, bytes], recorded: RecordedOperator) -> ReplayedCore:
        """Load what the operator's windows were. Changes nothing else. Raises `StateLost`."""
        keys = message.checkpoint.state_keys
        if not keys:
            core = self.fill(message, {}, objects)
            return ReplayedCore(**vars(core), until=core.batch, at=Border(0, 0, 0, core))
        chain = Chain([decode_object(objects[key], self._rows) for key in keys])
        found, end = chain.eventual(), chain.objects[-1].end
        begin = chain.border(message.checkpoint.input_from)
        recorded.load(found)
        recorded.resume(begin.position)
        links = [SegmentLink(key, each.begin, each.end) for key, each in zip(keys, chain.objects, strict=True)]
        given = vars(begin.core) | {"sent": end.core.sent, "last": end.core.last}
        return ReplayedCore(**given, until=end.core.batch, at=end, links=links)

    def go_on(self, recorded: RecordedOperator, core: ReplayedCore) -> None:
        """Continue the log of this operator, which was rebuilt so."""
        self._recorded, self._links, self._sizes = recorded, list(core.links), {}
        self._at = core.at

    def take(self, core: Core, states: dict[str, State], epoch: int, number: int, forced: bool) -> Store:
        self.last = number
        block, extent = self._recorded.take_block(), self._recorded.extent
        end = Border(number, block.position, extent.entries, core)
        written = LogObject(epoch, self._at, end, block)
        key = f"{self._layout.name}/state-{number}-{epoch}"
        self._links = [each for each in self._links if each.end.entries > extent.begins]
        self._links.append(SegmentLink(key, written.begin, end))
        self._sizes[number], self._at = block.nbytes, end
        checkpoint = Checkpoint(
            self._layout.number,
            number,
            epoch,
            core.sent,
            core.received,
            tuple(each.key for each in self._links),
            forced=forced,
            replays_from=self._input_from(extent.replay_after),
            last=core.last,
        )
        return self._on_its_way(checkpoint, Log(), {key: written.pieces})

    @property
    def overfull(self) -> bool:
        """Whether so much waits for the store that no more should be recorded.

        An object does not wait while it is written for the first time, before any other: it may have any size.
        """
        waiting_bytes = sum(self._sizes.values())
        first = next(iter(self._pending.values()), None)
        if first is not None and not first.refusals:
            waiting_bytes -= self._sizes[first.checkpoint.number]
        return waiting_bytes > MOST_WAITING_BYTES

    @property
    def _is_asked_again(self) -> bool:
        return True

    def _settle(self, epoch: int, number: int) -> Stored | NotStored:
        del self._sizes[number]
        return super()._settle(epoch, number)

    def _input_from(self, position: int) -> int:
        """The last checkpoint that has no record after this position."""
        borders = [self._links[0].begin, *(each.end for each in self._links)]
        return max(each.number for each in borders if each.position <= position)

    @property
    def _rows(self) -> pa.Schema:
        (schema, *_) = (channel.schema for channel in self._layout.outputs)
        return schema
