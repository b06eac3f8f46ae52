"""A row of `side_by_side`: what one engine did with one query at one rate, and what can be said of it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.engines.peer_engine import ResultDelivery
from benchmarks.engines.result_timing import LATE_S, Timing
from models.sustainable.lag import MOST_GROWTH

MOST_LATE = 0.01  # of what the driver sends and reads
LEAST_CPU_S = 0.01
HEAD = (
    "query  rate     run engine     records/s   a core    results  missing  doubled  p50 s  p99 s  behind  keeps up"
    "  waits s  delivery        load"
)


@dataclass(frozen=True)
class Row:
    """What one engine did with one query at one rate.

    records    that the broker took in the window, of all kinds
    sent_late  share of the window's records that the broker did not have `LATE_S` after they were due
    waits_s    how much longer than at its end a window stays open, for late events; None: nobody knows
    """

    query: str
    rate: float
    run: int
    engine: str
    delivery: ResultDelivery
    waits_s: float | None
    records: int
    sent_late: float
    measured_s: float
    cpu_s: float
    timing: Timing
    doubled: int
    load_1min: float

    @property
    def void(self) -> str | None:
        """Why the row says nothing of the engine: the driver itself was late."""
        sent, read = self.sent_late, self.timing.read_late
        if sent > MOST_LATE:
            return f"void: the driver sent {sent:.1%} of the records more than {LATE_S:g} s late"
        if read > MOST_LATE:
            return f"void: the driver read {read:.1%} of the results more than {LATE_S:g} s after its last look"
        return None

    @property
    def keeps_up(self) -> bool | None:
        """None: the row is void. An engine that loses a result does not keep up, nor one whose growth is not known."""
        if self.void:
            return None
        return not self.timing.missing and self.timing.behind <= MOST_GROWTH

    @property
    def records_per_core_second(self) -> float | None:
        """None of an engine that does not keep up, or whose CPU time is not seen."""
        return self.records / self.cpu_s if self.keeps_up and self.cpu_s >= LEAST_CPU_S else None

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the row."""
        notes = [self.void] if self.void else []
        if self.timing.missing:
            notes.append(f"{self.timing.missing:,} results never came: their latency counts as infinite")
        if self.cpu_s < LEAST_CPU_S:
            notes.append(f"the command's processes took less than {LEAST_CPU_S:g} s of CPU time: others do the work")
        return notes

    def __str__(self) -> str:
        timing, per_core = self.timing, _or_dash(self.records_per_core_second, ",.0f")
        keeps_up = {True: "yes", False: "no", None: "void"}[self.keeps_up]
        line = (
            f"{self.query:5} {self.rate:7,.0f} {self.run:6} {self.engine:10} {self.records / self.measured_s:9,.0f}"
            f" {per_core:>8} {timing.results:10,} {_or_dash(timing.missing, ','):>8} {self.doubled:8,}"
            f" {timing.p50_s:6.2f} {timing.p99_s:6.2f} {timing.behind:7.1%}  {keeps_up:8}"
            f" {_or_dash(self.waits_s, 'g'):>8}  {self.delivery.value:14} {self.load_1min:5.0f}"
        )
        return "\n".join([line, *(f"      {note}" for note in self.notes)])


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
