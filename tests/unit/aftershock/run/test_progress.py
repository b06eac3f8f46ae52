"""The line about a run in its window: what it says, and that it does not read a journal twice."""

from aftershock.run.fault_state import FaultState
from aftershock.run.progress import progress
from journal.writer import Journal
from tests.e2e.example_run import LIVE, write_live_run


def test_a_look_reads_what_has_come_since_the_last(monkeypatch):
    run, taken = write_live_run(), []
    take = FaultState.take
    monkeypatch.setattr(FaultState, "take", lambda self, entry: taken.append(entry["event"]) or take(self, entry))
    first = progress(LIVE)
    assert first.line.endswith(" of 240 s | batch 7 committed, 512 records/s | 1 of 2 faults, 0 undone")
    assert (first.ended, first.error) == (False, "the injector died (killed); see injector.log of the run")
    Journal(run.raw / "injector.jsonl").write("healed", host="worker-2", kind="kill", fault=0, left={})
    assert progress(LIVE).line.endswith("1 of 2 faults, 1 undone")
    assert taken == ["striking", "injected", "healed"]
