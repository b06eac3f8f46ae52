"""The description of a cluster that is already there: what is wrong with it is told in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import external_cluster, spec
from experiments.errors import BadInput
from experiments.fault_kinds import FaultKind
from tests.unit.infra.external import clusters

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "external"


def refused(folder: Path, document: dict[str, Any]) -> str:
    path = folder / "cluster.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BadInput) as problem:
        external_cluster.load(path)
    line = str(problem.value)
    assert "\n" not in line
    assert line.startswith(f"{path}: ")
    return line.removeprefix(f"{path}: ")


def commands(**changes: Any) -> dict[str, Any]:
    return {"faults": {"kill": clusters.COMMANDS | changes}}


def test_programs_and_files_are_looked_for_beside_the_description(tmp_path: Path) -> None:
    path = clusters.make(tmp_path / "there", broker_login="login", spark_conf="/etc/spark.conf")
    found = external_cluster.load(path)
    assert found.list_hosts == (str(tmp_path / "there" / "host"), "list")
    assert found.faults[FaultKind.KILL].heal == (str(tmp_path / "there" / "host"), "start", "{host}")
    assert (found.broker_login, found.spark_conf) == (tmp_path / "there" / "login", Path("/etc/spark.conf"))


def test_a_mere_name_of_a_program_is_left_to_path(tmp_path: Path) -> None:
    assert external_cluster.load(clusters.make(tmp_path / "there", list_hosts=["kubectl"])).list_hosts == ("kubectl",)


@pytest.mark.parametrize(
    "master", ["spark://10.0.0.5:7077", f"spark://{'h' * 63}.a-b:65535", "k8s://https://api.example.org:6443", "yarn"]
)
def test_masters_of_three_kinds_are_known(master: str, tmp_path: Path) -> None:
    assert external_cluster.load(clusters.make(tmp_path / "there", master=master)).master == master


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"master": "mesos://10.0.0.5:5050"}, "master: 'mesos://10.0.0.5:5050' is not usable; allowed: spark://HOST"),
        ({"master": "local[*]"}, "master: 'local[*]' is not usable; allowed: spark://HOST:PORT, k8s://https://HOST"),
        ({"address": "gateway"}, "address: 'gateway' is not usable; allowed: an IPv4 address"),
        ({"address": "0.0.0.0"}, "address: '0.0.0.0' is not usable; allowed: an IPv4 address of this machine"),
        ({"master": "spark://h:70000"}, "master: 'spark://h:70000' is not usable; allowed: spark://HOST:PORT, k8s://"),
        ({"master": "spark://a..b:7077"}, "master: 'spark://a..b:7077' is not usable; allowed: spark://HOST:PORT, k8s"),
        ({"brokers": "h:9092,h:65536"}, "brokers: 'h:9092,h:65536' is not usable; allowed: HOST:PORT"),
        ({"brokers": f"{'h' * 64}:1"}, f"brokers: '{'h' * 64}:1' is not usable; allowed: HOST:PORT"),
        ({"brokers": "kafka"}, "brokers: 'kafka' is not usable; allowed: HOST:PORT"),
        ({"checkpoints": "store"}, "checkpoints: 'store' is not usable; allowed: the absolute path of a folder"),
        ({"checkpoints": "/"}, "checkpoints: '/' is not usable; allowed: the absolute path of a folder"),
        ({"limit_s": 0}, "limit_s: 0 is not usable; allowed: a number above 0"),
        ({"list_hosts": []}, "list_hosts: [] is not usable; allowed: 1 or more"),
        ({"list_hosts": "./host list"}, "list_hosts: './host list' is not usable; allowed: a list"),
        ({"list_hosts": [""]}, "list_hosts.0: '' is not usable; allowed: a program: its name, or its path"),
        ({"faults": {}}, "faults: {} is not usable; allowed: 1 or more"),
        ({"faults": {"partition": clusters.COMMANDS}}, "faults.partition: 'commands' is not usable; allowed: comma"),
        ({"faults": {"driver-kill": clusters.COMMANDS}}, "faults.driver-kill: 'commands' is not usable; allowed: co"),
        ({"faults": {"kill": {"strike": ["a", "{host}"]}}}, "faults.kill.prove: left out; allowed: a value: the fi"),
        (commands(prove=["./host", "dead"]), "faults.kill.prove: ['./host', 'dead'] is not usable; allowed: a command"),
        (commands(prove=["{host}"]), "faults.kill.prove: ['{host}'] is not usable; allowed: a command of which an"),
        (commands(shell="rm"), "faults.kill.shell: 'rm' is not usable; allowed: no such field"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(changes: dict[str, Any], line: str, tmp_path: Path) -> None:
    assert refused(tmp_path, clusters.description(tmp_path) | changes).startswith(line)


def test_a_secret_among_the_arguments_is_refused_and_not_told(tmp_path: Path) -> None:
    told = refused(tmp_path, clusters.description(tmp_path) | commands(heal=["a", "{host}", "--password=hunter2"]))
    assert told.startswith("faults.kill.heal.2: (not shown) is not usable; allowed: no secret")
    assert "hunter2" not in told


def test_an_inventory_of_machines_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "inventory.json"
    path.write_text('{"hosts": []}', encoding="utf-8")
    with pytest.raises(BadInput, match=r"an existing cluster; this is an inventory of machines"):
        external_cluster.load(path)


@pytest.mark.parametrize("name", ["standalone", "kubernetes", "aws"])
def test_the_examples_are_descriptions_of_programs_that_are_there(name: str) -> None:
    found = external_cluster.load(EXAMPLES / name / "cluster.json")
    programs = {command[0] for command in found.commands.values()}
    assert all(Path(program).is_file() for program in programs)


def test_an_experiment_names_the_description_and_runs_nothing_of_it(tmp_path: Path) -> None:
    document = {"cluster": {"driver": "external", "inventory": str(tmp_path / "nowhere.json"), "workers": 2}}
    assert spec.validate(document).cluster.inventory == str(tmp_path / "nowhere.json")


def test_the_testbed_is_refused_on_a_borrowed_cluster() -> None:
    document = {"cluster": {"driver": "external"}, "engine": {"name": "dataflow"}, "workload": {"name": "nexmark"}}
    with pytest.raises(
        BadInput, match=r"^engine.name: 'dataflow' .* nothing of this project is installed on its hosts"
    ):
        spec.validate(document)
