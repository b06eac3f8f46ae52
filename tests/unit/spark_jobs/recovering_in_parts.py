"""A hand-made journal of a run that recovers in parts; times in seconds.

Two slots have two partitions each, a third one stands by. Fault 0 takes the first slot at 20 s; its partitions go to
the slot that stands by. Fault 1 takes a slot that stands by. Fault 2 takes the second slot at 40 s; its partitions wait
until 45 s for another.
"""

from dataclasses import replace

from experiments.fault_kinds import FaultKind
from journal.events.injector import INJECTOR
from tests.unit.example_events import named, report
from tests.unit.spark_jobs.timelines import at, told

HOSTS = {"10.0.0.2": "worker-1", "10.0.0.3": "worker-2", "10.0.0.4": "worker-3"}
FIRST, SECOND = ("in.0", "count.0"), ("in.1", "count.1")
RATE, STEP_S, IDLE, CHECKPOINT = 100, 0.5, 0.5, 0.1


def struck(fault, host, second):
    return named(INJECTOR, "injected", at(second), fault=fault, host=host, fired_ns=at(second))


def line(number):
    return dict.fromkeys((*FIRST, *SECOND), number)


def reports(start_s, end_s, epoch, partitions, slots=2):
    """Every half second: partitions process at a rate, slots are idle and take checkpoints for shares of the time."""
    for step in range(round((end_s - start_s) / STEP_S) + 1):
        passed_s = step * STEP_S
        count = round(RATE * (start_s + passed_s))
        yield report(
            at(start_s + passed_s),
            epoch=epoch,
            positions={name: count for name in partitions if name.startswith("in")},
            tallies={name: {"records_in": 3 * count} for name in partitions if name.startswith("count")},
            idle_s=IDLE * slots * passed_s,
            checkpoint_s=CHECKPOINT * slots * passed_s,
            slots=slots,
        )


def stored(number, taken_s, partitions):
    return [
        told("checkpoint", taken_s + 0.4, partition=name, number=number, seconds=0.1, taken_ns=at(taken_s))
        for name in partitions
    ]


def restored(partitions, epoch, loaded_s, reached_s):
    for name in partitions:
        yield told("partition-loaded", loaded_s, partition=name, epoch=epoch, seconds=0.2, size_bytes=1000)
        yield told("partition-reached", reached_s, partition=name, epoch=epoch, records=400, size_bytes=800)


INJECTED = [struck(0, "worker-1", 20), struck(1, "worker-1", 30), struck(2, "worker-2", 40)]
JOURNAL = [
    told("worker-joined", 0, worker="slot-1", host="10.0.0.2"),
    told("worker-joined", 0, worker="slot-2", host="10.0.0.3"),
    told("recovering", 0, epoch=1, line=line(0), restored=(*FIRST, *SECOND)),
    told("ready", 0, epoch=1),
    told("worker-joined", 1, worker="slot-3", host="10.0.0.4"),
    *reports(0, 20, 1, (*FIRST, *SECOND)),
    *stored(4, 16, ("in.0", *SECOND)),  # the slot with count.0 died before it could tell
    told("worker-lost", 20.5, worker="slot-1", partitions=FIRST),
    told("recovering", 20.6, epoch=2, line=line(4), restored=FIRST),
    told("ready", 21, epoch=2),
    *restored(FIRST, 2, 20.9, 22),
    *reports(21, 40, 2, (*FIRST, *SECOND)),
    told("worker-joined", 28, worker="slot-4", host="10.0.0.2"),
    told("worker-lost", 30.2, worker="slot-4", partitions=()),
    *stored(9, 36, (*FIRST, *SECOND)),
    told("worker-lost", 40.5, worker="slot-2", partitions=SECOND),
    *reports(41, 44.5, 2, FIRST, slots=1),
    told("recovering", 44.6, epoch=3, line=line(9), restored=SECOND),
    told("ready", 45, epoch=3),
    *restored(SECOND, 3, 44.9, 47),
    *reports(45.5, 60, 3, (*FIRST, *SECOND)),
]
# Fault 3 takes the driver at 61 s. The next one restores the partitions one half after the other, as slots come.
DRIVER_STRUCK = replace(struck(3, "gateway", 61), kind=FaultKind.DRIVER_KILL)
WITH_A_SECOND_DRIVER = [
    told("driver-started", -5),
    *JOURNAL,
    told("driver-started", 63),
    told("recovering", 64, epoch=4, line=line(9), restored=FIRST),
    told("ready", 65, epoch=4),
    *restored(FIRST, 4, 64.5, 66),
    told("recovering", 68, epoch=5, line=line(9), restored=SECOND),
    told("ready", 69, epoch=5),
    *restored(SECOND, 5, 68.5, 70),
]
