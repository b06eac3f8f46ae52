"""What hand-made timelines are made of; times in seconds are turned into nanoseconds."""

from journal.events.testbed import TESTBED
from spark_jobs.tables.ledger import NS
from spark_jobs.tables.streaming.batches import Batch
from tests.unit.example_events import named


def at(second):
    return round(second * NS)


def told(name, second, **fields):
    """An event of the testbed's journal."""
    return named(TESTBED, name, at(second), **fields)


def batch(number, start_s, end_s, checkpoint_s=1.0, records=1000):
    span_ns = map(at, (start_s, end_s, checkpoint_s))
    return Batch(number, *span_ns, records, 0.0, 0.0, 0.0, 0, 0, {"0": (0, 0)}, None, None)


def classes(segments):
    """How long each class of a ledger lasts in all."""
    totals = {}
    for each in segments:
        totals[each.kind] = totals.get(each.kind, 0) + (each.end_ns - each.start_ns) / NS
    return totals
