"""What `serve` prints at its start: at a terminal with the password, into a file without it."""

import io

import pytest

from aftershock.airflow import environment
from aftershock.airflow.greeting import greet
from results.runs import store
from tests.e2e.example_run import write_live_run

ADDRESS = "http://127.0.0.1:8080"
RESULTS = f"{ADDRESS}/plugin/aftershock/aftershock/"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def greeting(monkeypatch):
    """What a terminal shows of the greeting; called in the test, since pytest takes standard output back before it."""

    def shown():
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", terminal)
            patch.setenv("TERM", "dumb")
            patch.setenv("COLUMNS", "200")
            greet(ADDRESS)
        return terminal.getvalue()

    return shown


def test_a_terminal_gets_a_box_with_address_login_and_a_first_step(greeting):
    text = greeting()
    assert text.lstrip().startswith("╭")
    for part in (RESULTS, "admin", environment.admin_password(), f"press Trigger at {ADDRESS}/dags/benchmark"):
        assert part in text
    assert "first step" in text
    assert "the DAG appears there some seconds later" in text
    assert text.index("press Trigger") < text.index("some seconds later") < text.index("or run `make benchmark`")


def test_who_has_runs_needs_no_first_step(greeting):
    write_live_run()
    assert store.all_live()
    text = greeting()
    assert RESULTS in text
    assert "first step" not in text


def test_a_file_does_not_get_the_password(capsys):
    greet(ADDRESS)
    text = capsys.readouterr().out
    assert text.startswith(f"Airflow: {RESULTS}  user: admin")
    assert str(environment.password_file()) in text
    assert environment.admin_password() not in text
