"""What a campaign's episodes add up to: kills by moment, what was lost or doubled, how long recovery took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tests.integration.spark_jobs.kills.campaign import Episode, Means
from tests.integration.spark_jobs.kills.moments import Moment
from tests.integration.spark_jobs.kills.watching import NS, Entry


@dataclass(frozen=True)
class Recovery:
    """Of one time that all went back to a line [s].

    restart    from the loss of the last slot to the beginning of the last epoch: until another was in its place
    executor   from that loss until Spark had the last executor up; None if it had to start none
    restore    from the beginning of the last epoch until all went on
    """

    restart_s: float
    executor_s: float | None
    restore_s: float

    @property
    def own_s(self) -> float:
        """Loss to ready without Spark's start of an executor: in it are Spark's of a task, and Python's of a slot."""
        return self.restart_s - (self.executor_s or 0.0) + self.restore_s


def recoveries(journal: Iterable[Entry]) -> Iterator[Recovery]:
    """Every one that came to its end. The start of the run is none."""
    lost_ns = up_ns = begun_ns = 0
    for entry in journal:
        if entry["event"] == "worker-lost":
            lost_ns, up_ns, begun_ns = entry["at_ns"], 0, 0
        elif entry["event"] == "executors-up":
            up_ns = entry["at_ns"]
        elif entry["event"] == "recovering":
            begun_ns = begun_ns or entry["at_ns"]
        elif entry["event"] == "ready":
            if lost_ns and begun_ns:  # a lost worker may have hosted nothing, or copies only
                executor_s = (up_ns - lost_ns) / NS if up_ns else None
                yield Recovery((begun_ns - lost_ns) / NS, executor_s, (entry["at_ns"] - begun_ns) / NS)
            lost_ns = up_ns = begun_ns = 0


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
