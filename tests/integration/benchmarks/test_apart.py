"""What a soak runs apart from: processes, interfaces, temporary files; and how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "orchestration" / "apart.sh"
LOOK = """
import json, os
print(json.dumps([
    sorted(each for each in os.listdir("/proc") if each.isdigit()), os.listdir("/sys/class/net"), os.listdir("/tmp"),
    os.listdir("/run/netns"), os.listdir("/dev/shm")
]))
"""
COMMAND = """
setsid sh -c 'trap "" TERM; sleep 600' &
trap 'sleep .3; echo ended; exit 5' TERM
echo started
while :; do sleep .1; done
"""


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid():
        pytest.skip("namespaces need root")


def apart(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(["sh", str(SCRIPT), *command], stdout=subprocess.PIPE, text=True)


def test_a_command_sees_nothing_of_the_machine_and_its_exit_code_is_passed_on() -> None:
    process = apart("sh", "-c", '"$0" -c "$1"; exit 7', sys.executable, LOOK)
    told, _ = process.communicate()
    processes, interfaces, *folders = json.loads(told)
    assert (len(processes), interfaces, folders, process.returncode) == (3, ["lo"], [[], [], []], 7)


def test_a_signal_ends_the_command_in_its_own_way_and_then_what_it_left() -> None:
    process = apart("sh", "-c", COMMAND)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.read() == "ended\n"  # the end of what is read: nobody is left who could write more
    assert process.wait() == 5
