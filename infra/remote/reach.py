"""Tests which hosts reach which: their agents send each other datagrams and count those that arrive."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import Direction
from infra.cluster import Handle, Host
from infra.remote.requests import AgentRequest, AnswerT, Listen, SendWord, TakeHeard
from infra.remote.session import Disconnected

DATAGRAMS = 5  # several, because a network may lose one; a single arrival is enough
WORD_BYTES = 16
UNDER_WAY_S = 0.1  # a datagram that takes longer counts as lost


class Asks(Protocol):
    """What carries a request to the agent of a host: `infra.remote.hosts.RemoteHosts`."""

    def ask(self, handle: Handle, host: Host, request: AgentRequest[AnswerT], within_s: float = ...) -> AnswerT:
        """Send a request to the agent of a host and return its answer; raises `EnvironmentFailure` without one."""
        ...


class ListenerLost(Disconnected):
    """The host's agent was replaced amid a test, since its connection was lost: what arrived there is not known."""

    def __init__(self) -> None:
        super().__init__("amid a test of its network")


@dataclass(frozen=True)
class Reach:
    """How many datagrams a host received from each of some other hosts (`came`), and they from it (`went`).

    `doubtful` names those of the others with which a loss proves nothing: they drop or delay packets themselves, or the
    host delays all that it sends. `host_drops` says whether the host itself drops packets.
    """

    came: Mapping[str, int]
    went: Mapping[str, int]
    doubtful: frozenset[str]
    host_drops: bool

    def through(self, cut: Direction) -> int:
        """How many datagrams arrived although their direction is cut."""
        incoming = sum(self.came.values()) if cut is not Direction.OUT else 0
        return incoming + (sum(self.went.values()) if cut is not Direction.IN else 0)

    def lost(self, cut: Direction | None) -> int:
        """How many of the others exchanged nothing in a direction that is open; `cut` None: both are open.

        A host on which nothing is cut, and which drops packets, has been struck by another fault: no loss counts then.
        """
        if cut is None and self.host_drops:
            return 0
        ways = ([self.came] if cut in (Direction.OUT, None) else []) + (
            [self.went] if cut in (Direction.IN, None) else []
        )
        return len({name for way in ways for name, count in way.items() if not count} - self.doubtful)


def between(hosts: Asks, handle: Handle, host: Host, others: Iterable[Host]) -> Reach:
    """Test both directions between a host and each of `others`. Hosts that stop answering during the test are left out.

    Raises `ListenerLost` if the agent of the host itself is replaced meanwhile: the test can be made again.

    Each host calls by a word that is drawn for this test: every user of its machine could send datagrams in its name.
    A loss is not noticed as doubtful if the fault that causes it strikes and is undone within this test.
    """
    ports = {other: port for other in others if (port := _listening(hosts, handle, other)) is not None}
    words = {each.name: secrets.token_hex(WORD_BYTES) for each in (host, *ports)}
    went: dict[str, int] = {}
    doubtful = set()
    try:
        own_port = hosts.ask(handle, host, Listen())
        _call(hosts, handle, host, words[host.name], [(other.address, port) for other, port in ports.items()])
        for other in ports:
            with suppress(EnvironmentFailure):
                _call(hosts, handle, other, words[other.name], [(host.address, own_port)])
        time.sleep(UNDER_WAY_S)
        if (arrived := hosts.ask(handle, host, TakeHeard(own_port))) is None:
            raise ListenerLost
        heard, host_drops, delays_all = arrived
    finally:  # if the host has lost its power, the others still have to close their ports
        for other, port in ports.items():
            with suppress(EnvironmentFailure):  # its agent has ended meanwhile: left out, too
                if arrived := hosts.ask(handle, other, TakeHeard(port)):
                    there, drops, delays = arrived
                    went[other.name] = there.get(words[host.name], 0)
                    if drops or delays:
                        doubtful.add(other.name)
    came = {name: heard.get(words[name], 0) for name in went}
    return Reach(came, went, frozenset(went if delays_all else doubtful), host_drops)


def _listening(hosts: Asks, handle: Handle, host: Host) -> int | None:
    """Have a host listen: its port; None if its agent does not answer."""
    with suppress(EnvironmentFailure):
        return hosts.ask(handle, host, Listen())
    return None


def _call(hosts: Asks, handle: Handle, host: Host, word: str, to: Sequence[tuple[str, int]]) -> None:
    hosts.ask(handle, host, SendWord(word, to, DATAGRAMS))
