"""The accuracy of tentative output by window, and the output fidelity that the model predicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from experiments.spec import Experiment
from experiments.workloads.catalogue import WorkloadSpec
from journal.event import Event
from journal.events.testbed import PartitionsAbsent, Report
from models.accuracy import accuracy_of
from models.fidelity import score
from models.topology import Topology
from results.tables.columns import Row
from testbed.core.dataflow.layout import Layout
from testbed.experiment_layout import layout_of
from testbed.operators import Sink
from testbed.topology import topology_of

MS, SECOND_MS = 1_000_000, 1000
WINDOW = ["start_ms", "end_ms"]


@dataclass(frozen=True)
class PartitionOutage:
    """Nothing came from these partitions between two moments."""

    start_ns: int
    end_ns: float
    partitions: tuple[str, ...]


def partition_outages(journal: Iterable[Event]) -> list[PartitionOutage]:
    """Who was absent when; two that follow each other differ. The last one may have no end."""
    told = [event for event in journal if isinstance(event, PartitionsAbsent)]
    starts: list[float] = [*(event.at_ns for event in told), math.inf]
    spans = zip(told, pairwise(starts), strict=True)
    return [PartitionOutage(event.at_ns, end, event.partitions) for event, (_, end) in spans if event.partitions]


def output_before_outage(journal: Iterable[Event], layout: Layout) -> dict[str, float]:
    """How many records each partition had emitted when the first ones became absent, by the last report before."""
    before: Report | None = None
    for event in journal:
        if isinstance(event, PartitionsAbsent) and event.partitions:
            break
        if isinstance(event, Report):
            before = event
    tallies = {} if before is None else before.tallies
    counted = {
        each.name: "records_in" if isinstance(each.element, Sink) else "records_out" for each in layout.partitions
    }
    return {name: float(tally[counted[name]]) for name, tally in tallies.items()}


def tentative(
    experiment: Experiment, journal: Sequence[Event], found: pd.DataFrame, oracle: pd.DataFrame, sink: pd.DataFrame
) -> list[Row]:
    """The rows of the table `tentative`, from the journal of the testbed's driver and three tables of results.

    `found` is the tentative output, `oracle` what is exact, `sink` the exact output (`workloads.results`); `found` and
    `sink` also have when each result was out, `arrived_ms`.
    """
    workload, layout, absent = experiment.workload, layout_of(experiment), partition_outages(journal)
    topology = topology_of(layout, output_before_outage(journal, layout))
    frames = [_by_second(frame) if workload.by_record else frame for frame in (found, oracle, sink)]
    of_windows: list[Mapping[tuple[int, int], pd.DataFrame]] = [dict(iter(each.groupby(WINDOW))) for each in frames]
    nothing = frames[1].iloc[:0], frames[2].iloc[:0]
    exact_of, sink_of = of_windows[1:]
    return [
        _row(workload, window, rows, exact_of.get(window, nothing[0]), sink_of.get(window, nothing[1]))
        | _prediction(window, rows, absent, topology)
        for window, rows in of_windows[0].items()
    ]


def totals(rows: Sequence[Row]) -> dict[str, float | None]:
    """Accuracy and predicted output fidelity of all windows with exact results together; None without any."""
    with_results = [row for row in rows if row["exact"]]
    frame = pd.DataFrame(with_results, columns=["exact", "both", "output_fidelity"])
    exact = float(frame["exact"].sum())
    if not exact:
        return {"tentative_accuracy": None, "tentative_fidelity": None}
    fidelity = (frame["output_fidelity"].astype(float) * frame["exact"]).sum(skipna=False) / exact
    return {
        "tentative_accuracy": float(frame["both"].sum()) / exact,
        "tentative_fidelity": None if math.isnan(fidelity) else float(fidelity),
    }


def _row(
    workload: WorkloadSpec, window: tuple[int, int], found: pd.DataFrame, exact: pd.DataFrame, sink: pd.DataFrame
) -> Row:
    emitted, wanted, out = _results(found), _results(exact), _results(sink)
    accuracy = accuracy_of(workload.name, emitted, wanted)
    is_complete = bool(wanted) and wanted <= out
    return {
        "window_start_ns": window[0] * MS,
        "window_end_ns": window[1] * MS,
        "exact": len(wanted),
        "emitted": len(emitted),
        "both": 0 if accuracy is None else round(accuracy * len(wanted)),
        "accuracy": accuracy,
        "corrected_ns": int(sink["arrived_ms"].max()) * MS if is_complete else None,
        "leaked": len(emitted & out - wanted),
    }


def _prediction(
    window: tuple[int, int], found: pd.DataFrame, absent: Sequence[PartitionOutage], topology: Topology
) -> Row:
    """Output that is published just after absent partitions came back still lacks what these would have added.

    If a fault strikes during a recovery, a window can come out tentatively more than once, and lack something else.
    """
    first_ns, last_ns = (int(at_ms) * MS for at_ms in (found["arrived_ms"].min(), found["arrived_ms"].max()))
    begun = [each for each in absent if each.start_ns <= first_ns + MS]  # the arrival is rounded to whole ms
    if not begun:
        return {"first_ns": first_ns, "absent": "", "throughout": False}
    outage = begun[-1]
    quality = score(topology, topology.mask(outage.partitions, "absent"))
    return {
        "first_ns": first_ns,
        "absent": ",".join(outage.partitions),
        "throughout": outage.start_ns <= window[0] * MS and last_ns <= outage.end_ns,
        "output_fidelity": quality.output_fidelity,
        "internal_completeness": quality.internal_completeness,
    }


def _results(frame: pd.DataFrame) -> set[tuple[str, str]]:
    return set(zip(frame["key"], frame["value"], strict=True))


def _by_second(frame: pd.DataFrame) -> pd.DataFrame:
    start_ms = frame["start_ms"] // SECOND_MS * SECOND_MS
    return frame.assign(start_ms=start_ms, end_ms=start_ms + SECOND_MS)
