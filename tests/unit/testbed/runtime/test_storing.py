"""The thread that writes checkpoints lets the slot's own go on."""

from types import SimpleNamespace

import pytest

from experiments.errors import EnvironmentFailure
from testbed.core.checkpoints import Checkpoint
from testbed.core.effects import Store
from testbed.runtime.slot import storing
from testbed.stores.store import MemoryStore


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


class AtOnce:
    """Does jobs as they come, in the caller's thread."""

    def submit(self, job, then):
        then(job())


@pytest.mark.parametrize("earlier_counts", [False, True])
def test_a_checkpoint_that_is_written_again_tells_how_long_ago_it_was_taken(monkeypatch, earlier_counts):
    now = {"s": 100.0}
    monkeypatch.setattr(storing.time, "monotonic", lambda: now["s"])
    store, refusals = MemoryStore(), [EnvironmentFailure("the disk is full", "wait")]

    def put(key, pieces, real=store.put):
        if refusals:
            raise refusals.pop()
        return real(key, pieces)

    monkeypatch.setattr(store, "put", put)
    told = storing.Storing(store, AtOnce(), lambda *_: None, by_batch=True)
    told.restart(0)
    effect = Store(Checkpoint(0, 2, 1, {}, {}), {"a/state-1-1": lambda: [b"content"]})
    told.store(0, effect)
    now["s"] += 30.0
    if earlier_counts:
        told.on_counted(0, 1)
    told.store(0, effect)
    (kept,) = told.take_kept()
    assert (kept.seconds, kept.age_s) == (30.0, 30.0)
