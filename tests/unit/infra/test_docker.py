"""What the docker driver refuses before it touches anything, and what its containers see of the machine."""

from pathlib import Path

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import ClusterSpec
from infra.docker import daemon, mounts
from infra.drivers import driver_of


def test_without_a_daemon_it_is_said_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(EnvironmentFailure, match=r"no Docker daemon: .*docker\.sock does not exist; start it"):
        driver_of("docker").check(ClusterSpec(driver="docker"))
    (tmp_path / "docker.sock").touch()
    with pytest.raises(EnvironmentFailure, match=r"the Docker daemon at .*docker\.sock does not answer"):
        driver_of("docker").check(ClusterSpec(driver="docker"))


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:2375", "ssh://somebody@elsewhere"])
def test_a_daemon_of_another_machine_is_refused(monkeypatch, address):
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(BadInput, match=f"DOCKER_HOST: '{address}' is not usable; allowed: unix://PATH"):
        daemon.check()


def test_what_is_below_another_mount_is_not_mounted_again(tmp_path):
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "python"
    found = mounts.outermost([checkout / ".venv", elsewhere, checkout, Path("/usr/lib/jvm/java")], [Path("/usr")])
    assert sorted(found) == [checkout, elsewhere]
