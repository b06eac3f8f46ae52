"""The power-off of a namespace, with stand-ins for the namespace itself: what strikes, and when it was started."""

from __future__ import annotations

import errno
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from experiments.hosts import Role
from infra import namespaces
from infra.cluster import Host
from infra.netns import power
from infra.netns.power import NetnsPowerOff
from infra.processes import has_precedence
from tests.unit.infra.descriptors import opened
from tests.unit.marked_processes import start

HOST = Host("worker-1", "127.0.249.1", Role.WORKER, 1, 512)
LINK_DOWN = f"link set {namespaces.INTERFACE} down\n"


class Network:
    """A host's network: its interface is up until an `ip` is told otherwise, and these processes live in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.living = root, list[int]()
        self.programs, self.unplugged = 0, False

    def ip(self, *_: str) -> list[str]:
        self.programs += 1
        return ["sh", "-c", f"cat > {self.root}/told-{self.programs}"]

    @property
    def told(self) -> list[str]:
        return [path.read_text() for path in self.root.glob("told-*")]

    def addresses(self, *_: str) -> list[str]:
        return [] if self.unplugged or LINK_DOWN in self.told else [HOST.address]

    def unplug(self, *_: str) -> None:
        self.unplugged = True

    def plug_in(self) -> None:
        self.unplugged = False
        for path in self.root.glob("told-*"):
            if path.read_text():
                path.unlink()


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    made = Network(tmp_path)
    for name, stand_in in (
        ("inside", made.ip),
        ("ip_program", lambda: "ip"),
        ("addresses_of", made.addresses),
        ("unplug", made.unplug),
        ("processes_of", lambda *_: [pid for pid in made.living if Path(f"/proc/{pid}").exists()]),
        ("lives_in", lambda pid, *_: pid in made.living),
    ):
        monkeypatch.setattr(namespaces, name, stand_in)
    monkeypatch.setattr(power, "_answers", lambda address: False)
    return made


def test_what_strikes_runs_with_precedence_before_the_strike(token: str, network: Network) -> None:
    """Whoever starts a thread waits until it has a core: the main thread of the injector, at every strike."""
    victim, cut_by = start(f"{token}/worker-1/a"), list[threading.Thread]()
    before = set(threading.enumerate())
    strike = NetnsPowerOff(token, HOST, lambda: cut_by.append(threading.current_thread()))
    (thread,) = set(threading.enumerate()) - before
    assert has_precedence(thread.native_id or 0)
    assert strike.refresh()
    due_ns = time.time_ns() + 50_000_000
    strike.shoot(due_ns)
    proof = strike.fire()
    assert (victim.wait(60), cut_by) == (-signal.SIGKILL, [thread])
    assert proof.fired_ns >= due_ns
    assert (proof.done, proof.holds) == ({"processes killed": 1}, True)
    assert thread not in threading.enumerate()


def test_a_strike_that_is_not_carried_out_leaves_nothing_behind(token: str, network: Network) -> None:
    threads, before = set(threading.enumerate()), opened()
    strike = NetnsPowerOff(token, HOST, lambda: None)
    assert not strike.refresh(), "it has no process"
    strike.close()
    assert set(threading.enumerate()) <= threads
    assert opened() <= before
    assert not any(network.told)


def test_a_strike_that_cannot_be_prepared_leaves_nothing_behind(
    token: str, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, before = set(threading.enumerate()), opened()

    def lack_descriptors(_: power.HostProcesses) -> list[int]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(power.HostProcesses, "scan", lack_descriptors)
    with pytest.raises(OSError, match="Too many open files"):
        NetnsPowerOff(token, HOST, lambda: None)
    assert set(threading.enumerate()) <= threads
    assert opened() <= before
    assert not power._WAITING


def test_an_interface_that_stayed_up_while_processes_died_contradicts_a_power_off(
    token: str, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "inside", lambda *_: ["false"])
    start(f"{token}/worker-1/a")
    proof = NetnsPowerOff(token, HOST, lambda: None).fire()
    assert proof.left == {"survivors": 0, "interfaces up": 1, "addresses": 0, "answers": 0}


def test_a_power_off_kills_what_hides_its_mark_even_a_child_of_the_injector(token: str, network: Network) -> None:
    """An sshd writes over its environment, and whoever powers a host on is its parent."""
    start(f"{token}/worker-1/a")
    hidden = subprocess.Popen(["sleep", "600"], env={})
    network.living.append(hidden.pid)
    threading.Thread(target=hidden.wait, daemon=True).start()  # otherwise what is left of it would live on
    assert NetnsPowerOff(token, HOST, lambda: None).fire().holds
    assert hidden.wait(60) == -signal.SIGKILL


def test_a_power_off_spares_what_the_next_one_of_the_host_waits_with(token: str, network: Network) -> None:
    start(f"{token}/worker-1/a")
    strikes = [NetnsPowerOff(token, HOST, lambda: None) for _ in range(2)]
    network.living += [strike._ip.pid for strike in strikes]
    assert strikes[0].fire().holds
    network.plug_in()
    start(f"{token}/worker-1/a")
    assert strikes[1].refresh()
    assert strikes[1].fire().holds
