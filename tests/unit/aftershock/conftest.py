"""What the tests of the command line, of the steps and of what looks at runs share."""

import json

import pytest

from aftershock.cli.program import main


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
