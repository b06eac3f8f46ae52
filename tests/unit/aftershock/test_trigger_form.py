"""The trigger form: the pydantic models, flattened and folded back without loss."""

import pytest

from aftershock import trigger_form
from experiments import spec

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


@pytest.mark.parametrize("document", [{}, RICH])
def test_an_experiment_survives_flattening_and_folding(document):
    experiment = spec.validate(document)
    assert spec.validate(trigger_form.fold(trigger_form.flatten(experiment))) == experiment


def test_every_leaf_is_a_field_with_the_experiments_value_and_a_title():
    experiment = spec.validate(RICH)
    fields = trigger_form.fields(experiment)
    assert {name: field["default"] for name, field in fields.items() if name != "run_id"} == trigger_form.flatten(
        experiment
    )
    assert all(field["title"] and field["section"] for field in fields.values())


def test_a_field_carries_type_bounds_unit_and_section():
    field = trigger_form.fields(spec.Experiment())["engine.checkpoint_interval_s"]
    assert field["type"] == "number"
    assert field["exclusiveMinimum"] == 0
    assert field["title"] == "checkpoint interval [s]"
    assert field["section"] == "engine"


def test_a_choice_is_an_enumeration_and_an_optional_number_stays_bounded():
    fields = trigger_form.fields(spec.Experiment())
    assert fields["engine.recovery"]["enum"] == ["query", "task"]
    assert fields["faults.duration"]["type"] == ["number", "null"]
    assert fields["faults.duration"]["exclusiveMinimum"] == 0


def test_no_schema_refers_outside_itself():
    assert "$ref" not in str(trigger_form.fields(spec.Experiment()))


def test_the_run_id_is_no_part_of_the_experiment():
    assert trigger_form.fold({"seed": 3, "run_id": "mine"}) == {"seed": 3}
