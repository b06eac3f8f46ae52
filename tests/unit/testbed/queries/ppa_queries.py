"""Small top-100 and incident queries, their input, and their exact output by the definition, event by event."""

from collections import Counter

import pyarrow as pa

from experiments.workloads.ppa_queries import Binding, IncidentsSpec, Top100Spec
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.queries import dataflow
from workloads.incidents.input import JAM_BELOW_KMH, events
from workloads.schedule import Schedule
from workloads.top_100.input import TOP, requests

NS_PER_MS = 10**6
SITE = Top100Spec(window_s=3.0, slide_s=1.0, parallelism=(4, 2, 2), entries=150, stream_seed=3)
SPREAD = SITE.model_copy(update={"binding": Binding.SPREAD})
# Few users, so that segments are small, and an incident every half second.
ROADS = IncidentsSpec(
    window_s=6.0,
    slide_s=2.0,
    parallelism=(4, 2, 2),
    users=160,
    segments=40,
    events_per_incident=60,
    jam_share=0.5,
    stream_seed=3,
)


def made(spec, count, rate, start_ns=0):
    """The first events, as many as given."""
    make = requests if isinstance(spec, Top100Spec) else events
    return make(spec, Schedule(start_ns, rate, spec.sources), 0, count)


def inputs(spec, count, rate, read, start_ns=0):
    """Position p goes to partition p mod P, as in Kafka; each partition reads a fixed number at once."""
    found = made(spec, count, rate, start_ns)
    rows = [found.take(pa.array(range(task, count, spec.sources))) for task in range(spec.sources)]
    name = "requests" if isinstance(spec, Top100Spec) else "events"
    return {name: [[each.slice(at, read) for at in range(0, each.num_rows, read)] for each in rows]}


def laid_out(spec):
    return lay_out(dataflow(spec, spec.sources, Delivery.EXACTLY_ONCE))


def exact(spec, found):
    """The rows that must come out for these events."""
    by_slide = {}
    for row in found.to_pylist():
        by_slide.setdefault(row["at_ns"] // (spec.slide_ms * NS_PER_MS), []).append(row)
    rule = _most_requested if isinstance(spec, Top100Spec) else _jams
    return Counter(row for last in by_slide for row in rule(spec, by_slide, last))


def _most_requested(spec, by_slide, last):
    counts = Counter(row["entry"] for _, row in _window(spec, by_slide, last))
    best = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:TOP]
    return [(_time(spec, last), entry, count) for entry, count in best]


def _jams(spec, by_slide, last):
    speeds, reports = {}, {}
    for slide, row in _window(spec, by_slide, last):
        if row["incident"] >= 0:
            reports.setdefault(row["incident"], []).append((slide, row["segment"]))
        else:
            speeds.setdefault(row["segment"], []).append((slide, row["speed"]))
    for incident, mine in reports.items():
        since, segment = min(mine)
        here = [each for each in speeds.get(segment, ()) if each[0] >= since]
        total, count = sum(speed for _, speed in here), len(here)
        if any(slide == last for slide, _ in here) and total < JAM_BELOW_KMH * count:
            yield _time(spec, last), incident, segment, len(mine), total // count


def _window(spec, by_slide, last):
    first = last - spec.window_ms // spec.slide_ms + 1
    return [(slide, row) for slide in range(first, last + 1) for row in by_slide.get(slide, ())]


def _time(spec, last):
    return (last + 1) * spec.slide_ms * NS_PER_MS - 1
