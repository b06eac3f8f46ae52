"""What a campaign's episodes add up to: kills by moment, what was lost or doubled, how long recovery took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tests.integration.testbed.kills.campaign import Episode, Means
from tests.integration.testbed.kills.moments import Moment
from tests.integration.testbed.kills.watching import NS, Entry


@dataclass(frozen=True)
class RecoveryTimes:
    """Of one recovery from the loss of slots that had partitions [s].

    restart    from the last such loss that it makes up for to its beginning: until another slot was in that place
    executor   from that loss until Spark had the last executor up before it began; None if it had to start none
    restore    from its beginning until all go on that take part
    """

    restart_s: float
    executor_s: float | None
    restore_s: float

    @property
    def own_s(self) -> float:
        """Loss to ready without Spark's start of an executor: in it are Spark's of a task, and Python's of a slot."""
        return self.restart_s - (self.executor_s or 0.0) + self.restore_s


def recoveries(journal: Iterable[Entry]) -> Iterator[RecoveryTimes]:
    """Every one that came to its end. The start of the run is none, nor is one for which no slot was lost.

    A loss during a recovery waits for the next one to begin; where only part of the partitions goes back, the recovery
    that is under way comes to its end before.
    """
    lost_ns = up_ns = 0  # the last loss that no recovery has begun to make up for
    begun: tuple[int, int, int] | None = None  # these two, and when the recovery that makes up for it began
    for entry in journal:
        at_ns = entry["at_ns"]
        if entry["event"] == "worker-lost" and entry["partitions"]:
            lost_ns, up_ns = at_ns, 0
        elif entry["event"] == "executors-up":
            up_ns = at_ns
        elif entry["event"] == "recovering" and lost_ns:
            begun, lost_ns = (lost_ns, up_ns, at_ns), 0
        elif entry["event"] == "ready" and begun is not None:
            since_ns, executor_ns, begun_ns = begun
            executor_s = (executor_ns - since_ns) / NS if executor_ns else None
            yield RecoveryTimes((begun_ns - since_ns) / NS, executor_s, (at_ns - begun_ns) / NS)
            begun = None


def detections(episode: Episode) -> Iterator[float]:
    """From each kill until the next loss that was noticed [s], unless another injection came first."""
    lost = [entry["at_ns"] for entry in episode.journal if entry["event"] == "worker-lost"]
    ends = [injection.at_ns for injection in episode.injections[1:]] + [2**63]
    for injection, end_ns in zip(episode.injections, ends, strict=True):
        noticed = next((at_ns for at_ns in lost if injection.at_ns <= at_ns < end_ns), None)
        if noticed and injection.means is not Means.PAUSE:
            yield (noticed - injection.at_ns) / NS


def checkpoints(journal: Iterable[Entry]) -> tuple[int, int, int]:
    """How many were stored, how many of them a recovery left behind, and their bytes."""
    stored = invalid = size = 0
    valid: dict[str, list[int]] = {}
    for entry in journal:
        if entry["event"] == "checkpoint":
            stored, size = stored + 1, size + entry["size_bytes"]
            valid.setdefault(entry["partition"], []).append(entry["number"])
        elif entry["event"] == "recovering":
            for partition, number in entry["line"].items():
                kept = [each for each in valid.get(partition, []) if each <= number]
                invalid += len(valid.get(partition, [])) - len(kept)
                valid[partition] = kept
    return stored, invalid, size


def table(protocol: str, query: str, episodes: list[Episode]) -> str:
    """As Markdown: kills by moment, verdict, times, checkpoints."""
    injections = [injection for episode in episodes for injection in episode.injections]
    kills: Counter[Moment] = Counter()
    for injection in injections:
        kills[injection.hit] += injection.kills
    pauses = sum(injection.means is Means.PAUSE for injection in injections)
    journals = [episode.journal for episode in episodes]
    found = [each for journal in journals for each in recoveries(journal)]
    stored, invalid, size = (sum(column) for column in zip(*map(checkpoints, journals), strict=True))
    verdicts = [episode.verdict for episode in episodes]
    rows = {
        "": f"{query}, {protocol}",
        "---": "---",
        "kills": kills.total(),
        **{moment.value: kills[moment] for moment in Moment},
        "pauses": pauses,
        "own deaths": sum(episode.own_deaths for episode in episodes),
        "records": f"{sum(each.compared for each in verdicts):,}",
        "lost, doubled, wrong": ", ".join(
            str(sum(getattr(each, kind) for each in verdicts)) for kind in ("lost", "doubled", "wrong")
        ),
        "detect, ms": _spread([each for episode in episodes for each in detections(episode)]),
        "restart, ms": _spread([each.restart_s for each in found]),
        "of that executors, ms": _spread([each.executor_s for each in found if each.executor_s is not None]),
        "restore, ms": _spread([each.restore_s for each in found]),
        "loss to ready without executors, ms": _spread([each.own_s for each in found]),
        "checkpoints": f"{stored:,}",
        "invalid": f"{invalid:,} ({invalid / max(stored, 1):.0%})",
        "mean size, kB": f"{size / max(stored, 1) / 1000:.1f}",
    }
    return "\n".join(f"| {name} | {value} |" for name, value in rows.items())


def _spread(seconds: list[float]) -> str:
    """Median and 99th percentile."""
    if not seconds:
        return "-"
    middle, high = np.quantile(seconds, [0.5, 0.99]) * 1000
    return f"{middle:.0f}, {high:.0f}"
