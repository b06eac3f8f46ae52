"""Who reaches whom: what is concluded from datagrams that were counted, and the counting itself, on loopback."""

import contextlib
import json

import pytest

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import Direction
from infra import programs
from infra.cluster import Handle, Host, Role
from infra.remote import reach
from infra.remote.json_lines import LONGEST_LINE
from infra.remote.reach import Reach
from infra.remote.requests import Listen, SendWord, TakeHeard
from infra.strikes import partition
from infra.strikes.datagrams import MOST_DATAGRAMS, DatagramListener, send
from infra.strikes.partition import rules

ADDRESS, OTHER = "127.0.251.8", "127.0.251.9"
ONE, TWO = (Host(name, address, Role.WORKER, 1, 512) for name, address in (("one", ADDRESS), ("two", OTHER)))
BOTH, IN, OUT = Direction


@pytest.mark.parametrize(
    ("came", "went", "through", "lost"),
    [
        ({"a": 0, "b": 0}, {"a": 0, "b": 0}, {BOTH: 0, IN: 0, OUT: 0}, {BOTH: 0, IN: 2, OUT: 2, None: 2}),
        ({"a": 5, "b": 0}, {"a": 5, "b": 5}, {BOTH: 15, IN: 5, OUT: 10}, {BOTH: 0, IN: 0, OUT: 1, None: 1}),
        ({"a": 5, "b": 0}, {"a": 0, "b": 1}, {BOTH: 6, IN: 5, OUT: 1}, {BOTH: 0, IN: 1, OUT: 1, None: 2}),
        ({}, {}, {BOTH: 0, IN: 0, OUT: 0}, {BOTH: 0, IN: 0, OUT: 0, None: 0}),
    ],
)
def test_packets_come_through_cut_directions_and_are_lost_in_open_ones(came, went, through, lost):
    found = Reach(came, went, doubtful=frozenset(), host_drops=False)
    assert {cut: found.through(cut) for cut in Direction} == through
    assert {cut: found.lost(cut) for cut in (*Direction, None)} == lost


def test_nothing_follows_from_what_a_host_loses_that_drops_packets_itself():
    found = Reach({"a": 0, "b": 0}, {"a": 0, "b": 5}, doubtful=frozenset({"a"}), host_drops=False)
    assert (found.lost(None), found.lost(Direction.IN), found.through(Direction.OUT)) == (1, 0, 5)


def test_words_are_counted_by_who_called_and_only_once():
    listener = DatagramListener(ADDRESS)
    assert send(OTHER, "worker2", [(ADDRESS, listener.port)], 3) == 3
    assert send(OTHER, "worker3", [(ADDRESS, listener.port), (ADDRESS, listener.port)], 1) == 2
    assert listener.received() == {"worker2": 3, "worker3": 2}
    assert listener.received() == {}
    listener.close()


def test_what_a_stranger_sends_counts_for_no_host():
    """Any user of a machine may send datagrams to its ports, and hosts' names are no secret."""
    found = reach.between(CutOff(), Handle("run-1", "local", "s1-0", "/"), ONE, [TWO])
    assert found == Reach({"two": 0}, {"two": 0}, frozenset(), host_drops=False)


@pytest.mark.parametrize(
    ("drops", "delays", "healed_lost", "struck_lost"),
    [((), (), 1, 1), ((), (TWO,), 0, 0), ((), (ONE,), 0, 0), ((TWO,), (), 0, 0), ((ONE,), (), 0, 1)],
    ids=["nobody", "the other delays", "the host delays", "the other drops", "the host drops"],
)
def test_what_another_host_or_another_fault_drops_or_a_host_delays_is_not_lost(drops, delays, healed_lost, struck_lost):
    """After a heal the host drops nothing, unless another fault has struck it; in a partition it does."""
    found = reach.between(CutOff(drops, delays), Handle("run-1", "local", "s1-0", "/"), ONE, [TWO])
    assert (found.lost(None), found.lost(Direction.IN)) == (healed_lost, struck_lost)


@pytest.mark.parametrize(("lost_at", "own_ports"), [(Listen, 0), (SendWord, 1)])
def test_the_others_close_their_ports_when_the_host_is_lost_while_it_is_tried(lost_at, own_ports):
    """Their agents live on, through thousands of such faults; that of the host has ended."""

    class LosesTheHost(CutOff):
        def ask(self, handle, host, request, within_s=1.0):
            if host is ONE and isinstance(request, lost_at):
                raise EnvironmentFailure("one is switched off", "wait until it is healed")
            if isinstance(request, TakeHeard):
                self.listeners.pop(request.port).close()
                return {}, False, False
            return super().ask(handle, host, request, within_s)

    hosts = LosesTheHost()
    with pytest.raises(EnvironmentFailure, match="one is switched off"):
        reach.between(hosts, Handle("run-1", "local", "s1-0", "/"), ONE, [TWO])
    assert len(hosts.listeners) == own_ports
    for listener in hosts.listeners.values():
        listener.close()


class CutOff:
    """Agents whose own datagrams are dropped, while a stranger sends the name of each of them to everybody."""

    def __init__(self, drops=(), delays=()):
        self.listeners, self.drops, self.delays = {}, drops, delays

    def ask(self, handle, host, request, within_s=1.0):
        match request:
            case Listen():
                listener = DatagramListener(host.address)
                self.listeners[listener.port] = listener
                return listener.port
            case SendWord(_, to, times):
                return send(host.address, host.name, to, times)
            case TakeHeard(port):
                listener = self.listeners.pop(port)
                words = listener.received()
                listener.close()
                assert words, "the stranger was heard"
                return words, host in self.drops, host in self.delays


@pytest.mark.parametrize(
    ("said", "counted"),
    [(lambda number: str(number).encode(), MOST_DATAGRAMS), (lambda number: f"é\0-{number}".encode("latin-1"), 0)],
    ids=["words", "anything"],
)
def test_a_flood_of_datagrams_is_read_to_an_end(monkeypatch, said, counted):
    """What comes while it is read would keep it from ending, and each word takes room."""
    listener, taken = DatagramListener(ADDRESS), []

    class Flooded:
        def recv(self, most):
            taken.append(most)
            return said(len(taken)).rjust(200, b"x")[-most:]

    with contextlib.closing(listener):
        monkeypatch.setattr(listener, "_socket", Flooded())
        found = listener.received()
        monkeypatch.undo()
    assert (len(taken), len(found)) == (MOST_DATAGRAMS, counted)
    assert len(json.dumps(found)) < LONGEST_LINE / 2, "an answer that is longer ends the session"


def test_what_the_system_refuses_to_send_is_not_sent():
    assert send(OTHER, "worker-2", [("255.255.255.255", 9)], 3) == 0, "a broadcast, which is not part of a test"


def test_a_machine_without_the_program_for_it_drops_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "SBIN", str(tmp_path))
    assert partition.rules_in_force() == 0
    assert not partition.has_table()
    assert partition.refusal() == "unshare: No such file or directory"


def test_rules_name_the_peers_of_their_direction_and_spare_the_machines_ports():
    lines = rules(("198.18.0.3", "198.18.0.2"), Direction.IN, {22, 2222}).splitlines()
    assert lines == [
        "add rule ip aftershock incoming iif lo accept",
        "add rule ip aftershock incoming tcp dport { 22, 2222 } accept",
        "add rule ip aftershock incoming ip saddr { 198.18.0.2, 198.18.0.3 } drop",
    ]
    assert rules((), Direction.BOTH, ()).splitlines() == [
        "add rule ip aftershock incoming iif lo accept",
        "add rule ip aftershock incoming drop",
        "add rule ip aftershock outgoing oif lo accept",
        "add rule ip aftershock outgoing drop",
    ]
