"""The thread that writes checkpoints lets the slot's own go on."""

from types import SimpleNamespace

import pytest

from experiments.errors import EnvironmentFailure
from testbed.core.checkpoints import Checkpoint
from testbed.core.effects import Store
from testbed.runtime.network.messages import Refused
from testbed.runtime.slot import storing
from testbed.stores.store import MemoryStore
from tests.unit.testbed.runtime.backgrounds import AtOnce, Later


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


REFUSAL = EnvironmentFailure("the disk is full", "wait")
CONTENT = {"a/state-1-1": lambda: [b"content"]}


@pytest.fixture
def refusing(monkeypatch):
    """A store that refuses everything."""

    def put(_key, _pieces):
        raise REFUSAL

    store = MemoryStore()
    monkeypatch.setattr(store, "put", put)
    return store


@pytest.fixture
def now(monkeypatch):
    """The monotonic clock, which stands still."""
    found = SimpleNamespace(s=100.0)
    monkeypatch.setattr(storing.time, "monotonic", lambda: found.s)
    return found


def test_a_store_that_refuses_a_checkpoint_for_long_ends_the_slot_with_the_reason(now, refusing):
    """Else it would be asked again without end, and the journal would not say so."""
    heard = []
    slot = storing.Storing(refusing, AtOnce(), lambda *given: heard.append(given[-1]), by_batch=True)
    slot.restart(0)
    slot.store(0, Store(Checkpoint(0, 2, 1, {}, {}), CONTENT))
    now.s += storing.PATIENCE_S - 1.0
    slot.store(0, Store(Checkpoint(0, 2, 1, {}, {}), CONTENT))
    now.s += 1.0
    slot.store(0, Store(Checkpoint(0, 3, 1, {}, {}), CONTENT))
    assert heard == [2, 2, 3], "each may be refused for as long"
    with pytest.raises(EnvironmentFailure, match="the disk is full"):
        slot.store(0, Store(Checkpoint(0, 2, 1, {}, {}), CONTENT))


@pytest.mark.parametrize("by_batch", [False, True])
def test_a_checkpoint_that_the_store_refuses_is_told_once_with_the_reason(refusing, by_batch):
    slot = storing.Storing(refusing, AtOnce(), lambda *_: None, by_batch=by_batch)
    slot.restart(3)
    slot.store(3, Store(Checkpoint(3, 2, 1, {}, {}), CONTENT))
    assert slot.take_refused() == (Refused(3, 2, str(REFUSAL)),)
    assert slot.take_refused() == ()


def test_by_batches_sources_go_on_for_as_long_with_a_retry_as_with_a_first_attempt(now, refusing):
    """The next checkpoint needs input, and how long the store has refused does not tell how long it takes to answer."""
    thread, interval_s = Later(), 10.0
    slot = storing.Storing(refusing, thread, lambda *_: None, by_batch=True)
    slot.restart(0)
    for _ in range(2):
        slot.store(0, Store(Checkpoint(0, 2, 1, {}, {}), CONTENT))
        for waited_s, lags in ((20.0, False), (1.0, True)):
            now.s += waited_s
            slot.on_clock(now.s, interval_s)
            assert slot.lags is lags
        thread.go_on()
        slot.on_clock(now.s, interval_s)
        assert not slot.lags


@pytest.mark.parametrize("ends", [lambda slot: slot.restart(0), lambda slot: slot.clear()], ids=["rolls-back", "ends"])
def test_what_is_written_when_its_life_is_over_is_deleted(ends):
    """A write that hangs may end after the driver has deleted all objects of the run."""
    store, heard = MemoryStore(), []
    slot = storing.Storing(store, AtOnce(), lambda *given: heard.append(given), by_batch=False)
    slot.restart(0)

    def hanging():
        yield b"content"
        ends(slot)

    slot.store(0, Store(Checkpoint(0, 1, 1, {}, {}), {"a/state-1-1": hanging}))
    assert (store.keys(), heard) == ([], [])
