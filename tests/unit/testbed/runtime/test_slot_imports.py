"""What a slot imports before it can take the place of a lost one."""

import subprocess
import sys

import pytest

SLOW = ("airflow", "boto3", "confluent_kafka", "great_expectations", "matplotlib", "pyspark", "scipy")
LOOK = "import sys, {}; print(*sorted(sys.modules.keys() & {!r}))"


def slow_imports(modules):
    """Which of the slow packages a Python process has imported with these modules."""
    done = subprocess.run([sys.executable, "-c", LOOK.format(modules, set(SLOW))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("modules", ["testbed.runtime.slot.slot, testbed.runtime.job"])
def test_a_slot_imports_nothing_slow_that_it_does_not_need(modules):
    assert slow_imports(modules) == []


def test_a_slow_import_is_seen():
    assert slow_imports("scipy") == ["scipy"]
