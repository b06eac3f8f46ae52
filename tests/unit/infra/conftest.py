"""What the tests of infra need of the machine."""

from __future__ import annotations

import pytest

from tests.unit.infra.network_namespaces import in_a_namespace


@pytest.fixture
def namespaces() -> None:
    """Network namespaces can be made here; else the test is skipped."""
    done = in_a_namespace("true")
    if done.returncode:
        pytest.skip(f"only root, in a machine that lets it, can make a network namespace ({done.stderr.strip()})")
