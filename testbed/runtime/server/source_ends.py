"""Where the sources end when a run is to be drained, so that its output becomes complete."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.dataflow.layout import Layout
from testbed.runtime.network.messages import Drain
from testbed.runtime.server.guest import Guest


class SourceEnds:
    """Decides where the sources end.

    First all sources stop, once all output of before has been made again. The sources of one partition of the input
    then end where the furthest of them is, also if they are restored in the meantime. The copies of sources count, too,
    since a promoted copy goes on from its own position.

    Before slots are told where sources end, this is written where a second driver finds it: output may depend on it.

    asked   whether the run was asked to end
    ends    where the sources end, by the index of their partition; empty until that is decided
    """

    def __init__(
        self, layout: Layout, coordinator: Coordinator, guests: Mapping[str, Guest], ends: Mapping[int, int]
    ) -> None:
        """`guests`: those who are there, at any time; `ends`: as the driver before has decided."""
        self.asked, self.ends = False, dict(ends)
        self._layout, self._coordinator, self._guests = layout, coordinator, guests
        self._held = set[int]()
        self._written = bool(ends)

    def ask(self) -> None:
        """The run shall end."""
        self.asked = True

    def on_epoch(self) -> None:
        """A recovery begins: slots know nothing of sources that stop, and are told before any source goes on."""
        self._held.clear()
        if self._written:
            self._tell_all()

    def look(self, written: Mapping[int, int]) -> None:
        """See whether the slots can stop their sources. Once all have, decide where they end, and once that is written,
        tell them; `written` is what is."""
        if self.ends and not self._written and written == self.ends:
            self._written = True
            self._tell_all()
        if not self.asked or self.ends or self._coordinator.phase is not Phase.RUNNING:
            return
        epoch = self._coordinator.epoch
        hosting = [self._guests[name] for name in self._coordinator.placement.hosting]
        copying = [self._guests[each.worker] for each in self._coordinator.copies.of.values()]
        if not all(each.status.epoch == epoch and each.status.caught_up for each in hosting):
            return
        if not all(each.status.epoch == epoch for each in copying):
            return
        if not all(each.status.holding for each in (*hosting, *copying)):
            self._hold(hosting + copying)
            return
        for guest in (*hosting, *copying):
            for number, at in (guest.status.positions | guest.status.copied).items():
                index = self._layout.partitions[number].index
                self.ends[index] = max(at, self.ends.get(index, at))

    def _hold(self, guests: list[Guest]) -> None:
        """Each is told once to stop its sources."""
        for guest in {each.serial: each for each in guests}.values():
            if guest.serial not in self._held:
                self._held.add(guest.serial)
                guest.say(Drain({}))

    def _tell_all(self) -> None:
        for guest in self._guests.values():
            guest.say(Drain(self.ends))
