"""Small window trees, their input, and their exact output by the definition, tuple by tuple."""

from collections import Counter
from itertools import pairwise

from experiments.workloads.window_tree import WindowTreeSpec
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.queries.window_tree import window_tree
from tests.unit.testbed.small_job import tuples_in
from workloads.schedule import Schedule
from workloads.window_tree.input import FACTOR, MARKS, VALUES, limit, tuples

SMALL = WindowTreeSpec(window_s=3.0, slide_s=1.0, parallelism=(4, 2, 1), stream_seed=3)
PAPER = WindowTreeSpec(window_s=3.0, slide_s=1.0, stream_seed=3)


def inputs(spec, events, rate, read, start_ns=0):
    """Position p goes to partition p mod P, as in Kafka; each partition reads a fixed number at once."""
    made = tuples(spec, Schedule(start_ns, rate), 0, events)
    rows = [made.take(list(range(task, events, spec.sources))) for task in range(spec.sources)]
    return {"tuples": [[each.slice(at, read) for at in range(0, each.num_rows, read)] for each in rows]}


def laid_out(spec, delivery=Delivery.EXACTLY_ONCE):
    return lay_out(window_tree(spec, delivery))


def exact(spec, given):
    """The rows that must come out for what the partitions of the source have read."""
    return exact_rows(spec, [[row for batch in batches for row in tuples_in(batch)] for batches in given["tuples"]])


def exact_rows(spec, level):
    """The same for rows, a list of them for each partition of the source."""
    for before, here in pairwise(spec.parallelism):
        tasks = [[] for _ in range(here)]
        for task, rows in enumerate(level):
            tasks[task * here // before] += rows
        level = [_passed_on(spec, rows) for rows in tasks]
    return Counter(row for rows in level for row in rows)


def _passed_on(spec, rows):
    slide_ns, slides, bar = spec.slide_ms * 10**6, spec.window_ms // spec.slide_ms, limit(spec)
    totals = Counter()
    for _, at_ns, _, value in rows:
        totals[at_ns // slide_ns] += value
    found = []
    for position, at_ns, mark, value in rows:
        if mark < bar:
            slide = at_ns // slide_ns
            total = sum(totals[each] for each in range(slide - slides + 1, slide + 1))
            found.append((position, (slide + 1) * slide_ns - 1, mark * FACTOR % MARKS, (value + total) % VALUES))
    return found
