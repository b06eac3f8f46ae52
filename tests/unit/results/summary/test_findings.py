"""What the findings of a run take from its tables."""

from results.runs import store
from results.summary.findings import table_or_empty


def test_who_adds_to_a_table_that_a_run_lacks_changes_it_for_nobody_else():
    run = store.stored("one")
    mine = table_or_empty(run, "quality")
    mine["share"] = 0.5
    again = table_or_empty(run, "quality")
    assert "lost" in again
    assert "share" not in again
    assert again.empty
