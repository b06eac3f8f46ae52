"""A slot without others, Spark or a server: its partitions work in the caller's thread, its own threads are as ever."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable

from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Ready, Restore, ToCoordinator
from testbed.runtime.background import Background, Results
from testbed.runtime.job import Job
from testbed.runtime.network.mesh import Mesh
from testbed.runtime.network.messages import Peers
from testbed.runtime.network.secret import TOKEN_BYTES
from testbed.runtime.network.wire import turn
from testbed.runtime.slot.hosting import Hosting
from tests.unit.testbed.small_job import HERE

TURN_S, LIMIT_S = 0.005, 120.0
Progress = dict[int, dict[int, int]]


class LoneSlot:
    """The one slot of a job.

    told   what its partitions have said to the coordinator; nothing if `tell` gets it instead, as of `Hosting`
    """

    def __init__(self, job: Job, tell: Callable[[int, ToCoordinator], None] | None = None) -> None:
        self.layout, self.selector = job.layout(), selectors.DefaultSelector()
        self.everyone = range(len(self.layout.partitions))
        self.told: list[ToCoordinator] = []
        self._results = Results(self.selector)
        self.storing, self.writing = (Background(self._results, name) for name in ("store", "outlet"))
        schemas, nobody = [each.schema for each in self.layout.channels], (lambda _: None,) * 3
        self._mesh = Mesh(self.selector, HERE, bytes(TOKEN_BYTES), schemas, *nobody)
        self.store = job.object_store()
        tell = tell or (lambda _, message: self.told.append(message))
        self.hosting = Hosting(job, self.layout, self._mesh, self.store, self.storing, self.writing, tell)

    def begin(self, epoch: int, reached: Progress | None = None) -> None:
        """An epoch begins; `reached` is how far partitions have ever been."""
        self.hosting.begin(Peers(epoch, (self._mesh.address,), (1,), 0, tuple(self.everyone), reached=reached or {}))

    def restore(self, epoch: int, reached: Progress | None = None, *, muted: bool = False) -> None:
        """An epoch in which all go back to the beginning of the input; returns once they are there."""
        self.begin(epoch, reached)
        for number, checkpoint in enumerate(initial_line(self.layout)):
            self.hosting.order(number, Restore(epoch, checkpoint, (), muted=muted))
        deadline_s = time.monotonic() + LIMIT_S
        while not all(Ready(number, epoch) in self.told for number in self.everyone):
            assert time.monotonic() < deadline_s
            turn(self.selector, TURN_S)

    def go(self, epoch: int) -> None:
        """All may go on."""
        for number in self.everyone:
            self.hosting.order(number, Go(epoch))

    def turn(self) -> None:
        """As a slot does it again and again: timers, partitions, and what its threads have done."""
        now_s = time.monotonic()
        self.hosting.on_clock(now_s)
        turn(self.selector, 0 if self.hosting.work(now_s + TURN_S) else TURN_S)

    def until(self, condition: Callable[[], object]) -> None:
        """Turns until the condition holds; a test that waits in vain fails here."""
        deadline_s = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < deadline_s
            self.turn()

    def the(self, kind: type) -> int:
        """The number of the one partition of this kind: `Source` or `Sink`."""
        (number,) = (each.number for each in self.layout.partitions if isinstance(each.element, kind))
        return number

    def close(self) -> None:
        self.hosting.close()
        for each in (self.storing, self.writing, self._mesh, self._results, self.selector):
            each.close()
