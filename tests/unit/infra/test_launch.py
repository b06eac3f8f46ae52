"""How a service is ended: it is asked, and then killed with all that it has started. All processes here are real."""

import signal

import pytest

from experiments.errors import EnvironmentFailure
from infra import launch
from infra.process_handles import ProcessHandles, kill_all
from infra.processes import members
from tests.unit.marked_processes import start, wait_for

# As a shell script in the place of a service: deaf to SIGTERM, and it has a new child a hundred times a second.
DEAF_AND_BEARING = "trap '' TERM; while :; do sleep 0.2 & sleep 0.01; done"


def test_what_a_service_starts_while_it_is_killed_does_not_outlive_it(token):
    mark = f"{token}/worker-1/service"
    shells = [start(mark, "sh", "-c", DEAF_AND_BEARING) for _ in range(6)]
    wait_for(lambda: len(members(mark)) > 2 * len(shells))
    launch.stop(mark, limit_s=0.05)
    assert members(mark) == []
    assert [shell.wait(60) for shell in shells] == [-signal.SIGKILL] * len(shells)


def test_a_process_that_is_not_killed_in_time_is_named_without_the_token(token):
    mark = f"{token}/worker-1/service"
    process = start(mark)
    with pytest.raises(EnvironmentFailure, match=f"^processes {process.pid} of worker-1/service survive SIGKILL; "):
        kill_all(ProcessHandles(mark), limit_s=0.0)
    kill_all(ProcessHandles(mark))
    assert process.wait(60) == -signal.SIGKILL
