"""The input of the incident query: the same events however they are made, and what the paper says of them."""

import json
from collections import Counter

import numpy as np
import pytest

from experiments.workloads.ppa_queries import IncidentsSpec
from workloads.incidents.input import (
    EVENTS,
    FREE_KMH,
    JAM_BELOW_KMH,
    JAM_LASTS,
    JAMMED_KMH,
    VARIES_KMH,
    events,
    records,
)
from workloads.popularity import zipf
from workloads.schedule import Schedule

PAPER = IncidentsSpec(parallelism=(8, 4, 2), stream_seed=7)
SMALL = IncidentsSpec(users=2000, segments=100, events_per_incident=2000, parallelism=(4, 2, 1), stream_seed=7)
SCHEDULE = Schedule(1_795_173_799_675_000_000, 20_000.0, PAPER.sources)


def made(spec, start, stop):
    found = events(spec, SCHEDULE, start, stop)
    return {name: found[name].to_numpy() for name in found.schema.names}


def test_a_jam_is_known_to_whoever_begins_in_the_middle_of_it():
    end, middle = 50 * SMALL.events_per_incident, 40 * SMALL.events_per_incident + 7
    whole, rest = made(SMALL, 0, end), made(SMALL, middle, end)
    assert (whole["speed"][middle:] == rest["speed"]).all()
    assert (rest["speed"] < JAM_BELOW_KMH).mean() > 0.1


def test_events_have_their_columns_and_due_times_and_messages_say_the_same():
    found = events(PAPER, SCHEDULE, 5, 2005)
    assert found.schema == EVENTS
    assert found["at_ns"].to_pylist() == [SCHEDULE.due_ms(p) * 10**6 for p in range(5, 2005)]
    said = [json.loads(value) for value in records(PAPER, SCHEDULE)(5, 2005)]
    assert said == [{"kind": "event", **each} for each in found.drop_columns(["position", "at_ns"]).to_pylist()]


def test_all_users_of_a_segment_report_its_incident_once_and_nobody_else_does():
    found = made(PAPER, 0, 20 * PAPER.events_per_incident)
    reports = found["incident"] >= 0
    assert (reports == (found["speed"] < 0)).all()
    assert set(found["incident"][reports]) == set(range(20))
    for incident in range(20):
        mine = found["incident"] == incident
        (segment,) = set(found["segment"][mine])
        wanted = round(PAPER.users * zipf(PAPER.segments, PAPER.skew)[segment])
        assert Counter(found["user"][mine].tolist()).total() == len(set(found["user"][mine])) == wanted
        assert (found["position"][mine] // PAPER.events_per_incident == incident).all()


def test_users_are_spread_by_the_law_and_tell_their_place_in_turn():
    found = made(PAPER, 0, 300_000)
    here = found["speed"] >= 0
    assert here.mean() > 0.98
    segment_of = dict(zip(found["user"][here].tolist(), found["segment"][here].tolist(), strict=True))
    users = np.bincount(list(segment_of.values()), minlength=PAPER.segments)
    assert users.tolist() == np.rint(PAPER.users * zipf(PAPER.segments, PAPER.skew)).tolist()
    assert users[0] == PAPER.largest_segment
    assert users.sum() == pytest.approx(PAPER.users, rel=0.001)


def test_a_segment_has_its_events_in_one_region():
    found = made(PAPER, 0, 200_000)
    region_of = dict(zip(found["segment"].tolist(), (found["position"] % PAPER.sources).tolist(), strict=True))
    assert (found["position"] % PAPER.sources == [region_of[each] for each in found["segment"].tolist()]).all()
    assert set(Counter(region_of.values()).values()) == {PAPER.segments // PAPER.sources}


def test_segments_have_incidents_in_proportion_to_their_users():
    found = made(SMALL.model_copy(update={"events_per_incident": 440}), 0, 3000 * 440)
    firsts = np.unique(found["incident"], return_index=True)[1][1:]
    happened = np.bincount(found["segment"][firsts], minlength=SMALL.segments)
    wanted = 3000 * zipf(SMALL.segments, SMALL.skew)
    assert happened.sum() == 3000
    assert (abs(happened - wanted) <= 5 * wanted**0.5).all()


def test_some_incidents_slow_down_their_segment_and_only_that_for_a_while():
    turns = 200
    found = made(SMALL, 0, turns * SMALL.events_per_incident)
    turn, here = found["position"] // SMALL.events_per_incident, found["speed"] >= 0
    happened = dict(zip(found["incident"][~here].tolist(), found["segment"][~here].tolist(), strict=True))
    jammed = here & (found["speed"] < JAM_BELOW_KMH)
    slow = set(zip(turn[jammed].tolist(), found["segment"][jammed].tolist(), strict=True))
    possible = {(at, segment) for at in range(turns) for n, segment in happened.items() if n <= at < n + JAM_LASTS}
    assert slow < possible
    jams = sum((n, segment) in slow for n, segment in happened.items())
    assert 0.4 * turns < jams < 0.75 * turns  # half of them, and those on a segment that is jammed already
    speeds = found["speed"][here]
    assert set(speeds) == {low + more for low in (FREE_KMH, JAMMED_KMH) for more in range(VARIES_KMH)}


@pytest.mark.parametrize(("share", "jammed"), [(0.0, False), (1.0, True)])
def test_the_share_of_incidents_that_lead_to_jams(share, jammed):
    found = made(SMALL.model_copy(update={"jam_share": share}), 0, 20_000)
    assert (found["speed"][found["speed"] >= 0] < JAM_BELOW_KMH).any() == jammed
