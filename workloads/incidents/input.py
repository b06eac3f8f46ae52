"""The input of the incident query (`ppa`, section VI-B, Q2): where users are, how fast, and what they report.

From the paper are the rates, the Zipf law of users by segment, that a segment has incidents in proportion to its users,
and that all of its users report an incident. It does not say what a jam is; this is ours: some incidents slow down the
traffic on their segment while the next `JAM_LASTS` incidents happen.

Segments belong to regions, and partition i of the topic has the events of region i. A *turn* is `events_per_incident`
events, in which one incident happens. Some events of its region are the reports of the incident, spread over the turn.
All other events are locations: the users of a region report theirs one after the other. So every event is a function
of the seed and its position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.workloads.ppa_queries import IncidentsSpec
from workloads import by_position
from workloads.json_records import PLACE
from workloads.nexmark.counters import below, bits, chosen
from workloads.popularity import dealt, zipf
from workloads.schedule import Integers, Schedule

EVENT = "event"
EVENTS = pa.schema([(name, pa.int64()) for name in (PLACE, "at_ns", "user", "segment", "speed", "incident")])
NONE = -1  # the speed of a report, and the incident of a location
JAM_LASTS = 30  # incidents: a minute of the paper's load
FREE_KMH, JAMMED_KMH, VARIES_KMH = 60, 5, 30  # speeds are from `FREE_KMH` or `JAMMED_KMH` to less than 30 km/h more
JAM_BELOW_KMH = 40  # the mean speed of a segment below which its traffic is jammed


class IncidentDraw(IntEnum):
    """What a random number is for."""

    REGION, ORDER, INCIDENT, SPEED = (auto() for _ in range(4))


@dataclass(frozen=True)
class _Roads:
    """Who is where. Users are numbered segment by segment.

    first      the first user of each segment, and the number of all users, (segments + 1,)
    segment    of each user, (users,)
    region     of each segment, (segments,)
    users_of   by region, in the order in which they tell where they are
    """

    first: Integers
    segment: Integers
    region: Integers
    users_of: tuple[Integers, ...]


def events(spec: IncidentsSpec, schedule: Schedule, start: int, stop: int) -> pa.RecordBatch:
    """The events at positions `start` to before `stop`.

    at_ns      when it is due [ns], a whole millisecond as in Kafka
    user       who sends it, from the segment `segment`
    speed      of a location [km/h], `NONE` of a report
    incident   the number of the incident that is reported, `NONE` of a location
    """
    return by_position.events(EVENTS, partial(_drawn, spec), schedule, start, stop)


def records(spec: IncidentsSpec, _schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: values by position; when an event is due is its Kafka timestamp."""
    return by_position.records(EVENT, partial(_drawn, spec))


def _drawn(spec: IncidentsSpec, positions: Integers) -> dict[str, Integers]:
    """Position p belongs to region p mod (regions)."""
    roads, region = _roads(spec), positions % spec.sources
    turn, at = np.divmod(positions, spec.events_per_incident)
    place = at // spec.sources  # among the events of the region in this turn
    where = _segments(spec, turn)
    count = roads.first[where + 1] - roads.first[where]
    room = spec.events_per_incident // spec.sources
    report = place * count // room
    reports = (roads.region[where] == region) & ((place + 1) * count // room > report)
    user = np.empty(positions.size, np.int64)
    for number, users in enumerate(roads.users_of):
        its = region == number
        user[its] = users[positions[its] // spec.sources % users.size]
    user = np.where(reports, roads.first[where] + report, user)
    segment = roads.segment[user]
    lowest = np.where(_jammed(spec, turn, segment), JAMMED_KMH, FREE_KMH)
    speed = lowest + below(bits(spec.stream_seed, IncidentDraw.SPEED, positions), VARIES_KMH)
    found = (user, segment, np.where(reports, NONE, speed), np.where(reports, turn, NONE))
    return dict(zip(EVENTS.names[2:], found, strict=True))


def _segments(spec: IncidentsSpec, incidents: Integers) -> Integers:
    """Where incidents happen: where a user is who is drawn among all."""
    roads = _roads(spec)
    return roads.segment[below(bits(spec.stream_seed, IncidentDraw.INCIDENT, incidents), roads.segment.size)]


def _jammed(spec: IncidentsSpec, turn: Integers, segment: Integers) -> NDArray[np.bool_]:
    """Whether the traffic is jammed in these turns on these segments, (events,)."""
    if not turn.size:
        return np.zeros(0, np.bool_)
    incidents = np.arange(max(0, int(turn[0]) - JAM_LASTS + 1), int(turn[-1]) + 1)
    jams = incidents[chosen(bits(spec.stream_seed, IncidentDraw.INCIDENT, incidents), spec.jam_share)]
    slow = (jams[:, None] + np.arange(JAM_LASTS)[None, :]) * spec.segments + _segments(spec, jams)[:, None]
    return np.isin(turn * spec.segments + segment, slow)


@lru_cache(maxsize=4)
def _roads(spec: IncidentsSpec) -> _Roads:
    counts = np.maximum(1, np.rint(spec.users * zipf(spec.segments, spec.skew))).astype(np.int64)
    segment = np.repeat(np.arange(spec.segments), counts)
    region = dealt(spec.stream_seed, IncidentDraw.REGION, spec.segments, spec.sources)
    order = np.argsort(bits(spec.stream_seed, IncidentDraw.ORDER, np.arange(segment.size)), kind="stable")
    users_of = tuple(order[region[segment[order]] == each] for each in range(spec.sources))
    return _Roads(np.concatenate(([0], np.cumsum(counts))), segment, region, users_of)
