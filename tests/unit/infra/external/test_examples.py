"""The scripts of docs/examples/external against programs that stand in for `kubectl`, `aws` and Spark's processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from infra.external.commands import Ended, moment
from infra.external.listing import ListedHost, hosts_of
from tests.unit.infra.external.clusters import program

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples" / "external"
# Pods and instances are files: uid and readiness of a pod, the state of an instance.
KUBECTL = """#!/bin/sh
cd "$STATE"
[ "$1 $2" = "--namespace spark" ] || exit 9
shift 2
case "$*" in
"get pods --selector app=spark-worker --sort-by=.metadata.name --output "*) echo "spark-worker-0 10.1.0.4 node-1" ;;
"get pod spark-worker-0 --ignore-not-found --output jsonpath={.metadata.uid}") cat uid ;;
"get pod spark-worker-0 --ignore-not-found --output jsonpath={.status.conditions"*) cat ready ;;
"delete pod spark-worker-0 --grace-period=0 --force --wait=false") echo gone >deleted ;;
"wait --for=condition=Ready pod/spark-worker-0 --timeout="*) printf "True 2026-01-02T03:04:05Z" >ready ;;
*) exit 9 ;;
esac
"""
AWS = """#!/bin/sh
cd "$STATE"
case "$*" in
"ec2 describe-instances --filters Name=tag:role,Values=spark-worker Name=instance-state-name,Values=running"*)
    printf 'i-0abc\\t10.2.0.4\\teu-central-1a\\n' ;;
"ec2 describe-instances --instance-ids i-0abc --output text --query Reservations[0].Instances[0].State.Name")
    cat state ;;
"ec2 stop-instances --instance-ids i-0abc --force --output text") echo stopping >state ;;
"ec2 start-instances --instance-ids i-0abc --output text") echo pending >state ;;
*) exit 9 ;;
esac
"""

ADDRESS = f"127.3.{os.getpid() % 250}.{{}}"  # no other test's processes name it
LIMIT_S = 60.0
Start = Callable[..., subprocess.Popen[bytes]]


class Example:
    """A script of an example in a folder of its own, before whose PATH stands the stand-in."""

    def __init__(self, script: str, folder: Path, stand_in: str, text: str) -> None:
        self.state = folder / "state"
        self.state.mkdir()
        shutil.copy(EXAMPLES / script, folder)
        self._script = str(folder / Path(script).name)
        (folder / "bin").mkdir()
        program(folder / "bin" / stand_in, text)
        self._variables = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "STATE": str(self.state), "HOME": str(folder)}

    def __call__(self, *arguments: str) -> Ended:
        done = subprocess.run(
            [self._script, *arguments], env=self._variables, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode < 9, done.stderr
        return Ended(done.returncode, done.stdout, done.stderr, 0, 2**62)

    def proves(self, *arguments: str) -> bool:
        ended = self(*arguments)
        return ended.code == 0 and moment("proof", ended, since_ns=0) > 0

    def write(self, **states: str) -> None:
        for name, text in states.items():
            (self.state / name).write_text(text, encoding="utf-8")


@pytest.fixture
def pod(tmp_path: Path) -> Example:
    return Example("kubernetes/pod", tmp_path, "kubectl", KUBECTL)


@pytest.fixture
def instance(tmp_path: Path) -> Example:
    return Example("aws/instance", tmp_path, "aws", AWS)


def test_a_pod_is_gone_once_another_one_has_its_name(pod: Example) -> None:
    pod.write(uid="uid-1", ready="True 2026-01-01T00:00:00Z")
    assert hosts_of(pod("list").output) == [ListedHost("spark-worker-0", "10.1.0.4", "node-1")]
    assert pod.proves("ready", "spark-worker-0")
    pod("delete", "spark-worker-0")
    assert (pod.state / "deleted").exists()
    assert not pod.proves("gone", "spark-worker-0"), "the same pod is still there"
    (pod.state / "uid").unlink()  # the stand-in fails, as a server that cannot be reached
    assert not pod.proves("gone", "spark-worker-0"), "it is not known"
    pod.write(uid="", ready=" ")
    assert pod.proves("gone", "spark-worker-0")
    assert not pod.proves("ready", "spark-worker-0")
    pod.write(uid="uid-2", ready="False 2026-01-02T03:04:00Z")
    assert pod.proves("gone", "spark-worker-0")
    assert not pod.proves("ready", "spark-worker-0")
    assert pod("await", "spark-worker-0").code == 0
    assert pod("ready", "spark-worker-0").output == "1767323045\n", "since when, not now"


def test_a_pod_that_was_not_deleted_is_not_gone(pod: Example) -> None:
    """Its uid could not be read, so nobody knows whether it is another one now."""
    assert pod("delete", "spark-worker-0").code != 0
    pod.write(uid="uid-1", ready="True 2026-01-01T00:00:00Z")
    assert not pod.proves("gone", "spark-worker-0")
    pod.write(uid="")
    assert pod("delete", "spark-worker-0").code != 0, "there is none that could be deleted"
    pod.write(uid="uid-1")
    assert not pod.proves("gone", "spark-worker-0")
    assert not (pod.state / "deleted").exists()


@pytest.mark.parametrize(
    ("code", "found", "dead", "killed"), [(1, "", True, True), (0, "1073741823", False, True), (3, "", False, False)]
)
def test_a_search_that_fails_proves_no_death(tmp_path: Path, code: int, found: str, dead: bool, killed: bool) -> None:
    """As when pgrep is missing, or the machine that is asked by ssh does not answer. No process has that id."""
    host = Example("standalone/host", tmp_path, "pgrep", f"#!/bin/sh\necho {found}\nexit {code}\n")
    settings = "SPARK_HOME=/ JAVA_HOME=/ WORK=/nowhere HOSTS='w-1 127.0.0.111 rack-a'"
    (tmp_path / "settings.sh").write_text(settings, encoding="utf-8")
    assert (host("kill", "w-1").code == 0, host.proves("dead", "w-1")) == (killed, dead)
    assert not host.proves("dead", "w-2"), "no host of that name"


@pytest.fixture
def seen(tmp_path: Path) -> Callable[[str], Example]:
    """A host with one process, whose state such a `ps` tells. No process has its id."""

    def make(ps: str) -> Example:
        host = Example("standalone/host", tmp_path, "pgrep", "#!/bin/sh\necho 1073741823\n")
        program(tmp_path / "bin" / "ps", f"#!/bin/sh\n{ps}\n")
        settings = f"SPARK_HOME=/ JAVA_HOME=/ WORK='{tmp_path}' HOSTS='w-1 127.0.0.111 rack-a'"
        (tmp_path / "settings.sh").write_text(settings, encoding="utf-8")
        (tmp_path / "w-1").mkdir()
        (tmp_path / "w-1" / "worker-1.log").write_text("Successfully registered with master\n", encoding="utf-8")
        return host

    return make


@pytest.mark.parametrize(
    ("ps", "paused", "resumed"),
    [("echo T", True, False), ("echo Sl", False, True), ("exit 127", False, False), ("echo T; exit 255", False, False)],
)
def test_a_state_that_cannot_be_read_proves_neither_a_pause_nor_its_end(
    seen: Callable[[str], Example], ps: str, paused: bool, resumed: bool
) -> None:
    """As when the machine that is asked by ssh does not answer."""
    host = seen(ps)
    assert (host.proves("paused", "w-1"), host.proves("resumed", "w-1")) == (paused, resumed)
    assert (host("pause", "w-1").code == 0) == paused


def test_a_process_that_does_not_stop_is_told_after_a_while(seen: Callable[[str], Example]) -> None:
    """As one of another user, or in state D."""
    ended = seen("echo D")("pause", "w-1")
    assert ended.code == 1
    assert ended.complaint.startswith("w-1 cannot be paused: its processes 1073741823 are")


def test_an_instance_is_stopped_once_its_state_says_so(instance: Example) -> None:
    instance.write(state="running\n")
    assert hosts_of(instance("list").output) == [ListedHost("i-0abc", "10.2.0.4", "eu-central-1a")]
    assert instance.proves("running", "i-0abc")
    instance("stop", "i-0abc")
    assert not instance.proves("stopped", "i-0abc"), "it is stopping"
    instance.write(state="stopped\n")
    assert instance.proves("stopped", "i-0abc")
    instance("start", "i-0abc")
    assert not instance.proves("running", "i-0abc"), "it is pending"
    instance.write(state="running\n")
    assert instance.proves("running", "i-0abc")


@pytest.fixture
def host(tmp_path: Path) -> Example:
    example = Example("standalone/host", tmp_path, "unused", "")
    hosts = "\n".join(f"w-{number} {ADDRESS.format(number)} rack" for number in (1, 2))
    (tmp_path / "settings.sh").write_text(
        f"SPARK_HOME= JAVA_HOME= WORK='{tmp_path}'\nHOSTS='{hosts}'\n", encoding="utf-8"
    )
    (tmp_path / "w-1").mkdir()
    (tmp_path / "w-1" / "worker-1.log").write_text("Successfully registered with master\n", encoding="utf-8")
    return example


@pytest.fixture
def start() -> Iterator[Start]:
    """Start what looks like a worker of Spark (option `--host`) or an executor (`--hostname`) on one of the hosts."""
    with ExitStack() as at_end:

        def begin(number: int, option: str) -> subprocess.Popen[bytes]:
            command = ["java", "-c", "import time; time.sleep(60)", option, ADDRESS.format(number)]
            process = at_end.enter_context(subprocess.Popen(command, executable=sys.executable))
            at_end.callback(process.kill)
            return process

        yield begin


def test_a_worker_is_paused_only_while_each_of_its_processes_is(host: Example, start: Start) -> None:
    assert not host.proves("paused", "w-1"), "nothing runs"
    other, _ = start(2, "--host"), start(1, "--host")
    start(1, "--hostname")
    assert host.proves("resumed", "w-1")
    host("pause", "w-1")
    assert host.proves("paused", "w-1")
    assert not host.proves("resumed", "w-1")
    assert not host.proves("paused", "w-2"), "another host"
    start(1, "--hostname")
    assert not host.proves("paused", "w-1"), "one of three runs"
    assert not host.proves("resumed", "w-1"), "two of three are paused"
    host("resume", "w-1")
    assert host.proves("resumed", "w-1")
    assert other.poll() is None


def test_a_paused_worker_that_is_terminated_ends(host: Example, start: Start) -> None:
    found = [start(1, "--host"), start(1, "--hostname")]
    other = start(2, "--host")
    host("pause", "w-1")
    host("terminate", "w-1")
    assert [process.wait(60) for process in found] == [-signal.SIGTERM] * 2
    assert host.proves("dead", "w-1")
    assert not host.proves("alive", "w-1")
    assert other.poll() is None
