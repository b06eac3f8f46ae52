"""Names and numbers of namespaces; what the kernel makes of them is an integration test."""

import ipaddress
import json
import sys

import pytest

from infra import namespaces, tokens
from tests.unit.infra.network_namespaces import in_a_namespace

TOKEN = "n511-0123456789abcdef"


def test_names_carry_the_label_and_fit_the_kernel():
    label = tokens.label(TOKEN)
    assert namespaces.NAMESPACE.fullmatch(namespaces.namespace(TOKEN, "worker-1"))[1] == label
    assert namespaces.uplink(label) == f"as-{label[5:17]}"
    assert len(namespaces.uplink(label)) <= 15
    assert not namespaces.NAMESPACE.fullmatch("aftershock-n1-beef-worker-1")
    assert not namespaces.NAMESPACE.fullmatch("others")


def test_what_everybody_can_see_does_not_tell_the_token():
    label = tokens.label(TOKEN)
    assert tokens.TOKEN.fullmatch(label)
    assert (tokens.subnet_of(label), label != TOKEN) == (511, True)
    assert tokens.label_of(f"{TOKEN}/worker-1/nap") == label
    assert tokens.label_of(f"{label}/worker-1/nap") != label, "a process marked with the label belongs to no cluster"
    assert tokens.label_of(f"{TOKEN[:-1]}/worker-1/nap") is None


@pytest.mark.parametrize(
    ("number", "prefix"), [(0, "198.18.0"), (255, "198.18.255"), (256, "198.19.0"), (511, "198.19.255")]
)
def test_subnets_are_numbered_through_the_range_for_benchmarks(number, prefix):
    assert namespaces.prefix_of(number) == prefix
    assert ipaddress.ip_address(f"{prefix}.254") in namespaces.NETWORK


@pytest.mark.parametrize(
    ("routes", "free"),
    [
        (["default", "10.0.0.0/8"], 0),
        (["0.0.0.0/1", "128.0.0.0/1"], 0),
        (["198.18.0.0/16"], 256),
        (["198.18.0.7", "198.18.1.0/24"], 2),
    ],
)
def test_a_subnet_is_free_that_no_route_but_a_default_one_leads_to(routes, free, monkeypatch):
    monkeypatch.setattr(namespaces, "_ip", lambda *_: json.dumps([{"dst": each} for each in routes]))
    monkeypatch.setattr(namespaces, "labels", set)
    assert namespaces.free_subnet() == free


IN_A_MACHINE_OF_ITS_OWN = f"""
import subprocess, sys
from pathlib import Path
from infra import namespaces, tokens
Path("/run/netns").mkdir(exist_ok=True)
for what, where in (("tmpfs", "/run/netns"), ("sysfs", "/sys")):
    subprocess.run(["mount", "-t", what, "none", where], check=True)
namespaces.create({TOKEN!r}, sys.argv[1], {{"gateway": "198.19.255.1"}})
print(namespaces.root_of(tokens.label({TOKEN!r})))
namespaces.remove(tokens.label({TOKEN!r}))
"""


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("root", ["/srv/a run/cluster", "/srv/c#/cluster", '/srv/"a"/cluster', "/srv/it's/cluster"])
def test_a_network_names_its_root_whatever_that_is_called(root):
    done = in_a_namespace("unshare", "--mount", sys.executable, "-c", IN_A_MACHINE_OF_ITS_OWN, root)
    assert (done.stdout, done.stderr) == (f"{root}\n", "")


def test_what_was_never_made_has_no_traces_and_is_removed_at_once():
    assert namespaces.of(tokens.label(TOKEN)) == namespaces.processes(tokens.label(TOKEN)) == []
    assert namespaces.root_of(tokens.label(TOKEN)) is None
    namespaces.remove(tokens.label(TOKEN))
