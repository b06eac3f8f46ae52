"""A network partition: nftables in the host's own network drops packets from or to some peers. Needs CAP_NET_ADMIN.

The rules know addresses and no interface, nor what became of a connection before: established ones are cut as well,
without a reset, and a host that loses its interface meanwhile is still cut off when it has one again. The ports on
which the machine itself listens, SSH's as a rule, stay open: they stand for the network that machines are managed by.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Collection, Sequence
from typing import Any

from experiments.fault_kinds import Direction
from infra import programs
from infra.processes import members
from infra.strikes.strike import NOT_YET, Proof, StrikeOnHost, wait_until
from infra.strikes.waiting_program import WaitingProgram

TABLE = "ip aftershock"
CHAINS = f"""\
table {TABLE} {{
  chain incoming {{ type filter hook input priority raw; policy accept; }}
  chain outgoing {{ type filter hook output priority raw; policy accept; }}
}}
"""
NO_TABLE = f"table {TABLE}\ndelete table {TABLE}\n"  # the first line makes it, so that there is one to delete


class NetworkPartition(StrikeOnHost):
    """Drops packets between the machine and its peers.

    Empty chains are made ahead, since it takes up to a fifth of a second to hook them in, and the program that will put
    rules in them, which takes a millisecond, waits for its input.
    """

    def __init__(
        self, mark: str, peers: Collection[str], direction: Direction, machine_ports: Collection[int] = ()
    ) -> None:
        """Prepare the partition of the host from `peers` (addresses; empty: from all others)."""
        self.mark = mark
        self.ports: set[int] = set()  # they stay open
        self._rules = rules(peers, Direction(direction), machine_ports)
        self._fired_ns = NOT_YET
        _nft(CHAINS)
        self._waiting = WaitingProgram("nft", "-f", "-")

    def refresh(self) -> bool:
        """Whether the host is up; chains that the heal of an earlier partition took along are made again."""
        if not has_table():
            _nft(CHAINS)
        return bool(members(self.mark))

    def shoot(self, due_ns: int = 0) -> None:
        """Drop packets from when it is due; it took effect when the program that says so has ended."""
        wait_until(due_ns)
        self._waiting.act(self._rules)
        self._fired_ns = time.time_ns()

    def fire(self) -> Proof:
        """The kernel lists the rules; that no packet comes through is for others to see."""
        if self._fired_ns == NOT_YET:
            self.shoot()
        wanted = self._rules.count(" drop\n")
        if rules_in_force() < wanted:  # a strike that was given up has removed the chains
            _nft(f"{CHAINS}flush table {TABLE}\n{self._rules}")
            self._fired_ns = time.time_ns()
        found = rules_in_force()
        return Proof(self._fired_ns, time.time_ns(), {"rules": found}, {"rules missing": max(wanted - found, 0)})

    def close(self) -> None:
        """Remove the empty chains, unless another strike has put rules in them."""
        self._waiting.close()
        if not rules_in_force():
            _nft(NO_TABLE)


def rules(peers: Collection[str], direction: Direction, machine_ports: Collection[int]) -> str:
    """What `nft` reads to drop the packets of a direction, where the chains are empty."""
    ports = ", ".join(map(str, sorted(machine_ports)))
    lines: list[str] = []
    for chain, interface, port, end, other in (
        ("incoming", "iif", "dport", "saddr", Direction.OUT),
        ("outgoing", "oif", "sport", "daddr", Direction.IN),
    ):
        if direction is not other:
            among = f"ip {end} {{ {', '.join(sorted(peers))} }} " if peers else ""
            lines.append(f"add rule {TABLE} {chain} {interface} lo accept\n")
            lines += [f"add rule {TABLE} {chain} tcp {port} {{ {ports} }} accept\n"] if ports else []
            lines.append(f"add rule {TABLE} {chain} {among}drop\n")
    return "".join(lines)


def reconnect(inside: Sequence[str] = ()) -> Proof:
    """Remove the rules; harmless when there are none. `inside` runs a command in the host's network."""
    fired_ns, found = time.time_ns(), rules_in_force(inside)
    _nft(NO_TABLE, inside)
    return Proof(fired_ns, time.time_ns(), {"rules removed": found}, {"rules": rules_in_force(inside)})


def rules_in_force(inside: Sequence[str] = ()) -> int:
    """How many rules drop packets here; a machine without the program for it drops none."""
    return sum({"drop": None} in entry["rule"]["expr"] for entry in _listed(inside) if "rule" in entry)


def has_table(inside: Sequence[str] = ()) -> bool:
    """Whether our table is here, be it with rules or, as while a strike is prepared, with empty chains."""
    return bool(_listed(inside))


def _listed(inside: Sequence[str]) -> list[dict[str, Any]]:
    """What is in our table, and the table itself; nothing if there is no such table, or no program for it."""
    try:
        done = programs.run(*inside, "nft", "-j", "list", "table", *TABLE.split())
    except FileNotFoundError:
        return []
    found: list[dict[str, Any]] = json.loads(done.stdout)["nftables"] if done.returncode == 0 else []
    return found


def refusal() -> str | None:
    """Why this machine cannot drop packets; tried in a network of its own, which is gone at once.

    An `nft` that was built without JSON could drop them, but nobody would see that it did, nor that it does no more.
    """
    try:
        done = programs.run("unshare", "--net", "sh", "-c", f"nft -f - && nft -j list table {TABLE}", text=CHAINS)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return " ".join(done.stderr.split()) or "nft failed" if done.returncode else None


def _nft(commands: str, inside: Sequence[str] = ()) -> None:
    done = programs.run(*inside, "nft", "-f", "-", text=commands)
    if done.returncode:
        raise OSError(errno.EIO, " ".join(done.stderr.split()), "nft")
