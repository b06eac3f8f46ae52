"""Continuous eventual checkpointing (`cec`) at the borders of batches: the state of windows lies in an output log."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from experiments.errors import BadInput
from testbed.core.checkpoints import Checkpoint, Line, Taken, last_common_or_ended
from testbed.core.dataflow.layout import Channel, Layout
from testbed.operators import Operator
from testbed.operators.parts import Parted
from testbed.protocols.batch_aligned import BatchAligned


class OutputLogged(BatchAligned):
    """Checkpoints of operators whose state has parts hold what their windows did since the checkpoint before.

    To restore such a checkpoint, a partition needs input from before the checkpoint. The partition that makes this
    input rolls back as far, unless it still has the input. A partition whose checkpoints are lost starts from the
    beginning of its input.
    """

    name = "output-log"
    keeps_log = True
    begins_anew = True

    @classmethod
    def check(cls, layout: Layout) -> None:
        super().check(layout)
        for each in layout.partitions:
            if isinstance(each.element, Operator) and not isinstance(each.element, Parted) and _has_state(each.element):
                allowed = f"batch-aligned: the state of {each.operator} has no parts that could be saved one by one"
                raise BadInput(f"protocol of {layout.name}", cls.name, allowed)
        if not any(isinstance(each.element, Parted) for each in layout.partitions):
            allowed = "batch-aligned: no operator has a state in parts, so there is nothing to log"
            raise BadInput(f"protocol of {layout.name}", cls.name, allowed)

    @staticmethod
    def find_line(taken: Taken, channels: Sequence[Channel]) -> Line:
        """The checkpoints of the last border that all have stored, with two exceptions.

        If a receiver needs output of a partition from before that border, the partition rolls back to the checkpoint
        from which it makes this output again. If the checkpoint of a partition at the border is lost, the partition
        rolls back to its last one before it that is not lost.
        """
        line = [_last_up_to(each.number, taken[each.partition]) for each in last_common_or_ended(taken, channels)]
        pending = list(channels)
        while pending:
            channel = pending.pop()
            needed = line[channel.receiver].input_from
            if line[channel.sender].number > needed:
                line[channel.sender] = _last_up_to(needed, taken[channel.sender])
                pending += [each for each in channels if each.receiver == channel.sender]
        return tuple(line)


def _last_up_to(number: int, taken: Sequence[Checkpoint]) -> Checkpoint:
    readable = (each for each in taken if each.number <= number and not each.lost)
    return max(readable, key=lambda each: each.number)


def _has_state(operator: Operator) -> bool:
    opened = copy.deepcopy(operator)
    opened.open()
    return bool(opened.states())
