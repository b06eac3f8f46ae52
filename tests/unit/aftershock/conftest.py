"""What the tests of the command line, of the steps and of what looks at runs share."""

import json

import pytest

from aftershock.cli.program import main
from aftershock.run.live_run import LiveRun
from infra import leftovers
from infra.services import startup
from tests.e2e.example_run import LIVE, write_live_run


@pytest.fixture(autouse=True)
def home_of_every_test(home):
    """Every command of the program reads its home: no test may see the home of the user who runs the tests."""


@pytest.fixture
def call(capsys):
    """Run one call; returns exit code, stdout and stderr."""

    def run(words):
        code = main(words.split())
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def as_json(call):
    """Run one call that succeeds with --json; all of its stdout is the document."""

    def run(words):
        code, out, err = call(f"{words} --json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


@pytest.fixture
def live_run():
    """A live run in its window."""
    write_live_run()
    return LiveRun(LIVE)


@pytest.fixture
def setting_up(live_run):
    """The run before its window is known."""
    live_run.plan_path.unlink()
    return live_run


@pytest.fixture
def no_traces(tmp_path, monkeypatch):
    """A machine where no run has left anything, with a lock for starting clusters that only this test takes."""
    monkeypatch.setattr(leftovers, "find", list)
    monkeypatch.setattr(startup, "PROVISION_LOCK", tmp_path / "lock")
