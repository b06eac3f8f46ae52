"""What the tests with real processes share."""

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import suppress

import pytest

from infra.processes import members


@pytest.fixture
def token() -> Iterator[str]:
    """The ownership token of a cluster that only this test has; what carries it does not outlive the test."""
    own = f"test-{uuid.uuid4().hex}"
    yield own
    for pid in members(own):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, signal.SIGKILL)
