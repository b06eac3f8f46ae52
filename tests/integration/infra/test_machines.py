"""The machines that the guide to the drivers has made of network namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import AftershockError, EnvironmentFailure
from infra import disks, namespaces
from infra.cluster import Handle
from infra.netns import driver as netns
from tests.integration.infra import machines


def test_machines_that_cannot_all_be_made_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def no_sshd(handle: Handle, _host: str) -> None:
        found.extend(namespaces.of(handle.label))
        raise EnvironmentFailure("sshd does not start", "see its log")

    monkeypatch.setattr(netns, "_start_sshd", no_sshd)
    try:
        machines.make(tmp_path / "there", 1)
    except AftershockError as error:
        if not found:
            pytest.skip(str(error))
    label = Handle.load(tmp_path / "there" / "machines").label
    assert len(found) == 3, "a gateway, a worker and the switch between them"
    assert (namespaces.of(label), disks.of(label), namespaces.has_uplink(label)) == ([], [], False)
