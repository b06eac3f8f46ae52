"""The coordinator's side of connections: slots that fail, strangers, deaths and broken links."""

import json
import secrets
import socket
import struct
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from experiments.errors import EnvironmentFailure
from journal.reader import raw_entries
from journal.writer import Journal
from testbed.core.control import Ready, encode_message
from testbed.core.effects import Sweep
from testbed.operators import Source
from testbed.runtime.network import messages
from testbed.runtime.network.messages import (
    SLOT,
    Broken,
    Drain,
    Hello,
    Kept,
    Loaded,
    Reached,
    Refused,
    SlotError,
    SlotStatus,
    Stop,
)
from testbed.runtime.network.secret import TOKEN_BYTES
from testbed.runtime.network.wire import NO_PARTITION, block
from testbed.runtime.server import guest as guest_module
from testbed.runtime.server import server as server_module
from testbed.runtime.server.server import BROKEN_GRACE_S, MOST_FAILURES, Server
from testbed.runtime.slot.slot import tell_failure
from tests.unit.testbed.runtime.serving import serve_turns, serve_until
from tests.unit.testbed.small_job import HERE, JOB

TOKEN = secrets.token_bytes(TOKEN_BYTES)


def server_in(folder, **changes):
    job = replace(JOB, store=str(folder / "store"), **changes)
    return Server(job, TOKEN, HERE, Journal(folder / "journal.jsonl"))


@pytest.fixture
def server(tmp_path):
    with closing(server_in(tmp_path)) as made:
        yield made


def events_in(folder, event):
    return [entry for entry in raw_entries(folder / "journal.jsonl") if entry["event"] == event]


@contextmanager
def guest(server):
    """A connection that has greeted."""
    with socket.create_connection(server.address) as connection:
        connection.sendall(SLOT.of(TOKEN))
        yield connection


def say(slot, *words):
    slot.sendall(b"".join(block(NO_PARTITION, messages.encode(each)) for each in words))


@contextmanager
def slots_of(server, folder, count):
    """Slots that join one after the other."""
    with ExitStack() as stack:
        slots = []
        for task in range(count):
            slots.append(stack.enter_context(guest(server)))
            say(slots[-1], Hello((HERE, 1), task, 0))
            serve_until(server, lambda: len(events_in(folder, "worker-joined")) == len(slots))
        yield slots


def test_a_recovery_begins_though_all_of_its_slots_are_gone_by_now(server, tmp_path):
    server._begin_recovery(Sweep(1, frozenset(), frozenset()))
    assert [(each["epoch"], each["restored"]) for each in events_in(tmp_path, "recovering")] == [(1, [])]


def test_slots_that_do_nothing_but_fail_end_the_run_with_their_error(server, tmp_path):
    """As of a state that can't be serialised, which another try does not change."""
    words = [SlotError("BadInput: state of count.0: not usable")] * MOST_FAILURES
    with guest(server) as slot:
        say(slot, Hello((HERE, 1), 0, 0), *words)
        with pytest.raises(EnvironmentFailure, match=r"fail again and again: BadInput: state of count\.0"):
            serve_until(server, lambda: False)
    assert len(events_in(tmp_path, "slot-failed")) == MOST_FAILURES


@pytest.mark.parametrize(("slots", "most"), [(2, MOST_FAILURES), (12, 24)])
def test_slots_that_cannot_even_begin_end_the_run_too_but_not_before_each_has_tried_again(tmp_path, slots, most):
    with closing(server_in(tmp_path, slots=slots, parallelism=slots)) as server:
        for number in range(most):
            serve_until(server, lambda number=number: len(events_in(tmp_path, "slot-failed")) == number)
            tell_failure(server.address, TOKEN, ModuleNotFoundError("No module named 'boto3'"))
        with pytest.raises(EnvironmentFailure, match="again and again: ModuleNotFoundError: No module named 'boto3'"):
            serve_until(server, lambda: False)


def test_all_slots_hear_of_the_end_though_one_has_just_died(tmp_path):
    server = server_in(tmp_path)
    with slots_of(server, tmp_path, 2) as (dying, living):
        dying.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed with a reset
        dying.close()
        server.close()
        heard = b"".join(iter(lambda: living.recv(1 << 16), b""))
    assert messages.encode(Stop()) in heard


def test_a_connection_that_breaks_while_an_earlier_break_is_remembered_is_known(server, tmp_path):
    with slots_of(server, tmp_path, 2) as (staying, leaving), guest(server) as coming:
        serve_until(server, lambda: events_in(tmp_path, "recovering"))
        first = events_in(tmp_path, "recovering")[-1]["epoch"]
        say(staying, Broken(first, 1))
        leaving.close()
        say(coming, Hello((HERE, 1), 0, 1))
        serve_until(server, lambda: events_in(tmp_path, "recovering")[-1]["epoch"] > first)
        say(staying, Broken(events_in(tmp_path, "recovering")[-1]["epoch"], 1))
        serve_until(server, lambda: any("broke" in lost["why"] for lost in events_in(tmp_path, "worker-lost")))


def test_a_break_between_two_that_are_there_counts_while_a_third_is_away(server, tmp_path):
    with slots_of(server, tmp_path, 2) as (staying, leaving):
        serve_until(server, lambda: events_in(tmp_path, "recovering"))
        (own,) = (slot for slot, name in server._coordinator.placement.hosts.items() if name == "slot-1")
        say(staying, Broken(1, own))
        serve_until(server, lambda: server._broken)
        leaving.close()
        serve_until(server, lambda: any("broke" in lost["why"] for lost in events_in(tmp_path, "worker-lost")))


class Heard:
    """What a guest has heard so far."""

    def __init__(self, slot):
        self._slot, self._bytes = slot, b""
        slot.setblocking(False)

    def everything(self):
        with suppress(BlockingIOError):
            self._bytes += self._slot.recv(1 << 16)
        return self._bytes

    def has(self, message):
        return messages.encode(message) in self.everything()


def test_a_run_ends_where_the_furthest_source_is_once_all_have_caught_up_and_stopped(server, tmp_path):
    with slots_of(server, tmp_path, 2) as (first, second):
        serve_until(server, lambda: events_in(tmp_path, "recovering"))
        partitions = JOB.layout().partitions
        first.sendall(b"".join(block(p.number, encode_message(Ready(p.number, 1))) for p in partitions))
        serve_until(server, lambda: events_in(tmp_path, "ready"))
        heard, sources = Heard(first), [p.number for p in partitions if isinstance(p.element, Source)]
        server.drain()
        say(first, SlotStatus(1, positions={sources[0]: 10}, caught_up=True))
        say(second, SlotStatus(1))
        serve_until(server, lambda: all(each.status.epoch == 1 for each in server._guests.values()))
        serve_turns(server, 5)
        assert not heard.has(Drain({})), "the other has yet to make again what is out"
        say(second, SlotStatus(1, caught_up=True))
        serve_until(server, lambda: heard.has(Drain({})))
        say(first, SlotStatus(1, positions={sources[0]: 12}, caught_up=True, holding=True))
        say(second, SlotStatus(1, positions={sources[1]: 7, sources[2]: 8}, caught_up=True, holding=True))
        serve_until(server, lambda: heard.has(Drain({0: 12, 1: 7, 2: 8})))


def test_where_sources_end_is_told_before_a_recovery_that_lets_them_go_on(server, three, tmp_path):
    """Both are in one record. A survivor that heard of the recovery first could read on past the end."""
    serve_until(server, lambda: events_in(tmp_path, "recovering"))
    heard = Heard(three[1])
    server._draining.ends = {0: 12, 1: 7, 2: 8}
    server.lose(server._guests["slot-1"], "just then")
    serve_until(server, lambda: b'["Peers",{"epoch":2' in heard.everything())
    serve_until(server, lambda: heard.has(Drain({0: 12, 1: 7, 2: 8})))
    told = heard.everything()
    assert told.index(messages.encode(Drain({0: 12, 1: 7, 2: 8}))) < told.index(b'["Peers",{"epoch":2')


def test_a_run_that_is_to_end_takes_a_checkpoint_at_once(tmp_path):
    with (
        closing(server_in(tmp_path, checkpoint_interval_s=1e4)) as server,
        slots_of(server, tmp_path, 2) as (slot, _),
    ):
        serve_until(server, lambda: events_in(tmp_path, "recovering"))
        slot.sendall(b"".join(block(p.number, encode_message(Ready(p.number, 1))) for p in JOB.layout().partitions))
        serve_until(server, lambda: events_in(tmp_path, "ready"))
        assert not events_in(tmp_path, "round-started")
        server.drain()
        serve_until(server, lambda: events_in(tmp_path, "round-started"))


def test_a_recovery_that_begins_as_the_last_slot_dies_is_told_to_nobody(server):
    for name in ("one", "two"):
        server._coordinator.on_joined(name)
    for name in ("one", "two"):
        server._coordinator.on_lost(name)
    assert not server._coordinator.placement.hosts
    server._carry_out()


@pytest.fixture
def three(server, tmp_path):
    """Two slots that host, and one that stands by, since it came last."""
    with slots_of(server, tmp_path, 3) as slots:
        yield slots


@pytest.fixture
def clock(monkeypatch):
    """The monotonic clock of the server and its guests, which stands still."""
    found = SimpleNamespace(s=time.monotonic())
    for each in (server_module, guest_module):
        monkeypatch.setattr(each, "time", SimpleNamespace(monotonic=lambda: found.s))
    return found


def busy_for(server, clock, monkeypatch, seconds, meanwhile):
    """The loss of the third slot keeps the coordinator busy for so long, such as with a plan."""

    def on_lost(worker, real=server._coordinator.on_lost):
        if worker == "slot-3":
            clock.s += seconds
            meanwhile()
        real(worker)

    monkeypatch.setattr(server._coordinator, "on_lost", on_lost)


def test_a_slot_is_not_silent_because_the_coordinator_was_too_busy_to_hear_it(
    server, three, clock, tmp_path, monkeypatch
):
    def speak():
        for each in three[:2]:
            say(each, SlotStatus(1))

    busy_for(server, clock, monkeypatch, 2 * JOB.silence_limit_s, speak)
    three[2].close()
    serve_until(server, lambda: events_in(tmp_path, "worker-lost"))
    serve_turns(server, 5)
    assert [each["worker"] for each in events_in(tmp_path, "worker-lost")] == ["slot-3"]


def test_a_death_explains_a_break_though_the_coordinator_was_too_busy_to_hear_of_it(
    server, three, clock, tmp_path, monkeypatch
):
    serve_until(server, lambda: events_in(tmp_path, "recovering"))
    busy_for(server, clock, monkeypatch, 2 * BROKEN_GRACE_S, three[1].close)
    say(three[0], Broken(1, 1))
    serve_until(server, lambda: server._broken)
    three[2].close()
    serve_until(server, lambda: len(events_in(tmp_path, "worker-lost")) == 2)
    assert {each["worker"] for each in events_in(tmp_path, "worker-lost")} == {"slot-2", "slot-3"}


def test_a_death_that_explains_one_break_of_a_slot_hides_no_other(tmp_path, clock):
    server = server_in(tmp_path, slots=3, protocol="batch-aligned", recovery="passive")
    with closing(server), slots_of(server, tmp_path, 3) as (staying, _, dying):
        serve_until(server, lambda: events_in(tmp_path, "recovering"))
        seats = {name: seat for seat, name in server._coordinator.placement.hosts.items()}
        say(staying, Broken(1, seats["slot-3"]), Broken(1, seats["slot-2"]))
        serve_until(server, lambda: server._broken)
        dying.close()
        serve_until(server, lambda: events_in(tmp_path, "worker-lost"))
        clock.s += BROKEN_GRACE_S
        serve_until(server, lambda: len(events_in(tmp_path, "worker-lost")) == 2)
    assert [each["worker"] for each in events_in(tmp_path, "worker-lost")] == ["slot-3", "slot-1"]


def test_a_break_with_a_slot_that_has_died_is_none_with_the_one_in_its_seat(tmp_path, clock):
    """The survivor hears of the death last, such as after a partition. No recovery begins before all are back."""
    server = server_in(tmp_path, slots=3, protocol="batch-aligned", recovery="blocking")
    with closing(server), slots_of(server, tmp_path, 3) as (staying, *_), guest(server) as new:
        serve_until(server, lambda: events_in(tmp_path, "recovering"))
        for name in ("slot-2", "slot-3"):
            server.lose(server._guests[name], "both at once")
        say(new, Hello((HERE, 1), 1, 1))
        serve_until(server, lambda: len(events_in(tmp_path, "worker-joined")) == 4)
        (seat,) = (seat for seat, name in server._coordinator.placement.hosts.items() if name == "slot-4")
        say(staying, Broken(1, seat), SlotStatus(1, idle_s=1.0))
        serve_until(server, lambda: server._guests["slot-1"].status.idle_s)
        clock.s += BROKEN_GRACE_S
        serve_turns(server, 3)
    assert [each["worker"] for each in events_in(tmp_path, "worker-lost")] == ["slot-2", "slot-3"]


def test_a_report_sums_up_the_slots_that_host_partitions(server, three, tmp_path):
    for slot in three:
        say(slot, SlotStatus(1, idle_s=1.0, positions={0: 5}))
    serve_until(server, lambda: all(each.status.idle_s for each in server._guests.values()))
    told = len(events_in(tmp_path, "progress"))
    serve_until(server, lambda: len(events_in(tmp_path, "progress")) > told)
    assert {"slots": 2, "idle_s": 2.0}.items() <= events_in(tmp_path, "progress")[-1].items()


def test_a_recovery_tells_what_was_lost_and_the_furthest_that_it_ever_was(server, three, tmp_path):
    say(three[0], SlotStatus(1, progress={0: {-1: 40}}))
    say(three[0], SlotStatus(1, progress={0: {-1: 30}}))
    serve_until(server, lambda: server._guests["slot-1"].status.progress == {0: {-1: 30}})
    three[0].close()
    serve_until(server, lambda: len(events_in(tmp_path, "recovering")) == 2)
    partitions = JOB.layout().partitions
    lost = [p.name for p in partitions if p.slot(JOB.slots) == 0]
    assert events_in(tmp_path, "worker-lost")[0]["partitions"] == lost
    unreported = {p.name: {} for p in partitions[1:]}
    first, second = (each["reached"] for each in events_in(tmp_path, "recovering"))
    assert (first, second) == ({}, {partitions[0].name: {"-1": 40}} | unreported)
    heard = Heard(three[2])
    serve_until(server, lambda: b'"reached":{"0":{"-1":40},"1":{}' in heard.everything())


def test_what_is_lost_again_before_anybody_was_told_of_its_recovery_is_not_told_as_restored(server, three, tmp_path):
    """Two slots are lost at the same look at the connections: what the one that stands by takes over goes with it."""
    serve_until(server, lambda: events_in(tmp_path, "recovering"))
    for name in ("slot-1", "slot-3"):
        server.lose(server._guests[name], "both at once")
    serve_until(server, lambda: len(events_in(tmp_path, "recovering")) > 1)
    lost = [set(each["partitions"]) for each in events_in(tmp_path, "worker-lost")]
    assert lost[0] == lost[1], "the second had taken over what the first one had"
    placed = {server._name(number) for number in server._coordinator.placement.placed}
    told = [set(each["restored"]) for each in events_in(tmp_path, "recovering")[1:]]
    assert placed
    assert all(each <= placed for each in told)


def test_what_waits_for_room_after_it_was_lost_again_is_neither_told_nor_awaited(tmp_path):
    """Its own slot has a worker, which has no room for it. Nobody has heard of the first recovery yet."""
    in_parts = {"protocol": "batch-aligned", "recovery": "query-centric"}
    with closing(server_in(tmp_path, **in_parts)) as server, slots_of(server, tmp_path, 3) as slots:
        serve_until(server, lambda: events_in(tmp_path, "recovering"))
        coordinator, heard = server._coordinator, Heard(slots[0])
        for name in ("slot-2", "slot-3"):
            server.lose(server._guests[name], "both at once")
        assert coordinator.epoch == 2, "the third slot took over what the second had"
        assert coordinator.down & coordinator.placement.placed, "the first slot is that of some"
        serve_until(server, lambda: len(events_in(tmp_path, "recovering")) == 2)
        assert events_in(tmp_path, "recovering")[1]["restored"] == []
        void = json.dumps(sorted(coordinator.down), separators=(",", ":")).encode()
        serve_until(server, lambda: b'"void":' + void in heard.everything())


def test_the_death_of_a_slot_takes_nothing_that_waits_there_for_room(tmp_path):
    in_parts = {"protocol": "batch-aligned", "recovery": "query-centric"}
    with closing(server_in(tmp_path, **in_parts)) as server, slots_of(server, tmp_path, 2):
        serve_until(server, lambda: events_in(tmp_path, "recovering"))
        coordinator = server._coordinator
        had = {server._name(number) for number in coordinator.placement.partitions_of("slot-1")}
        server.lose(server._guests["slot-2"], "first")
        assert coordinator.down & coordinator.placement.partitions_of("slot-1"), "they wait for room"
        server.lose(server._guests["slot-1"], "then")
        assert set(events_in(tmp_path, "worker-lost")[1]["partitions"]) == had


def test_the_death_of_a_slot_that_stands_by_takes_no_partitions(server, three, tmp_path):
    serve_until(server, lambda: events_in(tmp_path, "recovering"))
    three[2].close()
    serve_until(server, lambda: events_in(tmp_path, "worker-lost"))
    assert events_in(tmp_path, "worker-lost")[0]["partitions"] == []
    assert len(events_in(tmp_path, "recovering")) == 1


def test_what_a_slot_tells_of_the_past_has_its_moment_in_the_journal(server, three, tmp_path):
    now_ns = time.time_ns()
    told = SlotStatus(
        1,
        kept=(Kept(0, 1, 0.5, 10, False, age_s=30.0),),
        loaded=(Loaded(0, 1, 0.2, 10, age_s=20.0),),
        reached=(Reached(0, 1, 400, 800, age_s=10.0),),
    )
    say(three[0], told)
    serve_until(server, lambda: events_in(tmp_path, "partition-reached"))
    (kept,), (loaded,), (reached,) = (
        events_in(tmp_path, name) for name in ("checkpoint", "partition-loaded", "partition-reached")
    )
    moments_ns = (kept["taken_ns"], loaded["at_ns"], reached["at_ns"])
    assert [(at_ns - now_ns) / 1e9 for at_ns in moments_ns] == pytest.approx([-30, -20, -10], abs=5)
    assert (reached["records"], reached["size_bytes"], loaded["seconds"]) == (400, 800, 0.2)


def test_a_checkpoint_that_the_store_refuses_is_journalled_with_the_reason(server, three, tmp_path):
    say(three[0], SlotStatus(1, refused=(Refused(0, 4, "no room"),)))
    serve_until(server, lambda: events_in(tmp_path, "checkpoint-refused"))
    (told,) = events_in(tmp_path, "checkpoint-refused")
    assert (told["partition"], told["number"], told["error"]) == (JOB.layout().partitions[0].name, 4, "no room")


@pytest.mark.parametrize("spare", [0, 1, 2])
def test_output_may_leave_once_as_many_lines_follow_as_the_job_spares(tmp_path, spare):
    with closing(server_in(tmp_path, spare_lines=spare)) as server:
        history, stable = server._coordinator.history, []
        for number in range(1, 4):
            for each in history.line:
                history.add(replace(each, number=number, state_keys=(f"{each.partition}/state-{number}-1",)))
            stable.append(history.stable[0].number)
        assert stable == [max(0, number - spare) for number in range(1, 4)]
