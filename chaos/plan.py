"""The fault plan: every fault of a run, drawn from its processes and a seed before the run starts.

All randomness is `random.Random` seeded by a text and read through `random()`, which Python's documentation
promises to keep: one seed gives one plan, on every machine and version.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.bursts import burst_events
from chaos.clocks import clocks
from chaos.events import FaultEvent, listed_events
from experiments.documents import kinds
from experiments.documents.kinds import DocumentKind
from experiments.documents.parsing import parse, read_mapping
from experiments.errors import BadInput, in_file
from experiments.faults import FaultSpec
from experiments.misfits.faults import misfits
from experiments.trace import with_trace

if TYPE_CHECKING:
    from experiments.spec import Experiment


def load_fault_spec(path: str | Path) -> FaultSpec:
    """Load a fault spec from a YAML file, with the trace that it names.

    Raises `BadInput` naming the field, its value and what is allowed.
    """
    return fault_spec_in(read_mapping(Path(path), "faults", str(path)), str(path))


def fault_spec_in(document: dict[str, Any], source: str) -> FaultSpec:
    """The fault spec in a file that has been read, as `load_fault_spec` loads it."""
    kinds.require(DocumentKind.FAULTS, document, "faults", source)
    with in_file(source):
        return with_trace(parse(FaultSpec, document, "faults"))


def faults_of(experiment: Experiment) -> Iterator[FaultEvent]:
    """The faults of a run of this experiment, in the order of their times: those of its fault spec under its seed."""
    return draw(experiment.fault_spec, experiment.seed) if experiment.faults.can_fail else iter(())


def plan(spec: FaultSpec, seed: int) -> list[FaultEvent]:
    """The faults of `spec` that fall within [0, duration), in the order of their times; see `draw`."""
    return list(draw(spec, seed))


def draw(spec: FaultSpec, seed: int) -> Iterator[FaultEvent]:
    """Draw the faults of `spec` that fall within [0, duration) one by one, in the order of their times.

    Memory is that of the clocks, however long the plan. The same spec and seed give the same plan. A further host,
    domain, process or listed fault leaves the events of the others as they are. With a spread, a tick becomes one event
    a host, each at a uniform offset from it; what falls beyond the duration is left out. Raises `BadInput` at once when
    the spec does not say what can fail, for how long, or names what it does not have.
    """
    for misfit in misfits(spec):
        raise BadInput(misfit.field, misfit.value, str(misfit))
    listed = iter(listed_events(spec))
    drawn = (clock.events(seed, spec.duration_s) for clock in clocks(spec))
    return heapq.merge(listed, burst_events(spec, seed), *drawn)
