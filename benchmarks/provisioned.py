"""A cluster that is made for one benchmark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.spec import ClusterSpec
from infra.cluster import Driver, Handle
from infra.drivers import driver_of


@contextmanager
def provisioned(spec: ClusterSpec, run_id: str) -> Iterator[tuple[Driver, Handle]]:
    """A cluster below a temporary folder, and its driver. Both are gone afterwards, with all that was written there."""
    driver = driver_of(spec.driver)
    with tempfile.TemporaryDirectory(prefix=f"aftershock-{run_id}-") as root:
        handle = driver.provision(spec, run_id, Path(root))
        try:
            yield driver, handle
        finally:
            driver.destroy(handle)
