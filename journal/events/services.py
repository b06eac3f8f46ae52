"""Events of the gateway's services: supervisor, sampler and generator."""

from __future__ import annotations

from dataclasses import dataclass, field

from journal.codec import Vocabulary
from journal.event import Event


@dataclass(frozen=True)
class ProgramStarted(Event, name="program-started"):
    """The supervisor started its program."""

    pid: int


@dataclass(frozen=True)
class ProgramEnded(Event, name="program-ended"):
    """The supervisor's program ended; `status` is its exit code, or minus the signal that killed it."""

    pid: int
    status: int


@dataclass(frozen=True)
class HostSample(Event, name="sample"):
    """What the processes of a host use: CPU time since they began [s], and memory [bytes]."""

    host: str
    cpu_s: float
    rss_bytes: int

    def cores_since(self, before: HostSample | None) -> float | None:
        """How many cores the host kept busy since the sample before.

        None for the first sample, and if the time fell: it is that of live processes, so one of them has ended since.
        """
        if before is None or self.at_ns <= before.at_ns or self.cpu_s < before.cpu_s:
            return None
        return (self.cpu_s - before.cpu_s) / ((self.at_ns - before.at_ns) / 1e9)


@dataclass(frozen=True)
class MachineSample(Event, name="machine"):
    """How busy the sampler's machine was since it booted [s], how many cores it has, and its monotonic clock [ns]."""

    monotonic_ns: int | None = field(default=None, kw_only=True)
    busy_s: float
    cores: int


@dataclass(frozen=True)
class LoadScheduled(Event):
    """The generator follows a schedule (`workloads.schedule.Schedule`)."""

    start_ns: int
    rate: float
    partitions: int
    end_ns: int | None = None


@dataclass(frozen=True)
class LoadStarted(LoadScheduled, name="started"):
    """The generator begins with this schedule."""


@dataclass(frozen=True)
class LoadRescheduled(LoadScheduled, name="rescheduled"):
    """The generator goes on with this schedule."""


@dataclass(frozen=True)
class RecordsSent(Event, name="sent"):
    """How many records were due, sent, delivered and refused by the broker so far."""

    due: int
    sent: int
    delivered: int
    failed: int


SUPERVISOR: Vocabulary[Event] = Vocabulary(ProgramStarted, ProgramEnded)
HOSTS: Vocabulary[HostSample] = Vocabulary(HostSample)
MACHINE: Vocabulary[MachineSample] = Vocabulary(MachineSample)
GENERATOR: Vocabulary[Event] = Vocabulary(LoadStarted, LoadRescheduled, RecordsSent)
SCHEDULES: Vocabulary[LoadScheduled] = Vocabulary(LoadStarted, LoadRescheduled)
