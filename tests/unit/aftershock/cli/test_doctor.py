"""`aftershock doctor`: what is there is told as there, what is lacking with its remedy, and the exit code agrees."""

import json
from collections import namedtuple

import pytest

from aftershock.run import doctor, room
from experiments.errors import BadInput, EnvironmentFailure
from experiments.hosts import ClusterDriver
from infra.refusals import DeclaredFaults
from infra.services.jars import Jars
from tests.unit.experiments.test_inventory import GATEWAY, host
from tests.unit.ssh_keys import new_key

Memory = namedtuple("Memory", "available")
Disk = namedtuple("Disk", "free")


class Driver(DeclaredFaults):
    """A driver that is in order, or that fails its check; it cannot inject a delay."""

    def __init__(self, name):
        self.name, self.failure = ClusterDriver(name), None

    def check(self, spec):
        if self.failure:
            raise self.failure

    def obstacle(self, spec, kind, options):
        return "cpu_share" if options.delay else None


@pytest.fixture
def drivers(monkeypatch, tmp_path):
    """A machine on which all is in order, by driver; a test breaks what it is about."""
    found = {name.value: Driver(name) for name in ClusterDriver}
    monkeypatch.setattr(doctor, "driver_of", lambda name: found[name.value])
    monkeypatch.setattr(doctor, "_java", lambda: "Java 17")
    monkeypatch.setattr(doctor, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(doctor, "ensure_jars", lambda: Jars([], [tmp_path]))
    monkeypatch.setattr(room.psutil, "virtual_memory", lambda: Memory(64 * 2**30))
    monkeypatch.setattr(room.shutil, "disk_usage", lambda folder: Disk(64 * 2**30))
    return found


def by_subject(found):
    return {finding["subject"]: finding for finding in found["findings"]}


def machines(folder, workers=1):
    """The path of an inventory with a gateway and some workers."""
    new_key(folder / "key")
    hosts = [GATEWAY, *(host(f"w-{number}") for number in range(1, workers + 1))]
    return written(folder / "machines.json", {"hosts": hosts})


def cluster(folder):
    """The path of what is seen to describe an existing cluster."""
    return written(folder / "cluster.json", {"master": "yarn", "list_hosts": ["a"]})


def written(path, document):
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_machine_in_order_is_ready(drivers, as_json):
    found = as_json("doctor")
    assert found["ready"]
    subjects = by_subject(found)
    assert [subjects[f"driver {name}"]["can"] for name in drivers] == ["yes", "yes", "yes", "unknown", "unknown"]
    assert "--inventory" in subjects["driver ssh"]["remedy"]


def test_every_machine_of_an_inventory_is_asked(drivers, as_json, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(drivers["ssh"], "check", lambda spec: asked.append((spec.driver, spec.workers)))
    found = by_subject(as_json(f"doctor --inventory {machines(tmp_path, workers=5)}"))["driver ssh"]
    assert (found["can"], asked) == ("yes", [("ssh", 5)])


def test_an_existing_cluster_of_one_host_is_enough(drivers, as_json, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(drivers["external"], "check", lambda spec: asked.append((spec.driver, spec.workers)))
    assert by_subject(as_json(f"doctor --inventory {cluster(tmp_path)}"))["driver external"]["can"] == "yes"
    assert asked == [("external", 1)]


@pytest.mark.parametrize(("write", "asked", "other"), [(machines, "ssh", "external"), (cluster, "external", "ssh")])
def test_a_file_is_for_the_driver_whose_hosts_it_describes(drivers, as_json, tmp_path, write, asked, other):
    subjects = by_subject(as_json(f"doctor --inventory {write(tmp_path)}"))
    assert (subjects[f"driver {asked}"]["can"], subjects[f"driver {other}"]["can"]) == ("yes", "unknown")


def test_what_a_driver_lacks_is_told_with_its_remedy(drivers, call):
    drivers["docker"].failure = EnvironmentFailure("no Docker daemon", "start it")
    drivers["netns"].failure = BadInput("cluster.driver", "netns", "local, or netns as root")
    code, out, _ = call("doctor")
    assert code == 0, "driver local is there"
    assert "- driver docker: no Docker daemon\n    start it\n" in out
    assert "    allowed: local, or netns as root\n" in out
    assert "faults of docker" not in out


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (BadInput("faults.kil", {}, "no such field", "cluster.json"), "cluster.json: faults.kil: "),
        (BadInput("checkpoints", "/no/such", "a folder that exists"), "checkpoints: '/no/such' is not usable"),
    ],
)
def test_a_mistake_in_the_file_is_bad_input(drivers, call, tmp_path, refusal, told):
    drivers["external"].failure = refusal
    code, out, err = call(f"doctor --inventory {cluster(tmp_path)}")
    assert (code, out) == (2, "")
    assert err.startswith(f"aftershock: {told}")


def test_a_file_that_is_not_there_is_bad_input(drivers, call, tmp_path):
    code, out, err = call(f"doctor --inventory {tmp_path}/none.json")
    assert (code, out) == (2, "")
    assert "none.json' is not usable; allowed: a readable JSON file" in err


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (EnvironmentFailure("no Spark master answers", "start it"), "no Spark master answers\n    start it\n"),
        (BadInput("cluster.workers", 3, "at most 2"), "cluster.workers: 3 is not usable; allowed: at most 2\n"),
    ],
)
def test_a_described_cluster_that_cannot_be_used_is_not_called_ready(drivers, call, tmp_path, failure, told):
    drivers["external"].failure = failure
    code, out, _ = call(f"doctor --inventory {cluster(tmp_path)}")
    assert code == 0, "driver local is there"
    assert f"- driver external: {told}" in out
    assert out.splitlines()[-1].startswith("ready for `aftershock benchmark`, but not with driver external: ")


def test_what_is_wrong_with_a_setting_of_this_machine_is_told(drivers, call):
    drivers["docker"].failure = BadInput("DOCKER_HOST", "tcp://a", "unix://PATH")
    assert "- driver docker: DOCKER_HOST: 'tcp://a' is not usable; allowed: unix://PATH\n" in call("doctor")[1]


def test_faults_that_a_driver_cannot_inject_are_told_apart(drivers, as_json):
    subjects = by_subject(as_json("doctor"))
    assert "power-off" in subjects["faults of netns"]["found"]
    assert "power-off" not in subjects["faults of local"]["found"]
    assert "power-off" in subjects["other faults with local"]["found"]
    assert subjects["slow (delayed messages) with netns"]["remedy"] == "allowed: cpu_share"


@pytest.mark.parametrize("lacking", ["_java", "ensure_jars"])
def test_without_what_every_run_needs_the_machine_is_not_ready(drivers, monkeypatch, call, lacking):
    def missing():
        raise EnvironmentFailure("not found", "run `make setup`")

    monkeypatch.setattr(doctor, lacking, missing)
    code, out, _ = call("doctor --json")
    assert (code, json.loads(out)["ready"]) == (3, False)
    assert "run `make setup`" in out


def test_jars_that_are_not_there_are_not_downloaded(drivers, monkeypatch, tmp_path, call):
    monkeypatch.setattr(doctor, "cache_folder", lambda: tmp_path / "none")
    monkeypatch.setattr(doctor, "ensure_jars", lambda: pytest.fail("it would download"))
    assert call("doctor")[0] == 3


def test_little_memory_is_told(drivers, monkeypatch, as_json):
    monkeypatch.setattr(room.psutil, "virtual_memory", lambda: Memory(2**30))
    memory = by_subject(as_json("doctor"))["memory"]
    assert (memory["can"], "cluster.workers" in memory["remedy"]) == ("no", True)


def test_a_machine_that_is_short_of_something_is_not_called_ready_in_the_last_line(drivers, monkeypatch, call):
    assert call("doctor")[1].splitlines()[-1] == "ready for `aftershock benchmark`"
    monkeypatch.setattr(room.shutil, "disk_usage", lambda folder: Disk(2**20))
    code, out, _ = call("doctor")
    assert (code, out.splitlines()[-1]) == (
        0,
        "a run can start, but there is too little disk: see what is marked with -",
    )
    monkeypatch.setattr(room.psutil, "virtual_memory", lambda: Memory(2**30))
    assert "too little memory and disk" in call("doctor")[1].splitlines()[-1]


def test_room_is_looked_for_where_the_folder_of_runs_will_be_made(drivers, monkeypatch, tmp_path, as_json):
    looked_at = []
    monkeypatch.setattr(room, "home", lambda: tmp_path / "not" / "there" / "yet")
    monkeypatch.setattr(room.shutil, "disk_usage", lambda folder: looked_at.append(folder) or Disk(64 * 2**30))
    assert by_subject(as_json("doctor"))["disk"]["can"] == "yes"
    assert looked_at == [tmp_path]
