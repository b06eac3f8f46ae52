"""Goes through every state that can be reached, and looks whether the invariants hold in each.

Every event uses something up: a fault, a checkpoint, or an order or message that one of these has caused. So a run
without further faults ends where nothing more can happen, and it ends well if every such state is right.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.core.coordinator.coordinator import Coordinator
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from tests.unit.testbed.recovery.abstract import Wrong
from tests.unit.testbed.recovery.asked import AskedCoordinator
from tests.unit.testbed.recovery.interleavings import Interleavings, State
from tests.unit.testbed.recovery.invariants import Invariants


@contextmanager
def no_collector():
    """States hold no cycles, and the collector would go through all of them again and again: a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Explored:
    """All states of one layout under one strategy. `states` tells how many there are."""

    def __init__(self, layout, strategy, slots, most_checkpoints, faults, spoilable=0, spare_lines=0):
        coordinator = Coordinator(layout, PROTOCOLS["batch-aligned"], slots, spare_lines, STRATEGIES[strategy]())
        self.asked = AskedCoordinator(coordinator, layout)
        self._invariants = Invariants(self.asked, most_checkpoints)
        self._interleavings = Interleavings(self.asked, STRATEGIES[strategy], most_checkpoints)
        self._came_from: dict[State, tuple[State | None, str]] = {}
        with no_collector():
            self._explore(self._interleavings.first(slots, faults, spoilable))

    @property
    def states(self):
        return len(self._came_from)

    def _explore(self, first):
        self._came_from[first] = (None, "the beginning")
        pending = [first]
        while pending:
            state = pending.pop()
            try:
                following = self._after(state)
            except Wrong as error:
                raise Wrong("\n".join([str(error), *self._schedule(state)])) from error
            for label, after in following:
                if after not in self._came_from:
                    self._came_from[after] = (state, label)
                    pending.append(after)

    def _after(self, state):
        """The states that can follow this one, in which all must be right."""
        self._invariants.check(state)
        following = list(self._interleavings.after(state))
        if not following:
            self._invariants.check_end(state)
        settled = self._interleavings.settled
        return [(label, settled(after, state)) for label, after in (*following, *self._interleavings.faults(state))]

    def _schedule(self, state) -> Iterator[str]:
        """How a state is reached, last step first."""
        while state is not None:
            state, label = self._came_from[state]
            yield label
