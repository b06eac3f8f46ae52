"""The line about a run in its window: what it says, and that it does not read a journal twice."""

from aftershock.run.fault_state import FaultState
from aftershock.run.progress import progress
from journal.events.injector import Healed
from journal.writer import Journal
from tests.e2e.example_run import LIVE, write_live_run
from tests.unit.example_events import example


def test_a_look_reads_what_has_come_since_the_last(monkeypatch):
    run, taken = write_live_run(), []
    take = FaultState.take
    monkeypatch.setattr(FaultState, "take", lambda self, event: taken.append(event.name) or take(self, event))
    first = progress(LIVE)
    assert first.line.endswith(" of 240 s | batch 7 committed, 512 records/s | 1 of 2 strikes, 0 undone")
    assert (first.ended, first.error) == (False, "the injector died (killed); see injector.log of the run")
    Journal(run.raw / "injector.jsonl").record(example(Healed, host="worker-2"))
    assert progress(LIVE).line.endswith("1 of 2 strikes, 1 undone")
    assert taken == ["striking", "injected", "healed"]
