"""Errors planted in the output log: the crashes notice each of them within a few seeds."""

from dataclasses import replace

import pytest

import testbed.output_log.logged as logged_module
from testbed.operators.count_windows import CountWindows
from testbed.operators.parted_aggregate import PartedAggregate
from testbed.operators.parts import Known
from testbed.output_log.blocks import NO_LIFE
from testbed.output_log.eventual import StateLost, _Scan
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import Targets
from testbed.output_log.reading import LogReader, SegmentId, UnreadableSegment
from testbed.output_log.recorded import ReplayDiverged
from tests.unit.testbed.output_log.crashes import Run, WrongState, without_faults
from tests.unit.testbed.output_log.inputs import CASES
from tests.unit.testbed.output_log.planted import as_printed, closed_forgotten, parts_without_their_state
from tests.unit.testbed.output_log.test_damage import rotten, torn

SEEDS = 25
SHARP = (15, 16, 24, 11)  # seeds that notice what others miss: they come first


def ignores_nothing(known, *windows_and_positions):
    return


def closed_ones_read_past(scan, entries, before, open_windows, real=_Scan._take):
    """An older footprint of a window that has closed counts as one of an open window."""
    real(scan, entries, before, open_windows)
    for window in scan._closed:
        scan._seen.discard(window)


def stops_one_early(scan, entries, before, open_windows, real=_Scan._take):
    real(scan, entries, before, max(open_windows - 1, 0))


def damage_skipped(reader, end):
    """Goes on reading behind a damaged segment as if nothing had been in it."""
    while end.life != NO_LIFE:
        try:
            segment = reader._read(end)
        except UnreadableSegment:
            if reader.before(end) is None:
                raise
            end = reader.before(end)
        else:
            yield end, segment
            end = SegmentId(segment.before, end.number - 1)


def found_from_damage_on(reader, delivered, replayable_after, real=logged_module.find_eventual):
    found = real(reader, delivered, replayable_after)
    return replace(found, replay_after=found.position) if found.damaged else found


def replayed_one_late(reader, delivered, replayable_after, real=logged_module.find_eventual):
    found = real(reader, delivered, replayable_after)
    return replace(found, replay_after=min(found.replay_after + 1, found.position))


def trimmed_too_far(log, delivered, real=OutputLog.trim):
    trimmed = real(log, delivered)
    if log._kept:
        log._unneeded.append(log._kept.popleft().id)
        trimmed += real(log, delivered)
    return trimmed


def trimmed_before_arrival(log, delivered, real=OutputLog.trim):
    return real(log, delivered + 100)


def sent_before_safe(logged):
    """Rows are put out although the store has not got them."""
    return [each.rows for each in logged.log._pending if each.rows is not None]


def not_suppressed(logged, reader, delivered=0, replayable_after=0, real=LoggedOperator.restore):
    found = real(logged, reader, delivered, replayable_after)
    logged._delivered = 0
    logged._unsent = real(logged, reader, 0, replayable_after).unsent
    return found


def replay_ahead(log, real=OutputLog.replay_after.fget):
    return real(log) + 1 if log._guarded else 0


PLANTS = [
    (Known, "new", as_printed, "none"),
    (Known, "add", ignores_nothing, "none"),
    (Known, "add_all", ignores_nothing, "none"),
    (CountWindows, "ignore", closed_forgotten, "none"),
    (PartedAggregate, "ignore", closed_forgotten, "none"),
    (_Scan, "_take", closed_ones_read_past, "none"),
    (_Scan, "_take", stops_one_early, "none"),
    (logged_module, "find_eventual", replayed_one_late, "none"),
    (logged_module, "find_eventual", found_from_damage_on, "torn"),
    (LogReader, "backward", damage_skipped, "rotten"),
    (OutputLog, "trim", trimmed_too_far, "none"),
    (OutputLog, "trim", trimmed_before_arrival, "none"),
    (OutputLog, "replay_after", property(replay_ahead), "torn"),
    (LoggedOperator, "commit", sent_before_safe, "none"),
    (LoggedOperator, "restore", not_suppressed, "none"),
    (CountWindows, "parts_of", parts_without_their_state, "none"),
]
DAMAGES = {"none": lambda store, random: None, "torn": torn, "rotten": rotten}


def id_of(where, name, planted, damage):
    return f"{where.__name__.rpartition('.')[2]}.{name} {getattr(planted, '__name__', '')}"


@pytest.mark.parametrize(("where", "name", "planted", "damage"), PLANTS, ids=[id_of(*each) for each in PLANTS])
def test_a_planted_error_is_noticed(monkeypatch, where, name, planted, damage):
    monkeypatch.setattr(where, name, planted)
    assert any(noticed(seed, damage) for seed in (*SHARP, *range(SEEDS)))


@pytest.mark.extended
@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_noticed_without_one(damage):
    assert not any(noticed(seed, damage) for seed in range(SEEDS))


def noticed(seed, damage):
    """Whether a run ends otherwise than it should. Where any segment may be damaged, a state may be lost."""
    for name in ("windows of 1 record", "windows of 3 records", "time windows"):
        crashes = {"none": [10 + seed, 5, 8], "torn": [10 + seed], "rotten": [10 + seed, 12]}[damage]
        run = Run(CASES[name], Targets(extent=6, replay=12), seed, crashes, damage=DAMAGES[damage])
        try:
            if run.run() != without_faults(run.case, run.case.events(seed)):
                return True
        except StateLost:
            if damage != "rotten":
                return True
        except (ReplayDiverged, WrongState, KeyError):
            return True
    return False
