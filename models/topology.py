"""Topologies: operators split into tasks (operator partitions), and the streams between them.

A topology is read from the JSON document of docs/reference/topologies.md. Task i of operator O is called `O.i`. Tasks
are numbered operator by operator, the operators in topological order, so that a vector over all tasks can be walked
from the sources to the sinks. Model: section II-A of the `ppa` paper, section 2.1 of the `incremental` paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field, model_validator

from experiments.documents import kinds
from experiments.documents.kinds import DocumentKind
from experiments.documents.parsing import Misfit, Spec, parse, read_json
from experiments.documents.repetition import repeated
from experiments.errors import BadInput, in_file

Rate = Annotated[float, Field(strict=True, ge=1e-100, le=1e100, allow_inf_nan=False)]  # sums, ratios stay finite
Amount = Annotated[float, Field(strict=True, ge=0, le=1e100, allow_inf_nan=False)]
# At this limit, scores, greedy plans and structure-aware plans of full parts need some 100 MB (and minutes), exact
# plans up to 2 GB; structure-aware plans of structured parts, and dp, refuse what would need more than about 1 GB.
MOST_TASKS = 100_000


class InputCorrelation(StrEnum):
    """Whether an operator computes over the join of its input streams, or over their union."""

    INDEPENDENT = "independent"
    CORRELATED = "correlated"


class Partitioning(StrEnum):
    """Which downstream tasks an upstream task sends to."""

    ONE_TO_ONE = "one-to-one"
    SPLIT = "split"
    MERGE = "merge"
    FULL = "full"


def _operator_name(name: str) -> str:
    if not name or "," in name or name != name.strip() or not name.isprintable():
        raise ValueError("a printable name without commas or spaces around it")
    return name


Name = Annotated[str, AfterValidator(_operator_name)]


class TopologyOperator(Spec):
    """An operator and what is known of each of its tasks: output rate [1/s], recovery cost, priority of its output."""

    name: Name
    parallelism: Annotated[int, Field(strict=True, ge=1, le=MOST_TASKS)]
    inputs: InputCorrelation = InputCorrelation.INDEPENDENT
    output_rates: tuple[Rate, ...] = ()
    output: Annotated[bool, Field(strict=True)] = False
    costs: tuple[Amount, ...] = ()
    priorities: tuple[Amount, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _one_by_default(cls, document: Any) -> Any:
        """Rates, costs and priorities that are not given are 1 for every task."""
        if not isinstance(document, dict) or not isinstance(document.get("parallelism"), int):
            return document
        if not 0 < document["parallelism"] <= MOST_TASKS:
            return document
        ones = [1.0] * document["parallelism"]
        return {"output_rates": ones, "costs": ones, "priorities": ones} | document

    @model_validator(mode="after")
    def _one_value_a_task(self) -> TopologyOperator:
        for field in ("output_rates", "costs", "priorities"):
            if len(getattr(self, field)) != self.parallelism:
                found = f"{len(getattr(self, field))} values"
                raise Misfit(field, found, f"one for each of {self.parallelism} tasks")
        return self


class TopologyStream(Spec):
    """A stream between two operators."""

    source: Annotated[Name, Field(alias="from")]
    target: Annotated[Name, Field(alias="to")]
    partitioning: Partitioning

    @property
    def name(self) -> str:
        """`from > to`, as error messages and pages name the stream."""
        return f"{self.source} > {self.target}"


class TopologyDocument(Spec):
    """The JSON document of a topology."""

    operators: Annotated[tuple[TopologyOperator, ...], Field(min_length=1)]
    streams: tuple[TopologyStream, ...] = ()


@dataclass(frozen=True)
class Topology:
    """A valid topology; `operators` are in topological order, stable against the order in which they were given."""

    operators: tuple[TopologyOperator, ...]
    streams: tuple[TopologyStream, ...]

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The names of all tasks, in the order of every vector over tasks."""
        return tuple(f"{operator.name}.{i}" for operator in self.operators for i in range(operator.parallelism))

    @cached_property
    def operator(self) -> dict[str, TopologyOperator]:
        """The operators by name."""
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def span(self) -> dict[str, slice]:
        """Where the tasks of each operator are in a vector over all tasks."""
        ends = np.cumsum([operator.parallelism for operator in self.operators]).tolist()
        return {
            operator.name: slice(end - operator.parallelism, end)
            for operator, end in zip(self.operators, ends, strict=True)
        }

    @cached_property
    def inputs_of(self) -> dict[str, tuple[TopologyStream, ...]]:
        """The streams into each operator, by its name."""
        return self._streams_by("target")

    @cached_property
    def outputs_of(self) -> dict[str, tuple[TopologyStream, ...]]:
        """The streams out of each operator, by its name."""
        return self._streams_by("source")

    @cached_property
    def sources(self) -> tuple[TopologyOperator, ...]:
        """The operators without incoming streams."""
        return tuple(operator for operator in self.operators if not self.inputs_of[operator.name])

    @cached_property
    def sinks(self) -> tuple[TopologyOperator, ...]:
        """The operators without outgoing streams, and those whose output is wanted by itself."""
        return tuple(o for o in self.operators if o.output or not self.outputs_of[o.name])

    def links(self, stream: TopologyStream) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The substreams of a stream, as the indices over all tasks of their upstream and of their downstream tasks.

        Ordered by downstream task, then by upstream task.
        """
        up, down = self.operator[stream.source].parallelism, self.operator[stream.target].parallelism
        if stream.partitioning is Partitioning.FULL:
            sources, targets = np.tile(np.arange(up), down), np.repeat(np.arange(down), up)
        elif up >= down:
            sources = np.arange(up)
            targets = sources * down // up
        else:
            targets = np.arange(down)
            sources = targets * up // down
        return sources + self.span[stream.source].start, targets + self.span[stream.target].start

    def values(self, field: str) -> npt.NDArray[np.float64]:
        """`output_rates`, `costs` or `priorities` of all tasks."""
        return np.concatenate([getattr(operator, field) for operator in self.operators])

    def mask(self, tasks: Iterable[str], field: str = "tasks") -> npt.NDArray[np.bool_]:
        """A vector over all tasks, true at the named ones; raises `BadInput` about `field` for an unknown task."""
        found = np.zeros(len(self.tasks), dtype=bool)
        for task in tasks:
            if task not in self._index:
                raise BadInput(field, task, self._tasks_like(task))
            found[self._index[task]] = True
        return found

    def names(self, mask: npt.NDArray[np.bool_]) -> list[str]:
        """The names of the tasks at which a vector over all tasks is true."""
        return [self.tasks[i] for i in np.flatnonzero(mask)]

    def _tasks_like(self, task: str) -> str:
        """The tasks that a name which is none may have meant."""
        operator = self.operator.get(task) or self.operator.get(task.rpartition(".")[0])
        if operator is None:
            return f"a task of one of the operators {', '.join(self.operator)}"
        last = operator.parallelism - 1
        return f"{operator.name}.0 to {operator.name}.{last}" if last else f"{operator.name}.0"

    def _streams_by(self, end: Literal["source", "target"]) -> dict[str, tuple[TopologyStream, ...]]:
        found: dict[str, list[TopologyStream]] = {operator.name: [] for operator in self.operators}
        for stream in self.streams:
            found[getattr(stream, end)].append(stream)
        return {name: tuple(streams) for name, streams in found.items()}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {task: i for i, task in enumerate(self.tasks)}


def load_topology(path: str | Path) -> Topology:
    """Load a topology from a JSON file; raises `BadInput` naming the field, its value and what is allowed."""
    document = read_json(Path(path), "topology")
    kinds.require(DocumentKind.TOPOLOGY, document, "topology", str(path))
    with in_file(str(path)):
        return parse_topology(document)


def parse_topology(document: dict[str, Any]) -> Topology:
    """Validate the document of a topology; raises `BadInput` naming the field, its value and what is allowed."""
    _require_few_tasks(document.get("operators"))
    found = parse(TopologyDocument, document, "topology")
    operators = {operator.name: operator for operator in found.operators}
    _require_distinct("operators", [operator.name for operator in found.operators])
    _require_distinct("streams", [stream.name for stream in found.streams])
    for stream in found.streams:
        for end in (stream.source, stream.target):
            if end not in operators:
                raise BadInput(f"streams.{stream.name}", end, f"one of the operators {', '.join(operators)}")
        _require_fit(stream, operators[stream.source].parallelism, operators[stream.target].parallelism)
    ordered = tuple(operators[name] for name in _topological_order(list(operators), found.streams))
    return Topology(ordered, found.streams)


def _require_few_tasks(operators: Any) -> None:
    """Counted before anything is filled in for a task, so that a small document cannot ask for a large topology."""
    counts = [o.get("parallelism") for o in operators if isinstance(o, dict)] if isinstance(operators, list) else []
    if (tasks := sum(count for count in counts if isinstance(count, int) and 0 < count <= MOST_TASKS)) > MOST_TASKS:
        raise BadInput("operators", f"{tasks} tasks", f"at most {MOST_TASKS}")


def _require_distinct(field: str, names: list[str]) -> None:
    for name in repeated(names):
        raise BadInput(field, name, "each only once")


def _require_fit(stream: TopologyStream, up: int, down: int) -> None:
    fits, allowed = {
        Partitioning.ONE_TO_ONE: (up == down, "as many tasks downstream as upstream"),
        Partitioning.SPLIT: (up < down, "fewer tasks upstream than downstream"),
        Partitioning.MERGE: (up > down, "more tasks upstream than downstream"),
        Partitioning.FULL: (True, ""),
    }[stream.partitioning]
    if not fits:
        found = f"{stream.partitioning} from {up} to {down} tasks"
        raise BadInput(f"streams.{stream.name}.partitioning", found, allowed)


def _topological_order(names: list[str], streams: Iterable[TopologyStream]) -> list[str]:
    """The operators with every upstream one first; among those that are free to go next, in the order given."""
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(names, ()))
    for stream in streams:
        sorter.add(stream.target, stream.source)
    try:
        sorter.prepare()
    except CycleError as error:
        raise BadInput("streams", " > ".join(error.args[1]), "a graph without cycles") from None
    position = {name: i for i, name in enumerate(names)}
    ordered: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=position.__getitem__)
        ordered.extend(ready)
        sorter.done(*ready)
    return ordered
