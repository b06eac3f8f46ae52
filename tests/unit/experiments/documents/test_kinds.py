"""A document that is given where another kind is wanted is told from it, with what takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.plan import load_fault_spec
from experiments import external_cluster, inventory, matrix, spec
from experiments.documents.kinds import DocumentKind
from experiments.errors import BadInput
from experiments.external_cluster import ExternalCluster
from experiments.faults import FaultSpec
from experiments.inventory import Inventory
from experiments.matrix import Matrix
from experiments.spec import Experiment
from models.topology import TopologyDocument, load_topology

TEXTS = {
    DocumentKind.EXPERIMENT: '{"name": "mine", "window_s": 60, "faults": {"processes": [{"rate": 0.1}]}}',
    DocumentKind.MATRIX: '{"workloads": {}, "engines": {}, "protections": {}, "faults": {}, "seeds": [1]}',
    DocumentKind.FAULTS: '{"duration": 60, "hosts": {"a": ["rack"]}, "processes": [{"rate": 0.1}]}',
    DocumentKind.DRAWN_PLAN: '{"events": [], "implied": {}, "drawn": {}}',
    DocumentKind.INVENTORY: '{"hosts": [{"name": "a"}]}',
    DocumentKind.EXTERNAL_CLUSTER: '{"master": "yarn", "brokers": "a:1", "list_hosts": ["list"], "faults": {}}',
    DocumentKind.TOPOLOGY: '{"operators": [], "streams": []}',
}
LOADERS: dict[DocumentKind, Callable[[Path], object]] = {
    DocumentKind.EXPERIMENT: lambda path: spec.load(str(path)),
    DocumentKind.MATRIX: lambda path: matrix.load(str(path)),
    DocumentKind.FAULTS: load_fault_spec,
    DocumentKind.INVENTORY: inventory.load,
    DocumentKind.EXTERNAL_CLUSTER: external_cluster.load,
    DocumentKind.TOPOLOGY: load_topology,
}


@pytest.mark.parametrize("given", DocumentKind)
@pytest.mark.parametrize("wanted", LOADERS)
def test_what_is_another_kind_is_said_with_what_takes_it(
    tmp_path: Path, wanted: DocumentKind, given: DocumentKind
) -> None:
    path = tmp_path / "document.yaml"
    path.write_text(TEXTS[given], encoding="utf-8")
    try:
        LOADERS[wanted](path)
        told = ""
    except BadInput as error:
        told = str(error)
    mistaken = f"{str(path)!r} is not usable; allowed: {wanted.title}; this is {given.title}, for {given.taker}"
    assert (mistaken in told) == (wanted is not given)


def test_a_field_that_is_written_wrongly_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "document.yaml"
    path.write_text("window_s: 60\nduration: 60\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"duration: 60 is not usable; allowed: no such field"):
        spec.load(str(path))


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (DocumentKind.EXPERIMENT, Experiment),
        (DocumentKind.MATRIX, Matrix),
        (DocumentKind.FAULTS, FaultSpec),
        (DocumentKind.INVENTORY, Inventory),
        (DocumentKind.EXTERNAL_CLUSTER, ExternalCluster),
        (DocumentKind.TOPOLOGY, TopologyDocument),
    ],
)
def test_each_kind_is_known_by_the_fields_that_it_has(kind: DocumentKind, model: type) -> None:
    assert kind.fields == set(model.model_fields)
