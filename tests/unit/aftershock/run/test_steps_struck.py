"""If a run is killed at any change of its files at its begin or end, or the disk is full, it is a whole run or none.

`teardown`, which `aftershock clean` calls as well, then ends it, and nothing of it stays.
"""

import pytest

from aftershock.run import steps
from experiments.spec import Experiment
from journal.events.query import QueryReady
from journal.writer import Journal
from results.runs import store
from tests.unit.interruptions import Interruption, at_every_change

# With the default that the document of a run states, too.
DOCUMENT = {"name": "mine", "window_s": 30, "engine": {"recovery": "query"}}


def begin():
    steps.begin(DOCUMENT, "run-1")


def end():
    steps.teardown("run-1", "the cluster died")


def ready_to_end():
    begin()
    live = steps.LiveRun("run-1")
    Journal(live.journal_path("query")).record(QueryReady(()))
    logs = live.root / "hosts" / "gateway" / "logs"
    logs.mkdir(parents=True)
    (logs / "query.log").write_text("a line\n")


def check_that_it_is_over(home):
    """Nothing is left of it but, if it had begun, a failed run that is whole."""
    assert [path.name for path in (home / "live").iterdir() if not path.name.endswith(".teardown")] == []
    for run in store.all_finished():
        assert Experiment.model_validate(store.read_json(run.experiment_path)) == Experiment(**DOCUMENT)
        assert run.known_status().state == "failed"
        assert [path.name for path in run.root.rglob(".*")] == []
        store.remove(run.run_id)


@pytest.mark.extended
@pytest.mark.parametrize("interruption", Interruption)
def test_a_run_that_is_struck_as_it_begins_is_one_or_none(home, interruption):
    for _ in at_every_change(begin, home, interruption):
        assert store.all_finished() == []
        for run_id in store.all_live():
            assert store.live(run_id).status().state == "running"
        steps.teardown("run-1", "struck")
        check_that_it_is_over(home)
    begin()


@pytest.mark.extended
@pytest.mark.parametrize("interruption", Interruption)
def test_a_run_that_is_struck_as_it_ends_is_live_or_finished(home, interruption):
    ready_to_end()
    for _ in at_every_change(end, home, interruption):
        if store.is_finished("run-1"):
            assert store.finished("run-1").status().state == "failed"
        else:
            assert store.all_live() == ["run-1"]
        assert steps.teardown("run-1", "the cluster died") == "failed"
        logs = store.finished("run-1").raw
        assert (logs / "logs" / "gateway" / "query.log").read_text() == "a line\n"
        assert (logs / "query.jsonl").is_file()
        check_that_it_is_over(home)
        ready_to_end()
