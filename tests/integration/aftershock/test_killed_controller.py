"""kill -9 of the process that works on a run, in provisioning and in later steps: `aftershock clean` removes it all.

All runs of these tests have one id and one home, one after the other: so each also tells that the next one works.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftershock.run import steps
from aftershock.run.lease import lease
from aftershock.watch import clean
from infra.cluster import HANDLE_FILE, Handle
from infra.launch import REPOSITORY
from infra.processes import members, owners
from infra.services import startup
from results.runs import store
from tests.unit.interruptions import Interruption, at_every_change
from tests.unit.marked_processes import wait_for

pytestmark = pytest.mark.extended

RUN = "run-1"
DOCUMENT = {
    "name": "struck",
    "window_s": 30,
    "load": {"mode": "rate", "rate": 200},
    "cluster": {"workers": 1, "worker_memory_mb": 512},
}
CONTROLLER = """
import sys
from aftershock.run import steps
from aftershock.run.lease import lease
from results.runs import store
from tests.integration.aftershock.test_killed_controller import DOCUMENT, RUN
with lease(store.live_directory(RUN)):
    steps.begin(DOCUMENT, RUN)
    for name in sys.argv[1:]:
        getattr(steps, name)(RUN)
"""
# What starts amid a step, and the steps up to that one. Those between need not come: none of them is looked at here.
MOMENTS = {
    "controller/format": ["provision"],
    "gateway/broker": ["provision"],
    "gateway/spark-master": ["provision"],
    "worker-1/spark-worker": ["provision"],
    "gateway/query": ["provision", "deploy"],
    "gateway/generator": ["provision", "start_load"],
    "gateway/injector": ["provision", "arm_faults"],
    "controller/tables": ["provision", "collect"],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("killed")
        patch.setenv("AFTERSHOCK_HOME", str(folder))
        yield folder
        steps.teardown(RUN, "left by its test")


def root() -> Path:
    return store.live_directory(RUN) / "cluster"


def processes_of(home: Path) -> list[str]:
    return [process.mark for process in owners() if process.root.startswith(str(home))]


def token() -> str | None:
    return Handle.load(root()).token if (root() / HANDLE_FILE).exists() else None


def clean_up(home: Path) -> None:
    """`aftershock clean`, after which nothing is there but, if the run had begun, a failed one that is whole."""
    said = clean.clean()
    assert [str(error) for error in said.refused if RUN in str(error)] == []
    assert processes_of(home) == []
    assert list((home / "live").iterdir()) == []
    assert [path.name for path in home.glob(".*")] == []
    with startup.one_at_a_time():  # no process holds the lock, so others can provision
        pass
    for run in store.all_finished():
        assert run.status().state == "failed"
        assert (run.root / "experiment.json").is_file()
        store.remove(run.run_id)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_controller_that_is_killed_as_a_program_starts_leaves_what_clean_removes(home: Path, moment: str) -> None:
    command = [sys.executable, "-c", CONTROLLER, *MOMENTS[moment]]
    controller = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)

    def seen() -> bool:
        assert controller.poll() is None, controller.communicate()[1][-2000:]
        found = token()
        return found is not None and members(f"{found}/{moment}") != []

    try:
        wait_for(seen, limit_s=180)
    finally:
        controller.kill()
        controller.wait()
    assert controller.returncode == -signal.SIGKILL
    assert processes_of(home) != []
    clean_up(home)


def provision() -> None:
    with lease(store.live_directory(RUN)):
        steps.begin(DOCUMENT, RUN)
        steps.provision(RUN)


def test_a_controller_that_is_killed_at_a_change_of_files_leaves_what_clean_removes(home: Path) -> None:
    """Every third of the first forty changes; what starts later is in the test above."""
    for _ in at_every_change(provision, home, Interruption.KILL, range(1, 40, 3)):
        clean_up(home)
