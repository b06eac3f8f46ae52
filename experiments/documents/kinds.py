"""Recognizes a document that was given in the wrong place, and says where it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from experiments.errors import BadInput


class DocumentKind(Enum):
    """What a user can write: in words, which fields it may have at the top, and what takes it."""

    EXPERIMENT = (
        "an experiment",
        frozenset({"name", "cluster", "workload", "engine", "load", "faults", "window_s", "seed", "tolerances"}),
        "`aftershock benchmark FILE`",
    )
    MATRIX = (
        "a matrix of experiments",
        frozenset({"common", "workloads", "engines", "protections", "faults", "seeds", "skip"}),
        "the DAG `nightly`, as its param `matrix`",
    )
    FAULTS = (
        "a fault spec",
        frozenset({"duration", "hosts", "max_down", "time_scale", "processes", "events", "bursts", "trace"}),
        "`aftershock plan faults FILE`; in an experiment it stands below `faults`",
    )
    DRAWN_PLAN = (
        "a fault plan that was drawn",
        frozenset({"events", "implied", "drawn"}),
        "a fault spec, as its `trace`",
    )
    INVENTORY = ("an inventory of machines", frozenset({"hosts"}), "an experiment, as its `cluster.inventory`")
    EXTERNAL_CLUSTER = (
        "an existing cluster",
        frozenset(
            {
                "master",
                "address",
                "brokers",
                "broker_login",
                "checkpoints",
                "spark_conf",
                "list_hosts",
                "faults",
                "limit_s",
            }
        ),
        "an experiment with driver external, as its `cluster.inventory`",
    )
    TOPOLOGY = (
        "a topology",
        frozenset({"operators", "streams"}),
        "`aftershock predict fidelity`, `plan replication` and `plan recovery`",
    )

    def __init__(self, title: str, fields: frozenset[str], taker: str) -> None:
        self.title, self.fields, self.taker = title, fields, taker

    def fits(self, document: Mapping[Any, Any]) -> int:
        """How many fields of the document this kind has; an inventory's hosts are a list, a fault spec's are not."""
        if "hosts" in document and isinstance(document["hosts"], list) is not (self is DocumentKind.INVENTORY):
            return len(self.fields & document.keys() - {"hosts"})
        return len(self.fields & document.keys())


def kind_of(document: Mapping[Any, Any]) -> DocumentKind:
    """The kind that a document has the most fields of."""
    return max(DocumentKind, key=lambda kind: kind.fits(document))


def require(wanted: DocumentKind, document: Mapping[Any, Any], field: str, source: str) -> None:
    """Raise `BadInput` about `field` for a document that is plainly of another kind than the one wanted."""
    likeliest = kind_of(document)
    if likeliest.fits(document) > wanted.fits(document):
        raise BadInput(field, source, f"{wanted.title}; this is {likeliest.title}, for {likeliest.taker}")
