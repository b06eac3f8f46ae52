"""The costs of checks and recoveries of an operator with an output log, measured while it runs."""

from __future__ import annotations

from testbed.output_log.policies import Costs

USUAL = Costs(entry_s=1e-6, record_s=2.5e-6, check_s=3.4e-6, records_per_s=10_000)  # docs/lab/output-log.md; a guess
ENOUGH = 1000  # a mean counts from this number of measurements on


class LogCosts(Costs):
    """The usual costs, until enough was measured in this slot."""

    def __init__(self) -> None:
        super().__init__(**vars(USUAL))
        self._checks, self._checks_s = 0, 0.0
        self._first: tuple[int, float, float] | None = None

    def add_read(self, entries: int, seconds: float) -> None:
        """A recovery has fetched `entries` entries from the store and read them: what is taken in is measured anew."""
        self._first = None
        if entries >= ENOUGH and seconds > 0:
            self.entry_s = seconds / entries

    def add_checks(self, checks: int, seconds: float) -> None:
        """`checks` parts were saved; 0 if it was only checked whether any is due."""
        if checks:
            self._checks, self._checks_s = self._checks + checks, self._checks_s + seconds
        if self._checks >= ENOUGH and self._checks_s > 0:
            self.check_s = self._checks_s / self._checks

    def set_taken_in(self, position: int, processing_s: float, now_s: float) -> None:
        """The operator has read as many records by now, and has worked for so long [s].

        Not to be called while it replays what it had read before: that does not come at the rate of its input.
        """
        if self._first is None:
            self._first = position, processing_s, now_s
        first, processing_before_s, began_s = self._first
        if position - first < ENOUGH:
            return
        if now_s > began_s:
            self.records_per_s = (position - first) / (now_s - began_s)
        if processing_s > processing_before_s:
            self.record_s = (processing_s - processing_before_s) / (position - first)
