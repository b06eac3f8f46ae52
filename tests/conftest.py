"""What every test shares: its kind is the folder it lives in, and nothing reports usage from a test."""

import os
from pathlib import Path

import pytest

os.environ["GX_ANALYTICS_ENABLED"] = "false"
os.environ["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] = "false"

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(item.path.relative_to(HERE).parts[0])
