"""The interface of workload specs, and defaults that most workloads share.

Every spec has

    name, title    for the registry, and for people
    input_topics, output_topic
    depth          stateful operators in a chain; None: unknown
    has_oracle     whether there is an exact output to compare with
    by_record      each result belongs to one input record (or to a few that meet in a join), not to a window of time
    has_spread_keys  whether the records of one key come from every partition of the source
    settling_ms    by how much the watermark must have passed the end of a window before its results are final
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, model_validator

from experiments.documents.parsing import Misfit, Spec

LONGEST_S = 7 * 86_400
INPUT, OUTPUT = "input", "output"  # the topics of every workload but an own job


def _whole_ms(value_s: float) -> float:
    if round(value_s * 1000) / 1000 != value_s:
        raise ValueError("a whole number of milliseconds, at least 0.001 s")
    return value_s


Milliseconds = Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False), AfterValidator(_whole_ms)]
WindowLength = Annotated[Milliseconds, Field(description="length of the query's windows; whole ms")]
Slide = Annotated[Milliseconds, Field(description="time from the start of a window to the next; whole ms")]


class WorkloadName(StrEnum):
    """The names by which specs select a workload."""

    WORDCOUNT = "wordcount"
    NEXMARK = "nexmark"
    REACHABILITY = "reachability"
    WINDOW_TREE = "window-tree"
    TOP_100 = "top-100"
    INCIDENTS = "incidents"
    HASHTAGS = "hashtags"
    CEC_PRICES = "cec-prices"
    OWN_JOB = "own-job"


class Workload(Spec):
    """What runs ask of any workload, with what most of them answer."""

    # Each workload has its name as a field. pydantic would write a field of this class before all others.
    if TYPE_CHECKING:

        @property
        def name(self) -> WorkloadName: ...

    @property
    def title(self) -> str:
        """For people, such as `nexmark q8`."""
        return self.name.value

    @property
    def input_topics(self) -> tuple[str, ...]:
        """The topics that the generator feeds."""
        return (INPUT,)

    @property
    def has_oracle(self) -> bool:
        """Whether there is an exact output to compare with."""
        return True

    @property
    def by_record(self) -> bool:
        """Whether each result belongs to one input record, or to the few that a join pairs, and to no window."""
        return False

    @property
    def has_spread_keys(self) -> bool:
        """Whether the records of one key come from every partition of the source."""
        return False

    @property
    def settling_ms(self) -> int:
        """How far the watermark must be past the end of a window before its results are final [ms]."""
        return 0


class Windowed(Workload):
    """Windows of event time: `window_s` long, one beginning every `slide_s`."""

    window_s: WindowLength
    slide_s: Slide

    @property
    def output_topic(self) -> str:
        """The topic to which the query writes its results."""
        return OUTPUT

    @property
    def window_ms(self) -> int:
        """Length of a window [ms]."""
        return round(self.window_s * 1000)

    @property
    def slide_ms(self) -> int:
        """Time from the start of a window to that of the next [ms]; `window_ms` is a multiple of it."""
        return round(self.slide_s * 1000)

    @model_validator(mode="after")
    def _slide_divides_window(self) -> Windowed:
        if self.window_ms % self.slide_ms:
            raise Misfit("window_s", self.window_s, f"a multiple of slide_s, {self.slide_s:g}")
        return self
