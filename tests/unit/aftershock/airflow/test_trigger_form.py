"""The trigger form: the pydantic models, flattened and folded back without loss."""

import os
import re

import jsonschema
import pytest

from aftershock.airflow import field_help, starting_points, trigger_form
from experiments import spec
from experiments.errors import BadInput
from results.runs import step_times

RICH = {
    "name": "rich",
    "cluster": {"workers": 2},
    "workload": {"corpus": "/srv/text"},
    "faults": {
        "duration": 30,
        "hosts": {"worker-1": ["rack-a"], "worker-2": ["rack-a"]},
        "processes": [{"scope": "domain", "rate": 0.1, "spread": 2, "heal_after": {"low": 1, "high": 3}}],
        "events": [{"at": 3.5, "targets": ["worker-1"], "heal_after": 2}],
    },
}


NEXMARK = {"workload": {"name": "nexmark", "query": "q5", "window_s": 12, "hot_bidders": 0.1}}


REACHABILITY = {
    "workload": {"name": "reachability", "nodes": 900_000},
    "engine": {"name": "dataflow", "protocol": "uncoordinated"},
    "load": {"mode": "rate", "rate": 100},
}


WINDOW_TREE = {
    "workload": {"name": "window-tree", "parallelism": [8, 4, 1], "selectivity": 0.2},
    "engine": {"name": "dataflow", "partitions": 8},
}


TOP_100 = {
    "workload": {"name": "top-100", "parallelism": [8, 4, 1], "skew": 1.2, "binding": "spread"},
    "engine": {"name": "dataflow", "partitions": 8},
}


INCIDENTS = {
    "workload": {"name": "incidents", "users": 10_000, "events_per_incident": 4000, "jam_share": 0.2},
    "engine": {"name": "dataflow", "partitions": 4},
}


HASHTAGS = {
    "workload": {"name": "hashtags", "topology": "two-windows", "priorities": [1, 7]},
    "engine": {"name": "dataflow"},
}


CEC_PRICES = {"workload": {"name": "cec-prices", "items": 7, "least_price": 300}, "engine": {"name": "dataflow"}}
DATAFLOWS = [NEXMARK, REACHABILITY, WINDOW_TREE, TOP_100, INCIDENTS, HASHTAGS, CEC_PRICES]


@pytest.mark.parametrize("document", [{}, RICH, *DATAFLOWS])
def test_an_experiment_survives_flattening_and_folding(document):
    experiment = spec.validate(document)
    assert spec.validate(trigger_form.fold(trigger_form.flatten(experiment))) == experiment


def filled_in(**params):
    """The form as a user sends it who has filled in these fields."""
    names = {name.replace("__", "."): value for name, value in params.items()}
    assert names.keys() <= trigger_form.fields().keys()
    return {name: field["default"] for name, field in trigger_form.fields().items()} | names


def asked(**params):
    return spec.validate(trigger_form.fold(filled_in(**params)))


@pytest.mark.parametrize("example", [*spec.available(), None])
def test_what_is_left_empty_is_the_experiments_from_which_the_run_starts(example):
    assert asked(experiment=example) == (spec.load(example) if example else spec.Experiment())


def test_what_is_filled_in_goes_before_what_the_experiment_says():
    started = spec.load("dataflow-q12")
    changed = asked(experiment="dataflow-q12", engine__checkpoint_interval_s=4, seed=9)
    assert changed.engine == started.engine.model_copy(update={"checkpoint_interval_s": 4.0})
    assert (changed.seed, changed.workload, changed.faults) == (9, started.workload, started.faults)


def test_an_own_file_is_on_offer_and_its_path_is_taken_besides():
    mine = starting_points.own_folder() / "mine.yaml"
    mine.parent.mkdir()
    mine.write_text("# Two workers\n# under rain. More.\nname: rain\nwindow_s: 33\ncluster: {workers: 2}\n")
    choice = trigger_form.fields()["experiment"]
    assert choice["enum"][-2:] == [str(mine), None]
    whole = step_times.whole_s(spec.Experiment(window_s=33)) / 60
    times = f"about {whole:.0f} min, 33 s of them measured"
    assert choice["values_display"][str(mine)] == f"mine.yaml, own ({times}): Two workers under rain"
    assert asked(experiment=str(mine)).name == asked(experiment_file=str(mine)).name == "rain"
    with pytest.raises(BadInput, match=r"experiment_file: '.*' is not usable; allowed: left empty, or experiment left"):
        asked(experiment="soak", experiment_file=str(mine))
    with pytest.raises(BadInput, match="a readable YAML file"):
        asked(experiment_file=f"{mine}.gone")


def test_a_file_that_cannot_be_read_does_not_take_the_form_away():
    (starting_points.own_folder() / "folder.yaml").mkdir(parents=True)
    (starting_points.own_folder() / "bytes.yaml").write_bytes(b"# \xff")
    (starting_points.own_folder() / "long.yaml").write_text("# " + "a \033[2Jb" * 99)
    (starting_points.own_folder() / "wrong.yaml").write_text("window_s: long")
    (starting_points.own_folder() / "long-sentence.yaml").write_text("# " + "word " * 99)
    folder = starting_points.own_folder()
    shown = trigger_form.fields()["experiment"]["values_display"]
    assert [shown[str(folder / f"{name}.yaml")] for name in ("folder", "bytes", "wrong")] == [
        "folder.yaml, own: cannot be read",
        "bytes.yaml, own: cannot be read",
        "wrong.yaml, own: refused, window_s: 'long' is not usable; allowed: a number",
    ]
    assert all(label.isprintable() and len(label) <= starting_points.LONGEST_LABEL for label in shown.values())


@pytest.mark.parametrize("number", ["1.2.3", ".", "9" * 500])
def test_a_window_that_is_no_number_is_told_and_stops_no_dag(number):
    own = starting_points.own_folder() / "odd.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(f"# Odd.\nwindow_s: {number}\n")
    assert trigger_form.fields()["experiment"]["values_display"][str(own)].startswith("odd.yaml, own: refused, ")


def test_names_and_files_that_would_stop_the_reading_of_the_dag_are_not_on_offer():
    folder = starting_points.own_folder()
    folder.mkdir(parents=True)
    (folder / os.fsdecode(b"half-\xff.yaml")).write_text("name: half\n")  # a form cannot say this name
    (folder / "line\nend.yaml").write_text("name: ends\n")
    os.mkfifo(folder / "pipe.yaml")
    writer = os.open(folder / "pipe.yaml", os.O_RDWR)  # while somebody holds it open, who reads it waits
    found = starting_points.offered()
    os.close(writer)
    assert [path for path in found if path.startswith(str(folder))] == []


def test_every_field_may_be_empty_and_no_field_shows_a_null():
    for name, field in trigger_form.fields().items():
        assert "null" in field["type"], name
        assert field["default"] == ("wordcount" if name == "experiment" else None)
        assert "enum" not in field or (field["enum"][-1] is None and field["values_display"]["null"])
        # Airflow writes the null of a list of numbers, of a mapping and of a switch, but not that of a text box
        first, *others = (kind for kind in field["type"] if kind != "null")
        assert first in ("string", "number", "integer") or others or field["items"] == {"type": "string"}, name


# The first words of a sentence that says when to change a field.
WHEN = (
    *("Change", "Choose", "Give", "Leave", "Lengthen", "Lower", "Match", "Name", "Raise", "Set", "Shorten", "Switch"),
    *("Use", "Write"),
)


def test_every_field_says_what_it_does_and_when_to_change_it():
    fields = trigger_form.fields()
    assert field_help.SENTENCES.keys() == fields.keys()
    for name, field in fields.items():
        sentences = field["description_md"].removesuffix(")").rpartition(" (")[0]
        assert sentences.endswith(".")
        when = sentences.partition(". ")[2]
        assert any(sentence.startswith(WHEN) for sentence in re.split(r"(?<=[.;]) ", when)), f"{name}: {when}"
        assert sentences[0].isupper() or sentences.partition(":")[0].split(",")[0] in ("own-job", *names_of_workloads())
        assert f"({name}" in field["description_md"]
        assert "`" not in field["description_md"], "Airflow draws code over the line above"
        assert field["title"]


def more_than_the_window_s(mode, interval_s):
    """How much longer a run takes than its window."""
    load = {"mode": mode, "rate": 100}
    one = spec.validate({"load": load, "engine": {"checkpoint_interval_s": interval_s}, "window_s": 300})
    return step_times.whole_s(one) - one.window_s


def test_the_form_and_the_pages_say_truly_how_much_longer_a_run_takes_than_its_window():
    told = trigger_form.fields()["window_s"]["description_md"]
    assert "about three minutes more than the window" in told
    assert "*sustainable* adds about 40 checkpoint intervals, at least a minute" in told
    searches = {
        interval_s: more_than_the_window_s("sustainable", interval_s) - more_than_the_window_s("rate", interval_s)
        for interval_s in (0.1, 2, 10, 60, 600)
    }
    assert min(searches.values()) == pytest.approx(60, rel=0.1)
    assert [searches[interval_s] / interval_s for interval_s in (10, 60, 600)] == pytest.approx([40] * 3, rel=0.1)
    within = [more_than_the_window_s(mode, at_s) / 60 for mode in ("rate", "saturating") for at_s in (0.1, 5, 10)]
    shipped = [step_times.whole_s(one) / 60 - one.window_s / 60 for one in map(spec.load, spec.available())]
    assert 2 < min(within + shipped) < max(within + shipped) < 4, "nightly.md and examples.md say two to four minutes"


def names_of_workloads():
    return [name for name in trigger_form.fields()["workload.name"]["enum"] if name]


def test_what_is_changed_most_is_in_the_section_that_is_open():
    fields = trigger_form.fields()
    opened = [name for name, field in fields.items() if "section" not in field]
    assert opened == [
        *("experiment", "experiment_file", "host_fault_rate", "rack_fault_rate", "racks", "time_to_heal_s"),
        *("window_s", "seed", "name", "run_id"),
    ]
    assert list(fields)[: len(opened)] == opened


def test_a_field_carries_type_bounds_unit_and_section():
    field = trigger_form.fields()["engine.checkpoint_interval_s"]
    assert field["type"] == ["number", "null"]
    assert (field["minimum"], field["maximum"]) == (0.001, 604_800)
    assert field["title"] == "checkpoint interval [s]"
    assert field["section"] == "engine"
    assert field["description_md"].endswith("(engine.checkpoint_interval_s, ≥ 0.001, ≤ 604,800)")


def test_a_title_has_the_unit_of_what_is_counted():
    fields = trigger_form.fields()
    assert fields["load.rate"]["title"] == "rate [records/s]"
    assert fields["host_fault_rate"]["title"] == "host fault rate [1/s]"
    assert fields["faults.duration"]["title"] == "duration [s]"


def test_a_choice_is_an_enumeration_and_an_optional_number_stays_bounded():
    fields = trigger_form.fields()
    ours = ["global", "blocking", "passive", "partially-active", "query-centric", "source-replay"]
    modes = ["query", "task", *ours, None]
    assert fields["engine.recovery"]["enum"] == modes
    assert fields["faults.duration"]["type"] == ["number", "null"]
    assert fields["faults.duration"]["exclusiveMinimum"] == 0


@pytest.mark.extended
@pytest.mark.parametrize("name", spec.available())
def test_every_shipped_experiment_passes_the_forms_own_schemas(name):
    """Airflow validates each param of a trigger so."""
    form, experiment = trigger_form.fields(), spec.load(name)
    for field, value in trigger_form.flatten(experiment).items():
        jsonschema.validate(value, form[field])
    assert spec.validate(trigger_form.fold(trigger_form.flatten(experiment))) == experiment


def test_a_forms_schemas_refuse_what_no_experiment_can_have():
    form = trigger_form.fields()
    refused = {
        "engine.checkpoint_interval_s": 0, "seed": True, "name": "A Name", "load.mode": "x", "host_fault_rate": -1,
        "experiment": "no-example", "faults": {"processes": [{"kind": "kill", "rate": -1}]},
    }  # fmt: skip
    for field, value in refused.items():
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(value, form[field])


def keywords(schema):
    if isinstance(schema, dict):
        yield from schema
        for below in schema.values():
            yield from keywords(below)
    if isinstance(schema, list):
        for below in schema:
            yield from keywords(below)


def test_every_schema_names_a_draft_that_knows_all_of_its_keywords():
    """A validator takes no notice of a keyword that it does not know."""
    fields = trigger_form.fields()
    assert {field["$schema"] for field in fields.values()} == {jsonschema.Draft7Validator.META_SCHEMA["$schema"]}
    newer = set(jsonschema.Draft202012Validator.VALIDATORS) - set(jsonschema.Draft7Validator.VALIDATORS)
    assert not newer & set(keywords(list(fields.values())))
    assert "prefixItems" in newer


def test_no_schema_refers_outside_itself():
    assert "$ref" not in str(trigger_form.fields())


def test_the_run_id_is_no_part_of_the_experiment():
    assert spec.validate(trigger_form.fold({"seed": 3, "run_id": "mine"})) == spec.Experiment(seed=3)


def test_of_another_workload_or_engine_what_is_left_empty_has_its_own_default():
    changed = asked(experiment="dataflow-q12", engine__name="structured-streaming")
    assert changed.engine == spec.EngineSpec()
    assert changed.workload == spec.load("dataflow-q12").workload
    assert asked(workload__name="nexmark").workload == spec.validate({"workload": {"name": "nexmark"}}).workload


def test_a_field_of_a_workload_that_is_not_chosen_is_refused():
    with pytest.raises(BadInput, match=r"workload\.query"):
        asked(experiment="wordcount", workload__query="q5")


def test_texts_stand_for_lists_mappings_and_yes_or_no():
    changed = asked(experiment="ppa-figure-6", workload__parallelism="[16, 4]", engine__chaining="no")
    assert (changed.workload.parallelism, changed.engine.chaining) == ((16, 4), False)
    with pytest.raises(BadInput, match=r"^faults: .*valid YAML"):
        asked(faults="{processes: [")


def test_the_fault_spec_as_a_text_replaces_the_experiments_faults():
    text = "{events: [{at: 5, targets: [worker-2], kind: pause, heal_after: 1}]}"
    faults = asked(experiment="wordcount", faults=text).faults
    assert ([fault.kind.value for fault in faults.events], faults.processes) == (["pause"], ())


@pytest.mark.parametrize("other", [{"faults.max_down": 2}, {"host_fault_rate": 0.1}])
def test_faults_are_said_once(other):
    with pytest.raises(BadInput, match=r"^faults: "):
        trigger_form.fold({"faults": "{}"} | other)


def test_a_workload_that_nobody_knows_reaches_the_check():
    with pytest.raises(BadInput, match=r"workload\.name"):
        spec.validate(trigger_form.fold({"workload.name": "nexmrk", "workload.depth": 1}))
