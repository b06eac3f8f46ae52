"""The standalone cluster of tests and soaks has ended only once the death of its workers is proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from tests.e2e import standalone_cluster
from tests.e2e.standalone_cluster import StandaloneCluster


class Begun(StandaloneCluster):
    """A cluster that stands for itself: `codes` are the exit codes of `kill` and `dead`, in turn; the last stays."""

    def __init__(self, folder: Path, codes: list[int]) -> None:
        super().__init__(folder, ["w-1"])
        self._begun, self.codes = ["w-1"], codes
        self.commands: list[str] = []

    def command(self, *arguments: str) -> int:
        self.commands.append(" ".join(arguments))
        return self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]


def test_a_worker_that_is_not_dead_is_killed_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(standalone_cluster, "PAUSE_S", 0.0)
    cluster = Begun(tmp_path, [2, 1, 0, 0])
    cluster.end()
    assert cluster.commands == ["kill w-1", "dead w-1"] * 2


def test_a_worker_that_stays_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(standalone_cluster, "END_LIMIT_S", 0.0)
    with pytest.raises(EnvironmentFailure, match="the death of w-1 is not proved"):
        Begun(tmp_path, [1]).end()


def test_a_cluster_that_did_not_start_has_no_workers_to_end(tmp_path: Path) -> None:
    StandaloneCluster(tmp_path, ["w-1"]).end()
