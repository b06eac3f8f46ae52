"""Events of the search for the sustainable rate (`aftershock.run.sustainable`)."""

from __future__ import annotations

from dataclasses import dataclass

from journal.codec import Vocabulary
from journal.event import Event


@dataclass(frozen=True)
class ProbeJudged(Event, name="probe"):
    """A rate that was tried.

    probe                      its number
    rate                       [records/s]
    started_ns                 when the load began
    watched_ns, ended_ns       between which moments lag was watched
    due, delivered, read       records in that time
    lag_begin, lag_end, lag    records due and not read: at its begin and end, and the median
    growth                     of lag [records/s]; None of too few samples
    outcome, why               of `models.sustainable.lag.Judged`
    """

    probe: int
    rate: float
    started_ns: int
    watched_ns: int
    ended_ns: int
    due: float
    delivered: float
    read: float
    lag_begin: float
    lag_end: float
    outcome: str
    why: str
    growth: float | None
    lag: float


@dataclass(frozen=True)
class Found(Event, name="found"):
    """The highest rate that was sustained, the lowest that was not [records/s], and why the search ended."""

    low: float | None
    high: float | None
    end: str


SEARCH: Vocabulary[Event] = Vocabulary(ProbeJudged, Found)
