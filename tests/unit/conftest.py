"""What unit tests share: a machine that seems to have Java and the jars, a server of S3, and a token of processes."""

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from infra.processes import members
from infra.services import jars, jvm
from results.runs import machine_speed


@pytest.fixture(autouse=True)
def machine_with_java_and_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit tests begin runs also on a machine without a JVM, and download nothing.

    What is replaced lies below `find_java` and `ensure_jars`, which many modules import by name, some of them late. The
    tests of the search itself have a fixture of this name that replaces nothing.
    """
    monkeypatch.setattr(jvm, "_candidates", lambda: [Path("/nowhere/jdk/bin/java")])
    monkeypatch.setattr(jvm, "_probe", lambda launcher: jvm.Java(launcher.parents[1], jvm.MINIMUM))
    monkeypatch.setattr(jars, "_download", lambda folder: None)
    monkeypatch.setattr(jars, "_verify", lambda folder, remedy: None)


@pytest.fixture(autouse=True)
def quick_machine_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that begins measures the machine's speed for a second; for tests a rough value is enough."""
    monkeypatch.setattr(machine_speed, "PIECES", 1)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of a server that plays S3 and has an empty bucket."""
    from tests.object_stores import s3_server  # which takes a second to load

    with s3_server() as address:
        yield address


@pytest.fixture
def token() -> Iterator[str]:
    """The ownership token of a cluster that only this test has; what carries it does not outlive the test."""
    own = f"test-{uuid.uuid4().hex}"
    yield own
    for pid in members(own):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, signal.SIGKILL)
