"""What a container of the docker driver sees, writes and may do: tried from within real containers, by root there.

The home of the run is below the checkout, as it is by default, so that what hosts see of the checkout must not show it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.fault_kinds import FaultKind
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra.cluster import Handle
from infra.docker import containers, creation, stream
from infra.docker.driver import DockerDriver
from infra.drivers import driver_of
from infra.launch import REPOSITORY
from infra.processes import members
from infra.remote.session import Disconnected
from infra.services import startup
from infra.strikes import partition
from tests.unit.marked_processes import wait_for

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("daemon")]
TWO_WORKERS = ClusterSpec(driver=ClusterDriver.DOCKER, workers=2, worker_memory_mb=512, worker_disk_mb=64)
HOSTS = ("gateway", "worker-1", "worker-2")
RAW = "../result/raw"  # from the cluster's root
SECRET = "hunter2"
FOREIGN = {  # what lies in the run, from the cluster's root, that a host has no business with
    "gateway": ("hosts/worker-1/own", "hosts/control/own", f"{RAW}/plan.json", f"{RAW}/injector.jsonl", "handle.json"),
    "worker-1": (
        "hosts/gateway/own",
        "hosts/gateway/orders/query.json",
        "hosts/worker-2/own",
        "hosts/control/own",
        "rules/worker-2/partition.nft",
        f"{RAW}/plan.json",
        f"{RAW}/query.jsonl",
        "handle.json",
    ),
}
READABLE = {
    "gateway": ("hosts/gateway/orders/query.json", "job/program/job.py", "secrets/run"),
    "worker-1": ("job/program/job.py", "secrets/run", "rules/worker-1/partition.nft"),
    "control": ("handle.json", "secrets/run", "hosts/gateway/own", "hosts/worker-1/own"),
}
WRITABLE = {
    "gateway": (
        "hosts/gateway/new",
        "hosts/gateway/logs/new.log",
        "store/new",
        f"{RAW}/query.jsonl",
        f"{RAW}/supervisor.jsonl",
        f"{RAW}/generator.jsonl",
        f"{RAW}/spark-events/new",
    ),
    "worker-1": ("hosts/worker-1/new", "hosts/worker-1/logs/new.log", "hosts/worker-1/lives/new", "store/new"),
    "control": (
        "hosts/control/logs/new.log",
        "hosts/worker-1/lives/new",
        "rules/worker-1/partition.nft",
        f"{RAW}/injector.jsonl",
        f"{RAW}/hosts.jsonl",
    ),
}
MACHINES_OWN = ("/", "/usr", "/etc", "/root", "/lib", str(REPOSITORY), str(REPOSITORY / "infra"), sys.prefix)
FIND_SOCKETS = """
find / -path /proc -prune -o -path /sys -prune -o -type s -print 2>/dev/null
cut -d ' ' -f 5 /proc/self/mountinfo | while read -r path; do [ ! -S "$path" ] || echo "$path"; done
"""
ASK_DAEMON = """
import socket, sys
for path in sys.argv[1:]:
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(5)
        connection.connect(path)
        connection.sendall(b"GET /_ping HTTP/1.0\\r\\n\\r\\n")
        print(path, connection.recv(100))
    except OSError as error:
        print(path, error.strerror, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Where the default home of a checkout is."""
    parent = REPOSITORY / ".aftershock"
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="isolation-", dir=parent))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cluster(home: Path, daemon: None) -> Iterator[Handle]:
    """The containers of a run, without Spark or Kafka in them, and something in each of its folders."""
    root = home / "live" / "run-1" / "cluster"
    (root.parent / "result" / "raw").mkdir(parents=True)
    (root / "secrets").mkdir(parents=True)
    handle = made("run-1", root)
    try:
        fill(root)
        yield handle
    finally:
        driver_of("docker").destroy(handle)


def made(run_id: str, root: Path) -> Handle:
    with startup.one_at_a_time():
        handle = startup.lay_out_on_bridge(TWO_WORKERS, run_id, root)
        handle.save()
        try:
            creation.make_hosts(TWO_WORKERS, handle)
        except BaseException:
            driver_of("docker").destroy(handle)
            raise
    return handle


def fill(root: Path) -> None:
    known = [path for paths in (*FOREIGN.values(), *READABLE.values()) for path in paths if path != "handle.json"]
    for path in sorted({root / path for path in known}):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)


@pytest.fixture(scope="module")
def driver(daemon: None) -> DockerDriver:
    return driver_of("docker")


def shell(cluster: Handle, host: str, script: str, *arguments: str) -> tuple[int, str]:
    """The exit code of a shell's script in the container of a host, and what it printed."""
    done = containers.get(cluster, host).exec_run(["sh", "-c", script, "sh", *arguments])
    return done.exit_code, done.output.decode()


def written(cluster: Handle, host: str, path: str) -> bool:
    return shell(cluster, host, 'echo written >> "$1"', path)[0] == 0


def changed(cluster: Handle, host: str, path: str) -> bool:
    """Whether what a host writes there is on the machine; below /tmp it may be in a folder of the container's own."""
    before = content(path)
    written(cluster, host, path)
    return content(path) != before


def content(path: str) -> str | None:
    return Path(path).read_text() if Path(path).is_file() else None


def of_the_run(cluster: Handle, path: str) -> str:
    return str((Path(cluster.root) / path).resolve())


def status_of(cluster: Handle, host: str) -> dict[str, str]:
    """What the kernel says of the first process of a container."""
    lines = shell(cluster, host, "cat /proc/1/status")[1].splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.parametrize(("host", "path"), [(host, path) for host, paths in FOREIGN.items() for path in paths])
def test_a_host_neither_reads_nor_writes_what_is_not_its_own(cluster: Handle, host: str, path: str) -> None:
    path = of_the_run(cluster, path)
    before = Path(path).read_text()
    code, content = shell(cluster, host, 'cat "$1"', path)
    assert (code != 0, SECRET in content) == (True, False), "it is not seen"
    assert not changed(cluster, host, path)
    assert Path(path).read_text() == before


@pytest.mark.parametrize(("host", "path"), [(host, path) for host, paths in READABLE.items() for path in paths])
def test_what_a_host_needs_of_the_run_it_reads(cluster: Handle, host: str, path: str) -> None:
    code, content = shell(cluster, host, 'cat "$1"', of_the_run(cluster, path))
    assert code == 0
    assert content == Path(of_the_run(cluster, path)).read_text()


@pytest.mark.parametrize("host", ["gateway", "worker-1"])
@pytest.mark.parametrize("path", ["job/new", "job/program/job.py", "secrets/run", "secrets/new", "new", "hosts/new"])
def test_what_a_host_only_reads_it_does_not_write(cluster: Handle, host: str, path: str) -> None:
    assert not changed(cluster, host, of_the_run(cluster, path))
    assert SECRET in (Path(cluster.root) / "secrets/run").read_text()
    assert not (Path(cluster.root) / path).is_file() or (Path(cluster.root) / path).read_text() == SECRET


@pytest.mark.parametrize(("host", "path"), [(host, path) for host, paths in WRITABLE.items() for path in paths])
def test_what_a_host_must_write_it_writes(cluster: Handle, host: str, path: str) -> None:
    assert written(cluster, host, of_the_run(cluster, path))
    if "lives" not in path:  # which is a disk of the worker's own
        assert Path(of_the_run(cluster, path)).read_text().endswith("written\n")


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_has_a_folder_for_scratch_files_and_writes_nothing_of_the_machines(cluster: Handle, host: str) -> None:
    assert written(cluster, host, "/tmp/new")
    for folder in MACHINES_OWN:
        assert not changed(cluster, host, f"{folder}/new"), folder
        assert not Path(folder, "new").exists()


@pytest.mark.parametrize("folder", ["orders", "", "../../rules/worker-1"])
def test_a_host_cannot_put_a_link_where_the_controller_writes(cluster: Handle, folder: str) -> None:
    """The controller would follow it on the machine, as the user who started the run."""
    host = "worker-1" if "rules" in folder else "gateway"
    path = of_the_run(cluster, f"hosts/{host}/{folder}" if folder else RAW)
    shell(cluster, host, 'ln -s /etc/passwd "$1/link"', path)
    shell(cluster, host, 'rm -rf "$1"; mv "$1" "$1.away"; ln -s /etc "$1"', path)
    assert not Path(path).is_symlink()
    assert not Path(path, "link").is_symlink()
    assert Path(path).is_dir()


REPLACE = """
cd "$1"
mv lives lives.away && exit 1
[ ! -e tmp ] || mv tmp tmp.away
ln -s / tmp
"""


def test_a_link_that_a_host_leaves_is_not_followed_when_it_gets_its_power_again(cluster: Handle) -> None:
    """The daemon follows links in the sources of mounts again, each time that it starts a container."""
    host = "worker-2"
    code, said = shell(cluster, host, REPLACE, str(cluster.directory(host)))
    assert code == 0, said
    containers.power_off(containers.get(cluster, host))
    assert containers.power_on(containers.get(cluster, host)) == 1
    root = Path("/").stat()
    assert shell(cluster, host, "stat -c %d:%i /tmp") != (0, f"{root.st_dev}:{root.st_ino}\n"), "the machine's root"
    assert written(cluster, host, "/tmp/new")


def test_no_host_sees_a_secret_of_the_machine(cluster: Handle) -> None:
    for host in HOSTS:
        for path in ("/etc/shadow", "/etc/ssl/private", str(REPOSITORY / ".git"), str(Path.home() / ".ssh")):
            assert shell(cluster, host, 'ls "$1"', path)[0] != 0, path


def test_only_the_control_container_can_ask_the_daemon(cluster: Handle) -> None:
    for host in (*HOSTS, "control"):
        found = shell(cluster, host, FIND_SOCKETS)[1].split()
        asked = [sys.executable, "-S", "-c", ASK_DAEMON, "/var/run/docker.sock", "/run/docker.sock", *found]
        answers = containers.get(cluster, host).exec_run(asked, stderr=False).output.decode()
        assert ("200 OK" in answers) == (host == "control"), answers
        assert bool(found) == (host == "control"), found


def test_no_process_of_a_host_has_the_daemons_socket_mounted(driver: DockerDriver, cluster: Handle) -> None:
    """As the machine sees them, in all containers."""
    driver.running(cluster, "worker-1")  # then it has an agent, too
    for host in HOSTS:
        pids = members(f"{cluster.token}/machine/{host}") + members(f"{cluster.token}/{host}")
        assert pids
        assert not [pid for pid in pids if "docker.sock" in Path(f"/proc/{pid}/mountinfo").read_text()]
    control = members(f"{cluster.token}/machine/control")
    assert all("docker.sock" in Path(f"/proc/{pid}/mountinfo").read_text() for pid in control)


def test_containers_have_no_right_that_their_part_does_not_need(cluster: Handle) -> None:
    net_admin, sys_nice = 1 << 12, 1 << 23
    for host, rights in {"gateway": sys_nice, "worker-1": net_admin | sys_nice, "control": sys_nice}.items():
        status = status_of(cluster, host)
        assert (int(status["CapBnd"], 16), int(status["CapEff"], 16)) == (rights, rights), host
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2", "the daemon's filter of system calls"
        assert 0 < containers.get(cluster, host).attrs["HostConfig"]["PidsLimit"] <= 8192


def test_injector_and_sampler_are_services_of_the_gateway_in_a_container_of_their_own(
    driver: DockerDriver, cluster: Handle
) -> None:
    before = driver.usage(cluster, "gateway")
    for service in ("injector", "sampler", "generator"):
        driver.spawn(cluster, "gateway", service, ["sh", "-c", f"echo {service}; : $$; exec sleep 600"])
    assert driver.running(cluster, "gateway") == {"injector", "sampler", "generator"}
    assert driver.running(cluster, "worker-1") == set()
    assert driver.usage(cluster, "gateway").rss_bytes > before.rss_bytes
    processes = {host: shell(cluster, host, "ps axo args")[1].count("sleep 600") for host in ("gateway", "control")}
    assert processes == {"gateway": 1, "control": 2}
    log = cluster.directory("control") / "logs" / "injector.log"
    wait_for(lambda: log.read_text() == "injector\n")
    for service in ("injector", "sampler", "generator"):
        driver.stop(cluster, "gateway", service, 5.0)
    wait_for(lambda: driver.running(cluster, "gateway") == set())


def test_a_broker_that_is_started_again_makes_the_controller_follow_no_link(
    driver: DockerDriver, cluster: Handle, tmp_path: Path
) -> None:
    folder, target = cluster.directory("gateway") / "kafka", tmp_path / "written"
    code, said = shell(cluster, "gateway", 'mkdir -p "$1"; ln -s "$2" "$1/server.properties"', str(folder), str(target))
    assert code == 0, said
    driver.heal(cluster, "gateway", FaultKind.BROKER_KILL)
    driver.stop(cluster, "gateway", "broker", 0.0)
    assert not target.exists()


def test_a_host_that_talks_without_end_is_a_host_that_is_lost(cluster: Handle) -> None:
    session = stream.ExecSession(containers.get(cluster, "worker-1"), ["sh", "-c", "yes | tr -d '\\n'"])
    with pytest.raises(Disconnected, match="it says much and gives no answer"):
        session.ask(60.0, do="clock")
    assert not session.alive


HEAL = """
import sys
from pathlib import Path
from experiments.fault_kinds import FaultKind
from infra.cluster import Handle
from infra.drivers import driver_for
from infra.remote.requests import ReadClock
handle = Handle.load(Path(sys.argv[1]))
driver, kind = driver_for(handle), FaultKind(sys.argv[2])
strike = driver.prepare(handle, sys.argv[3], kind)
assert strike.refresh()
strike.shoot()
proof = strike.fire()
assert proof.holds, proof
if kind.loses_the_host:
    driver.ask(handle, handle.hosts[sys.argv[3]], ReadClock()) if kind.value != "power-off" else None
else:
    assert driver.heal(handle, sys.argv[3], kind).holds
print("struck")
"""


@pytest.mark.parametrize("kind", [FaultKind.PARTITION, FaultKind.PAUSE, FaultKind.DISK_FULL, FaultKind.POWER_OFF])
def test_faults_are_injected_from_the_control_container(driver: DockerDriver, cluster: Handle, kind: FaultKind) -> None:
    if kind is FaultKind.PARTITION and (reason := partition.refusal()):
        pytest.skip(reason)
    driver.spawn(cluster, "worker-2", "idle", ["sleep", "600"])
    command = [sys.executable, "-c", HEAL, cluster.root, kind.value, "worker-2"]
    done = containers.get(cluster, "control").exec_run(command)
    assert (done.exit_code, done.output.decode().strip()[-400:]) == (0, "struck")
    containers.power_on(containers.get(cluster, "worker-2"))


def test_the_control_container_goes_with_its_cluster(driver: DockerDriver, home: Path) -> None:
    root = home / "live" / "run-2" / "cluster"
    root.mkdir(parents=True)
    handle = made("run-2", root)
    assert len(containers.containers_of(handle.label)) == 4
    driver.destroy(handle)
    assert not containers.containers_of(handle.label)
