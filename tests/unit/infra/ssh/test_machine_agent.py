"""What the agent of a machine finds out about it, without being on another one."""

import os
from pathlib import Path

import pytest

from infra import mounted
from infra.processes import MARK
from infra.remote import agent
from infra.remote.requests import ClaimMachine, ListServices, SurveyMachine
from infra.ssh import claims
from infra.ssh.machine_agent import MachineAgent, filesystem_of
from infra.strikes import delay, partition

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
systemd-1 /srv autofs rw 0 0
10.0.0.1:/srv /srv nfs4 rw 0 0
/dev/sdb1 /srv/own xfs rw 0 0
host:/a\\040b /mnt/a\\040b fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/usr/bin", "ext4"),
        ("/srv/x/y", "nfs4"),
        ("/srv/own/x", "xfs"),
        ("/srvx", "ext4"),
        ("/mnt/a b/c", "fuse.sshfs"),
    ],
)
def test_the_innermost_mount_tells_what_a_path_is_on(
    path: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two on one folder, as with an automount, that is the later one."""
    (tmp_path / "mounts").write_text(MOUNTS, encoding="utf-8")
    monkeypatch.setattr(mounted, "MOUNTS", tmp_path / "mounts")
    assert filesystem_of(Path(path)) == kind


def test_what_is_no_claim_is_told_and_the_agent_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setenv(MARK, "m0-0123456789abcdef/machine/h")
    os.mkfifo(claims.file())
    made = MachineAgent("h", "127.0.251.12", "/nowhere")
    for request in (SurveyMachine([], []), ClaimMachine("r", "/r")):
        failed = agent._carry_out(made, request)["failed"]
        assert failed == f"{claims.file()} is a FIFO, where a regular file belongs; remove it"
    assert agent._carry_out(made, ListServices()) == {"done": []}


def test_an_address_that_is_not_the_machines_own_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the public one in a cloud: nothing could listen on it, and no worker would join."""
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setenv(MARK, "m0-0123456789abcdef/machine/h")
    failed = agent._carry_out(MachineAgent("h", "203.0.113.5", "/nowhere"), SurveyMachine([], []))["failed"]
    why = "no program of this machine can listen at this internal_address (Cannot assign requested address)"
    assert failed == f"203.0.113.5: {why}"


def test_a_survey_looks_at_the_interface_that_would_be_delayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setenv(MARK, "m0-0123456789abcdef/machine/h")
    monkeypatch.setattr(delay, "refusal", lambda: None)
    monkeypatch.setattr(delay, "interface_of", {"127.0.251.12": "eth0"}.get)
    monkeypatch.setattr(delay, "root_handles", lambda interface: ["1:"])
    found = MachineAgent("h", "127.0.251.12", "/nowhere").survey([], [])["refusals"]
    assert found["delay"] == "eth0: somebody else has set its queueing discipline 1:"


def test_the_disk_of_a_machine_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a partition cuts a network file system off, a look would not end, nor could the partition be healed."""

    def blocked(path: str) -> bool:
        raise AssertionError(f"a look at {path}")

    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setenv(MARK, "m0-0123456789abcdef/machine/h")
    monkeypatch.setattr(os.path, "ismount", blocked)
    assert MachineAgent("h", "127.0.251.12", "/nowhere").target.disk is None


@pytest.mark.parametrize("removable", [True, False])
def test_the_empty_chains_of_a_prepared_partition_do_not_stay(
    removable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = ["aftershock"]
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setenv(MARK, "m0-0123456789abcdef/machine/h")
    monkeypatch.setattr(partition, "has_table", lambda: bool(tables))
    monkeypatch.setattr(partition, "reconnect", tables.clear if removable else lambda: None)
    made = MachineAgent("h", "127.0.251.12", "/nowhere")
    assert made.claim("r", "/r") is None
    left = made.vacate()
    assert (left["nftables tables"], left["claims"]) == (len(tables), len(tables))
    assert bool(tables) != removable


def test_a_machine_is_not_given_up_before_its_delay_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run would have a slow machine, and the next `clean` would leave it alone and say that all is well."""
    delayed = {"interfaces delayed": 1}
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setenv(MARK, "m0-0123456789abcdef/machine/h")
    monkeypatch.setattr(partition, "has_table", lambda: False)
    monkeypatch.setattr("infra.strikes.ready.undelay", lambda address: delayed)
    made = MachineAgent("h", "127.0.251.12", "/nowhere")
    assert made.claim("r", "/r") is None
    left = made.vacate()
    assert left["survivors"] > 0
    assert left["claims"] == 1
    delayed.clear()
    assert not any(made.vacate().values())
    assert claims.owner() is None


def test_a_table_on_a_machine_of_another_run_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setenv(MARK, "m0-0123456789abcdef/machine/h")
    monkeypatch.setattr(partition, "has_table", lambda: True)
    monkeypatch.setattr(partition, "reconnect", lambda: pytest.fail("it was removed"))
    assert MachineAgent("h", "127.0.251.12", "/nowhere").vacate()["nftables tables"] == 0


@pytest.mark.parametrize("ours", [True, False])
def test_a_delay_is_removed_only_by_the_run_that_has_the_machine(
    ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undelayed: list[str] = []
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setenv(MARK, "m0-0123456789abcdef/machine/h")
    monkeypatch.setattr(partition, "has_table", lambda: False)
    monkeypatch.setattr("infra.strikes.ready.undelay", lambda address: undelayed.append(address) or {})
    made = MachineAgent("h", "127.0.251.12", "/nowhere")
    token = made.token if ours else "m0-fedcba9876543210"
    assert claims.take(claims.Claim(token, "r", "/r")) is None
    assert not any(made.vacate().values())
    assert set(undelayed) == ({"127.0.251.12"} if ours else set())
    assert (claims.owner() is None) == ours
