"""A cluster of a benchmark leaves nothing, whatever fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import provisioned
from experiments.errors import EnvironmentFailure
from experiments.spec import ClusterSpec
from infra.cluster import Handle


class Driver:
    """Makes a folder for a cluster, and then fails if it is told to."""

    def __init__(self, fails: bool) -> None:
        self.fails, self.destroyed, self.root = fails, list[Handle](), Path()

    def provision(self, spec: ClusterSpec, run_id: str, root: Path) -> Handle:
        self.root = root
        (root / "hosts").mkdir()
        if self.fails:
            raise EnvironmentFailure("no host came", "try again")
        return Handle(run_id, spec.driver.value, "token", str(root))

    def destroy(self, handle: Handle) -> None:
        self.destroyed.append(handle)


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_written_is_gone(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(fails)
    monkeypatch.setattr(provisioned, "driver_of", lambda _: driver)

    def use_and_fail() -> None:
        with provisioned.provisioned(ClusterSpec(), "overhead") as (_, handle):
            assert Path(handle.root) == driver.root
            raise EnvironmentFailure("the query has ended", "look at its log")

    with pytest.raises(EnvironmentFailure):
        use_and_fail()
    assert not driver.root.exists()
    assert [each.run_id for each in driver.destroyed] == ([] if fails else ["overhead"])
