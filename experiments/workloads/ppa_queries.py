"""The specs of the two queries by which `ppa` (section VI-B) judges tentative output, for the protocol testbed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from experiments.documents.parsing import Misfit
from experiments.workloads.base import Slide, WindowLength, WorkloadName
from experiments.workloads.layered import WIDTHS, LayeredSpec, Width

THREE = Field(min_length=3, max_length=3, description=WIDTHS)
SECOND_MS = 1000


class Binding(StrEnum):
    """Which servers have an entry of a web site."""

    BOUND = "bound"  # one
    SPREAD = "spread"  # every one


class Top100Spec(LayeredSpec):
    """The 100 entries of a web site that were requested most in a sliding window (Q1): counts, added up in a hierarchy.

    Each partition of the source has the log of one server. The paper's log has 73,291,868 requests of a day, and it is
    replayed 48 times as fast: 40,718 requests/s.
    """

    name: Literal[WorkloadName.TOP_100] = WorkloadName.TOP_100
    window_s: WindowLength = 60.0
    slide_s: Slide = 1.0
    parallelism: Annotated[tuple[Width, ...], THREE] = (8, 4, 2)
    entries: Annotated[int, Field(ge=100, le=1_000_000, description="top-100: how many entries the site has")] = 20_000
    skew: Annotated[
        float,
        Field(ge=0, le=3, description="exponent of the Zipf law; top-100: of requests, incidents: of users by segment"),
    ] = 0.9
    binding: Annotated[Binding, Field(description="top-100: whether an entry is on one server, or on every server")] = (
        Binding.BOUND
    )
    stream_seed: Annotated[int, Field(ge=0, lt=2**63, description="top-100: seed of the events")] = 1

    @property
    def depth(self) -> int:
        """Stateful operators in a row: counts by slice, merged counts, and the top 100."""
        return 3

    @property
    def has_spread_keys(self) -> bool:
        return self.binding is Binding.SPREAD

    @model_validator(mode="after")
    def _every_server_has_entries(self) -> Top100Spec:
        if self.entries < self.sources:
            raise Misfit("entries", self.entries, f"at least {self.sources}, one for each partition of the source")
        return self


class IncidentsSpec(LayeredSpec):
    """The incidents on roads that lead to traffic jams (Q2): speeds of segments, joined with what users report.

    Each partition of the source has the events of one region. The load counts locations and reports together.
    """

    name: Literal[WorkloadName.INCIDENTS] = WorkloadName.INCIDENTS
    window_s: WindowLength = 300.0
    slide_s: Slide = 10.0
    parallelism: Annotated[tuple[Width, ...], THREE] = (4, 4, 4)
    users: Annotated[int, Field(ge=1, le=10_000_000, description="incidents: approximate number of users")] = 100_000
    segments: Annotated[int, Field(ge=1, le=1_000_000, description="incidents: how many road segments there are")] = (
        1000
    )
    skew: Annotated[float, Field(ge=0, le=3, description="exponent of the Zipf law of users by segment")] = 0.5
    events_per_incident: Annotated[
        int,
        Field(
            ge=1,
            le=10**9,
            description="incidents: number of events from one incident to the next; by default 2 s of the paper's load",
        ),
    ] = 40_000
    jam_share: Annotated[
        float,
        Field(ge=0, le=1, description="incidents: share of incidents that slow down the traffic on their segment"),
    ] = 0.5
    stream_seed: Annotated[int, Field(ge=0, lt=2**63, description="incidents: seed of the events")] = 1

    @property
    def depth(self) -> int:
        """Stateful operators in a row: speeds (and incidents beside them), jams, and all jams together."""
        return 3

    @property
    def largest_segment(self) -> int:
        """Users on the segment that has most of them."""
        weights: float = sum(float(rank) ** -self.skew for rank in range(1, self.segments + 1))
        return max(1, round(self.users / weights))

    @model_validator(mode="after")
    def _reports_have_room(self) -> IncidentsSpec:
        if self.slide_ms % SECOND_MS:
            raise Misfit("slide_s", self.slide_s, "whole seconds with incidents: speeds are averaged by second")
        if self.segments < self.sources:
            raise Misfit("segments", self.segments, f"at least {self.sources}, one for each partition of the source")
        if self.events_per_incident % self.sources:
            allowed = f"a multiple of {self.sources}, the partitions of the source"
            raise Misfit("events_per_incident", self.events_per_incident, allowed)
        largest = self.largest_segment
        fewest = largest * self.sources
        if self.events_per_incident < fewest:
            reason = f"all {largest} users of the largest segment report to one partition of the source"
            raise Misfit("events_per_incident", self.events_per_incident, f"at least {fewest}: {reason}")
        return self
