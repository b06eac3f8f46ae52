"""A spec has no place for a secret, and neither has a table: what is kept for years is safe to show."""

import re

from experiments import spec
from experiments.inventory import Inventory
from experiments.matrix import Matrix
from results.schema import TABLES

SECRETIVE = re.compile(r"pass(word|phrase)?$|secret|token|credential|api_?key|private", re.IGNORECASE)


def names(schema):
    """Every name of a field in a JSON schema, those of its definitions included."""
    if isinstance(schema, list):
        return {name for item in schema for name in names(item)}
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})) | {name for item in schema.values() for name in names(item)}


def test_no_field_of_a_spec_asks_for_a_secret():
    for model in (spec.Experiment, Matrix, Inventory):
        found = names(model.model_json_schema())
        assert found
        assert [name for name in found if SECRETIVE.search(name)] == []


def test_no_column_of_a_table_is_for_a_secret():
    columns = {field.name for schema in TABLES.values() for field in schema}
    assert [name for name in columns if SECRETIVE.search(name)] == []
