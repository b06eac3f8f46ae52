"""The delay of what a host sends, or its refusal where the kernel has no netem; each in a real network namespace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from infra import programs
from infra.strikes import delay
from tests.unit.infra.network_namespaces import in_a_namespace

IN_A_NAMESPACE = """
import subprocess, time
from infra.strikes.delay import Delay, interface_of, may_be_delayed, refusal, undelay
for line in ("link add v0 type veth peer name v1", "addr add 198.18.255.1/30 dev v0", "link set v0 up"):
    subprocess.run(["ip", *line.split()], check=True)
assert interface_of("198.18.255.1") == "v0"
assert interface_of("198.18.255.2") == ""
strike = Delay("nobody", "198.18.255.1", 0.05)
assert not may_be_delayed("198.18.255.1")
strike.shoot(time.time_ns())
proof = strike.fire()
assert may_be_delayed("198.18.255.1") == (not refusal())
assert proof.left == {"interfaces without delay": 1 if refusal() else 0}, proof
assert undelay("198.18.255.1") == {"interfaces delayed": 0}
assert undelay("198.18.255.1") == {"interfaces delayed": 0}
assert undelay("198.18.255.2") == {"interfaces delayed": 0}
"""

SOMEBODY_ELSES = """
import subprocess
from infra.strikes.delay import Delay, root_handles, undelay
for line in ("ip link set lo up", "ip addr add 198.18.255.1/32 dev lo", "ip addr del 127.0.0.1/8 dev lo"):
    subprocess.run(line.split(), check=True)
subprocess.run("tc qdisc add dev lo root handle 1: pfifo limit 10".split(), check=True)
try:
    Delay("nobody", "198.18.255.1", 0.05)
except OSError as error:
    print(error.filename, error.strerror)
undelay("198.18.255.1")
assert root_handles("lo") == ["1:"]
"""

ASKED_BEFORE = """
import subprocess
from infra.strikes import delay
addresses = ("del 127.0.0.1/8", "add 198.18.255.1/32", "add 198.18.255.2/32")
for line in ("link set lo up", *(f"addr {what} dev lo" for what in addresses)):
    subprocess.run(["ip", *line.split()], check=True)
print(delay.refusal_at("198.18.255.1") == delay.refusal())
delay.refusal = lambda: None  # also on a kernel without netem
for address in ("198.18.255.1", "198.18.255.2", "198.18.255.3"):
    print(delay.refusal_at(address))
subprocess.run("tc qdisc add dev lo root handle 1: pfifo limit 10".split(), check=True)
print(delay.refusal_at("198.18.255.1"))
"""

IN_ITS_HANDS = """
import subprocess, sys
from infra import programs
from infra.strikes.delay import Delay, may_be_delayed, undelay
from infra.strikes.ready import Target, undo
from experiments.fault_kinds import FaultKind
for line in ("ip link set lo up", "ip addr add 198.18.255.1/32 dev lo", "ip addr del 127.0.0.1/8 dev lo"):
    subprocess.run(line.split(), check=True)
programs.search_path = lambda: sys.argv[1] + ":/usr/sbin:/usr/bin:/sbin:/bin"
run = programs.run
programs.run = lambda *command: run(*command, limit_s=0.5)
assert undelay("198.18.255.1") == {"interfaces perhaps delayed": 1}
assert may_be_delayed("198.18.255.1")
assert not undo(Target("nobody", "198.18.255.1"), FaultKind.SLOW).holds
try:
    Delay("nobody", "198.18.255.1", 0.05)
except OSError as error:
    print("refused:", error.filename or error)
"""


pytestmark = pytest.mark.usefixtures("namespaces")


def test_a_delay_is_proved_by_the_interface_and_removed():
    done = in_a_namespace(sys.executable, "-c", IN_A_NAMESPACE)
    assert done.returncode == 0, done.stderr


def test_what_somebody_else_has_set_on_the_interface_is_left_alone():
    done = in_a_namespace(sys.executable, "-c", SOMEBODY_ELSES)
    assert (done.returncode, done.stdout) == (0, "lo somebody else has set its queueing discipline 1:\n"), done.stderr


def test_what_would_stop_a_delay_is_known_before_it_is_due():
    done = in_a_namespace(sys.executable, "-c", ASKED_BEFORE)
    assert done.stdout.splitlines() == [
        "True",
        "None",
        "198.18.255.2 is not the first IPv4 address of an interface",
        "198.18.255.3 is not the first IPv4 address of an interface",
        "lo: somebody else has set its queueing discipline 1:",
    ], done.stderr


@pytest.mark.parametrize("does", ["exec sleep 60", "echo no such thing >&2; exit 1", "echo '[{'"])
def test_a_tc_that_does_not_tell_is_no_proof_that_the_delay_is_gone(tmp_path: Path, does: str):
    program = tmp_path / "tc"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    done = in_a_namespace(sys.executable, "-c", IN_ITS_HANDS, str(tmp_path))
    assert (done.returncode, done.stdout.startswith("refused:")) == (0, True), done.stderr


def test_a_machine_that_never_had_tc_has_no_delay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delay, "interface_of", lambda address: "lo")
    monkeypatch.setattr(programs, "search_path", lambda: "/nowhere")
    assert delay.undelay("127.0.0.1") == {"interfaces delayed": 0}
    assert not delay.may_be_delayed("127.0.0.1")


def test_a_kernel_without_netem_is_told_in_one_line():
    netem = in_a_namespace("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    found = delay.refusal()
    assert (found is None) == (netem.returncode == 0)
    assert found is None or ("\n" not in found and found)


def test_a_machine_without_tc_is_told_in_one_line(monkeypatch):
    monkeypatch.setattr(programs, "search_path", lambda: "/nowhere")
    assert "unshare: No such file or directory" in delay.refusal()
