"""Which driver can inject which kind of fault: every kind says so, and a driver refuses what does not declare it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments import fault_kinds
from experiments.errors import BadInput
from experiments.fault_kinds import DRIVERS, EFFECTS, PLAIN, FaultKind, FaultOptions, kinds_of
from experiments.hosts import ClusterDriver, Role
from experiments.spec import ClusterSpec
from infra import tokens
from infra.cluster import Handle, Host
from infra.drivers import driver_of
from infra.strikes import delay
from tests.unit.infra.external import clusters

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "drivers.md"
TABLE = PAGE.read_text(encoding="utf-8").partition("## Faults by driver\n")[2].partition("\n## ")[0]
ROWS = [line.strip("| ").split(" | ") for line in TABLE.splitlines() if line.startswith("|")]


def handle_of(driver: ClusterDriver, root: Path) -> Handle:
    hosts = {
        "gateway": Host("gateway", "127.0.251.1", Role.GATEWAY, 1, 512),
        "worker-1": Host("worker-1", "127.0.251.2", Role.WORKER, 1, 512),
    }
    return Handle("run-1", driver.value, tokens.new(driver, 251), str(root), hosts)


def test_every_kind_declares_its_effect_and_its_drivers() -> None:
    assert set(FaultKind) == EFFECTS.keys() == DRIVERS.keys()
    assert all(DRIVERS.values())


@pytest.mark.parametrize("driver", ClusterDriver)
def test_a_kind_that_does_not_declare_a_driver_is_refused_by_it(
    driver: ClusterDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, handle = driver_of(driver), handle_of(driver, tmp_path)
    spec = ClusterSpec(driver=driver, inventory=str(clusters.make(tmp_path / "there")))
    assert asked.refusal(spec, FaultKind.KILL, PLAIN) is None
    monkeypatch.delitem(fault_kinds.DRIVERS, FaultKind.KILL)
    refusal = asked.refusal(spec, FaultKind.KILL, PLAIN)
    assert refusal is not None
    assert refusal.startswith(f"{min(kinds_of(driver))}, ")
    assert f"terminate with driver {driver}" in refusal
    for act in (asked.prepare, asked.heal):
        with pytest.raises(BadInput, match=rf"^kind: 'kill' .* terminate with driver {driver}$"):
            act(handle, "worker-1", FaultKind.KILL)


def test_what_hosts_lack_is_told_beside_the_kinds_that_can_be_injected() -> None:
    kinds = "broker-kill, driver-kill, kill, master-kill, pause, slow, terminate"
    local, ssh = driver_of("local"), driver_of("ssh")
    assert local.refusal(ClusterSpec(), FaultKind.PARTITION, PLAIN) == f"{kinds} with driver local"
    assert "share the machine's network" in str(local.refusal(ClusterSpec(), FaultKind.SLOW, FaultOptions(delay=0.1)))
    assert ssh.refusal(ClusterSpec(driver="ssh"), FaultKind.DISK_FULL, PLAIN) == (
        f"{kinds.replace('pause', 'partition, pause')} with driver ssh, "
        "whose machines have no power switch and no disk that may be filled"
    )


@pytest.mark.parametrize("driver", ["netns", "ssh"])
def test_a_delay_that_would_keep_the_heal_out_is_refused(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay, "refusal", lambda: None)
    asked, spec = driver_of(driver), ClusterSpec(driver=driver)
    monkeypatch.setattr(asked, "_refusals", {spec: {"worker-1": {"delay": None}}}, raising=False)
    assert asked.refusal(spec, FaultKind.SLOW, FaultOptions(delay=2.0)) is None
    refused = asked.refusal(spec, FaultKind.SLOW, FaultOptions(delay=2.5))
    assert str(refused).startswith("a delay of at most 2 s: a longer one lets no new SSH connection through")


def test_a_local_host_is_not_cut_off_because_that_would_cut_off_the_machine(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^kind: 'partition' .* with driver local$"):
        driver_of("local").prepare(handle_of(ClusterDriver.LOCAL, tmp_path), "worker-1", FaultKind.PARTITION)


def test_the_guide_says_what_the_kinds_declare() -> None:
    header, _, *rows = ROWS
    found: dict[FaultKind, set[str]] = {}
    for row in rows:
        able = {name.strip("`") for name, cell in zip(header[1:], row[1:], strict=True) if not cell.startswith("no")}
        for kind in re.findall("`([a-z-]+)`", row[0]):
            if kind in set(FaultKind):
                found[FaultKind(kind)] = found.get(FaultKind(kind), set()) | able
    assert found == {kind: set(kind.drivers) for kind in FaultKind}
