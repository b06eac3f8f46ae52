"""The Terraform modules: well-formed, refusing what is unsafe, and giving an inventory that can be read."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments import inventory
from tests.integration.infra.conftest import MODULES, Terraform
from tests.unit.ssh_keys import new_key

if TYPE_CHECKING:
    from tests.integration.infra.cloud import Cloud

MakeTerraform = Callable[..., Terraform]
NOTHING_TO_CHANGE = 0  # of `plan -detailed-exitcode`


def read_output(terraform: Terraform) -> inventory.Inventory:
    file = terraform.folder / "inventory.json"
    file.write_text(terraform.done("output", "-json", "inventory"), encoding="utf-8")
    return inventory.load(file)


def unchanged(terraform: Terraform) -> bool:
    return terraform("plan", "-input=false", "-detailed-exitcode").returncode == NOTHING_TO_CHANGE


def one_line(text: str) -> str:
    """Terraform's message without the box and the line breaks that it is shown with."""
    return " ".join(re.sub(r"[│╷╵]|\x1b\[[0-9;]*m", " ", text).split())


@pytest.fixture
def machines(tmp_path: Path) -> dict[str, Any]:
    """Variables of the local module: a gateway and two workers, one of them in two domains."""
    key_file = tmp_path / "keys" / "controller"
    new_key(key_file)
    sizes = {"cores": 2, "memory_mb": 4096}
    hosts = {
        "gateway": {"role": "gateway", "address": "198.18.7.1"},
        "worker-1": {"address": "198.18.7.2", "port": 2222, "domains": ["switch-1", "rack-a"]},
        "worker-2": {"address": "198.18.7.3", "internal_address": "10.0.0.3"},
    }
    made = {name: {**host, **sizes, "host_key": new_key(tmp_path / "keys" / name)} for name, host in hosts.items()}
    return {"hosts": made, "user": "tester", "key_file": str(key_file)}


@pytest.fixture
def local(terraform: MakeTerraform) -> Terraform:
    module = terraform("local")
    module.done("init", "-input=false")
    return module


def test_the_modules_are_formatted(terraform: MakeTerraform) -> None:
    assert terraform("local").done("fmt", "-check", "-diff", "-recursive", str(MODULES)) == ""


def test_the_local_module_needs_no_provider(local: Terraform) -> None:
    local.done("validate")
    assert list((local.folder / ".terraform").rglob("terraform-provider-*")) == []


def test_the_local_module_gives_an_inventory_and_takes_it_back(local: Terraform, machines: dict[str, Any]) -> None:
    local.set_variables(machines)
    local.done("apply", "-auto-approve", "-input=false")
    found = read_output(local)
    assert unchanged(local)
    assert found.gateway.name == "gateway"
    assert domains(found) == {"worker-1": ("rack-a", "switch-1"), "worker-2": ()}
    for host in found.hosts:
        wanted = machines["hosts"][host.name]
        assert (host.address, host.host_key) == (wanted["address"], wanted["host_key"])
        assert (host.user, host.key_file) == ("tester", Path(machines["key_file"]))
        assert (host.port, host.cores, host.memory_mb) == (wanted.get("port", 22), 2, 4096)
    assert [host.cluster_address for host in found.workers] == ["198.18.7.2", "10.0.0.3"]
    Path(machines["key_file"]).unlink()  # what is gone already must not keep a cluster up
    local.done("destroy", "-auto-approve", "-input=false")
    assert local.done("state", "list") == ""


@pytest.mark.parametrize(
    ("host", "change", "message"),
    [
        ("worker-1", {"role": "gateway"}, "Exactly one host has role gateway"),
        ("worker-1", {"role": "master"}, "The role of a host is gateway or worker"),
        ("worker-1", {"address": "198.18.7.3"}, "Every host has an address of its own"),
        ("worker-1", {"host_key": "trust me"}, "The host_key of a host is its public key"),
        ("worker-1", {"host_key": None}, "The host_key of a host is its public key"),
    ],
)
def test_the_local_module_refuses(
    local: Terraform, machines: dict[str, Any], host: str, change: dict[str, Any], message: str
) -> None:
    machines["hosts"][host] |= change
    local.set_variables(machines)
    run = local("apply", "-auto-approve", "-input=false")
    assert run.returncode == 1
    assert message in one_line(run.stderr)
    assert list(local.folder.glob("*.tfstate")) == []


def test_the_local_module_refuses_a_key_file_that_is_not_there(local: Terraform, machines: dict[str, Any]) -> None:
    local.set_variables(machines | {"key_file": "/no/such/key"})
    run = local("apply", "-auto-approve", "-input=false")
    assert run.returncode == 1
    assert "key_file is not there: /no/such/key" in one_line(run.stderr)


WORKERS = {f"worker-{number}": "rack-a" if number <= 2 else "rack-b" for number in range(1, 11)}  # by name: its rack
AWS = {
    "token": "s7-0123456789abcdef",
    "region": "eu-central-1",
    "ssh_from": "203.0.113.7",
    "racks": {"rack-a": 2, "rack-b": 8},
    "ami": "ami-0123456789abcdef0",
    "key_file": "keys/controller",
    "host_keys": "keys",
}


@pytest.fixture
def aws_variables(terraform: MakeTerraform) -> Terraform:
    """The variables of the AWS module by themselves: what they refuse shows without the provider."""
    module = terraform("aws", "variables.tf")
    module.done("init", "-input=false")
    return module


def test_the_aws_module_takes_good_variables(aws_variables: Terraform) -> None:
    aws_variables.set_variables(AWS)
    aws_variables.done("plan", "-input=false")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            ({"ssh_from": address}, "ssh_from is one IPv4 address without a mask")
            for address in ("0.0.0.0/0", "0.0.0.0", "10.0.0.0/8", "203.0.113.7/32", "::/0", "203.0.113", "", "here")
        ),
        ({"token": "short"}, "The token is 8 to 64 letters"),
        ({"token": "with spaces and $"}, "The token is 8 to 64 letters"),
        ({"racks": {}}, "From 1 to 6 racks"),
        ({"racks": {f"rack-{i}": 1 for i in range(7)}}, "From 1 to 6 racks"),
        ({"racks": {"rack-a": 0}}, "Every rack has a whole number of workers"),
        ({"racks": {"rack-a": 1.5}}, "Every rack has a whole number of workers"),
        ({"racks": {"Rack A": 1}}, "The name of a rack"),
        ({"ami": "debian-12"}, "The ami is an image's id"),
        ({"disk_gb": 4}, "The disk_gb is a whole number"),
    ],
)
def test_the_aws_module_refuses(aws_variables: Terraform, change: dict[str, Any], message: str) -> None:
    aws_variables.set_variables(AWS | change)
    run = aws_variables("plan", "-input=false")
    assert run.returncode == 1
    assert message in one_line(run.stderr)


@pytest.fixture
def aws(terraform: MakeTerraform, aws_provider: Path) -> MakeTerraform:
    """Makes a Terraform on the AWS module with its provider."""

    def ready(**environment: str) -> Terraform:
        module = terraform("aws", **environment)
        module.done("init", "-input=false", f"-plugin-dir={aws_provider}")
        return module

    return ready


def test_the_aws_module_is_valid(aws: MakeTerraform) -> None:
    aws().done("validate")


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    for package in ("moto", "flask", "flask_cors"):
        pytest.importorskip(package, reason="no EC2 to try: `pip install 'moto[ec2]' flask flask-cors` into .venv")
    from tests.integration.infra import cloud  # only now: it imports moto

    with cloud.running() as made:
        yield made


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """Keys of the controller and of all hosts, in the folder `keys`: the public halves."""
    names = ("controller", "gateway", *WORKERS)
    return {name: new_key(tmp_path / "keys" / name) for name in names}


@pytest.mark.extended
def test_the_aws_module_makes_a_closed_cluster_and_leaves_nothing(
    aws: MakeTerraform, cloud: Cloud, keys: dict[str, str], tmp_path: Path
) -> None:
    module = aws(**cloud.environment)
    places = {"key_file": str(tmp_path / "keys" / "controller"), "host_keys": str(tmp_path / "keys")}
    module.set_variables(AWS | places | {"ami": cloud.image()})
    cloud.offer("m7i.large", "eu-central-1-ham-1a", "eu-central-1c", "eu-central-1b")  # the first is a Local Zone
    module.done("apply", "-auto-approve", "-input=false")
    found, instances = read_output(module), cloud.hosts(AWS["token"])
    check_inventory(found, instances, keys)
    check_placement(instances)
    check_safety(cloud, instances, keys)
    cloud.offer("m7i.large", "eu-central-1a", "eu-central-1b")
    assert unchanged(module), "no machine is replaced because another zone has the type now"
    cloud.client.terminate_instances(InstanceIds=[instances["worker-3"]["InstanceId"]])
    module.done("plan", "-refresh-only", "-input=false")  # a machine that is gone does not break the inventory
    shutil.rmtree(tmp_path / "keys")  # a user who has lost the keys must still be able to remove the machines
    module.done("destroy", "-auto-approve", "-input=false")
    assert module.done("state", "list") == ""
    assert cloud.remains() == cloud.before


def domains(found: inventory.Inventory) -> dict[str, tuple[str, ...]]:
    return {host.name: host.domains for host in found.workers}


def check_inventory(found: inventory.Inventory, instances: dict[str, Any], keys: dict[str, str]) -> None:
    """The workers are in the order of their numbers: an experiment names them by their place in the file."""
    assert [host.name for host in found.hosts] == ["gateway", *WORKERS]
    assert found.gateway.name == "gateway"
    assert domains(found) == {name: (rack,) for name, rack in WORKERS.items()}
    for host in found.hosts:
        instance = instances[host.name]
        assert (host.address, host.port) == (instance["PublicIpAddress"], 22)
        assert host.cluster_address == instance["PrivateIpAddress"]
        assert host.host_key == keys[host.name]
        assert (host.user, host.cores, host.memory_mb) == ("admin", 2, 8192)


def check_placement(instances: dict[str, Any]) -> None:
    """Each rack is a partition, and so is the gateway; all are in one zone."""
    assert {instance["Placement"]["AvailabilityZone"] for instance in instances.values()} == {"eu-central-1b"}
    assert {instance["Placement"]["GroupName"] for instance in instances.values()} == {f"aftershock-{AWS['token']}"}
    partitions = {name: instance["Placement"]["PartitionNumber"] for name, instance in instances.items()}
    of_rack = {"rack-a": 2, "rack-b": 3}
    assert partitions == {"gateway": 1, **{name: of_rack[rack] for name, rack in WORKERS.items()}}


def check_safety(cloud: Cloud, instances: dict[str, Any], keys: dict[str, str]) -> None:
    assert cloud.openings(AWS["token"]) == {("tcp", 22, 22, "203.0.113.7/32"), ("-1", -1, -1, "the group")}
    disks = [(volume["Encrypted"], cloud.token_of(volume)) for volume in cloud.client.describe_volumes()["Volumes"]]
    assert disks == [(True, AWS["token"])] * len(instances)
    for name, instance in instances.items():
        assert instance["MetadataOptions"]["HttpTokens"] == "required"
        assert cloud.host_key_at_birth(instance["InstanceId"]) == keys[name]
        interface = instance["NetworkInterfaces"][0]
        assert [group["GroupName"] for group in interface["Groups"]] == [f"aftershock-{AWS['token']}"]
