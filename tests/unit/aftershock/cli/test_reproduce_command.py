"""`aftershock reproduce`: what it lists, what it writes, and how it exits."""

import dataclasses
import json
import shutil
import subprocess
import sys

import pytest

from aftershock.airflow import orchestrate
from experiments.errors import BadInput, EnvironmentFailure
from infra.launch import REPOSITORY
from reproductions import catalogue, reproduce
from results.checks.rules import NotEnough
from results.runs.step_times import whole_s
from tests.unit.reproductions.checkmate_shapes import SHAPES
from tests.unit.reproductions.runs import put_published_run, put_run
from tests.unit.results.synthetic import START_NS


def test_without_an_id_all_are_listed(as_json, call):
    listed = as_json("reproduce")["reproductions"]
    assert [entry["id"] for entry in listed] == list(catalogue.CATALOGUE)
    lines = call("reproduce")[1].splitlines()
    assert [line.split()[0] for line in lines] == list(catalogue.CATALOGUE)


def test_a_figure_is_a_table_a_plot_and_a_verdict(as_json, call, tmp_path):
    found = as_json(f"reproduce utilization/fig-04 --out {tmp_path}")
    assert found["verdict"] == "pass"
    for kind in ("parquet", "csv", "png", "svg", "verdicts"):
        assert (tmp_path / found["files"][kind]).stat().st_size > 0
    assert json.loads((tmp_path / found["files"]["verdicts"]).read_text(encoding="utf-8")) == found
    text = call(f"reproduce utilization/fig-04 --out {tmp_path}")[1]
    assert text.startswith("utilization/fig-04: ")
    assert "✓ maximum.interval" in text


HEAVY = ("airflow", "great_expectations", "pyspark", "scipy", "spark_jobs", "sqlalchemy")
IMPORTED = """
import sys
from aftershock.cli.program import main
main(["reproduce", "utilization/fig-13", "--out", sys.argv[1]])
print("imported", *{name.partition(".")[0] for name in sys.modules})
"""


@pytest.mark.extended
def test_a_closed_formula_imports_nothing_that_takes_long(tmp_path):
    """In a process of its own, as a command is."""
    done = subprocess.run([sys.executable, "-c", IMPORTED, str(tmp_path)], capture_output=True, text=True, check=True)
    imported = done.stdout.splitlines()[-1].split()
    assert imported[0] == "imported"
    assert "pandas" in imported
    assert set(HEAVY) & set(imported) == set()


def test_a_second_time_takes_the_place_of_the_first(as_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("utilization-fig-04.verdicts.json", "utilization-fig-04.checks/old", "other.csv"):
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text("old", encoding="utf-8")
    assert as_json("reproduce utilization/fig-04 --out out")["verdict"] == "pass"
    kinds = {"csv", "parquet", "png", "svg", "verdicts.json"}
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {f"utilization-fig-04.{kind}" for kind in kinds} | {"other.csv"}
    assert not (tmp_path / "out" / "utilization-fig-04.checks" / "old").exists()
    assert "old" not in (tmp_path / "out" / "utilization-fig-04.verdicts.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("verdict", ["fail", "unknown"])
def test_a_verdict_that_is_no_pass_is_exit_code_1(call, tmp_path, monkeypatch, verdict):
    """A curve of half the height misses the maximum; without a curve there is nothing to judge."""
    figure = catalogue.CATALOGUE["utilization/fig-04"]

    def spoiled(size, progress):
        if verdict == "unknown":
            raise NotEnough("no curve on this machine")
        table = figure.compute(size, progress)
        return table.assign(utilization=table["utilization"] / 2)

    changed = {figure.id: dataclasses.replace(figure, compute=spoiled)}
    monkeypatch.setattr(reproduce, "CATALOGUE", changed)
    code, out, _ = call(f"reproduce utilization/fig-04 --out {tmp_path} --json")
    assert (code, json.loads(out)["verdict"]) == (1, verdict)


@pytest.mark.extended
def test_all_of_them(as_json, call, tmp_path, monkeypatch):
    few = {id: catalogue.CATALOGUE[id] for id in ("utilization/fig-04", "checkmate/fig-05")}
    monkeypatch.setattr(catalogue, "CATALOGUE", few)
    found = as_json(f"reproduce all --out {tmp_path}")["reproductions"]
    assert [(each["id"], each["verdict"]) for each in found] == [(id, "pass") for id in few]
    assert call(f"reproduce all --out {tmp_path}")[1].endswith("2 in all: 2 pass, 0 fail, 0 unknown\n")
    assert call(f"reproduce all --out {tmp_path} --size 5")[0] == 2


def test_several_are_rebuilt_one_after_the_other(as_json, call, tmp_path):
    ids = ["utilization/fig-14", "utilization/fig-04"]
    found = as_json(f"reproduce {' '.join(ids)} --out {tmp_path}")["reproductions"]
    assert [(each["id"], each["verdict"]) for each in found] == [(id, "pass") for id in ids]
    text = call(f"reproduce {' '.join([*ids, *ids])} --out {tmp_path}")[1]
    assert text.index(ids[0]) < text.index(ids[1])
    assert text.endswith("2 in all: 2 pass, 0 fail, 0 unknown\n")


@pytest.mark.parametrize("words", ["utilization/fig-99", "all", "ppa/fig-14c --size 2"])
def test_none_is_rebuilt_if_one_of_several_is_unknown_or_a_size_is_given(call, tmp_path, words):
    (out := tmp_path / "out").mkdir()
    code, _, err = call(f"reproduce utilization/fig-14 {words} --out {out}")
    assert (code, list(out.iterdir())) == (2, [])
    assert words.split()[-1] in err


@pytest.fixture
def runs(monkeypatch):
    """Runs in place of those on a cluster, which cannot be had here: made up, but for what is in `broken`."""
    made, broken = [], {}

    def run(experiment):
        made.append(experiment.name)
        if error := broken.get(experiment.name):
            raise error
        return put_run(experiment, SHAPES["checkmate/fig-09"](experiment))

    monkeypatch.setattr(orchestrate, "run", run)
    run.made, run.broken = made, broken
    return run


@pytest.mark.extended
def test_runs_that_are_missing_are_run_once_and_the_interrupted_rest_later(call, tmp_path, runs):
    names = [experiment.name for experiment in reproduce.missing_runs("checkmate/fig-09")]
    runs.broken[names[4]] = KeyboardInterrupt()
    assert call(f"reproduce checkmate/fig-09 --out {tmp_path}")[0] == 130
    assert runs.made == names[:5]
    runs.broken.clear()
    minutes = whole_s(*reproduce.missing_runs("checkmate/fig-09")) / 60
    code, _, err = call(f"reproduce checkmate/fig-09 --out {tmp_path}")
    assert (code, runs.made[5:]) == (0, names[4:])
    assert f"checkmate/fig-09: 8 runs are missing, about {minutes:.0f} min one after the other" in err
    assert f"checkmate/fig-09: run 8 of 8, {names[-1]}" in err
    assert call(f"reproduce checkmate/fig-09 --out {tmp_path}")[2] == ""


@pytest.mark.extended
def test_a_run_that_fails_is_told_in_one_line_and_what_it_would_have_shown_is_unknown(call, tmp_path, runs):
    names = [experiment.name for experiment in reproduce.missing_runs("checkmate/fig-09")]
    runs.broken[names[0]] = BadInput("cluster.workers", 2, "1")
    code, out, err = call(f"reproduce checkmate/fig-09 --out {tmp_path}")
    assert (code, runs.made) == (1, names)
    assert f"checkmate/fig-09: no run of {names[0]}: cluster.workers: 2 is not usable" in err
    assert "? q1.kill_is_felt" in out
    assert "✓ q3.kill_is_felt" in out


def test_where_the_machine_gives_no_run_nothing_else_is_tried(call, tmp_path, runs):
    names = [experiment.name for experiment in reproduce.missing_runs("checkmate/fig-09")]
    runs.broken[names[1]] = EnvironmentFailure("no space is left", "free some")
    code, _, err = call(f"reproduce checkmate/fig-09 --out {tmp_path}")
    assert (code, runs.made) == (3, names[:2])
    assert err.endswith("aftershock: no space is left; free some\n")


def test_without_leave_nothing_is_run(call, tmp_path, runs, monkeypatch):
    code, out, err = call(f"reproduce checkmate/fig-09 --no-run --out {tmp_path}")
    assert (code, err, runs.made) == (1, "", [])
    assert "none of its 12 runs has been done" in out
    monkeypatch.setattr(catalogue, "CATALOGUE", {"checkmate/fig-09": catalogue.CATALOGUE["checkmate/fig-09"]})
    assert call(f"reproduce all --out {tmp_path}")[0] == 1
    assert runs.made == []
    assert call("reproduce --no-run")[0] == 2


def test_without_runs_an_earlier_table_stays_and_the_command_says_so(call, tmp_path):
    earlier = {"checkmate-fig-09.parquet": "a table", "checkmate-fig-09.verdicts.json": "its verdicts"}
    for name, text in earlier.items():
        (tmp_path / name).write_text(text)
    code, out, _ = call(f"reproduce checkmate/fig-09 --no-run --out {tmp_path}")
    assert code == 1
    assert "none of its 12 runs has been done" in out
    assert out.endswith("nothing is written: there is no new table, and the earlier one stays with its verdicts\n")
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == earlier


def test_without_runs_an_earlier_table_without_verdicts_is_judged_again_and_the_command_says_so(call, tmp_path):
    earlier = REPOSITORY / "published" / "reproductions" / "incremental" / "fig-15" / "incremental-fig-15.parquet"
    shutil.copy(earlier, tmp_path)
    _, out, _ = call(f"reproduce incremental/fig-15 --no-run --out {tmp_path}")
    assert "there is no new table; the earlier one had lost its verdicts, and is judged again\n" in out
    judged = json.loads((tmp_path / "incremental-fig-15.verdicts.json").read_text(encoding="utf-8"))["verdicts"]
    assert "pass" in {row["verdict"] for row in judged}
    assert (tmp_path / earlier.name).read_bytes() == earlier.read_bytes()


def test_without_runs_an_earlier_table_that_lost_its_verdicts_gives_way_to_new_verdicts(call, tmp_path):
    """A process that is killed while it writes leaves a table without verdicts."""
    (tmp_path / "checkmate-fig-09.parquet").write_text("a table")
    code, out, _ = call(f"reproduce checkmate/fig-09 --no-run --out {tmp_path} --json")
    assert (code, list(json.loads(out)["files"])) == (1, ["verdicts"])
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["checkmate-fig-09.verdicts.json"]


def test_published_runs_that_count_are_told(call, tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    experiment, *_ = reproduce.missing_runs("checkmate/fig-09")
    put_published_run(experiment, SHAPES["checkmate/fig-09"](experiment))
    told = "of its runs, 1 published ones are counted"
    assert told in call(f"reproduce checkmate/fig-09 --no-run --out {tmp_path}")[1]
    put_run(experiment, SHAPES["checkmate/fig-09"](experiment), START_NS + 1)  # the newest counts
    assert told not in call(f"reproduce checkmate/fig-09 --no-run --out {tmp_path}")[1]


def test_where_nothing_can_be_written_nothing_is_run(call, tmp_path, runs):
    (tmp_path / "file").write_text("")
    code, _, err = call(f"reproduce checkmate/fig-09 --out {tmp_path}/file")
    assert (code, runs.made) == (2, [])
    assert err.startswith("aftershock: out: ")


@pytest.fixture
def bench(monkeypatch):
    """The settings of figure 9 of `cec` that were measured, in no time."""
    measured = []

    def measure(setting, replicate):
        measured.append(setting)
        return {"extent": len(measured) * 1000}

    found = catalogue.CATALOGUE["cec/fig-09"]
    bench = dataclasses.replace(found.bench, measure=measure)
    figure = dataclasses.replace(found, bench=bench)
    monkeypatch.setattr(reproduce, "CATALOGUE", {"cec/fig-09": figure})
    return measured


def test_what_is_measured_in_this_process_is_measured_once_and_only_with_leave(bench, call, tmp_path):
    (tmp_path / "file").write_text("")
    assert call(f"reproduce cec/fig-09 --out {tmp_path}/file")[0] == 2
    assert call(f"reproduce cec/fig-09 --no-run --out {tmp_path}")[0] == 1
    assert bench == []
    assert "extent.grows_with_the_period" in call(f"reproduce cec/fig-09 --out {tmp_path}")[1]
    assert len(bench) == 5
    call(f"reproduce cec/fig-09 --out {tmp_path}")
    assert len(bench) == 5
