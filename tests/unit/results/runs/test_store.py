"""The run store: runs appear whole, stay as they are, and nothing else counts as one."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments import spec
from experiments.errors import BadInput
from experiments.recovery_modes import RecoveryMode
from results.runs import store
from results.summary import index
from results.tables.schema import SCHEMA_VERSION, TABLES, VERSION_KEY
from results.views.listing import listing

pytestmark = pytest.mark.usefixtures("home")


def live_run(run_id, started_ns=0):
    run = store.live(run_id)
    status = {"run_id": run_id, "experiment": "e", "state": "done", "started_ns": started_ns, "ended_ns": 1}
    store.write_json(run.root / "status.json", status | {"error": None, "exit_code": 0})
    return run


def test_a_run_is_finished_once_it_is_published(home):
    run = live_run("run-1")
    assert store.all_finished() == []
    with pytest.raises(BadInput, match="the id of a finished run"):
        store.finished("run-1")
    published = store.publish(run)
    assert published.root == home / "runs" / "run-1"
    assert store.finished("run-1") == published
    assert not run.root.exists()


def test_a_run_that_is_there_already_is_not_touched():
    first = store.publish(live_run("run-1", started_ns=5))
    store.publish(live_run("run-1", started_ns=9))
    assert first.status().started_ns == 5


def test_a_run_of_the_testbed_from_before_it_had_strategies_is_read():
    """The documents of such runs state the default of that time, which the testbed passed over."""
    run, document = live_run("run-1"), spec.load("dataflow-q12").model_dump(mode="json")
    del document["engine"]["standby"]
    for recovery, read in (("query", None), ("global", "global")):
        document["engine"]["recovery"] = recovery
        store.write_json(run.experiment_path, document)
        assert run.experiment()["engine"]["recovery"] == read
        assert spec.validate(run.experiment()).engine.recovery_run is RecoveryMode.GLOBAL


def test_a_table_carries_the_version_of_its_schema(home):
    run = store.live("run-1")
    rows = [{"second": 0, "host": "gateway", "cpu_s": 0.5, "rss_bytes": 7}]
    run.write_table("hosts", pa.Table.from_pylist(rows, schema=TABLES["hosts"]))
    assert pq.read_schema(run.tables / "hosts.parquet").metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()
    assert run.table("hosts").to_dict("records") == rows


def test_runs_are_listed_newest_first():
    for run_id, started_ns in (("a", 20), ("b", 30), ("c", 10)):
        store.publish(live_run(run_id, started_ns))
    assert [run.run_id for run in store.all_finished()] == ["b", "a", "c"]


def test_what_is_no_run_is_passed_over(home):
    store.publish(live_run("run-1"))
    (home / "runs" / "stray").mkdir()
    (home / "runs" / "lost+found").mkdir()
    (home / "runs" / "My Notes").mkdir()
    (home / "runs" / "My Notes" / "status.json").write_text("{}")
    (home / "runs" / "notes.txt").touch()
    assert [run.run_id for run in store.all_finished()] == ["run-1"]
    with pytest.raises(BadInput, match="the id of a finished run"):
        store.finished("stray")


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "null", "{}", "7", '{"state": "done", "started_ns": "soon"}', '{"state": 3, "started_ns": 1}'),
        *(
            json.dumps({"state": "done", "started_ns": 1} | odd)
            for odd in (
                *({"started_ns": 10**30}, {"started_ns": -1}, {"started_ns": 1.5}, {"started_ns": True}),
                *({"ended_ns": "x"}, {"ended_ns": 10**30}, {"schema_version": "1"}, {"experiment": ["x"]}),
                *({"cores": "2"}, {"others_cores": "none"}, {"machine_speed": 0}),
                *({"experiment": 5}, {"dag_run": {}}, {"machine": [1]}, {"experiment_digest": 1}, {"error": [1]}),
            )
        ),
    ],
)
def test_a_damaged_status_is_said_and_stops_no_list(text):
    store.publish(live_run("run-1"))
    damaged = store.publish(live_run("run-2", started_ns=9))
    (damaged.root / "status.json").write_text(text)
    assert [run.run_id for run in store.all_finished()] == ["run-1", "run-2"]
    assert store.finished("run-1").known_status() == store.finished("run-1").status()
    known = damaged.known_status()
    assert (known.run_id, known.state, known.started_ns) == ("run-2", "unreadable", 0)
    assert "status.json" in known.error
    assert "damaged" in known.error
    assert "run-2" in listing(index.rows(), 80)


def test_a_status_that_cannot_be_read_is_said():
    run = store.publish(live_run("run-1"))
    (run.root / "status.json").unlink()
    (run.root / "status.json").mkdir()
    assert "status.json of run-1 is damaged: it is no regular file" in run.known_status().error


@pytest.mark.parametrize("run_id", ["", "..", "../runs/run-1", "a/b", "Run", "a b", "-a", "a" * 129, "a\n"])
def test_a_run_id_is_never_a_path(run_id):
    for use in (store.finished, store.live, store.live_directory):
        with pytest.raises(BadInput, match="lower-case letters"):
            use(run_id)


def test_an_unknown_table_is_named():
    with pytest.raises(BadInput, match="ledger"):
        live_run("run-1").table("../status")


def test_json_replaces_what_was_there_and_leaves_no_scratch(tmp_path):
    path = tmp_path / "new" / "document.json"
    store.write_json(path, {"a": 1})
    store.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == store.read_json(path) == {"a": 2}
    assert list(path.parent.iterdir()) == [path]


def test_a_document_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "document.json"
    store.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        store.write_json(path, {"a": object()})
    assert store.read_json(path) == {"a": 1}


def test_the_home_can_be_chosen_and_defaults_to_the_checkout(home, monkeypatch):
    assert store.home() == home
    monkeypatch.delenv("AFTERSHOCK_HOME")
    assert store.home().name == ".aftershock"
