"""Which hosts reach which: tried with datagrams between their agents, counted where they arrive."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import Direction
from infra.cluster import Handle, Host

DATAGRAMS = 5  # of which any one that comes through tells: they may be lost where no rule drops them
UNDER_WAY_S = 0.1  # after that a datagram counts as lost


class Asks(Protocol):
    """What carries a request to the agent of a host: `infra.remote.hosts.RemoteHosts`."""

    def ask(self, handle: Handle, host: Host, what: str, within_s: float = ..., **fields: Any) -> Any: ...


@dataclass(frozen=True)
class Reach:
    """How many datagrams came to a host from each of some others, and how many went from it to each of them.

    `cut_off` are those of the others that drop packets themselves, so that nothing follows from a loss.
    """

    came: Mapping[str, int]
    went: Mapping[str, int]
    cut_off: frozenset[str]

    def through(self, cut: Direction) -> int:
        """Datagrams that came through although their direction is cut."""
        incoming = sum(self.came.values()) if cut is not Direction.OUT else 0
        return incoming + (sum(self.went.values()) if cut is not Direction.IN else 0)

    def lost(self, cut: Direction | None) -> int:
        """Others from or to which nothing came through although that direction is open; None: both are."""
        ways = ([self.came] if cut in (Direction.OUT, None) else []) + (
            [self.went] if cut in (Direction.IN, None) else []
        )
        return len({name for way in ways for name, count in way.items() if not count} - self.cut_off)


def between(hosts: Asks, handle: Handle, host: Host, others: Iterable[Host]) -> Reach:
    """Try both ways between a host and each of some others; those that cannot be asked are left out."""
    ears = {other: ear for other in others if (ear := _ear_of(hosts, handle, other))}
    own_port, _ = hosts.ask(handle, host, "listen")
    _call(hosts, handle, host, [(other.address, port) for other, (port, _) in ears.items()])
    for other in ears:
        with suppress(EnvironmentFailure):
            _call(hosts, handle, other, [(host.address, own_port)])
    time.sleep(UNDER_WAY_S)
    heard = hosts.ask(handle, host, "heard", port=own_port)
    went: dict[str, int] = {}
    for other, (port, _) in ears.items():
        with suppress(EnvironmentFailure):  # it has gone meanwhile, so it counts as one that cannot be asked
            went[other.name] = hosts.ask(handle, other, "heard", port=port).get(host.name, 0)
    came = {name: heard.get(name, 0) for name in went}
    return Reach(came, went, frozenset(other.name for other, (_, cut_off) in ears.items() if cut_off))


def _ear_of(hosts: Asks, handle: Handle, host: Host) -> tuple[int, bool] | None:
    """The port on which the host hears from now on, and whether it drops packets itself; None: it cannot be asked."""
    with suppress(EnvironmentFailure):
        return tuple(hosts.ask(handle, host, "listen"))
    return None


def _call(hosts: Asks, handle: Handle, host: Host, to: Sequence[tuple[str, int]]) -> None:
    hosts.ask(handle, host, "call", word=host.name, to=to, times=DATAGRAMS)
