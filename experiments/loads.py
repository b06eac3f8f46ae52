"""The load: at a set rate, faster than the query, or at a share of the sustainable rate."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from experiments.documents.parsing import Spec
from experiments.workloads.base import LONGEST_S

FEWEST_INTERVALS = 6  # that a probe must cover: lag rises and falls with each
PROBE_INTERVALS, PROBE_S = 8, 10.0  # what it covers by default
MOST_BATCHED = 2048  # records; auctions are the longest, and 2048 of them fit into Kafka's largest message, 1 MB
ONLY_IF_SET = {"batch_records"}  # all modes look at it; unset, the load is what it was before there was such a field
# How long the calibration before a saturating load measures Structured Streaming on each topic.
FULL_BATCHES = 2  # at least; a full batch takes one checkpoint interval
GETTING_FASTER_S = 15.0  # a JVM gets faster with full batches for longer, but the default experiment shall have two


class LoadMode(StrEnum):
    """How the rate of records is set."""

    SATURATING = "saturating"  # somewhat above the calibrated service rate: the query is never idle for lack of input
    RATE = "rate"  # the set rate
    SUSTAINABLE = "sustainable"  # a share of the highest rate at which lag stays bounded, which is searched for first


class LoadSpec(Spec):
    """The open-loop generator: every record is due at a time that does not depend on the query.

    In mode sustainable a search goes before the measurement window (docs/reference/sustainable-throughput.md). It
    begins with bursts, the first at `rate`, and ends when the bracket around the sustainable rate is within
    `precision`, or when `probes` rates were tried.
    """

    mode: Annotated[
        LoadMode, Field(description="how the load is set: `saturating` is more than the query can process")
    ] = LoadMode.SATURATING
    rate: Annotated[
        float,
        Field(ge=0.001, le=1e7, description="records per second; in mode sustainable, the rate of the first burst"),
    ] = 5000.0
    share: Annotated[
        float, Field(gt=0, le=1, description="mode sustainable: rate in the window, as a share of the sustainable rate")
    ] = 0.8
    precision: Annotated[
        float,
        Field(
            ge=0.001,
            le=1,
            description="mode sustainable: largest relative gap between the rate found and the lowest rate that failed",
        ),
    ] = 0.05
    probes: Annotated[
        int,
        Field(
            ge=2, le=100, description="mode sustainable: largest number of probes in the search; a probe tries one rate"
        ),
    ] = 15
    probe_s: Annotated[
        float | None,
        Field(
            gt=0,
            le=LONGEST_S,
            description="mode sustainable: how long a probe watches lag [s];"
            f" default: {PROBE_INTERVALS} checkpoint intervals, at least {PROBE_S:g}",
        ),
    ] = None
    batch_records: Annotated[
        int | None,
        Field(
            ge=1,
            le=MOST_BATCHED,
            description="number of records in a message, which is then an Arrow batch and is sent once all of them are"
            " due; results are Arrow batches, too; by default each record is a JSON message of its own",
        ),
    ] = None

    @property
    def used(self) -> frozenset[str]:
        """The fields that this mode looks at; of those in `ONLY_IF_SET`, the ones that are set."""
        few = {LoadMode.SATURATING: {"mode", *ONLY_IF_SET}, LoadMode.RATE: {"mode", "rate", *ONLY_IF_SET}}
        looked_at = few.get(self.mode, set(type(self).model_fields))
        return frozenset(looked_at - {name for name in ONLY_IF_SET if getattr(self, name) is None})

    def probe_run_s(self, checkpoint_interval_s: float) -> float:
        """For how long lag is watched, given or by default [s]."""
        return self.probe_s or max(PROBE_S, PROBE_INTERVALS * checkpoint_interval_s)
