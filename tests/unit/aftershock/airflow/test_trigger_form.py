"""The trigger form: the pydantic models, flattened and folded back without loss."""

import jsonschema
import pytest

from aftershock.airflow import trigger_form
from experiments import spec
from experiments.errors import BadInput

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


def test_every_leaf_is_a_field_with_the_experiments_value_and_a_title():
    experiment = spec.validate(RICH)
    fields = trigger_form.fields(experiment)
    defaults = {name: field["default"] for name, field in fields.items()}
    assert defaults == defaults | trigger_form.flatten(experiment)
    assert all(field["title"] and field["section"] for field in fields.values())


def test_a_field_carries_type_bounds_unit_and_section():
    field = trigger_form.fields(spec.Experiment())["engine.checkpoint_interval_s"]
    assert field["type"] == "number"
    assert field["exclusiveMinimum"] == 0
    assert field["title"] == "checkpoint interval [s]"
    assert field["section"] == "engine"


def test_a_choice_is_an_enumeration_and_an_optional_number_stays_bounded():
    fields = trigger_form.fields(spec.Experiment())
    assert fields["engine.recovery"]["enum"] == [
        "query",
        "task",
        "global",
        "blocking",
        "passive",
        "query-centric",
        "source-replay",
        None,
    ]
    assert fields["faults.duration"]["type"] == ["number", "null"]
    assert fields["faults.duration"]["exclusiveMinimum"] == 0


@pytest.mark.extended
@pytest.mark.parametrize("name", spec.available())
def test_every_shipped_experiment_passes_the_forms_own_schemas(name):
    """Airflow validates each param of a trigger so."""
    form, experiment = trigger_form.fields(spec.Experiment()), spec.load(name)
    for field, value in trigger_form.flatten(experiment).items():
        jsonschema.validate(value, form[field])
    assert spec.validate(trigger_form.fold(trigger_form.flatten(experiment))) == experiment


def test_a_forms_schemas_refuse_what_no_experiment_can_have():
    form = trigger_form.fields(spec.Experiment())
    for field, value in (("engine.checkpoint_interval_s", 0), ("seed", True), ("name", "A Name"), ("load.mode", "x")):
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
    fields = trigger_form.fields(spec.Experiment())
    assert {field["$schema"] for field in fields.values()} == {jsonschema.Draft7Validator.META_SCHEMA["$schema"]}
    newer = set(jsonschema.Draft202012Validator.VALIDATORS) - set(jsonschema.Draft7Validator.VALIDATORS)
    assert not newer & set(keywords(list(fields.values())))
    assert "prefixItems" in newer


def test_no_schema_refers_outside_itself():
    assert "$ref" not in str(trigger_form.fields(spec.Experiment()))


def test_the_run_id_is_no_part_of_the_experiment():
    assert trigger_form.fold({"seed": 3, "run_id": "mine"}) == {"seed": 3}


def test_the_form_has_the_fields_of_every_workload_and_the_chosen_one_keeps_its_own():
    fields = trigger_form.fields(spec.validate(NEXMARK))
    names = ["wordcount", "nexmark", "reachability", "window-tree", "top-100", "incidents", "hashtags", "cec-prices"]
    assert fields["workload.name"]["enum"] == [*names, "own-job"]
    assert (fields["workload.query"]["default"], fields["workload.depth"]["default"]) == ("q5", 1)
    filled = {name: field["default"] for name, field in fields.items()}
    assert spec.validate(trigger_form.fold(filled)) == spec.validate(NEXMARK)
    assert spec.validate(trigger_form.fold({**filled, "workload.name": "wordcount"})).workload.window_s == 12


def test_a_workload_that_nobody_knows_reaches_the_check():
    with pytest.raises(BadInput, match=r"workload\.name"):
        spec.validate(trigger_form.fold({"workload.name": "nexmrk", "workload.depth": 1}))
