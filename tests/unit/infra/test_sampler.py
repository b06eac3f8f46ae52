"""When the sampler looks: at fixed moments, however long a look takes; and at which clocks."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import EnvironmentFailure
from infra import sampler
from infra.sampler import PERIOD_NS, both_clocks, next_deadline, sample_machine
from journal.events.services import HostSample
from journal.reader import raw_entries
from journal.writer import Journal

START_NS = 7_654_321


def looks(durations_ns, until_ns):
    """The moments at which a sampler looks whose looks last so long, one after the other and over again."""
    at_ns, found = START_NS, []
    while at_ns < START_NS + until_ns:
        found.append(at_ns)
        at_ns = next_deadline(START_NS, at_ns + durations_ns[len(found) % len(durations_ns)])
    return found


@given(st.lists(st.integers(0, PERIOD_NS - 1), min_size=1, max_size=20))
def test_there_is_one_look_a_second_whatever_it_takes(durations_ns):
    found = looks(durations_ns, 240 * PERIOD_NS)
    assert found == [START_NS + second * PERIOD_NS for second in range(240)]


def test_a_look_that_takes_too_long_skips_what_it_missed():
    assert looks([0, 5 * PERIOD_NS // 2], 5 * PERIOD_NS) == [START_NS + second * PERIOD_NS for second in (0, 3, 4)]


@given(st.integers(0, 10**12))
def test_the_next_moment_is_always_to_come(passed_ns):
    assert 0 < next_deadline(START_NS, START_NS + passed_ns) - (START_NS + passed_ns) <= PERIOD_NS


def test_a_pause_between_the_looks_at_two_clocks_is_no_step(monkeypatch):
    """Time passes only in pauses: three of them fall between the looks at the clocks, none in the fourth try."""
    pauses = itertools.chain([0, 9 * 10**6, 0, 7 * 10**6, 0, 0, 0, 5 * 10**6, 0], itertools.repeat(0))
    now = [0]

    def clock(offset_ns):
        def read():
            now[0] += next(pauses)
            return now[0] + offset_ns

        return read

    monkeypatch.setattr(time, "monotonic_ns", clock(0))
    monkeypatch.setattr(time, "time_ns", clock(17 * 10**18))
    wall_ns, monotonic_ns = both_clocks()
    assert wall_ns - monotonic_ns == 17 * 10**18


def test_the_machine_s_clocks_are_noted_with_each_look_at_it():
    before_ns = time.monotonic_ns()
    found = sample_machine()
    assert before_ns <= found.monotonic_ns <= time.monotonic_ns()
    assert abs(found.at_ns - found.monotonic_ns - (time.time_ns() - time.monotonic_ns())) < 60 * 10**9


def test_an_error_of_the_sampler_itself_costs_one_sample_and_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sampler, "PERIOD_NS", 10**6)
    seen = HostSample("worker-1", 1.5, 2)
    outcomes = iter([OSError(24, "Too many open files"), EnvironmentFailure("no answer", "wait"), seen, SystemExit()])

    def look():
        if isinstance(outcome := next(outcomes), BaseException):
            raise outcome
        return outcome

    with pytest.raises(SystemExit):
        sampler.each_second(look, Journal(tmp_path / "hosts.jsonl"), time.monotonic_ns())
    assert capsys.readouterr().err == "[Errno 24] Too many open files\n"
    assert [entry["host"] for entry in raw_entries(tmp_path / "hosts.jsonl")] == ["worker-1"]


def test_an_error_of_the_journal_is_not_taken_for_one_of_the_look(tmp_path, monkeypatch):
    monkeypatch.setattr(sampler, "PERIOD_NS", 10**6)
    journal = Journal(tmp_path / "hosts.jsonl")

    def broken(_event):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journal, "record", broken)
    outcomes = iter([HostSample("worker-1", 1.5, 2)])
    with pytest.raises(OSError, match="Input/output error"):
        sampler.each_second(lambda: next(outcomes), journal, time.monotonic_ns())
