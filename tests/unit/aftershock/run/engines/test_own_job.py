"""How an own job is brought onto a cluster: what it needs is there, its files are copied, its arguments filled in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aftershock.run.engines import engine, own_job, staging
from experiments import spec
from experiments.errors import BadInput
from experiments.spec import ClusterSpec, Experiment
from experiments.workloads.catalogue import PLACEHOLDERS, OwnJobSpec
from infra.services.jars import Jars
from infra.services.startup import handle_of
from results.runs.store import Run
from tests.unit.docs.fences import fenced

ROOT = Path(__file__).parents[5]
EXAMPLE = ROOT / "docs" / "examples" / "own-job" / "experiment.yaml"


@pytest.fixture
def example(monkeypatch) -> Experiment:
    monkeypatch.chdir(ROOT)
    return spec.load(str(EXAMPLE))


def changed(example, **fields):
    document = example.model_dump(mode="json")
    return spec.validate({**document, "workload": {**document["workload"], **fields}}).workload


def test_the_example_can_be_run_from_anywhere(example, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    staging.check(example.workload)
    assert spec.validate(example.model_dump(mode="json")) == example


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"program": "nowhere.py"}, r"workload\.program"),
        ({"oracle": "nowhere.py"}, r"workload\.oracle"),
        ({"modules": ["nowhere"]}, r"workload\.modules\.0"),
        ({"inputs": {"orders": {"replay": "127.0.0.1:1/orders"}}}, r"workload\.inputs\.orders\.replay"),
    ],
)
def test_what_is_not_there_is_named_in_one_line(example, fields, named):
    with pytest.raises(BadInput, match=rf"^{named}: [^\n]*$"):
        staging.check(changed(example, **fields))


@pytest.mark.parametrize("modules", [["a/job.py"], ["a/util.py", "b/util.py"], ["a/lib", "b", "b/lib"]])
def test_two_files_of_one_name_are_refused_since_one_would_replace_the_other(example, tmp_path, modules):
    for folder in ("a/lib", "b/lib"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("a/job.py", "a/util.py", "b/util.py"):
        (tmp_path / file).touch()
    last, name = len(modules) - 1, Path(modules[-1]).name
    told = rf"^workload\.modules\.{last}: .* allowed: one file or folder named {name}: "
    with pytest.raises(BadInput, match=told):
        staging.check(changed(example, modules=[str(tmp_path / module) for module in modules]))


@pytest.mark.parametrize(
    ("part", "value", "field"),
    [
        ("load", {"mode": "saturating"}, "load.mode"),
        ("engine", {"recovery": "query"}, "engine.recovery"),
        ("engine", {"name": "dataflow"}, "engine.name"),
        ("engine", {"recovery": "task", "trigger": "real-time"}, "engine.trigger"),
        ("workload", {"name": "own-job", "inputs": {"a": {"file": "x"}}}, "workload.program"),
        ("workload", {"name": "own-job", "program": "x"}, "workload.inputs"),
        ("workload", {"name": "own-job", "program": "x", "inputs": {"a": {}}}, "workload.inputs.a"),
    ],
)
def test_what_does_not_go_with_an_own_job_is_refused(example, part, value, field):
    with pytest.raises(BadInput) as mistake:
        spec.validate({**example.model_dump(mode="json"), part: value})
    assert mistake.value.field == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"arguments": ["{bootstrap_server}"]}, "workload.arguments.0"),
        ({"output_topic": None}, "workload.output_topic"),
        ({"output_topic": None, "arguments": []}, "workload.output_topic"),
        ({"output_topic": "orders"}, "workload.output_topic"),
    ],
)
def test_arguments_and_topics_that_contradict_each_other_are_refused(example, fields, field):
    with pytest.raises(BadInput) as mistake:
        changed(example, **fields)
    assert mistake.value.field == field


def test_an_unknown_placeholder_is_named_together_with_those_that_are_known(example):
    with pytest.raises(BadInput) as mistake:
        changed(example, arguments=["--every={checkpoint_interval_s}", "--brokers={bootstrap_server}"])
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    told = f"(not shown) is not usable; allowed: only these placeholders, not {{bootstrap_server}}: {known}"
    assert str(mistake.value) == f"workload.arguments.1: {told}"


def test_all_that_the_job_needs_is_copied(example, tmp_path):
    folder = tmp_path / "module"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "more.py").write_text("x = 1\n", encoding="utf-8")
    job = changed(example, modules=[*example.workload.modules, str(folder)])
    staging.stage(job, tmp_path / "job")
    found = {str(path.relative_to(tmp_path / "job")) for path in (tmp_path / "job").rglob("*") if path.is_file()}
    assert found == {
        *(f"program/{name}" for name in ("job.py", "money.py", "module/deep/more.py")),
        "inputs/orders.jsonl",
    }
    staged = staging.staged(job, tmp_path / "job")
    staging.check(staged)
    assert Path(staged.inputs["orders"].file).read_bytes() == Path(job.inputs["orders"].file).read_bytes()


def test_every_placeholder_is_filled_in_and_other_braces_stay(example, tmp_path):
    handle = handle_of(ClusterSpec(), "run-1", tmp_path, subnet=9, network="127.0.9")
    values = own_job.placeholders(example, handle, tmp_path / "checkpoint")
    assert set(values) == set(PLACEHOLDERS)
    written = " ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    given = tmp_path / "secrets" / "kafka.properties", tmp_path / "checkpoint"
    assert own_job.filled(written, values) == f"127.0.9.1:9092 {given[0]} orders totals {given[1]} 2"
    assert own_job.filled('{"a": {"input_topic": 1}}', values) == '{"a": {"input_topic": 1}}'


@pytest.mark.parametrize(
    ("driver", "conf", "jars"),
    [
        ("external", {}, "/cache/kafka.jar"),
        ("external", {"spark.jars": "/opt/a.jar,/opt/b.jar"}, "/cache/kafka.jar,/opt/a.jar,/opt/b.jar"),
        ("local", {"spark.jars": "/opt/a.jar"}, "/opt/a.jar"),
        ("local", {}, None),
    ],
)
def test_the_jobs_own_jars_are_there_beside_those_that_a_borrowed_cluster_gets(
    example, monkeypatch, tmp_path, driver, conf, jars
):
    monkeypatch.setattr(engine, "class_paths", lambda: Jars([Path("/cache/kafka.jar")], []))
    handle = handle_of(ClusterSpec(), "run-1", tmp_path / "cluster", subnet=9, network="127.0.9")
    job = changed(example, conf=conf)
    made = own_job.OwnJob(example.model_copy(update={"workload": job}), job)
    words = made.submission(replace(handle, driver=driver), Run("run-1", tmp_path / "run"))
    assert [word for word in words if word.startswith("spark.jars=")] == ([f"spark.jars={jars}"] if jars else [])


def test_the_first_page_shows_the_example_as_it_is():
    (shown,) = fenced((ROOT / "docs" / "start" / "first-own-job.md").read_text(encoding="utf-8"), "yaml")
    written = EXAMPLE.read_text(encoding="utf-8").splitlines()
    assert shown == [line for line in written if not line.startswith("#")]


def test_the_guide_names_every_field_and_placeholder():
    page = (ROOT / "docs" / "guides" / "own-jobs.md").read_text(encoding="utf-8")
    assert all(f"`{field}`" in page for field in OwnJobSpec.model_fields if field != "name")
    assert all(f"`{{{name}}}`" in page for name in PLACEHOLDERS)
