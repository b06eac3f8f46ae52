"""Hundreds of faults of every kind in one run: each with its proof, nothing leaked, no result lost or wrong.

Left out of `make test` for its length: `pytest -m slow tests/e2e/test_soak.py` (35 minutes).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

import pytest

from experiments import spec
from experiments.errors import AftershockError
from infra import namespaces
from infra.cluster import Handle
from infra.drivers import driver_of
from infra.processes import members
from results.runs import store

PROGRAM = Path(sys.executable).with_name("aftershock")
SAMPLE_EACH_S = 5.0
LIMIT_S = 3600
LONG_LIVED = ("injector", "generator", "sampler")
PROVED = ("faults.proved", "faults.healed", "faults.as_planned", "faults.follow_their_law")


class Descriptors(threading.Thread):
    """Counts the open descriptors of the long-lived services of a live run, by their names."""

    def __init__(self, home: Path) -> None:
        super().__init__(daemon=True)
        self.home, self.stopped = home, threading.Event()
        self.counts: dict[str, list[int]] = defaultdict(list)
        self.token = ""

    def run(self) -> None:
        while not self.stopped.wait(SAMPLE_EACH_S):
            for path in self.home.glob("live/*/cluster/handle.json"):
                self.token = Handle.load(path.parent).token
                for service in LONG_LIVED:
                    for pid in members(f"{self.token}/gateway/{service}"):
                        self._count(service, Path(f"/proc/{pid}/fd"))

    def _count(self, service: str, folder: Path) -> None:
        try:
            self.counts[service].append(len(os.listdir(folder)))
        except FileNotFoundError:
            return


@pytest.mark.slow
@pytest.mark.parametrize(("experiment", "least"), [("soak", 200), ("soak-netns", 100)])
def test_a_soak_of_every_kind_leaves_nothing_behind_and_loses_nothing(experiment, least, home, capsys):
    cluster = spec.load(experiment).cluster
    try:
        driver_of(cluster.driver).check(cluster)
    except AftershockError as error:
        pytest.skip(str(error))
    before, descriptors = namespaces.labels(), Descriptors(home)
    descriptors.start()
    done = subprocess.run([PROGRAM, "benchmark", experiment, "--json"], capture_output=True, text=True, timeout=LIMIT_S)
    descriptors.stopped.set()
    descriptors.join()
    assert done.stdout, done.stderr[-3000:]
    document = json.loads(done.stdout)
    run = store.finished(document["run_id"])

    faults = run.table("faults")
    outcomes = Counter(faults["outcome"])
    assert len(faults) >= least
    assert outcomes["injected"] > least / 2
    assert not outcomes["missing"]
    assert faults["violations"].fillna(0).sum() == 0
    verdicts = {verdict["check"]: verdict["verdict"] for verdict in document["verdicts"]}
    for check in (*PROVED, "ledger.adds_up", "quality.nothing_lost", "quality.nothing_wrong"):
        assert verdicts[check] == "pass", document["verdicts"]

    assert set(descriptors.counts) == set(LONG_LIVED), "or else nothing was looked at"
    assert members(descriptors.token) == []
    assert namespaces.labels() <= before
    assert not list((home / "live").iterdir())
    for service, counts in descriptors.counts.items():
        fifth = len(counts) // 5
        assert median(counts[-fifth:]) <= 1.2 * median(counts[fifth : 2 * fifth]) + 8, (service, counts)

    with capsys.disabled():
        print(f"\n{experiment}: {len(faults)} faults, {dict(outcomes)}")
        print(faults.groupby(["kind", "outcome"]).size().to_string())
        print(f"lateness: {faults['lateness_s'].abs().describe(percentiles=[0.5, 0.99]).to_string()}")
        print({service: (min(counts), max(counts)) for service, counts in descriptors.counts.items()})
        print(json.dumps(document["quality"]), json.dumps(document["ledger"]))
