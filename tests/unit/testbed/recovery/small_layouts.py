"""Layouts of three and four partitions, with the slot of each partition given."""

from dataclasses import replace

from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from tests.unit.testbed.small_flows import EVENTS, doubled, laid_out


def chain(*slots):
    """Source 0, operator 1, sink 2."""
    flow = Dataflow("chain")
    flow.source("a", EVENTS, due="at_ns").map("b", doubled).sink("c")
    return on_slots(lay_out(flow), slots)


def two_sources(*slots):
    """Sources 0 and 1, sink 2."""
    flow = Dataflow("two")
    flow.source("a", EVENTS, due="at_ns", parallelism=2).sink("c", parallelism=1)
    return on_slots(lay_out(flow), slots)


def diamond(*slots):
    """Source 0, operators 1 and 2, sink 3."""
    return on_slots(laid_out("tiny")[0], slots)


def on_slots(layout, slots):
    """A partition belongs to the slot that is its index."""
    placed = zip(layout.partitions, slots, strict=True)
    return replace(layout, partitions=tuple(replace(each, index=slot) for each, slot in placed))
