"""Names and numbers of namespaces; what the kernel makes of them is an integration test."""

import ipaddress

import pytest

from infra import namespaces

TOKEN = "n511-0123456789abcdef"


def test_names_carry_the_token_and_fit_the_kernel():
    assert namespaces.NAMESPACE.fullmatch(namespaces.namespace(TOKEN, "worker-1"))[1] == TOKEN
    assert namespaces.uplink(TOKEN) == "as-0123456789ab"
    assert len(namespaces.uplink(TOKEN)) <= 15
    assert not namespaces.NAMESPACE.fullmatch("aftershock-n1-beef-worker-1")
    assert not namespaces.NAMESPACE.fullmatch("others")


@pytest.mark.parametrize(
    ("number", "prefix"), [(0, "198.18.0"), (255, "198.18.255"), (256, "198.19.0"), (511, "198.19.255")]
)
def test_subnets_are_numbered_through_the_range_for_benchmarks(number, prefix):
    assert namespaces.prefix_of(number) == prefix
    assert ipaddress.ip_address(f"{prefix}.254") in namespaces.NETWORK


def test_what_was_never_made_has_no_traces_and_is_removed_at_once():
    assert namespaces.of(TOKEN) == namespaces.processes(TOKEN) == []
    assert namespaces.root_of(TOKEN) is None
    namespaces.remove(TOKEN)
