"""A document that is given where another kind is wanted is told from it, with what takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.plan import load_fault_spec
from experiments import inventory, matrix, spec
from experiments.documents import Document
from experiments.errors import BadInput
from experiments.faults import FaultSpec
from experiments.inventory import Inventory
from experiments.matrix import Matrix
from experiments.spec import Experiment
from models.topology import TopologyDocument, load_topology

TEXTS = {
    Document.EXPERIMENT: '{"name": "mine", "window_s": 60, "faults": {"processes": [{"rate": 0.1}]}}',
    Document.MATRIX: '{"workloads": {}, "engines": {}, "protocols": {}, "faults": {}, "seeds": [1]}',
    Document.FAULTS: '{"duration": 60, "hosts": {"a": ["rack"]}, "processes": [{"rate": 0.1}]}',
    Document.DRAWN_PLAN: '{"events": [], "implied": {}, "drawn": {}}',
    Document.INVENTORY: '{"hosts": [{"name": "a"}]}',
    Document.TOPOLOGY: '{"operators": [], "streams": []}',
}
LOADERS: dict[Document, Callable[[Path], object]] = {
    Document.EXPERIMENT: lambda path: spec.load(str(path)),
    Document.MATRIX: lambda path: matrix.load(str(path)),
    Document.FAULTS: load_fault_spec,
    Document.INVENTORY: inventory.load,
    Document.TOPOLOGY: load_topology,
}


@pytest.mark.parametrize("given", Document)
@pytest.mark.parametrize("wanted", LOADERS)
def test_what_is_another_kind_is_said_with_what_takes_it(tmp_path: Path, wanted: Document, given: Document) -> None:
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
        (Document.EXPERIMENT, Experiment),
        (Document.MATRIX, Matrix),
        (Document.FAULTS, FaultSpec),
        (Document.INVENTORY, Inventory),
        (Document.TOPOLOGY, TopologyDocument),
    ],
)
def test_each_kind_is_known_by_the_fields_that_it_has(kind: Document, model: type) -> None:
    assert kind.fields == set(model.model_fields)
