"""The moments at which a slot is killed: how to wait for one, and what tells afterwards which it was."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from tests.integration.testbed.kills.watching import Stage, Standing

REPLAYED_NS = 50_000_000


class Moment(Enum):
    """What is under way when the injection falls.

    RUNNING      nothing of the following
    ALIGNING     a partition that is aligning a round holds channels back; on hosts, any time amid a round
    STORING      the slot that is struck is writing an object of a checkpoint or log
    PUBLISHING   the slot that is struck is writing a checkpoint's output
    SHORT        a slot is gone and the one in its place has not come
    RESTORING    all are going back to a line
    REPLAYING    all have gone on less than 50 ms ago
    """

    RUNNING = "running"
    ALIGNING = "aligning"
    STORING = "storing"
    PUBLISHING = "publishing"
    SHORT = "short of a slot"
    RESTORING = "restoring"
    REPLAYING = "replaying"


AMID_RECOVERY = frozenset({Moment.SHORT, Moment.RESTORING, Moment.REPLAYING})


def writers(folder: Path) -> set[int]:
    """The processes that are writing a file below a folder of folders, or died when they were: by the scratch file."""
    names = (path.name for path in folder.glob("*/.*"))
    return {int(name.split(".", 2)[1]) for name in names}


def moment_at(standing: Standing, at_ns: int, struck: Iterable[Moment]) -> Moment:
    """Which moment it was, by how the run stood then and what is known of the slot that was struck."""
    stages = {Stage.SHORT: Moment.SHORT, Stage.RESTORING: Moment.RESTORING}
    if standing.stage in stages:
        return stages[standing.stage]
    known = set(struck)
    for moment in (Moment.PUBLISHING, Moment.STORING, Moment.ALIGNING):
        if moment in known:
            return moment
    return Moment.REPLAYING if at_ns - standing.ready_ns < REPLAYED_NS else Moment.RUNNING
