"""Writes the record that outlives the driver, in a thread; effects that depend on it are held back until then.

See `core.coordinator.write_ahead` for what waits, and `stores.record_chain` for how one driver shuts out another.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from experiments.errors import EnvironmentFailure
from experiments.waiting import retry
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.coordinator.line_record import LineRecord, decode_record
from testbed.core.coordinator.write_ahead import Costs, Ends, WriteAhead
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import CoordinatorEffect
from testbed.runtime.background import UnderWay
from testbed.stores.record_chain import RecordChain
from testbed.stores.store import ObjectStore, UnreadableObject

AGAIN_S, PATIENCE_S = 0.5, 120.0  # a store that refuses a record is retried, but not for ever


class RecordKeeper:
    """The records of one driver, which has taken over when this is made.

    driver  the number of this driver: 1 if it is the first of the run, else one that no other had, whatever it did
    found   what the driver before it knew; None if there was none, or if it had not begun
    """

    def __init__(self, store: ObjectStore) -> None:
        """Raises `EnvironmentFailure` if the store refuses for too long, or if what is there can't be read."""
        self._chain = RecordChain(store)
        try:
            found = retry(self._chain.take_over, EnvironmentFailure, interval_s=AGAIN_S, limit_s=PATIENCE_S)
        except UnreadableObject as error:
            lost = f"the record of the previous driver is lost: {error}"
            raise EnvironmentFailure(lost, "start the run again") from error
        self.driver = self._chain.first
        self.found: LineRecord | None = decode_record(found) if found else None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records")
        self._writing: Future[None] | None = None
        self._request = UnderWay()
        self._ahead: WriteAhead | None = None
        self._not_before_s = self._refused_since_s = 0.0

    @property
    def ends(self) -> Ends:
        """Where the sources end, as a second driver would find it."""
        return {} if self._ahead is None else self._ahead.ends

    @property
    def waited_s(self) -> float:
        """How long the store has been at the record that is being written, or confirmed [s]; 0 if none is."""
        return self._request.seconds

    def keep(
        self,
        coordinator: Coordinator,
        layout: Layout,
        protocol: str,
        ends: Callable[[], Ends],
        costs: Callable[[], Costs],
    ) -> None:
        """From now on write the records of this coordinator, with what else is known as of `LineRecord`."""
        self._ahead = WriteAhead(coordinator, layout, protocol, ends, costs)

    def effects(self) -> list[CoordinatorEffect]:
        """What the coordinator wants that may be done by now.

        Raises `TakenOver` if another driver has come, and `EnvironmentFailure` if the store refuses for too long.
        """
        if self._ahead is None:
            return []
        self._look(self._ahead)
        if self._writing is None and time.monotonic() >= self._not_before_s:
            record = self._ahead.next_record()
            if record is not None:
                self._writing = self._submit(lambda: self._chain.add(record.encode()))
        return self._ahead.take_effects()

    def close(self) -> None:
        """Returns when nothing is being written any more."""
        self._thread.shutdown(wait=True)

    def confirm(self, while_waiting: Callable[[], None]) -> None:
        """Return once the store has shown that no other driver has come; until then call `while_waiting` now and then.

        Raises `TakenOver` if another driver has come, and `EnvironmentFailure` if the store refuses for too long.
        """
        self._writing = self._submit(self._confirm)  # after the record that is being written
        while wait([self._writing], AGAIN_S).not_done:
            while_waiting()
        confirmed, self._writing = self._writing, None
        confirmed.result()

    def _submit(self, request: Callable[[], None]) -> Future[None]:
        return self._thread.submit(self._request.do, request)

    def _confirm(self) -> None:
        retry(self._chain.confirm, EnvironmentFailure, interval_s=AGAIN_S, limit_s=PATIENCE_S)

    def _look(self, ahead: WriteAhead) -> None:
        if self._writing is None or not self._writing.done():
            return
        written, self._writing = self._writing, None
        try:
            written.result()
        except EnvironmentFailure:
            now_s = time.monotonic()
            self._refused_since_s = self._refused_since_s or now_s
            if now_s - self._refused_since_s > PATIENCE_S:
                raise
            self._not_before_s = now_s + AGAIN_S
            ahead.on_refused()
        else:
            self._refused_since_s = 0.0
            ahead.on_written()
