"""What the docker driver refuses before it touches anything, and what its containers see of the machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from docker.errors import BuildError
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import Mount

from experiments.errors import BadInput, EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind
from experiments.spec import ClusterSpec
from infra.cluster import Handle
from infra.docker import containers, control, creation, daemon, mounts
from infra.drivers import driver_of
from infra.launch import REPOSITORY
from infra.services import startup
from results.runs import store
from tests.unit.infra.external.clusters import program
from tests.unit.marked_processes import wait_for


def test_without_a_daemon_it_is_said_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(EnvironmentFailure, match=r"no Docker daemon: .*docker\.sock does not exist; start it"):
        driver_of("docker").check(ClusterSpec(driver="docker"))
    (tmp_path / "docker.sock").touch()
    with pytest.raises(EnvironmentFailure, match=r"the Docker daemon at .*docker\.sock does not answer"):
        driver_of("docker").check(ClusterSpec(driver="docker"))


def test_an_image_that_is_not_built_is_no_daemon_that_does_not_answer():
    with pytest.raises(EnvironmentFailure) as failed, daemon.asking("build aftershock-host:1"):
        raise BuildError("write /root: no space left on device", [])
    line = "the Docker daemon could not build aftershock-host:1 (write /root: no space left on device)"
    assert failed.value.cause == line


@pytest.mark.parametrize("what", ["containers_of", "networks_of"])
def test_a_daemon_that_falls_silent_amid_a_removal_is_told_in_one_line(monkeypatch, what):
    """Whoever cleans up goes on with the next cluster."""

    def silent(**_: object) -> None:
        raise requests.exceptions.ReadTimeout("read timed out")

    attributes = {"Names": ["/aftershock-x"], "Labels": {containers.USER_LABEL: "0"}}
    for each in ("containers_of", "networks_of"):
        monkeypatch.setattr(containers, each, lambda _label: [])
    found = Container(attributes) if what == "containers_of" else Network({**attributes, "Name": "aftershock-x"})
    monkeypatch.setattr(found, "remove", silent)
    monkeypatch.setattr(containers, what, lambda _label: [found])
    with pytest.raises(EnvironmentFailure, match=r"the Docker daemon at .* does not answer \(read timed out\)"):
        containers.remove("d1-0123456789abcdef", 0)


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:2375", "ssh://somebody@elsewhere"])
def test_a_daemon_of_another_machine_is_refused(monkeypatch, address):
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(BadInput, match=f"DOCKER_HOST: '{address}' is not usable; allowed: unix://PATH"):
        daemon.check()


def test_what_containers_see_must_hold_neither_the_daemons_socket_nor_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{REPOSITORY}/infra/docker.sock")
    with pytest.raises(BadInput, match=rf"DOCKER_HOST: .* is not usable; allowed: a socket outside {REPOSITORY}/infra"):
        mounts.check_socket()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    mounts.check_socket()
    seen = Path(sys.prefix) / "live" / "run" / "cluster"
    with pytest.raises(BadInput, match=r"AFTERSHOCK_HOME: .* is not usable; allowed: a folder outside"):
        mounts.prepare(startup.handle_of(ClusterSpec(driver="docker"), "run", seen, subnet=1, network="192.0.2"))
    assert not seen.exists()


def test_containers_see_nothing_hidden_of_the_checkout(tmp_path):
    for name in (".git", ".aftershock", "infra"):
        (tmp_path / name).mkdir()
    assert mounts.checkout(tmp_path) == [tmp_path / "infra"]


def test_the_logs_of_a_run_are_where_the_store_has_them(home):
    assert store.live("run-1").raw == store.live_directory("run-1") / mounts.RAW


def test_what_is_below_another_mount_is_not_mounted_again(tmp_path):
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "python"
    found = mounts.outermost([checkout / ".venv", elsewhere, checkout, Path("/usr/lib/jvm/java")], [Path("/usr")])
    assert sorted(found) == [checkout, elsewhere]


SPEC = ClusterSpec(driver="docker", workers=2)


@pytest.mark.parametrize(("user", "refused"), [(0, False), (1000, True)])
def test_a_power_off_by_a_user_who_is_not_root_is_refused_in_one_line(monkeypatch, user, refused):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    found = {kind: driver_of("docker").refusal(SPEC, kind, PLAIN) for kind in (FaultKind.KILL, FaultKind.POWER_OFF)}
    line = "power-off as root: the containers of another user may not take their network down"
    assert found == {FaultKind.KILL: None, FaultKind.POWER_OFF: line if refused else None}


@pytest.fixture
def cluster(monkeypatch, tmp_path) -> Handle:
    """A cluster whose mounts are prepared, and that has no containers."""
    (tmp_path / "docker.sock").touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    (tmp_path / "result" / "raw").mkdir(parents=True)
    handle = startup.handle_of(SPEC, "run", tmp_path / "cluster", subnet=1, network="192.0.2")
    mounts.prepare(handle)
    return handle


def replaceable(source: Path, mounted: list[Mount], fixed: set[str]) -> bool:
    """Whether code in a container can put a link in the place of a source, or of a folder on its way.

    A place where something is mounted cannot be renamed in that container; a folder above it can.
    """
    return any(
        str(Path(mount["Target"], part)) not in fixed
        for mount in mounted
        for part in _below(source, mount)
        if not mount["ReadOnly"]
    )


def _below(source: Path, mount: Mount) -> list[Path]:
    """The path of a source, and of the folders above it, from a mount that shows them."""
    if not source.is_relative_to(mount["Source"]):
        return []
    path = source.relative_to(mount["Source"])
    return [each for each in (path, *path.parents) if each != Path()]


def test_no_host_can_replace_what_its_own_mounts_or_those_of_others_are_made_of(cluster):
    """The daemon follows links in the sources each time that it starts a container: after a power-off, too."""
    hosts = [*cluster.hosts.values(), control.host_of(cluster)]
    mounted = {host.name: mounts.of(cluster, host) for host in hosts}
    everybodys = {mount["Source"] for found in mounted.values() for mount in found}
    for host in hosts:
        found = mounted[host.name]
        fixed = {mount["Target"] for mount in found}
        fixed |= mounts.disk_of(cluster, host, 64).keys() if host in cluster.workers else set()
        sources = {mount["Source"] for mount in found} if host.name == control.NAME else everybodys
        assert not {source for source in sources if replaceable(Path(source), found, fixed)}, host.name


def test_only_the_control_container_has_the_daemons_socket(cluster):
    hosts = [*cluster.hosts.values(), control.host_of(cluster)]
    having = [
        host.name
        for host in hosts
        if any(mount["Source"] == daemon.socket_path() for mount in mounts.of(cluster, host))
    ]
    assert having == [control.NAME]


def test_a_host_writes_only_its_own_part_of_the_run(cluster):
    root, raw = Path(cluster.root), Path(cluster.root).parent / "result" / "raw"
    own = {"gateway": {raw / "spark-events", *(raw / f"{name}.jsonl" for name in mounts.JOURNALS)}}
    for host in cluster.hosts.values():
        written = {Path(mount["Source"]) for mount in mounts.of(cluster, host) if not mount["ReadOnly"]}
        shared = {root / "store", mounts.scratch_of(cluster, host.name), cluster.directory(host.name)}
        assert written == shared | own.get(host.name, set())


@pytest.mark.parametrize("name", ["cluster", "a run", "a*"])
def test_a_host_that_was_cut_off_is_so_again_when_it_starts_whatever_the_home_is_called(tmp_path, name):
    """Its partition outlives the loss of its power."""
    program(tmp_path / "nft", f'#!/bin/sh\ncat "$2" >{tmp_path}/set && mv {tmp_path}/set {tmp_path}/done\n')
    rules = tmp_path / name / "partition.nft"
    rules.parent.mkdir()
    rules.write_text("the rules\n")
    command, variables = ["/bin/sh", "-c", creation.INIT, str(rules)], {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    first = subprocess.Popen(command, env=variables, start_new_session=True)
    try:
        wait_for((tmp_path / "done").exists, 10)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert (tmp_path / "done").read_text() == "the rules\n"


def test_a_container_has_no_more_rights_than_its_part_needs(cluster):
    assert creation.CONFINED["cap_drop"] == ["ALL"]
    assert creation.CONFINED["security_opt"] == ["no-new-privileges:true"]
    assert creation.CONFINED["read_only"] is True
    assert 0 < creation.CONFINED["pids_limit"] <= 8192
    rights = {host.name: creation._options(cluster, host, SPEC)["cap_add"] for host in cluster.hosts.values()}
    assert rights == {
        "gateway": ["SYS_NICE"],
        "worker-1": ["SYS_NICE", "NET_ADMIN"],
        "worker-2": ["SYS_NICE", "NET_ADMIN"],
    }
