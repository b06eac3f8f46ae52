"""A run on a standalone cluster that somebody else has started: Spark's own master and workers, and a Kafka broker.

Its commands are those of docs/examples/external/standalone. After the run the cluster is as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments import spec
from journal.reader import raw_entries
from results.runs import store
from tests.e2e.standalone_cluster import StandaloneCluster, standalone_cluster
from tests.whole_runs import carry_out

pytestmark = pytest.mark.extended

WORKERS = ("w-1", "w-2")
EXPERIMENT = """
name: borrowed
cluster: {driver: external, inventory: INVENTORY, workers: 2, worker_memory_mb: 512}
workload: {window_s: 4, slide_s: 2, corpus_mb: 1}
engine: {checkpoint_interval_s: 3, partitions: 2}
load: {mode: rate, rate: 200}
window_s: 60
faults:
  events:
    - {at: 5, kind: kill, targets: [worker-1], heal_after: 3}
    - {at: 20, kind: terminate, targets: [worker-2], heal_after: 4}
    - {at: 40, kind: pause, targets: [worker-1], heal_after: 3}
"""
STRUCK = (("worker-1", "kill"), ("worker-2", "terminate"), ("worker-1", "pause"))


@pytest.fixture
def there(home: Path, tmp_path: Path) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path / "there", WORKERS) as cluster:
        yield cluster


def test_a_run_on_somebody_elses_cluster_strikes_it_and_leaves_it_as_it_was(
    there: StandaloneCluster, tmp_path: Path
) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT.replace("INVENTORY", str(there.description)), encoding="utf-8")
    run = carry_out(spec.load(str(path)))
    assert run.status().state == "done"
    struck = [entry for entry in raw_entries(run.raw / "injector.jsonl") if entry["event"] == "injected"]
    assert [(entry["host"], entry["kind"], entry["done"], entry["left"]) for entry in struck] == [
        (*what, {"hosts struck": 1}, {"hosts without proof": 0}) for what in STRUCK
    ]
    faults = run.table("faults")
    assert faults["violations"].sum() == faults["heal_violations"].sum() == 0
    assert faults["healed_ns"].notna().all()
    lost = faults[faults["kind"] != "pause"]
    assert lost[["joined_ns", "executors_ns"]].notna().all(axis=None)
    verdicts = {row["check"]: row["verdict"] for row in run.table("verdicts").to_dict("records")}
    for check in (
        "faults.proved",
        "faults.healed",
        "faults.as_planned",
        "quality.nothing_lost",
        "quality.nothing_wrong",
    ):
        assert verdicts.get(check) == "pass", (check, verdicts)
    domains = store.read_json(run.experiment_path)["faults"]["hosts"]
    assert domains == {"worker-1": ["rack-w-1"], "worker-2": ["rack-w-2"]}
    lines = (run.raw / "logs" / "gateway" / "commands.log").read_text(encoding="utf-8").splitlines()
    assert [sum(f"strike ({kind})" in line and "ms late" in line for line in lines) for _, kind in STRUCK] == [1, 1, 1]
    assert all(there.is_alive(worker) for worker in WORKERS)
    assert there.topics() == set()
    assert list(there.checkpoints.iterdir()) == []
