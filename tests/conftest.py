"""What every test shares: its kind is the folder it lives in, and nothing reports usage from a test.

Airflow makes its folder when it is first imported, so it is told here, before that, to make it in one that goes away
with the test run.
"""

import gc
import os
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["GX_ANALYTICS_ENABLED"] = "false"
os.environ["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] = "false"

# What the repository has published is in no list of a test that does not ask for it.
os.environ["AFTERSHOCK_PUBLISHED"] = os.devnull

AIRFLOW_HOME = tempfile.TemporaryDirectory(prefix="aftershock-airflow-")
os.environ["AIRFLOW_HOME"] = AIRFLOW_HOME.name

HERE = Path(__file__).parent
# Files with whole runs, which take minutes: whichever of them came last would be waited for, with one core idle.
WHOLE_RUNS = (
    "e2e/test_same_experiment.py",
    "e2e/test_borrowed_cluster.py",
    "e2e/test_scheduled_run.py",
    "e2e/test_command_line_run.py",
    "integration/aftershock/test_killed_controller.py",
    "integration/aftershock/run/test_own_job.py",
)

# The same examples every time, however long they take: what is drawn follows from each test alone.
settings.register_profile("thorough", derandomize=True, deadline=None)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=25)
settings.load_profile("quick")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """$AFTERSHOCK_HOME: an empty folder of the test's own."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("AFTERSHOCK_HOME", str(folder))
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collection imports and makes stays to the end. The garbage collector looks for nothing in it: neither now,
    nor ever again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests with their kind. Of those that `--dist loadfile` deals out file by file, whole runs come first, and
    then the files with the most tests."""
    paths = {item.path: item.path.relative_to(HERE) for item in items}
    sizes = Counter(item.path for item in items)
    for item in items:
        item.add_marker(paths[item.path].parts[0])

    def turn(item: pytest.Item) -> tuple[int, int]:
        path = paths[item.path]
        if path.parts[0] == "unit":
            return 0, 0
        ranks = [rank for rank, name in enumerate(WHOLE_RUNS) if name == path.as_posix()]
        return (ranks or [len(WHOLE_RUNS)])[0], -sizes[item.path]

    items.sort(key=turn)
