"""The events of a finite input, as oracles read them: a record that is no event fails the job, with its place.

Spark makes null of a value that it cannot parse, and filters drop null. The exact output would then lack the record,
and nobody would know. So the check is part of the column itself: whatever Spark does with the order of filters, it
cannot use an event before the event is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from workloads.topics import INPUT, message_place

NO_EVENT, NO_VALUE = "no event of this workload, or without one of its fields", "a message without a value"


def events(records: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """The records with the column `event`: a struct of `kind` and the fields of all kinds, null where of another kind.

    kinds   the fields of each kind with their types, such as `item LONG, price LONG`

    The records are of the topic `input`. The job that reads the events fails with topic, partition and offset of a
    record that is no JSON object of one of these kinds, lacks one of its fields, or has one that its type cannot hold.
    Raises `ValueError` if two kinds have fields of the same name and of different types.
    """
    fields = {kind: types_of(of_kind) for kind, of_kind in kinds.items()}
    types = {"kind": "STRING"}
    for name, of in (field for of_kind in fields.values() for field in of_kind.items()):
        if types.setdefault(name, of) != of:
            raise ValueError(f"the field {name} is {types[name]} in one kind of event and {of} in another")
    parsed = F.from_json(F.col("value").cast("string"), ", ".join(f"{name} {of}" for name, of in types.items()))

    def checked(event: Column) -> Column:
        whole = [
            reduce(and_, (event[name].isNotNull() for name in of_kind), event["kind"] == kind)
            for kind, of_kind in fields.items()
        ]
        return F.when(reduce(or_, whole), event).otherwise(_unusable(NO_EVENT))

    # Spark moves no filter below explode, so each value is parsed once, however many fields are selected.
    return records.select("*", F.explode(F.transform(F.array(parsed), checked)).alias("event"))


def types_of(fields: str) -> dict[str, str]:
    """The type of each field, from a text such as `item LONG, price LONG`."""
    return dict(field.split() for field in fields.split(", "))


def values() -> Column:
    """The value of each record, whatever it says. The job fails with the place of a record that has none."""
    return F.coalesce(F.col("value"), _unusable(NO_VALUE))


def _unusable(why: str) -> Column:
    return F.raise_error(F.format_string(f"{message_place(INPUT, '%s', '%s')}: {why}", "partition", "offset"))
