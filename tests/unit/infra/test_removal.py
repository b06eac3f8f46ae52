"""What keeps one part of a cluster from being removed keeps no other part; what is left is told."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra import disks, leftovers, namespaces, programs, removal
from infra.cluster import Handle
from infra.docker import containers
from infra.docker.driver import DockerDriver
from tests.unit.infra.network_namespaces import in_a_namespace

LABEL = "n509-0123456789abcdef"
# In a mount namespace of its own, so that no other test, and no clean, sees these names.
ONE_IS_NO_NAMESPACE = """
import os, subprocess
from pathlib import Path
from experiments.errors import EnvironmentFailure
from infra import namespaces
label = "n509-0123456789abcdef"
Path("/run/netns").mkdir(exist_ok=True)
subprocess.run("mount -t tmpfs none /run/netns".split(), check=True)
for host in ("a", "b"):
    (Path("/run/netns") / f"aftershock-{label}-{host}").mkdir()
subprocess.run(["ip", "netns", "add", f"aftershock-{label}-c"], check=True)
os.rmdir(f"/run/netns/aftershock-{label}-b")
try:
    namespaces.remove(label)
except EnvironmentFailure as failure:
    print(failure.cause)
print(namespaces.of(label))
"""


@pytest.mark.usefixtures("namespaces")
def test_a_namespace_that_cannot_be_removed_keeps_no_other() -> None:
    done = in_a_namespace("unshare", "--mount", sys.executable, "-c", ONE_IS_NO_NAMESPACE)
    told, left = done.stdout.splitlines() or pytest.fail(done.stderr)
    assert told.startswith(f"aftershock-{LABEL}-a cannot be removed: `ip` failed (")
    assert left == f"['aftershock-{LABEL}-a']"


def test_what_another_removal_takes_meanwhile_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [[], ["aftershock-x-a"]]  # at the end, and at first
    monkeypatch.setattr(namespaces, "of", lambda label: there.pop())
    monkeypatch.setattr(namespaces, "_ip", lambda *_, text="": _fail("`ip` failed (no such file)"))
    namespaces.remove(LABEL)
    assert there == []


def _fail(cause: str) -> None:
    raise EnvironmentFailure(cause, "look at it")


def test_a_disk_whose_umount_hangs_is_told_when_the_others_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one line, of which whoever cleans up goes on with the next cluster."""
    left = [Path("/r/hosts/worker-1/lives"), Path("/r/hosts/worker-2/lives")]

    def umount(program: str, folder: str, limit_s: float) -> subprocess.CompletedProcess[str]:
        if folder == str(left[0]):
            raise TimeoutError(errno.ETIMEDOUT, "no end in 30 s", program)
        left.remove(Path(folder))
        return subprocess.CompletedProcess([program, folder], 0, "", "")

    monkeypatch.setattr(disks, "of", lambda label: list(left))
    monkeypatch.setattr(disks, "REMOVAL_LIMIT_S", 0.0)
    monkeypatch.setattr(programs, "run", umount)
    with pytest.raises(EnvironmentFailure, match=r"disks cannot be unmounted \(umount: no end in 30 s\)"):
        disks.remove(LABEL)
    assert left == [Path("/r/hosts/worker-1/lives")]


def test_a_disk_that_cannot_be_made_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "search_path", lambda: "/nowhere")
    with pytest.raises(EnvironmentFailure, match=r"no disk could be mounted on .*lives \(mount: No such file"):
        disks.create("n1-0123456789abcdef", "worker-1", tmp_path / "lives", 1)


def test_namespaces_that_stay_keep_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(removal, "kill_all", lambda *_: None)
    monkeypatch.setattr(namespaces, "remove", lambda label: _fail("it stays"))
    monkeypatch.setattr(disks, "remove", removed.append)
    with pytest.raises(EnvironmentFailure, match="it stays"):
        removal.remove(LABEL, removal.ROOT_USER)
    assert removed == [LABEL]
    monkeypatch.setattr(disks, "remove", lambda label: _fail("the disk, too"))
    with pytest.raises(EnvironmentFailure, match="it stays; the disk, too"):
        removal.remove(LABEL, removal.ROOT_USER)


IN_DOCKER = Handle("run-1", "docker", "d509-0123456789abcdef", "/r")
REMOVALS: dict[str, Callable[[], None]] = {
    "the run's own": lambda: DockerDriver().destroy(IN_DOCKER),
    "a clean": lambda: leftovers.remove(IN_DOCKER.label),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
def test_a_docker_daemon_that_fails_keeps_no_process_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, remove: Callable[[], None]
) -> None:
    removed: list[tuple[str, int]] = []
    monkeypatch.setattr(containers, "remove", lambda *_: _fail("the Docker daemon does not answer"))
    monkeypatch.setattr(removal, "remove", lambda label, uid: removed.append((label, uid)))
    with pytest.raises(EnvironmentFailure, match="the Docker daemon does not answer"):
        remove()
    assert removed == [(IN_DOCKER.label, os.geteuid())]
    monkeypatch.setattr(removal, "remove", lambda *_: _fail("processes survive"))
    with pytest.raises(EnvironmentFailure, match="the Docker daemon does not answer; processes survive"):
        remove()


def test_every_disk_that_stays_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "of", lambda label: [Path("/r/1/lives"), Path("/r/2/lives")])
    monkeypatch.setattr(disks, "REMOVAL_LIMIT_S", 0.0)
    monkeypatch.setattr(disks, "_failure", lambda _, folder: f"{folder} is busy")
    with pytest.raises(EnvironmentFailure, match=r"\(/r/1/lives is busy; /r/2/lives is busy\)"):
        disks.remove(LABEL)
