"""Runs that are replaced, removed by number and age, and taken elsewhere."""

import hashlib
import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as some

from experiments.errors import BadInput
from results.runs import store
from results.runs.exchange import exchange, in_three_steps
from results.runs.export import export
from results.runs.retention import DAY_NS, removable
from tests.unit.results import synthetic

pytestmark = pytest.mark.usefixtures("home")

NOW_NS = 1000 * DAY_NS


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("change_places", [exchange, in_three_steps])
def test_two_directories_change_places(home, change_places):
    for name in ("one", "two"):
        (home / name).mkdir()
        (home / name / "file").write_text(name)
    change_places(home / "one", home / "two")
    assert {name: (home / name / "file").read_text() for name in ("one", "two")} == {"one": "two", "two": "one"}
    assert sorted(path.name for path in home.iterdir()) == ["one", "two"]


def test_nothing_changes_places_with_what_is_not_there(home):
    (home / "one").mkdir()
    with pytest.raises(FileNotFoundError):
        exchange(home / "one", home / "two")
    assert (home / "one").is_dir()


def test_what_cannot_take_its_place_leaves_the_other_where_it_was(home):
    (home / "two").mkdir()
    with pytest.raises(FileNotFoundError):
        in_three_steps(home / "one", home / "two")
    assert [path.name for path in home.iterdir()] == ["two"]


def test_a_newer_version_takes_the_place_of_a_run(home):
    old = synthetic.make_run(home / "runs", run_id="run-1")
    with store.scratch() as folder:
        new = synthetic.make_run(folder, run_id="run-1", kills=())
        wanted = contents(new.root)
        assert store.replace(new).root == old.root
    assert contents(old.root) == wanted
    assert [path.name for path in home.iterdir()] == ["runs"]


def test_a_run_that_is_not_there_is_not_replaced(home):
    with store.scratch() as folder, pytest.raises(BadInput):
        store.replace(synthetic.make_run(folder, run_id="run-1"))
    assert store.all_finished() == []


def test_a_removed_run_is_gone(home):
    for run_id in ("run-1", "run-2"):
        synthetic.make_run(home / "runs", run_id=run_id)
    store.remove("run-1")
    assert [run.run_id for run in store.all_finished()] == ["run-2"]
    assert [path.name for path in home.iterdir()] == ["runs"]
    with pytest.raises(BadInput):
        store.remove("run-1")


def status(run_id, days_ago, experiment="words", state="done"):
    ended_ns = NOW_NS - days_ago * DAY_NS
    return store.RunStatus(
        run_id=run_id, experiment=experiment, state=state, started_ns=ended_ns - 9, ended_ns=ended_ns
    )


RUNS = [
    *(status(f"words-{days}", days) for days in (1, 2, 3, 40)),
    *(status(f"bids-{days}", days, "bids") for days in (20, 30)),
    *(status(f"broken-{days}", days, state="failed") for days in (4, 50)),
]


@pytest.mark.parametrize(
    ("keep", "days", "gone"),
    [
        (0, None, ["broken-50", "words-40", "bids-30", "bids-20", "broken-4", "words-3", "words-2", "words-1"]),
        (1, None, ["broken-50", "words-40", "bids-30", "words-3", "words-2"]),
        (None, 25, ["broken-50", "words-40", "bids-30"]),
        (1, 2.5, ["broken-50", "words-40", "bids-30", "words-3"]),
        (4, None, []),
        (None, 100, []),
    ],
)
def test_a_run_goes_when_number_and_age_agree(keep, days, gone):
    assert removable(RUNS, keep, days, (), NOW_NS) == gone


def test_a_baseline_stays():
    assert removable(RUNS, 0, None, {"words-40", "bids-20"}, NOW_NS)[:2] == ["broken-50", "bids-30"]


ages = some.integers(0, 99)


@given(
    some.lists(some.tuples(ages, some.sampled_from("ab"), some.sampled_from(["done", "failed"]))),
    ages,
    ages,
    some.data(),
)
def test_what_is_protected_new_or_young_always_stays(rows, keep, days, data):
    runs = [status(f"run-{i}", *row) for i, row in enumerate(rows)]
    protected = {run.run_id for run in runs if data.draw(some.booleans())}
    gone = set(removable(runs, keep, days, protected, NOW_NS))
    left = [run for run in runs if run.run_id not in gone]
    assert protected <= {run.run_id for run in left}
    for run in runs:
        if run.run_id in gone:
            assert (NOW_NS - run.ended_ns) / DAY_NS > days
            alike = [one for one in left if (one.experiment, one.state) == (run.experiment, run.state)]
            assert sum(one.started_ns >= run.started_ns for one in alike) >= keep


@pytest.fixture
def two_runs(home):
    runs = [synthetic.make_run(home / "runs", run_id=name) for name in ("run-1", "run-2")]
    for run in runs:
        run.raw.mkdir()
        (run.raw / "query.jsonl").write_text("{}\n")
        (run.root / "outside").symlink_to("/etc/hostname")
        (run.tables / ".hosts.parquet.crc").touch()
    return runs


@pytest.mark.parametrize("name", ["out.zip", "out"])
@pytest.mark.parametrize("raw", [False, True])
def test_an_export_has_what_its_manifest_says(tmp_path, two_runs, name, raw):
    out = tmp_path / "new" / name
    out.parent.mkdir()
    manifest = export(two_runs, out, raw)
    if name.endswith(".zip"):
        with zipfile.ZipFile(out) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
    else:
        found = contents(out)
    assert json.loads(found.pop("manifest.json")) == manifest
    listed = {path: digest for run in manifest["runs"] for path, digest in run["files"].items()}
    assert {path: hashlib.sha256(content).hexdigest() for path, content in found.items()} == listed
    assert {"run-1/status.json", "run-2/tables/ledger.parquet"} <= set(found)
    assert ("run-1/raw/query.jsonl" in found) == raw
    assert not any("outside" in path or ".crc" in path for path in found)
    assert [path.name for path in out.parent.iterdir()] == [name]


def test_what_a_killed_export_left_does_not_block_the_next_one(tmp_path, two_runs):
    (tmp_path / ".out.new").mkdir()
    assert export(two_runs, tmp_path / "out")["runs"]
    assert (tmp_path / "out" / "manifest.json").is_file()


@pytest.mark.parametrize("name", ["out.zip", "out"])
def test_an_export_overwrites_nothing(tmp_path, two_runs, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(BadInput, match="a path where nothing is yet"):
        export(two_runs, tmp_path / name)
    assert (tmp_path / name).read_text() == "mine"
