"""The abort switch on runs that have no cluster yet: who may be aborted, what then begins no more, how the run ends."""

import errno
import json
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from aftershock.airflow import leftover_files
from aftershock.cli.program import main
from aftershock.run import ending, step_notes, steps
from aftershock.run.abort import abort
from aftershock.run.lease import lease, lease_path
from aftershock.run.live_run import LiveRun
from aftershock.run.step_progress import DEAF_STEPS
from aftershock.watch import live
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.locks import is_free, locked
from infra.local import LocalDriver
from infra.strikes.strike import Proof
from results.runs import store
from tests.e2e.example_run import LIVE, write_live_run


@steps.step
def further_step(run_id):
    raise AssertionError("an aborted run begins no further step")


def test_an_aborted_run_goes_no_further_and_is_published_as_failed():
    steps.begin({"name": "mine"}, "run-1")
    aborted = abort("run-1")
    assert (aborted.undone, aborted.left) == ([], [])
    with pytest.raises(AftershockError, match="aborted by hand"):
        further_step("run-1")
    with pytest.raises(AftershockError, match="aborted by hand"):
        LiveRun("run-1").wait("what never comes", lambda: False, set(), 60.0)
    steps.teardown("run-1", error="observe: something that came of it")
    status = store.finished("run-1").status()
    assert (status.state, status.error, status.exit_code) == ("failed", "aborted by hand", 3)


def test_a_run_that_nobody_works_on_is_torn_down():
    steps.begin({"name": "mine"}, "run-1")
    lease_path(store.live_directory("run-1")).touch()  # left by a command that was killed
    abort("run-1")
    assert store.finished("run-1").status().error == "aborted by hand"


@pytest.mark.parametrize(
    "aborted", [lambda: main(["abort", "run-1"]), lambda: live.end("run-1")], ids=["command", "page"]
)
def test_what_the_dead_command_of_a_run_left_goes_with_it(home, aborted):
    steps.begin({"name": "mine"}, "run-1")
    folder = home / "airflow" / "command-line"
    (folder / "run-1.logs").mkdir(parents=True)
    left = [folder / "run-1.db", folder / "run-1.db-wal", folder / "run-1.json"]
    others = [folder / "run-10.db", folder / "template.db"]
    for path in [*left, *others, lease_path(store.live_directory("run-1"))]:
        path.touch()
    aborted()
    assert store.is_finished("run-1")
    assert sorted(folder.iterdir()) == others
    assert not lease_path(store.live_directory("run-1")).exists()


def test_a_run_that_somebody_works_on_is_left_to_its_own_teardown():
    steps.begin({"name": "mine"}, "run-1")
    with lease(store.live_directory("run-1")):
        abort("run-1")
        assert not store.is_finished("run-1")


@pytest.fixture
def healed(monkeypatch):
    """The hosts of the made-up live run that were healed; whether a teardown could have gone on meanwhile."""
    found = []

    def heal(driver, handle, host, kind):
        found.append((host, is_free(ending.lock_path(LIVE))))
        return Proof(0, 0, {}, {})

    monkeypatch.setattr(LocalDriver, "heal", heal)
    monkeypatch.setattr(LocalDriver, "stop", lambda *stopped: None)
    write_live_run()
    return found


def test_nothing_is_healed_amid_a_teardown(healed, capsys):
    line = f"{LIVE} is being torn down already: there was nothing to abort"
    with locked(ending.lock_path(LIVE), "the teardown", stays=False):
        assert main(["abort", LIVE]) == 0
        assert live.end(LIVE) == line
    assert healed == []
    assert capsys.readouterr().out == f"run {line}\n"
    assert not LiveRun(LIVE).aborted, "its teardown ends it as what it was"


def test_a_second_abort_says_that_the_first_one_goes_on(healed, monkeypatch, capsys):
    line = f"{LIVE} is being aborted already: its faults are being undone"

    def aborted_again(driver, handle, host, kind):
        assert main(["abort", LIVE]) == 0
        assert live.end(LIVE) == line
        return Proof(0, 0, {}, {})

    monkeypatch.setattr(LocalDriver, "heal", aborted_again)
    assert not abort(LIVE).came_late
    assert capsys.readouterr().out == f"run {line}\n"


def test_an_abort_amid_the_teardown_of_an_aborted_run_says_that_it_is_torn_down(healed):
    abort(LIVE)
    with locked(ending.lock_path(LIVE), "the teardown", stays=False):
        step_notes.begin(LIVE, "teardown")
        assert abort(LIVE).rest == "is being torn down already: there was nothing to abort"


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_on_a_full_disk_the_faults_are_undone_and_the_run_goes_no_further(healed, monkeypatch):
    monkeypatch.setattr(store, "write_json", full)
    assert [held.host for held in abort(LIVE).undone] == ["worker-2"]
    assert LiveRun(LIVE).aborted


def test_a_heal_that_the_system_refuses_is_left_to_the_teardown(healed, monkeypatch):
    monkeypatch.setattr(LocalDriver, "heal", full)
    aborted = abort(LIVE)
    assert (aborted.undone, [held.host for held in aborted.left]) == ([], ["worker-2"])
    assert "1 left to its teardown" in aborted.outcome


def test_an_abort_that_cannot_be_noted_undoes_the_faults_and_fails(healed, monkeypatch):
    monkeypatch.setattr(store, "write_json", full)
    monkeypatch.setattr(Path, "touch", full)
    line = r"^1 of 1 faults of run .* are undone, but its steps go on: .* \(No space left on device\); make room"
    with pytest.raises(EnvironmentFailure, match=line):
        abort(LIVE)
    assert [host for host, _ in healed] == ["worker-2"]


def test_a_run_whose_files_cannot_be_read_amid_an_abort_is_told_in_words(healed, monkeypatch):
    monkeypatch.setattr(LocalDriver, "stop", full)
    told = f"{LIVE} cannot be aborted: it is being ended, or damaged (OSError: [Errno 28] No space left on device)"
    assert live.end(LIVE) == told


def test_a_teardown_waits_until_the_faults_are_undone(healed):
    aborted = abort(LIVE)
    assert healed == [("worker-2", False)]
    assert [held.host for held in aborted.undone] == ["worker-2"]
    assert not ending.lock_path(LIVE).exists()


def test_a_run_that_ends_before_its_abort_is_no_live_one(healed, monkeypatch):
    @contextmanager
    def ends_first(run_id):
        store.publish(store.live(run_id))
        yield True

    monkeypatch.setattr(ending, "keeping_teardown_away", ends_first)
    with pytest.raises(BadInput, match="a live run"):
        abort(LIVE)
    assert healed == []
    assert not store.live(LIVE).root.exists()


def test_only_a_live_run_can_be_aborted(capsys):
    steps.begin({"name": "mine"}, "over")
    steps.teardown("over")
    steps.begin({"name": "mine"}, "alive")
    for run_id in ("over", "unknown"):
        with pytest.raises(BadInput, match="allowed: a live run: alive"):
            abort(run_id)
        assert main(["abort", run_id]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_the_command(capsys):
    steps.begin({"name": "mine"}, "run-1")
    assert main(["abort", "run-1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run_id"], found["undone"], found["left"]) == ("run-1", [], [])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tabulate", "; tabulate cannot be interrupted: it ends first, then the run is torn down\n"),
        ("deploy", "; deploy ends within seconds, then the run is torn down\n"),
    ],
)
def test_the_step_that_goes_on_is_told(capsys, name, told):
    steps.begin({"name": "mine"}, "run-1")

    def aborting(run_id):
        assert main(["abort", run_id]) == 0

    aborting.__name__ = name
    with lease(store.live_directory("run-1")):
        steps.step(aborting)("run-1")
    assert capsys.readouterr().out.endswith(told)
    assert (step_notes.current("run-1"), abort("run-1").rest) == (None, "")


def test_of_a_run_whose_scheduler_is_stopped_no_teardown_is_promised(capsys):
    steps.begin({"name": "mine"}, "run-1")
    assert main(["abort", "run-1"]) == 0
    told = "; no `aftershock serve` runs here to tear the run down: start it, or `aftershock clean run-1`\n"
    assert capsys.readouterr().out.endswith(told)
    with leftover_files.serving():
        assert main(["abort", "run-1"]) == 0
    assert capsys.readouterr().out.endswith(" s\n")


def test_the_steps_that_cannot_be_interrupted_are_steps():
    assert all(hasattr(getattr(steps, name), "__wrapped__") for name in DEAF_STEPS)


def test_of_a_run_that_never_began_no_step_is_noted(home):
    with pytest.raises(AssertionError):
        further_step("run-1")
    assert not (home / "live").exists()
