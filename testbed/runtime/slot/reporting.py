"""The reports of a slot to the coordinator on its partitions."""

from __future__ import annotations

import time
from collections.abc import Sequence

from testbed.core.by_batch.partition import is_muted
from testbed.core.dataflow.layout import Layout
from testbed.core.partition import partition_status
from testbed.core.partition.partition import Partition
from testbed.operators import Sink, Source
from testbed.runtime.network.messages import Cost, Peers, SlotStatus
from testbed.runtime.slot.catching_up import CatchingUp
from testbed.runtime.slot.exchange import Exchange
from testbed.runtime.slot.hosted import Hosted, Timed, TimedLoggedPartition
from testbed.runtime.slot.inputs import Inputs
from testbed.runtime.slot.outputs import Outputs
from testbed.runtime.slot.storing import Storing
from testbed.runtime.stillness import Counts


class Reporting:
    """Gathers the status of a slot.

    asked   the last count that the coordinator asked for
    """

    def __init__(
        self,
        layout: Layout,
        hosted: Hosted,
        exchange: Exchange,
        inputs: Inputs,
        outputs: Outputs,
        storing: Storing,
        catching_up: CatchingUp,
    ) -> None:
        self._cyclic, self._hosted, self._exchange = layout.cyclic, hosted, exchange
        self._inputs, self._outputs, self._storing = inputs, outputs, storing
        self._catching_up = catching_up
        self._coming_back: set[int] = set()
        self.asked = 0

    def begin(self, peers: Peers) -> None:
        """A recovery begins: the slot has neither caught up nor come to its end before what comes back here goes on.

        Until then such partitions may not even be here, or not know how far they were. Those that do not come back in
        this epoch have no worker, though their slots may have one: nothing comes for them, so they are not awaited.
        """
        back = self._coming_back.union(peers.restored, peers.reached).difference(peers.void)
        self._coming_back = {number for number in back if self._exchange.hosts(number)}

    def on_go(self, number: int) -> None:
        """A partition that came back goes on."""
        self._coming_back.discard(number)

    def end(self) -> None:
        """The session is over."""
        self._coming_back = set()

    def status(self, idle_s: float, store_s: float) -> SlotStatus:
        """What there is to tell now; what was stored is told once."""
        restored = [each for each in self._hosted if each.epoch >= 0]
        here = [each for each in restored if not is_muted(each)]
        complete = bool(here) and not self._coming_back
        return SlotStatus(
            epoch=self._exchange.epoch,
            tallies={each.number: vars(each.tally) for each in here},
            positions={
                each.number: each.source_input.position for each in here if isinstance(each.layout.element, Source)
            },
            copied={
                e.number: e.source_input.position
                for e in restored
                if is_muted(e) and isinstance(e.layout.element, Source)
            },
            finished=tuple(each.number for each in here if self._is_finished(each)),
            kept=self._storing.take_kept(),
            refused=self._storing.take_refused(),
            sent_bytes=self._exchange.sent_bytes,
            cpu_s=time.process_time(),
            idle_s=idle_s,
            store_s=store_s,
            checkpoint_s=self._hosted.checkpoint_s + self._storing.written_s,
            ended=complete and all(each.source_input.ended for each in here if isinstance(each.layout.element, Source)),
            caught_up=complete and not any(each.repeats for each in here),
            holding=self._inputs.draining,
            counts=self._counts(here) if self._cyclic else Counts(),
            progress={each.number: partition_status.progress(each) for each in here},
            loaded=self._catching_up.take_loaded(),
            reached=self._catching_up.take_reached(),
            costs={each.number: self._cost(each) for each in restored},
            logs={
                each.number: each.counts_of_log
                for each in here
                if isinstance(each, TimedLoggedPartition) and each.has_log
            },
        )

    def _cost(self, of: Timed) -> Cost:
        checkpoint_s = of.checkpoint_s + self._storing.written_of.get(of.number, 0.0)
        records = of.tally.records_out if isinstance(of.layout.element, Source) else of.tally.records_in
        return Cost(is_muted(of), of.processing_s, checkpoint_s, records, of.input_bytes, of.retained_bytes)

    def _counts(self, here: Sequence[Partition]) -> Counts:
        sent, processed = (
            sum(numbers) for numbers in zip((0, 0), *(partition_status.counts(each) for each in here), strict=True)
        )
        ended = all(each.source_input.ended for each in here if isinstance(each.layout.element, Source))
        return Counts(self._exchange.epoch, self.asked, sent, processed, ended)

    def _is_finished(self, partition: Partition) -> bool:
        """Whether this is a sink that has emitted everything."""
        return (
            isinstance(partition.layout.element, Sink)
            and (partition.idle if self._cyclic else partition_status.finished(partition))
            and self._outputs.is_out(partition.number)
        )
