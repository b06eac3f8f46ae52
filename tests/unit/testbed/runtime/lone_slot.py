"""A slot without others, Spark or a server: its partitions work in the caller's thread, its own threads are as ever."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable

from testbed.core.control import ToCoordinator
from testbed.runtime.background import Background, Results
from testbed.runtime.job import Job
from testbed.runtime.network.mesh import Mesh
from testbed.runtime.network.messages import Peers
from testbed.runtime.network.secret import TOKEN_BYTES
from testbed.runtime.network.wire import turn
from testbed.runtime.slot.hosting import Hosting
from tests.unit.testbed.small_job import HERE

TURN_S = 0.005


class LoneSlot:
    """The one slot of a job. `tell` gets what its partitions say to the coordinator, as of `Hosting`."""

    def __init__(self, job: Job, tell: Callable[[int, ToCoordinator], None]) -> None:
        self.layout, self.selector = job.layout(), selectors.DefaultSelector()
        self._results = Results(self.selector)
        self.storing, self.writing = (Background(self._results, name) for name in ("store", "outlet"))
        schemas, nobody = [each.schema for each in self.layout.channels], (lambda _: None,) * 3
        self._mesh = Mesh(self.selector, HERE, bytes(TOKEN_BYTES), schemas, *nobody)
        self.store = job.object_store()
        self.hosting = Hosting(job, self.layout, self._mesh, self.store, self.storing, self.writing, tell)

    def begin(self, epoch: int) -> None:
        everyone = tuple(each.number for each in self.layout.partitions)
        self.hosting.begin(Peers(epoch, (self._mesh.address,), (1,), 0, everyone))

    def turn(self) -> None:
        """As a slot does it again and again: timers, partitions, and what its threads have done."""
        now_s = time.monotonic()
        self.hosting.on_clock(now_s)
        turn(self.selector, 0 if self.hosting.work(now_s + TURN_S) else TURN_S)

    def close(self) -> None:
        self.hosting.close()
        for each in (self.storing, self.writing, self._mesh, self._results, self.selector):
            each.close()
