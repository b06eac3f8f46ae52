"""Inventories: what is read, and the one line for what is wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paramiko
import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from chaos.plan import plan
from experiments import inventory, spec
from experiments.errors import BadInput
from experiments.hosts import Role
from tests.unit.ssh_keys import new_key
from tests.unit.strange_files import put

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGidUkEfzOB7FqrnxiHBQKNrqVVyGHCXeRynTl9I9x8K"
ECDSA = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBH3EYgH2+gQKtTuYDx9VoUYYaAiQ7NMGEiKcKqOK"
    "aFsBIrUSC0sLw5dGQlHXELS92mABS+3Q8MAtR2/yLdkV044="
)
SECURITY_KEY_PARTS = (b"sk-ssh-ed25519@openssh.com", base64.b64decode(KEY.split()[1])[-32:], b"ssh:")
SECURITY_KEY_BLOB = b"".join(len(part).to_bytes(4, "big") + part for part in SECURITY_KEY_PARTS)
SECURITY_KEY = f"sk-ssh-ed25519@openssh.com {base64.b64encode(SECURITY_KEY_BLOB).decode()}"
Write = Callable[..., Path]


def host(name: str, **fields: Any) -> dict[str, Any]:
    number = sum(name.encode()) % 250
    usual = {"address": f"198.18.0.{number}", "user": "me", "key_file": "key", "host_key": KEY}
    return {"name": name, **usual, "cores": 2, "memory_mb": 2048, **fields}


GATEWAY = host("gateway", role="gateway")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `key`, `key.pub` and `locked`, which has a passphrase."""
    folder = tmp_path_factory.mktemp("keys")
    for name, passphrase in (("key", ""), ("locked", "secret")):
        new_key(folder / name, passphrase)
    return folder


@pytest.fixture
def write(keys: Path) -> Write:
    """Writes an inventory beside the keys."""

    def file(*hosts: dict[str, Any], **more: Any) -> Path:
        path = keys / "inventory.json"
        path.write_text(json.dumps({"hosts": hosts, **more}), encoding="utf-8")
        return path

    return file


def refused(path: Path) -> BadInput:
    """What is wrong with an inventory, in one line that names the file."""
    with pytest.raises(BadInput) as caught:
        inventory.load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return caught.value


def test_an_inventory_is_read_with_its_defaults(write: Write, keys: Path) -> None:
    found = inventory.load(write(GATEWAY, host("worker-1", domains=["rack-a", "switch-1"])))
    worker = found.workers[0]
    assert found.gateway.role is Role.GATEWAY
    assert (worker.role, worker.port, worker.domains) == (Role.WORKER, 22, ("rack-a", "switch-1"))
    assert worker.key_file == keys / "key"
    assert worker.cluster_address == worker.address
    assert paramiko.PKey.from_path(worker.key_file).get_name() == "ssh-ed25519"


def test_other_hosts_reach_a_host_at_its_internal_address(write: Write) -> None:
    found = inventory.load(write(GATEWAY, host("worker-1", address="203.0.113.9", internal_address="10.0.0.9")))
    assert found.workers[0].cluster_address == "10.0.0.9"


@pytest.mark.parametrize("key", [KEY, ECDSA])
def test_a_host_key_is_kept_without_its_comment_and_can_be_compared(write: Write, key: str) -> None:
    pinned = inventory.load(write(GATEWAY, host("worker-1", host_key=f" {key}  root@somewhere\n"))).workers[0].host_key
    assert pinned == key
    kind, encoded = pinned.split()
    shown = paramiko.PKey.from_type_string(kind, base64.b64decode(encoded))
    assert f"{shown.get_name()} {shown.get_base64()}" == key


@pytest.mark.parametrize(
    ("written", "meant"),
    [("2001:DB8:0::1", "2001:db8::1"), ("Node.Example.", "node.example"), ("127.0.0.1", "127.0.0.1"), ("n1", "n1")],
)
def test_an_address_has_one_spelling(write: Write, written: str, meant: str) -> None:
    assert inventory.load(write(GATEWAY, host("worker-1", address=written))).workers[0].address == meant


def test_an_absolute_key_file_and_one_at_home_stay_where_they_are(
    write: Write, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(keys))
    found = inventory.load(write(GATEWAY | {"key_file": str(keys / "key")}, host("worker-1", key_file="~/key")))
    assert {host.key_file for host in found.hosts} == {keys / "key"}


@pytest.mark.parametrize(
    ("hosts", "field", "value"),
    [
        ([], "hosts", "0 hosts with role gateway"),
        ([host("a"), host("b")], "hosts", "0 hosts with role gateway"),
        ([GATEWAY, host("b", role="gateway")], "hosts", "2 hosts with role gateway"),
        ([GATEWAY], "hosts", "no host with role worker"),
        ([GATEWAY, host("a"), host("a", address="198.18.1.1")], "hosts.2.name", "a"),
        ([GATEWAY, host("a"), host("b", address=host("a")["address"])], "hosts.2.address", host("a")["address"]),
        ([GATEWAY, host("a", address="::1"), host("b", address="0:0::1")], "hosts.2.address", "::1"),
        (
            [GATEWAY, host("a", internal_address="10.0.0.1"), host("b", internal_address="10.0.0.1")],
            "hosts.2.internal_address",
            "10.0.0.1",
        ),
    ],
)
def test_hosts_that_do_not_go_together_are_refused(
    write: Write, hosts: list[dict[str, Any]], field: str, value: str
) -> None:
    problem = refused(write(*hosts))
    assert (problem.field, problem.value) == (field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Worker 1"),
        ("name", "../up"),
        ("name", "-a"),
        ("address", "0.0.0.0"),
        ("address", "224.0.0.1"),
        ("address", "198.18.0.256"),
        ("address", "two words"),
        ("address", ""),
        ("address", f"{'n' * 64}.example"),
        ("address", "wor\N{KELVIN SIGN}er"),  # which Python takes for a k where case does not count
        ("internal_address", "::"),
        ("port", 0),
        ("port", True),
        ("cores", True),
        ("port", 65_536),
        ("user", "root; rm"),
        ("user", ""),
        ("role", "master"),
        ("cores", 0),
        ("memory_mb", 100),
        ("host_key", ""),
        ("host_key", "ssh-ed25519"),
        ("host_key", KEY[:-8]),
        ("host_key", KEY.replace("ssh-ed25519", "ssh-rsa")),
        ("host_key", "ssh-unheard-of AAAA"),
        ("host_key", SECURITY_KEY),
        ("host_key", f"198.18.0.1 {KEY}"),
        ("key_file", "missing"),
        ("key_file", "."),
        ("key_file", "~nobody-of-this-name/key"),
        ("key_file", "key.pub"),
        ("key_file", "locked"),
        ("key_file", "inventory.json"),
        ("key_file", "a\0b"),
    ],
)
def test_a_field_that_cannot_be_used_is_named(write: Write, field: str, value: object) -> None:
    problem = refused(write(GATEWAY, host("worker-1") | {field: value}))
    assert (problem.field, problem.value) == (f"hosts.1.{field}", value)


def test_a_key_file_that_is_no_text_is_told_in_words_of_ours(write: Write) -> None:
    assert refused(write(GATEWAY | {"key_file": 5})).allowed == "a path, which is a text"


@pytest.mark.parametrize(
    ("domains", "field"), [(["a*"], "domains.0"), (["a", "b", "a"], "domains"), ([""], "domains.0")]
)
def test_domains_are_names_and_no_patterns_and_each_is_there_once(write: Write, domains: list[str], field: str) -> None:
    assert refused(write(GATEWAY, host("worker-1", domains=domains))).field == f"hosts.1.{field}"


def test_a_host_without_a_host_key_is_refused_with_the_remedy(write: Write) -> None:
    bare = host("worker-1")
    del bare["host_key"]
    problem = refused(write(GATEWAY, bare))
    assert (problem.field, problem.value) == ("hosts.1.host_key", "")
    assert problem.allowed == inventory.HOST_KEY_FORM


@pytest.mark.parametrize("made", [rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())])
def test_a_key_file_may_have_the_older_form_of_openssh(write: Write, keys: Path, made: Any) -> None:
    (keys / "pem").write_bytes(in_pem(made, form.PrivateFormat.TraditionalOpenSSL))
    assert inventory.load(write(GATEWAY, host("worker-1", key_file="pem"))).workers[0].key_file == keys / "pem"
    assert paramiko.PKey.from_path(keys / "pem").can_sign()


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (rsa.generate_private_key(65537, 2048), form.PrivateFormat.PKCS8),
        (ec.generate_private_key(ec.SECP256K1()), form.PrivateFormat.TraditionalOpenSSL),
    ],
)
def test_a_key_that_the_ssh_client_cannot_use_is_refused(write: Write, keys: Path, made: Any, written: Any) -> None:
    (keys / "pem").write_bytes(in_pem(made, written))
    assert refused(write(GATEWAY | {"key_file": "pem"}, host("worker-1"))).allowed == inventory.KEY_FILE_FORM
    with pytest.raises((paramiko.SSHException, AttributeError)):
        paramiko.PKey.from_path(keys / "pem").get_name()


def in_pem(key: Any, written: form.PrivateFormat) -> bytes:
    return key.private_bytes(form.Encoding.PEM, written, form.NoEncryption())


def test_an_unreadable_key_file_says_why(write: Write) -> None:
    assert "No such file" in refused(write(GATEWAY | {"key_file": "missing"}, host("worker-1"))).allowed
    assert "without a passphrase" in refused(write(GATEWAY | {"key_file": "locked"}, host("worker-1"))).allowed


@pytest.mark.parametrize("kind", ["a FIFO", "a folder", "a socket"])
def test_a_key_file_that_is_no_file_is_refused_and_never_waited_for(write: Write, keys: Path, kind: str) -> None:
    strange = keys / f"strange {kind}"
    put(kind, strange)
    problem = refused(write(GATEWAY | {"key_file": strange.name}, host("worker-1")))
    assert (problem.field, problem.allowed) == ("hosts.0.key_file", f"{inventory.KEY_FILE_FORM}; this is {kind}")


def test_a_key_file_may_be_a_link_to_one(write: Write, keys: Path) -> None:
    (keys / "linked").symlink_to(keys / "key")
    assert inventory.load(write(GATEWAY | {"key_file": "linked"}, host("worker-1"))).gateway.key_file == keys / "linked"


def test_unknown_fields_are_refused(write: Write) -> None:
    assert refused(write(GATEWAY, host("worker-1", password="x"))).field == "hosts.1.password"
    assert refused(write(GATEWAY, host("worker-1"), version=2)).field == "version"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hosts": {}}', '{"hosts": ["a"]}', '{"hosts": null}', "{}"])
def test_what_is_no_inventory_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "inventory.json"
    path.write_text(text, encoding="utf-8")
    refused(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    problem = refused(tmp_path / "none.json")
    assert (problem.field, problem.value) == ("cluster.inventory", str(tmp_path / "none.json"))


def on_machines(path: str, workers: int, **faults: Any) -> spec.Experiment:
    return spec.validate({"cluster": {"driver": "ssh", "inventory": path, "workers": workers}, "faults": faults})


def test_an_experiment_on_machines_has_their_domains_and_needs_the_file_no_more(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(host("db-7", domains=["rack-a"]), GATEWAY, host("db-2", domains=["rack-a", "rack-b"]), host("db-3"))
    monkeypatch.chdir(path.parent)
    rack_shocks = [{"scope": "domain", "rate": 0.1, "heal_after": 1}]
    found = on_machines("inventory.json", 2, processes=rack_shocks)
    assert found.cluster.inventory == str(path)
    assert found.faults.hosts == {"worker-1": ("rack-a",), "worker-2": ("rack-a", "rack-b")}
    assert {event.targets for event in plan(found.fault_spec, 1)} == {("worker-1", "worker-2"), ("worker-2",)}
    path.unlink()
    assert spec.validate(json.loads(found.model_dump_json())) == found
    mine = on_machines("gone.json", 2, hosts={"worker-1": ["mine"]})
    assert mine.faults.hosts == {"worker-1": ("mine",)}
    assert mine.cluster.inventory == str(path.parent / "gone.json")


def test_an_inventory_at_home_is_found(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(GATEWAY, host("worker-1"))
    monkeypatch.setenv("HOME", str(path.parent))
    assert on_machines("~/inventory.json", 1).cluster.inventory == str(path)


def test_a_bad_name_is_told_in_words(write: Write) -> None:
    for field, value in (("name", "Worker 1"), ("user", "root; rm"), ("domains", ["a*"])):
        problem = refused(write(GATEWAY, host("worker-1") | {field: value}))
        assert "letters, digits" in problem.allowed
        assert "[a-z" not in str(problem)


def test_of_an_experiment_and_its_inventory_the_file_is_named_in_which_the_mistake_is(write: Write) -> None:
    path = write(GATEWAY, host("worker-1", cores=0))
    mine = path.with_name("mine.yaml")
    mine.write_text(f"cluster: {{driver: ssh, workers: 1, inventory: {path}}}")
    with pytest.raises(BadInput, match=f"^{path}: hosts.1.cores: 0 "):
        spec.load(str(mine))
    mine.write_text(f"cluster: {{driver: ssh, workers: 1, inventory: {path}.gone}}")
    with pytest.raises(BadInput, match=f"^{mine}: cluster.inventory: '{path}.gone' "):
        spec.load(str(mine))


def test_an_experiment_with_more_workers_than_machines_is_refused(write: Write) -> None:
    path = str(write(GATEWAY, host("worker-1")))
    with pytest.raises(BadInput, match=r"^cluster.workers: 2 is not usable; allowed: at most 1"):
        on_machines(path, 2)
    with pytest.raises(BadInput, match=r"^cluster.inventory: .*none.json.*No such file"):
        on_machines("/none.json", 1)


def test_other_drivers_leave_the_inventory_alone() -> None:
    found = spec.validate({"cluster": {"driver": "local", "inventory": "none.json"}})
    assert (found.cluster.inventory, found.faults.hosts) == ("none.json", {})
