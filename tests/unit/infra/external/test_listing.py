"""The hosts that a user's command lists: as text or JSON, and nothing that is no host."""

from __future__ import annotations

import pytest

from experiments.errors import EnvironmentFailure
from infra.external.listing import MOST_HOSTS, ListedHost, hosts_of


def test_hosts_are_listed_as_text_or_as_json_in_their_order() -> None:
    told = 'pod-b 10.0.0.2 zone-1\n\n{"name": "pod-a", "address": "10.0.0.1"}\n i-0abc\t10.0.0.3\n'
    assert hosts_of(told) == [
        ListedHost("pod-b", "10.0.0.2", "zone-1"),
        ListedHost("pod-a", "10.0.0.1"),
        ListedHost("i-0abc", "10.0.0.3"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "pod-1",
        "pod-1 node-7",
        "pod-1 10.0.0.1 zone-1 more",
        "--all 10.0.0.1",
        "$(reboot) 10.0.0.1",
        "pod/1 10.0.0.1",
        "pod-1 10.0.0.1 zone;1",
        '{"name": "pod-1"}',
        '{"name": "pod-1", "address": "10.0.0.1", "zone": "a"}',
        '{"name": "pod-1", "address": 1}',
        '{"name": "pod-1", "address": "10.0.0.1"',
        "{" * 100,
        "Error from server (Forbidden): pods is forbidden",
    ],
)
def test_what_is_no_host_is_told_with_its_line(line: str) -> None:
    with pytest.raises(EnvironmentFailure, match=r"^list_hosts printed no host in line 2 \(.*\); have it print a line"):
        hosts_of(f"pod-0 10.0.0.9\n{line}\n")


def test_a_line_that_may_hold_a_secret_is_not_told() -> None:
    with pytest.raises(EnvironmentFailure, match=r"line 1 \(not shown: it may hold a secret\)") as failure:
        hosts_of("pod-1 token=hunter2")
    assert "hunter2" not in str(failure.value)


@pytest.mark.parametrize("second", ["pod-1 10.0.0.2", "pod-2 10.0.0.1"])
def test_a_host_is_listed_once(second: str) -> None:
    with pytest.raises(EnvironmentFailure, match=r"^list_hosts printed the (name pod-1|address 10.0.0.1) twice"):
        hosts_of(f"pod-1 10.0.0.1\n{second}\n")


def test_a_list_has_an_end() -> None:
    with pytest.raises(EnvironmentFailure, match="more than 10,000 hosts"):
        hosts_of("x\n" * (MOST_HOSTS + 1))
