"""The testbed as processes of this machine, and what its journal tells meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from experiments.errors import EnvironmentFailure
from testbed.runtime.job import Job
from tests.integration.testbed.kills.slots import Slots
from tests.integration.testbed.kills.watching import Watch


@contextmanager
def watched_slots(job: Job, root: Path) -> Iterator[tuple[Slots, Watch]]:
    """Coordinator and slots of a job, which end with the block, and a watch on their journal. Files in `root` stay.

    Raises `EnvironmentFailure` if what the block waits for does not come.
    """
    try:
        with closing(Slots(job, root)) as rig, closing(Watch(rig.journal, job.slots)) as watch:
            yield rig, watch
    except TimeoutError as error:
        raise EnvironmentFailure(str(error), f"look at the files in {root}") from error
