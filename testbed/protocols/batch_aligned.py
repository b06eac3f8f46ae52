"""Checkpoints at the borders of batches: aligned without markers, since all partitions cut at the same borders."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.errors import BadInput
from testbed.core.checkpoints import Line, Taken, last_common_or_ended
from testbed.core.dataflow.layout import Channel, Layout
from testbed.core.protocol import Protocol
from testbed.operators import Source


class BatchAligned(Protocol):
    """Every partition takes a checkpoint at the border that ends each n-th batch, and gives it the border's number.

    Checkpoints with one number lie at one border, so nothing is in flight between them. So they are always a line, even
    if they were taken in different lives of the partitions.

    A partition whose input has ended passes no more borders. It takes one more checkpoint before it processes that end,
    which stands for all later ones: so the line goes on as long as any source does.
    """

    name = "batch-aligned"
    by_batch = True

    @classmethod
    def check(cls, layout: Layout) -> None:
        if layout.cyclic:
            allowed = "uncoordinated or communication-induced: on a cycle a batch would wait for its own end"
            raise BadInput(f"protocol of {layout.name}", cls.name, allowed)
        for each in layout.partitions:
            if isinstance(each.element, Source) and each.element.due is None:
                allowed = f"another protocol: the source {each.operator} has no time to cut batches by"
                raise BadInput(f"protocol of {layout.name}", cls.name, allowed)

    @staticmethod
    def find_line(taken: Taken, channels: Sequence[Channel]) -> Line:
        return last_common_or_ended(taken, channels)

    def on_end(self, checkpoint: int | None) -> None:
        if checkpoint is not None:
            self.runtime.checkpoint(checkpoint)

    def on_border(self, checkpoint: int | None) -> None:
        if checkpoint is not None:
            self.runtime.checkpoint(checkpoint)
