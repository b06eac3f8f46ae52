"""What every test shares: its kind is the folder it lives in, and nothing reports usage from a test.

Airflow makes its folder when it is first imported, so it is told here, before that, to make it in one that goes away
with the test run.
"""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["GX_ANALYTICS_ENABLED"] = "false"
os.environ["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] = "false"

AIRFLOW_HOME = tempfile.TemporaryDirectory(prefix="aftershock-airflow-")
os.environ["AIRFLOW_HOME"] = AIRFLOW_HOME.name

HERE = Path(__file__).parent

# The same examples every time, however long they take: what is drawn follows from each test alone.
settings.register_profile("thorough", derandomize=True, deadline=None)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=25)
settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(item.path.relative_to(HERE).parts[0])
