"""Holds back a coordinator's effects until the record on which they depend is written.

A record is due before

- an epoch begins: no coordinator uses one twice;
- the line that is stable moves: output that it covers is published, so no recovery may roll back beyond it;
- anything is deleted that the record before names. A deletion waits for the next record that is due anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testbed.core.checkpoints import Line
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.coordinator.line_record import LineRecord, partitions_and_channels
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import CoordinatorEffect, Delete

Ends = dict[int, int]
Costs = dict[int, float]


class WriteAhead:
    """The effects of a coordinator, on their way out. At any time at most one record is being written.

    ends   where the sources end, as it is decided and written
    """

    def __init__(
        self,
        coordinator: Coordinator,
        layout: Layout,
        protocol: str,
        ends: Callable[[], Ends] = dict,
        costs: Callable[[], Costs] = dict,
    ) -> None:
        """`ends` and `costs` tell what else is known at any time, as of `LineRecord`."""
        self._coordinator, self._decided, self._costs = coordinator, ends, costs
        self._flow = (*partitions_and_channels(layout), protocol)
        self.ends = ends()
        self._known: tuple[int, Line, Ends] = (coordinator.epoch, coordinator.history.stable, self.ends)
        self._writing: tuple[int, Line, Ends] | None = None
        self._new: list[CoordinatorEffect] = []
        self._waiting: list[CoordinatorEffect] = []
        self._undeleted: list[CoordinatorEffect] = []
        self._out: list[CoordinatorEffect] = []

    @property
    def withholds(self) -> bool:
        """Whether anything but deletions waits."""
        return len(_deletions(waiting := self._new + self._waiting)) < len(waiting)

    def next_record(self) -> LineRecord | None:
        """Take the coordinator's effects in. Returns the record that is to be written now, if one is due.

        Until `on_written` or `on_refused`, there is no other.
        """
        self._new += self._coordinator.take_effects()
        if self._writing is not None:
            return None
        now = (self._coordinator.epoch, self._coordinator.history.stable, self._decided())
        if now == self._known:
            self._undeleted += _deletions(self._new)
            self._out += [each for each in self._new if not isinstance(each, Delete)]
            self._new = []
            return None
        self._writing = now
        self._waiting, self._undeleted, self._new = [*self._undeleted, *self._new], [], []
        return LineRecord(*self._flow, now[0], self._coordinator.history.kept(), now[2], self._costs())

    def on_written(self) -> None:
        """The record is where it survives: what waited for it goes out."""
        if self._writing is not None:
            self._known, self._writing = self._writing, None
            self.ends = self._known[2]
            self._out, self._waiting = self._out + self._waiting, []

    def on_refused(self) -> None:
        """The record could not be written: the next one takes its place."""
        self._new, self._waiting, self._writing = self._waiting + self._new, [], None

    def take_effects(self) -> list[CoordinatorEffect]:
        """What may be carried out by now, in this order."""
        out, self._out = self._out, []
        return out


def _deletions(effects: Iterable[CoordinatorEffect]) -> list[CoordinatorEffect]:
    return [each for each in effects if isinstance(each, Delete)]
