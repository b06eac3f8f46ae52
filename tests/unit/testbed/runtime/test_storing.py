"""The thread that writes checkpoints lets the slot's own go on."""

from types import SimpleNamespace

import pytest

from testbed.runtime.slot import storing


@pytest.fixture
def clock(monkeypatch):
    """Time [s] that passes only when somebody works or sleeps, and when somebody slept."""
    found = SimpleNamespace(now_s=0.0, slept_at=[])

    def sleep(seconds):
        found.slept_at.append(round(found.now_s, 6))
        found.now_s += seconds

    monkeypatch.setattr(storing, "time", SimpleNamespace(perf_counter=lambda: found.now_s, sleep=sleep))
    return found


def made(clock, takes_s):
    for number, seconds in enumerate(takes_s):
        clock.now_s += seconds
        yield bytes([number])


def test_it_pauses_after_each_millisecond_of_work(clock):
    assert list(storing.letting_others_go_on(made(clock, [0.0004] * 5))) == [bytes([n]) for n in range(5)]
    assert clock.slept_at == [0.0012]


def test_a_long_piece_is_followed_by_a_pause_of_its_own(clock):
    list(storing.letting_others_go_on(made(clock, [0.003, 0.003])))
    assert clock.slept_at == [0.003, 0.0061]


def test_many_small_pieces_are_not_held_up(clock):
    assert len(list(storing.letting_others_go_on(b"" for _ in range(900)))) == 900
    assert clock.slept_at == []
