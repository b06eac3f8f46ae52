"""One experiment file on every driver, by changing one line of it: a kill, its proof, a recovery, and verdicts.

The steps are called one after another, without Airflow: `test_command_line_run.py` has the DAG, which is the same for
every driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments import spec
from experiments.errors import AftershockError
from infra import leftovers
from infra.drivers import driver_of
from journal.reader import raw_entries
from results.runs import store
from tests import by_the_clock
from tests.docker_daemon import docker_daemon
from tests.integration.infra import machines
from tests.integration.infra.strangers import (
    assert_no_argument_tells,
    assert_no_file_tells,
    assert_nothing_answers,
    secrets_of,
)
from tests.whole_runs import carry_out

pytestmark = pytest.mark.extended

# `make test` has whole runs of driver local, and ssh enters its machines as netns does: they have their run at night.
DRIVERS = [
    pytest.param("local", marks=pytest.mark.slow),
    "netns",
    "docker",
    pytest.param("ssh", marks=pytest.mark.slow),
]
EXPERIMENT = """
name: same-experiment
cluster:
  driver: DRIVER
  workers: 2
  worker_memory_mb: 512
workload: {window_s: 4, slide_s: 2, corpus_mb: 1}
engine: {checkpoint_interval_s: 3, partitions: 2}
load: {mode: rate, rate: 200}
window_s: 30
faults:
  events:
    - {at: 5, kind: kill, targets: [worker-1], heal_after: 3}
    - {at: 5, kind: kill, targets: [worker-2], heal_after: 4}
"""


@contextmanager
def nothing_needed(_folder: Path) -> Iterator[None]:
    yield


@contextmanager
def daemon(_folder: Path) -> Iterator[None]:
    with docker_daemon():
        yield


@contextmanager
def inventory(folder: Path) -> Iterator[None]:
    """Machines for driver ssh, as its default inventory in the working directory tells."""
    made = machines.make(folder, 2)
    try:
        yield
    finally:
        leftovers.remove(made.label)


@contextmanager
def skipped_without_it() -> Iterator[None]:
    try:
        yield
    except AftershockError as error:
        pytest.skip(str(error))


NEEDS = {"docker": daemon, "ssh": inventory}


@pytest.fixture
def experiment(
    request: pytest.FixtureRequest, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The file for one driver, and what that driver needs; skipped where the machine has it not."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT.replace("DRIVER", request.param), encoding="utf-8")
    with ExitStack() as needed:
        with skipped_without_it():
            needed.enter_context(NEEDS.get(request.param, nothing_needed)(tmp_path))
        cluster = spec.load(str(path)).cluster
        with skipped_without_it():
            driver_of(cluster.driver).check(cluster)
        yield path


@pytest.mark.parametrize("experiment", DRIVERS, indirect=True)
def test_one_line_changes_the_driver(experiment: Path) -> None:
    secrets: dict[str, bytes] = {}

    def look(cluster: dict[str, Any]) -> None:
        """The query runs: its driver listens, and so does an executor on each worker."""
        secrets.update(secrets_of(cluster["root"]))
        assert_no_argument_tells(secrets)
        assert_nothing_answers(cluster["token"], at_least=12)

    run = carry_out(spec.load(str(experiment)), look)
    assert_no_file_tells({name: secret for name, secret in secrets.items() if name != "token"}, run.root)
    handle = store.read_json(run.raw / "handle.json")
    assert f"driver: {handle['driver']}" in experiment.read_text(encoding="utf-8")
    verdicts = {row["check"]: row["verdict"] for row in run.table("verdicts").to_dict("records")}
    assert run.status().state == "done"
    assert len(run.table("faults")) == 2
    struck = [entry for entry in raw_entries(run.raw / "injector.jsonl") if entry["event"] == "injected"]
    assert len(struck) == 2
    for entry in struck:
        assert entry["fired_ns"] >= entry["planned_ns"]
        assert entry["done"]["processes killed"] >= 1
        assert set(entry["left"].values()) == {0}
    assert "fail" not in by_the_clock.others(verdicts).values(), verdicts
    for check in ("faults.healed", "ledger.adds_up", "quality.nothing_lost", "quality.nothing_wrong"):
        assert verdicts[check] == "pass", verdicts
    recoveries = run.table("recoveries")
    assert len(recoveries) >= 1
    assert recoveries["detect_s"].notna().all()
    assert (recoveries["detect_s"] > 0).all()
