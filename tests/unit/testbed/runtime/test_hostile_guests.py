"""A server of a run on a real port, and who should not be there: the run goes on, and true slots still join."""

import json
import secrets
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import fields, replace
from typing import get_args

import pytest

from journal.reader import raw_entries
from journal.writer import Journal
from testbed.core.checkpoints import OUTSIDE, Checkpoint
from testbed.core.control import (
    Go,
    NotStored,
    Passed,
    Published,
    Ready,
    Stored,
    ToCoordinator,
    TurnedTentative,
    Unreadable,
    encode_message,
)
from testbed.core.partition.counts_and_watermarks import Tally
from testbed.output_log.recorded import COUNTS
from testbed.runtime.network import messages
from testbed.runtime.network.messages import (
    SLOT,
    Broken,
    Cost,
    Hello,
    Kept,
    Loaded,
    Reached,
    Refused,
    SlotError,
    SlotStatus,
    Stop,
)
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.network.wire import BLOCK, LONGEST_BLOCK, NO_PARTITION, block
from testbed.runtime.server.server import Server
from testbed.runtime.slot.slot import Slot
from testbed.runtime.stillness import Counts
from testbed.stores.store import UnreadableObject
from tests.unit.testbed.runtime.connections import is_cut_off
from tests.unit.testbed.runtime.hostile import disfigured, mutated, randoms
from tests.unit.testbed.runtime.serving import serve_turns, serve_until
from tests.unit.testbed.small_job import HERE, JOB

SECRET = RunSecret.draw()
GREETING = SLOT.of(SECRET.token)


def told(message):
    return block(NO_PARTITION, messages.encode(message))


def plain(name, **fields):
    return block(NO_PARTITION, json.dumps([name, fields]).encode())


def reported(message):
    return block(0, encode_message(message))


HELLO = told(Hello((HERE, 1), 0, 0))
TALLY = vars(Tally(records_in=5))
COST = Cost(False, 0.5, 0.25, 5, 0, 100)
LOG = {**dict.fromkeys(COUNTS, 1.0), "check_s": 0.25}
STATUS = json.loads(messages.encode(SlotStatus(1)))[1]
STRANGERS = {
    "a wrong token": SLOT.of(secrets.token_bytes(32)) + HELLO,
    "half a character": plain("Hello", token="\ud800", address=[HERE, 1], task=0, attempt=0),
    "a hundred thousand brackets": block(NO_PARTITION, b"[" * 100_000),
    "the longest block": BLOCK.pack(LONGEST_BLOCK, NO_PARTITION) + bytes(100_000),
    "an error": told(SlotError("why")) * 20,
    "a request": b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n",
}
GUESTS = {
    "a hundred thousand brackets": block(NO_PARTITION, b"[" * 100_000),
    "a block too long": BLOCK.pack(LONGEST_BLOCK + 1, NO_PARTITION),
    "half a character": plain("SlotError", error="\ud800"),
    "a status before a hello": told(SlotStatus(1)),
    "a report before a hello": reported(Ready(0, 1)),
    "nonsense": b"\xff" * 100,
    "an address that is a name": told(Hello(("localhost", 1), 0, 0)),
    "a port that is none": told(Hello((HERE, 99_999), 0, 0)),
    "a list of numbers for an address": plain("Hello", address=[1, 2], task=0, attempt=0),
    "a task that is a list": plain("Hello", address=[HERE, 1], task=[], attempt=0),
}
JOINED = {
    "a second hello": HELLO,
    "a status with a list for a dictionary": plain("SlotStatus", **STATUS | {"tallies": []}),
    "a status of a partition that is none": told(SlotStatus(1, {99: {}})),
    "a tally without counts": told(SlotStatus(1, {0: {}})),
    "a tally without what was sent": told(SlotStatus(1, {0: {"records_in": 0}})),
    "a tally with a count of its own": told(SlotStatus(1, {0: TALLY | {"cookies": 1}})),
    "a tally with a text for a count": plain("SlotStatus", **STATUS | {"tallies": {"0": TALLY | {"stale": "no"}}}),
    "a tally with half a record": plain("SlotStatus", **STATUS | {"tallies": {"0": TALLY | {"records_in": 0.5}}}),
    "a tally below 0": told(SlotStatus(1, {0: TALLY | {"records_in": -1}})),
    "the cost of a partition that is none": told(SlotStatus(1, costs={99: COST})),
    "a cost below 0": told(SlotStatus(1, costs={0: replace(COST, input_bytes=-1)})),
    "a cost in CPU time below 0": told(SlotStatus(1, costs={0: replace(COST, processing_s=-0.1)})),
    "a cost in CPU time without end": told(SlotStatus(1, costs={0: replace(COST, checkpoint_s=1e300)})),
    "a log without counts": told(SlotStatus(1, logs={0: {}})),
    "a log without its time": told(SlotStatus(1, logs={0: dict.fromkeys(COUNTS, 1.0)})),
    "a log with a count of its own": told(SlotStatus(1, logs={0: LOG | {"cookies": 1.0}})),
    "a log with half a window": told(SlotStatus(1, logs={0: LOG | {"open_windows": 0.5}})),
    "a log below 0": told(SlotStatus(1, logs={0: LOG | {"records": -1.0}})),
    "a log too large for a table": told(SlotStatus(1, logs={0: LOG | {"bytes": 1e300}})),
    "a log whose time is below 0": told(SlotStatus(1, logs={0: LOG | {"check_s": -0.1}})),
    "CPU time below 0": told(SlotStatus(1, cpu_s=-1.0)),
    "CPU time of more than all years": told(SlotStatus(1, cpu_s=1e308)),
    "a place of a partition that is none": told(SlotStatus(1, {}, {-1: 0})),
    "a checkpoint of a partition that is none": told(SlotStatus(1, kept=(Kept(99, 1, 0.1, 1, False),))),
    "a checkpoint of tomorrow": told(SlotStatus(1, kept=(Kept(0, 1, 0.1, 1, False, age_s=-1.0),))),
    "a state that was loaded for a partition that is none": told(SlotStatus(1, loaded=(Loaded(99, 1, 0.1, 1, 0.1),))),
    "the arrival of a partition that is none": told(SlotStatus(1, reached=(Reached(99, 1, 1, 1, 0.1),))),
    "an arrival years ago": told(SlotStatus(1, reached=(Reached(0, 1, 1, 1, 1e9),))),
    "a refusal of a partition that is none": told(SlotStatus(1, refused=(Refused(99, 1, "no room"),))),
    "a wait for the store below 0": told(SlotStatus(1, store_s=-1.0)),
    "progress on a channel that is none": told(SlotStatus(1, progress={0: {99: 1}})),
    "no number for CPU time": plain("SlotStatus", **STATUS | {"cpu_s": float("nan")}),
    "an empty report": block(0, b"{}"),
    "a report of a partition that is none": reported(Ready(99, 1)),
    "another's order": reported(Go(1)),
    "a checkpoint of nobody": reported(Stored(1, Checkpoint(99, 1, 1, {}, {}))),
    "a checkpoint without its channels": reported(Stored(1, Checkpoint(0, 1, 1, {}, {}))),
    "a checkpoint with a path for an object": reported(Stored(1, Checkpoint(0, 1, 1, {0: 1}, {}, ("../../file",)))),
}


class Run:
    """A server in this thread, and the journal that it writes."""

    def __init__(self, folder, **changes):
        self._path = folder / "journal.jsonl"
        self.job = replace(JOB, store=str(folder / "store"), **changes)
        self.server = Server(self.job, SECRET.token, HERE, Journal(self._path))
        self.close = self.server.close

    def events(self, *kinds):
        return [entry for entry in raw_entries(self._path) if entry["event"] in kinds]

    def until(self, condition):
        serve_until(self.server, condition)

    def survives(self, data):
        """Somebody says this, and is cut off."""
        with socket.create_connection(self.server.address) as connection:
            connection.sendall(data)
            self.until(lambda: is_cut_off(connection))

    def takes_slots(self):
        """As many as the job has join, and an epoch begins."""
        before = len(self.events("recovering"))
        with ExitStack() as stack:
            for _ in range(JOB.slots):
                slot = stack.enter_context(socket.create_connection(self.server.address))
                slot.sendall(GREETING + HELLO)
            self.until(lambda: len(self.events("recovering")) > before)


@pytest.fixture
def run(tmp_path):
    with closing(Run(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("data", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_is_cut_off_and_leaves_no_trace(run, data):
    run.survives(data)
    assert run.events("guest-refused", "slot-failed", "worker-joined", "worker-lost") == []
    run.takes_slots()


@pytest.mark.parametrize("data", GUESTS.values(), ids=GUESTS)
def test_a_guest_that_is_no_slot_is_refused_and_told_of(run, data):
    run.survives(GREETING + data)
    (refused,) = run.events("guest-refused")
    assert refused["why"]
    run.takes_slots()


@pytest.mark.parametrize("data", JOINED.values(), ids=JOINED)
def test_a_slot_that_says_what_none_would_is_lost_and_told_of(run, data):
    run.survives(GREETING + HELLO + data)
    (lost,) = run.events("worker-lost")
    assert any(each in lost["why"] for each in ("not a message", "no slot of this run", "second hello")), lost["why"]
    run.takes_slots()


def test_two_reports_at_once_are_taken(tmp_path):
    """They arrive in the same moment, and no CPU time by the second follows from them."""
    reports = told(SlotStatus(1, {0: TALLY})) + told(SlotStatus(1, {0: TALLY | {"records_in": 6}}, cpu_s=1.0))
    with closing(Run(tmp_path, protocol="batch-aligned", recovery="query-centric")) as run:
        run.survives(GREETING + HELLO + reports + told(SlotStatus(1, {99: {}})))
        assert "no slot of this run" in run.events("worker-lost")[0]["why"]
        run.takes_slots()


def test_who_says_nothing_is_cut_off(run, monkeypatch):
    with monkeypatch.context() as patch:  # slots that come later have their time
        patch.setattr("testbed.runtime.network.admission.GREETING_LIMIT_S", 0.05)
        run.survives(GREETING[:-1])
    run.takes_slots()


FULL = SlotStatus(
    epoch=1,
    tallies={0: TALLY},
    positions={0: 7},
    finished=(3,),
    kept=(Kept(0, 1, 0.5, 100, True),),
    sent_bytes=12,
    cpu_s=1.0,
    idle_s=0.1,
    checkpoint_s=0.1,
    ended=True,
    caught_up=True,
    holding=True,
    counts=Counts(1, 2, 3, 3, True),
    copied={0: 7},
    progress={0: {OUTSIDE: 7}},
    loaded=(Loaded(0, 1, 0.1, 100, 0.1),),
    reached=(Reached(0, 1, 5, 100, 0.1),),
    logs={0: LOG},
    costs={0: COST},
    refused=(Refused(0, 1, "no room"),),
    store_s=0.1,
)


def good(run):
    """Every message that a slot may say of this run, but its last words: those end a run if there are many."""
    source = run.server._layout.partitions[0]
    stored = Checkpoint(0, 1, 1, {each.id: 1 for each in source.outputs}, {}, position=7)
    reports = (
        Ready(0, 1),
        Unreadable(0, 1, "bids.0/state-1-1"),
        Stored(1, stored),
        NotStored(0, 1, 1),
        TurnedTentative(5, 1, 0),
        Published(5, 1),
        Passed(0, 1, 1),
    )
    return [HELLO, told(FULL), told(Broken(1, 0)), *map(reported, reports)]


def test_good_messages_are_of_every_kind_and_have_every_field(run):
    said = {json.loads(data[BLOCK.size :])[0] for data in good(run)}
    assert said == {kind.__name__ for kind in (Hello, SlotStatus, Broken, *get_args(ToCoordinator))}
    empty = SlotStatus(0)
    assert [each.name for each in fields(FULL) if getattr(FULL, each.name) == getattr(empty, each.name)] == []


def test_good_messages_are_taken(run):
    """So each of them is one change away from a hostile one, and no more."""
    with socket.create_connection(run.server.address) as connection:
        connection.sendall(GREETING + b"".join(good(run)))
        guests = run.server._guests.values()
        run.until(lambda: any(each.status == FULL for each in guests))
        assert run.events("guest-refused", "worker-lost") == []


def refaced(random, data):
    """A message with another value in it, and a block that says how long that is."""
    content = disfigured(random, data[BLOCK.size :])
    return BLOCK.pack(len(content), BLOCK.unpack_from(data)[1]) + content


RECOVERIES = {
    "global": {},
    "passive": {"protocol": "batch-aligned", "recovery": "passive"},
    "query-centric": {"protocol": "batch-aligned", "recovery": "query-centric"},
}


@pytest.mark.parametrize("changes", RECOVERIES.values(), ids=RECOVERIES)
def test_no_message_ends_the_server(tmp_path, changes):
    """Some of a run, some not; each on a connection of its own, beside the others."""
    with ExitStack() as stack, closing(Run(tmp_path, **changes)) as run:
        said = good(run)
        for number, random in enumerate(randoms(400)):
            change = random.choice([refaced, mutated])
            begun = random.choice([b"", GREETING, GREETING + HELLO, mutated(random, GREETING)])
            connection = stack.enter_context(socket.create_connection(run.server.address))
            connection.sendall(begun + change(random, random.choice(said)))
            if number % 10 == 9:
                serve_turns(run.server, 3)
                stack.close()
        assert run.events("guest-refused")
        assert run.events("worker-lost")
        run.takes_slots()


@pytest.fixture
def busy(monkeypatch, tmp_path):
    """A run with slots as a Spark task runs them, but in threads, and strangers at every door."""
    monkeypatch.setenv("SPARK_LOCAL_IP", HERE)
    monkeypatch.setattr("testbed.runtime.network.admission.GREETING_LIMIT_S", 0.5)
    endless = replace(JOB.input, events=None, start_ns=time.time_ns())  # else it may end before all are cut off
    run = Run(
        tmp_path,
        input=endless,
        checkpoint_interval_s=0.2,
        silence_limit_s=60,  # a slot that a busy machine holds up must not be between two connections at the end
        output=replace(JOB.output, folder=str(tmp_path / "output")),
    )
    with ExitStack() as stack:
        slots = [Slot(run.job, run.server.address, SECRET, task, 0) for task in range(JOB.slots)]
        doors = [run.server.address, *(slot._mesh.address for slot in slots)]
        run.idle = [stack.enter_context(socket.create_connection(door)) for door in doors]
        for door in doors:
            for data in STRANGERS.values():
                stack.enter_context(socket.create_connection(door)).sendall(data)
        threads = [threading.Thread(target=slot.run, daemon=True) for slot in slots]
        for thread in threads:
            thread.start()
        yield run
        run.close()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()


def test_true_slots_work_while_strangers_knock(busy):
    busy.until(lambda: busy.events("round-stored") and all(map(is_cut_off, busy.idle)))


def test_what_slots_store_has_the_run_s_seal_and_nobody_writes_the_secret(busy, tmp_path):
    """The slots go on meanwhile, so that what is listed may be gone when it is read."""
    busy.until(lambda: busy.events("round-stored"))
    store, found = busy.job.object_store(SECRET.store_key), []
    for key in store.keys():  # noqa: SIM118
        with suppress(UnreadableObject):
            found.append(store.get(key))
    assert found
    for path in tmp_path.rglob("*"):
        with suppress(OSError):
            found.append(path.read_bytes())
    for secret in (SECRET.token, SECRET.store_key):
        assert not any(secret in each or secret.hex().encode() in each for each in found)
    assert repr(SECRET) == "RunSecret()"


@pytest.mark.parametrize("data", [b"\xff" * 9, block(NO_PARTITION, b"[]"), block(0, b"[]"), reported(Ready(0, 1))])
def test_a_slot_that_hears_nonsense_comes_again(monkeypatch, tmp_path, data):
    """As from a coordinator whose connection is damaged: that is no reason for a slot to end."""
    monkeypatch.setenv("SPARK_LOCAL_IP", HERE)
    with socket.create_server((HERE, 0)) as coordinator:
        slot = Slot(replace(JOB, store=str(tmp_path)), coordinator.getsockname(), SECRET, 0, 0)
        thread = threading.Thread(target=slot.run, daemon=True)
        thread.start()
        coordinator.settimeout(120)
        for answer in (data, told(Stop())):
            connection, _ = coordinator.accept()
            with connection:
                connection.settimeout(120)
                assert connection.recv(len(GREETING), socket.MSG_WAITALL) == GREETING
                connection.sendall(answer)
                while answer is data and connection.recv(1 << 16):
                    pass
                thread.join(120 if answer is not data else 0)
        assert not thread.is_alive()
