"""A slot without others, Spark or a server: its partitions work in the caller's thread, its own threads are as ever."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable

from spark_jobs.dataflow.control import ToCoordinator
from spark_jobs.dataflow.runtime.background import Background, Results
from spark_jobs.dataflow.runtime.hosting import Hosting
from spark_jobs.dataflow.runtime.job import Job
from spark_jobs.dataflow.runtime.mesh import Mesh
from spark_jobs.dataflow.runtime.messages import Peers
from spark_jobs.dataflow.runtime.secret import TOKEN_BYTES
from spark_jobs.dataflow.runtime.wire import turn
from tests.unit.spark_jobs.dataflow.small_job import HERE

TURN_S = 0.005


class LoneSlot:
    """The one slot of a job. `tell` gets what its partitions say to the coordinator, as of `Hosting`."""

    def __init__(self, job: Job, tell: Callable[[int, ToCoordinator], None]) -> None:
        self.layout, self.selector = job.layout(), selectors.DefaultSelector()
        self._results = Results(self.selector)
        self.storing, self.writing = (Background(self._results, name) for name in ("store", "outlet"))
        schemas, nobody = [each.schema for each in self.layout.channels], (lambda _: None,) * 3
        self._mesh = Mesh(self.selector, HERE, bytes(TOKEN_BYTES), schemas, *nobody)
        store = job.object_store()
        self.hosting = Hosting(job, self.layout, self._mesh, store, self.storing, self.writing, tell)

    def begin(self, epoch: int) -> None:
        self.hosting.begin(Peers(epoch, (self._mesh.address,), 0))

    def turn(self) -> None:
        """As a slot does it again and again: timers, partitions, and what its threads have done."""
        now_s = time.monotonic()
        self.hosting.on_clock(now_s)
        turn(self.selector, 0 if self.hosting.work(now_s + TURN_S) else TURN_S)

    def close(self) -> None:
        self.hosting.close()
        for each in (self.storing, self.writing, self._mesh, self._results, self.selector):
            each.close()
