"""The loss of power of a host with a network of its own, in a real network namespace: its interface goes down."""

from __future__ import annotations

import sys

import pytest

from tests.unit.infra.network_namespaces import in_a_namespace

STRIKE = """
import os, subprocess, sys
from infra.strikes.blackout import Blackout, is_up
for line in ("link add v0 type veth peer name v1", "addr add 198.18.255.1/30 dev v0", "link set v0 up"):
    subprocess.run(["ip", *line.split()], check=True)
assert is_up("v0")
assert not is_up("v2")
os.setuid(int(sys.argv[1]))
strike = Blackout("nobody", "198.18.255.1")
strike.shoot()
proof = strike.fire()
print(int(is_up("v0")), proof.left["interfaces up"], proof.holds)
"""
NOT_ROOT = 65534


pytestmark = pytest.mark.usefixtures("namespaces")


@pytest.mark.parametrize(("user", "found"), [(0, "0 0 True\n"), (NOT_ROOT, "1 1 False\n")])
def test_a_loss_of_power_is_proved_by_an_interface_that_is_down(user: int, found: str) -> None:
    """A user without CAP_NET_ADMIN cannot take it down: what remains is a kill, and no proof of more."""
    done = in_a_namespace(sys.executable, "-c", STRIKE, str(user))
    assert (done.returncode, done.stdout) == (0, found), done.stderr
