"""What `aftershock results publish` writes, what it refuses, and how what was published is read again."""

import hashlib
import json
import os
import shutil
import socket
from pathlib import Path

import pandas as pd
import pytest

from experiments import spec
from experiments.errors import BadInput
from results import publication
from results.damage import Damaged, Outdated
from results.publication import publish_results, trace_of_machine
from results.runs import exchange, published, store
from results.runs.machine import experiment_digest, machine_class
from results.summary import index
from results.tables.schema import SCHEMA_VERSION
from results.views import gallery
from tests.unit.interruptions import Interruption, at_every_change
from tests.unit.results import synthetic

RUN, FIGURE = "run-1", "utilization/fig-04"
MADE = {
    "command": f"aftershock reproduce {FIGURE}",
    "machine": "a machine, 2 cores, 24 GiB",
    "versions": {"numpy": "2"},
}


@pytest.fixture(autouse=True)
def publications(home, tmp_path, monkeypatch):
    """An empty folder of what is published, beside the home."""
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))


def write_run(run_id=RUN, started_ns=1, seed=3, **status):
    """A run of the example wordcount, with a raw log and two forms of a plot."""
    run = synthetic.make_run(store.home() / "runs", run_id=run_id)
    experiment = spec.load(overrides=[f"seed={seed}"])
    about = {"machine": machine_class(), "experiment_digest": experiment_digest(experiment), "dag_run": "manual__1"}
    about |= {"attempt": 1, "started_ns": started_ns, "schema_version": SCHEMA_VERSION}
    store.write_json(run.root / "status.json", run.status().to_json() | about | status)
    store.write_json(run.experiment_path, experiment.model_dump(mode="json"))
    for path, text in (
        (run.raw / "query.jsonl", "{}"),
        (run.plots / "one.svg", "<svg/>"),
        (run.plots / "one.png", "long" * 9),
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return run


def write_figure(made=None, **table):
    """A table of a paper as `aftershock reproduce` leaves it."""
    folder = store.home() / "reproductions" / FIGURE
    folder.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(table or {"interval_s": [1.0, 2.0], "why": ["", None]})
    frame.to_parquet(folder / "utilization-fig-04.parquet", index=False)
    frame.to_csv(folder / "utilization-fig-04.csv", index=False)
    for kind in ("svg", "png"):
        (folder / f"utilization-fig-04.{kind}").write_text("<svg/>")
    check = {"check": "agrees", "verdict": "pass", "observed": "0.9", "expected": "0.9", "detail": None}
    about = {"id": FIGURE, "what": "U over T", "kind": "C", "size": None, "verdict": "pass", "verdicts": [check]}
    about |= {"files": {"svg": f"{folder}/utilization-fig-04.svg"}} | (MADE if made is None else made)
    store.write_json(folder / "utilization-fig-04.verdicts.json", about)


def contents():
    folder = published.folder()
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def files():
    """Which file has each name, and when it was written."""
    found = ((path, path.stat()) for path in published.folder().rglob("*"))
    return {path: (about.st_ino, about.st_mtime_ns) for path, about in found}


def edit(path, **fields):
    store.write_json(path, json.loads(path.read_text()) | fields)


def test_a_run_and_a_figure_are_published_without_raw_logs_and_what_is_of_this_installation():
    write_run()
    write_figure()
    done = publish_results([RUN, FIGURE, RUN])
    assert (done.changed, done.unchanged) == ([RUN, FIGURE], [])
    found = contents()
    run, figure = f"runs/{RUN}", f"reproductions/{FIGURE}"
    assert not [name for name in found if "raw" in name or "png" in name]
    assert {f"{run}/plots/one.svg", f"{run}/tables/ledger.parquet", f"{run}/experiment.json"} < set(found)
    names = {f"utilization-fig-04.{kind}" for kind in ("parquet", "csv", "svg", "verdicts.json")} | {"published.json"}
    assert {name.removeprefix(f"{figure}/") for name in found if name.startswith(figure)} == names
    assert not {"dag_run", "attempt", "error"} & set(json.loads(found[f"{run}/status.json"]))
    assert str(store.home()) not in found[f"{figure}/utilization-fig-04.verdicts.json"].decode()
    for folder in (run, figure):
        about = json.loads(found[f"{folder}/published.json"])
        own = {name.removeprefix(f"{folder}/") for name in found if name.startswith(folder)} - {"published.json"}
        assert about["files"] == {name: hashlib.sha256(found[f"{folder}/{name}"]).hexdigest() for name in own}
        assert about["machine"]
        assert about["versions"]


def test_a_long_table_is_published_without_its_text(monkeypatch):
    monkeypatch.setattr(publication, "MOST_LISTED_BYTES", 100)
    write_figure(interval_s=list(range(100)))
    publish_results([FIGURE])
    assert {name.rpartition(".")[2] for name in contents()} == {"json", "parquet", "svg"}
    write_figure()
    publish_results([FIGURE])
    assert {name.rpartition(".")[2] for name in contents()} == {"json", "parquet", "svg", "csv"}


def test_the_same_results_published_again_change_no_file():
    write_run()
    write_figure()
    publish_results([])
    before = files()
    done = publish_results([])
    assert (done.changed, done.unchanged) == ([], [RUN, FIGURE])
    assert files() == before


def test_bytes_do_not_depend_on_when_they_are_published():
    write_run()
    write_figure()
    publish_results([])
    first = contents()
    shutil.rmtree(published.folder())
    publish_results([FIGURE])
    publish_results([RUN])
    assert contents() == first


def test_a_newer_run_takes_the_place_of_an_earlier_one_of_the_same_example():
    write_run("older", started_ns=1)
    write_run("newer", started_ns=2, seed=4)
    publish_results(["older"])
    assert publish_results([]).changed == ["newer"]
    assert [run.root.name for run in map(store.located, ("older", "newer"))] == ["older", "newer"]
    assert {name.split("/")[1] for name in contents()} == {"newer"}


def test_two_runs_of_one_example_are_refused_before_anything_is_changed():
    for run_id, seed in (("run-2", 2), ("run-3", 3)):
        write_run(run_id, seed=seed)
    publish_results(["run-2"])
    before = contents()
    with pytest.raises(BadInput, match="one run of the example wordcount: run-2 is named, too"):
        publish_results(["run-2", "run-3"])
    assert contents() == before


def test_a_run_that_lost_its_experiment_is_of_no_example():
    write_run("run-2").experiment_path.unlink()
    write_run("run-3", started_ns=2)
    assert publish_results([]).changed == ["run-3"]


def test_an_example_lacks_a_run_until_one_is_published_and_is_run_only_if_there_is_none_here_either():
    others = [name for name in spec.available() if name != "wordcount"]
    assert publication.examples_to_run() == publication.examples_not_published() == spec.available()
    write_run()
    assert publication.examples_to_run() == others
    assert publication.examples_not_published() == spec.available()
    publish_results([])
    assert publication.examples_not_published() == others
    shutil.rmtree(store.home())
    assert publication.examples_to_run() == others


@pytest.mark.parametrize(
    ("name", "fields"),
    [("published.json", {"format": 0}), ("status.json", {"schema_version": 1}), ("experiment.json", {"window_s": 9.0})],
    ids=["format", "tables", "example"],
)
def test_a_published_run_of_another_version_is_none(name, fields):
    write_run()
    publish_results([])
    shutil.rmtree(store.home())
    edit(published.folder() / "runs" / RUN / name, **fields)
    assert publication.examples_to_run() == spec.available()


def test_a_run_of_no_example_is_published_if_it_is_named():
    run = write_run()
    edit(run.experiment_path, window_s=77.0)
    assert publish_results([]).changed == []
    publish_results([RUN])
    assert published.read(published.folder() / "runs" / RUN, RUN).example is None
    assert not [name for name in contents() if "/plots/" in name], "it is a part of a table, and not for show"


@pytest.mark.parametrize(
    ("spoil", "allowed"),
    [
        (lambda run: edit(run.root / "status.json", state="failed"), "a run that is done"),
        (lambda run: edit(run.root / "status.json", schema_version=2), "aftershock results recompute run-1"),
        (lambda run: edit(run.experiment_path, note="/home/vera/inventory.json"), "names nothing of the machine"),
        (
            lambda run: (run.plots / "one.svg").write_text(f"<svg><!-- {socket.gethostname()} --></svg>"),
            "nothing of the",
        ),
        (
            lambda run: synthetic.write_table(run, "verdicts", pd.DataFrame({"detail": ["see /tmp/log"]})),
            "verdicts.parquet",
        ),
    ],
    ids=["failed", "outdated", "path in the experiment", "host in a plot", "path in a table"],
)
def test_what_cannot_be_published_is_refused_and_nothing_is_changed(spoil, allowed, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "the-machine")
    spoil(write_run())
    write_figure()
    with pytest.raises(BadInput, match=allowed):
        publish_results([FIGURE, RUN])
    assert contents() == {}


def test_a_figure_is_refused_that_does_not_say_how_it_came_about_or_is_not_of_this_installation():
    write_figure(made={})
    with pytest.raises(BadInput, match=rf"`aftershock reproduce {FIGURE}`"):
        publish_results([FIGURE])
    write_figure()
    publish_results([FIGURE])
    shutil.rmtree(store.home())
    with pytest.raises(BadInput, match="computed in this installation"):
        publish_results([FIGURE])


@pytest.mark.parametrize("column", ["run_id", "measured_at"])
def test_a_table_of_fewer_runs_does_not_take_the_place_of_the_published_one(column):
    """As after a change of machines, where the raw runs are gone."""
    write_figure(**{column: ["a", "b", None]})
    publish_results([])
    before = contents()
    write_figure(**{column: ["c", "c", None]})
    done = publish_results([])
    assert (done.changed, done.unchanged, done.left_out) == ([], [], [FIGURE])
    place = published.folder() / "reproductions" / FIGURE
    advice = f"`aftershock reproduce {FIGURE}` makes missing runs, .* --size; delete that folder only to withdraw"
    with pytest.raises(BadInput, match=f"it is of 1, that one in {place} of 2; {advice}") as refused:
        publish_results([FIGURE])
    assert "\n" not in str(refused.value)
    assert contents() == before
    shutil.rmtree(place)
    assert publish_results([FIGURE]).changed == [FIGURE]


@pytest.mark.parametrize("named", [True, False], ids=["named", "all"])
def test_the_runs_of_a_table_are_counted_once(monkeypatch, named):
    write_figure(run_id=["a", "b"])
    publish_results([])
    counted, count = [], publication._runs_of
    monkeypatch.setattr(publication, "_runs_of", lambda path: (counted.append(path), count(path))[1])
    publish_results([FIGURE] if named else [])
    assert sorted(path.is_relative_to(published.folder()) for path in counted) == [False, True]


@pytest.mark.parametrize("runs", [["c", "d"], ["a", "b", "c"]], ids=["as many", "more"])
def test_a_table_of_other_runs_takes_the_place_of_the_published_one(runs):
    write_figure(run_id=["a", "b"])
    publish_results([])
    write_figure(run_id=runs)
    done = publish_results([])
    assert (done.changed, done.left_out) == ([FIGURE], [])


def test_a_published_table_that_cannot_be_read_is_replaced():
    write_figure(run_id=["a", "b"])
    publish_results([])
    (published.folder() / "reproductions" / FIGURE / "utilization-fig-04.parquet").write_bytes(b"PAR1")
    write_figure(run_id=["a"])
    assert publish_results([]).changed == [FIGURE]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("reads /work/x", "/work/x"),
        ("(/root/.cache)", "/root/.cache)"),
        ("file:///home/v", "/home/v"),
        ("30 records/s, a/tmp/b, tables/runs.parquet", None),
        ("on the-machine", "the-machine"),
        ("on the-machine-2", None),
    ],
)
def test_what_names_the_machine(text, found, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "the-machine")
    assert trace_of_machine(text) == found


def published_and_gone():
    """A fresh installation with a published run and figure."""
    write_run()
    write_figure()
    publish_results([])
    shutil.rmtree(store.home())


def test_a_fresh_installation_reads_published_results_through_the_same_stores():
    published_and_gone()
    run = store.readable(RUN)
    assert run.is_published
    assert store.ReadOnce.of(run).is_published
    assert len(run.table("ledger")) > 0
    assert run.publication().command == "aftershock benchmark published/runs/run-1/experiment.json"
    assert index.rows() == []
    (row,) = index.rows(with_published=True)
    assert (row.run_id, row.state, row.is_published) == (RUN, "done", True)
    assert index.rows(with_published=True) == [row]  # as the index keeps it
    (figure,) = gallery.all_reproduced()
    assert (figure.id, figure.is_published, figure.publication.machine) == (FIGURE, True, MADE["machine"])
    assert figure.kinds == ["svg", "csv", "parquet"]


def test_own_results_come_before_published_ones_and_only_they_can_be_changed():
    published_and_gone()
    with pytest.raises(BadInput):
        store.finished(RUN)
    with pytest.raises(BadInput):
        store.remove(RUN)
    write_run()
    write_figure()
    assert not store.readable(RUN).is_published
    assert [row.is_published for row in index.rows(with_published=True)] == [False]
    assert [figure.is_published for figure in gallery.all_reproduced()] == [False]


def without_table():
    """What `aftershock reproduce` leaves here if there is no table: verdicts that say why."""
    write_figure()
    for kind in ("parquet", "csv", "svg", "png"):
        (store.home() / "reproductions" / FIGURE / f"utilization-fig-04.{kind}").unlink()


def test_own_verdicts_without_a_table_do_not_hide_a_published_table():
    published_and_gone()
    without_table()
    (figure,) = gallery.all_reproduced()
    assert (figure.is_published, figure.kinds) == (True, ["svg", "csv", "parquet"])
    assert gallery.reproduced(*FIGURE.split("/")) == figure
    with pytest.raises(BadInput, match="computed in this installation"):
        publish_results([FIGURE])


@pytest.mark.parametrize("spoiled", ["no table", "another format", "nothing"])
def test_own_verdicts_without_a_table_are_shown_if_no_table_was_published_either(spoiled):
    published_and_gone()
    folder = published.folder() / "reproductions" / FIGURE
    if spoiled == "no table":
        for kind in ("csv", "parquet"):
            (folder / f"utilization-fig-04.{kind}").unlink()
    elif spoiled == "another format":
        edit(folder / "published.json", format=99)
    else:
        shutil.rmtree(folder)
    without_table()
    (figure,) = gallery.all_reproduced()
    assert (figure.is_published, figure.lack, figure.kinds) == (False, None, [])


@pytest.mark.parametrize("name", ["published.json", "status.json"])
def test_a_run_of_another_version_is_refused_in_one_line_that_names_the_command(name):
    published_and_gone()
    field = {"published.json": "format", "status.json": "schema_version"}[name]
    edit(published.folder() / "runs" / RUN / name, **{field: 99})
    (row,) = index.rows(with_published=True)
    assert row.state == "unreadable"
    assert "99, and this version reads" in row.error
    with pytest.raises(Outdated) as refused:
        store.readable(RUN).status()
    assert "`aftershock results publish`" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_figure_of_another_version_is_refused_in_one_line_that_names_the_command():
    published_and_gone()
    edit(published.folder() / "reproductions" / FIGURE / "published.json", format=99)
    (figure,) = gallery.all_reproduced()
    assert f"`aftershock results publish {FIGURE}`" in figure.lack
    assert (figure.kinds, figure.verdict) == ([], "unknown")


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "aftershock benchmark x; rm -rf ."},
        {"files": {"a": "b"}},
        {"versions": []},
        {"machine": 3},
        {"format": "1"},
        {"judged_again": "yesterday"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_others_wrote_goes_through_the_gate(fields):
    published_and_gone()
    edit(published.folder() / "runs" / RUN / "published.json", **fields)
    with pytest.raises(Damaged):
        store.readable(RUN).status()


def test_a_link_in_the_place_of_a_document_is_refused():
    published_and_gone()
    path = published.folder() / "runs" / RUN / "published.json"
    path.rename(path.with_name("elsewhere.json"))
    path.symlink_to(path.with_name("elsewhere.json"))
    with pytest.raises(Damaged, match="no regular file"):
        store.readable(RUN).status()


def whole():
    """By id, whether it is the old one, the new one or absent; each must be whole where it is there."""
    found = {}
    for about in published.folder().glob("*/**/published.json"):
        owner = about.parent.relative_to(published.folder()).as_posix()
        if not owner.startswith(".scratch-"):
            files = published.read(about.parent, owner).files
            for name, digest in files.items():
                assert hashlib.sha256((about.parent / name).read_bytes()).hexdigest() == digest, name
            found[owner.partition("/")[2]] = hash(tuple(files.values()))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["the first time", "in the place of an older one"])
def test_a_publication_that_is_killed_anywhere_leaves_nothing_that_looks_finished(again, tmp_path):
    write_figure(interval_s=[5.0])
    publish_results([FIGURE]) if again else None
    old = whole()
    kept = tmp_path / "kept"
    published.folder().mkdir(exist_ok=True)
    shutil.copytree(published.folder(), kept)
    write_figure()
    strikes = 0
    for _ in at_every_change(lambda: publish_results([FIGURE]), tmp_path, Interruption.KILL):
        strikes += 1
        now = whole()
        assert set(now) <= {FIGURE}
        publish_results([FIGURE])
        assert FIGURE in whole()
        assert whole() != old
        assert not [name for name in os.listdir(published.folder()) if name.startswith(".scratch-")]
        shutil.rmtree(published.folder())
        shutil.copytree(kept, published.folder())
    assert strikes > 5


@pytest.fixture
def only_copy():
    """A published table whose runs, and whose own copy, are gone; returns its place."""
    write_figure()
    publish_results([FIGURE])
    shutil.rmtree(store.home() / "reproductions")
    return published.folder() / "reproductions" / FIGURE


def judge():
    publication.publish_verdicts({FIGURE: {"verdict": "fail"}})


def scratch_folders():
    return [path.name for path in published.folder().iterdir() if path.name.startswith(".scratch-")]


@pytest.mark.slow
@pytest.mark.parametrize("interruption", [Interruption.KILL, Interruption.FULL, Interruption.NO_ROOM])
@pytest.mark.parametrize("at_once", [True, False], ids=["exchange", "three-steps"])
def test_the_only_copy_of_a_table_outlives_new_verdicts(only_copy, tmp_path, monkeypatch, at_once, interruption):
    if not at_once:
        monkeypatch.setattr(publication, "exchange", exchange.in_three_steps)
    old = whole()
    kept = tmp_path / "kept"
    shutil.copytree(published.folder(), kept)
    seen = []
    for _ in at_every_change(judge, published.folder(), interruption):
        assert publication.published_table(FIGURE).parent == only_copy
        seen.append(whole())
        assert set(seen[-1]) == {FIGURE}
        judge()
        assert whole() != old
        assert scratch_folders() == []
        shutil.rmtree(published.folder())
        shutil.copytree(kept, published.folder())
    assert old in seen
    assert seen[-1] != old


@pytest.mark.parametrize("times", [1, 2, 3], ids=["the new one", "and back", "and at the end"])
def test_a_table_whose_place_cannot_be_taken_is_put_back(only_copy, monkeypatch, times):
    """The first rename to its place fails; with it the second, which puts it back; and the third, of the cleaning."""
    before, rename, failed = contents(), Path.rename, []

    def failing(path, target):
        if target == only_copy and len(failed) < times:
            failed.append(path.name)
            raise PermissionError(13, "refused")
        return rename(path, target)

    monkeypatch.setattr(publication, "exchange", exchange.in_three_steps)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        with pytest.raises(PermissionError):
            judge()
    assert failed == ["fig-04", ".fig-04.aside", ".fig-04.aside"][:times]
    assert publication.published_table(FIGURE).parent == only_copy
    assert contents() == before
    assert scratch_folders() == []
