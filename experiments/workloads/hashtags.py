"""The spec of the dataflows of `incremental`, section 7, for the testbed: hashtags counted by many queries."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from experiments.documents.parsing import Misfit
from experiments.workloads.base import Slide, Windowed, WindowLength, WorkloadName

WINDOW: tuple[int, ...] = ()  # what a query reads that counts hashtags in a window: the parser, and no other query


class HashtagTopology(StrEnum):
    """Which queries there are: topology 1 of the paper (its figures 8 and 17), or topology 2 (its figure 9)."""

    TWO_WINDOWS = "two-windows"
    FIFTEEN_QUERIES = "fifteen-queries"


# For each query the queries that it reads. The paper's drawing of topology 2 is lost: from its text are the fifteen
# queries and that four of them count in windows, of which the others keep totals. Who reads whom is ours.
READS: dict[HashtagTopology, tuple[tuple[int, ...], ...]] = {
    HashtagTopology.TWO_WINDOWS: (WINDOW, WINDOW),
    HashtagTopology.FIFTEEN_QUERIES: (
        *(WINDOW, WINDOW, WINDOW, WINDOW),
        *((0,), (0, 1), (1, 2), (2, 3), (3,)),
        *((4, 5), (5, 6), (6, 7)),
        *((9,), (10, 11), (8, 11)),
    ),
}
Priority = Annotated[int, Field(ge=1, le=10)]


class HashtagsSpec(Windowed):
    """Tweets, whose hashtags a parser takes out. Each query has an operator and a sink of its own.

    Queries share operators: who needs the output of one query needs all that this query is made of.
    """

    name: Literal[WorkloadName.HASHTAGS] = WorkloadName.HASHTAGS
    topology: Annotated[HashtagTopology, Field(description="hashtags: which set of queries runs")] = (
        HashtagTopology.FIFTEEN_QUERIES
    )
    window_s: WindowLength = 5.0
    slide_s: Slide = 1.0
    hashtags: Annotated[int, Field(ge=2, le=2**31, description="hashtags: number of different hashtags")] = 10_000
    priorities: Annotated[
        tuple[Priority, ...],
        Field(description="hashtags: priority of each query, 1 to 10, in the order of the queries; by default 1 each"),
    ] = ()
    stream_seed: Annotated[int, Field(ge=0, lt=2**63, description="hashtags: seed of the tweets")] = 1

    @property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """For each query the queries that it reads; `WINDOW` for one that counts in a window."""
        return READS[self.topology]

    @property
    def query_priorities(self) -> dict[str, int]:
        """The priority of every query by its name, which is that of its sink."""
        given = self.priorities or (1,) * len(self.reads)
        return {f"q{number}": priority for number, priority in enumerate(given)}

    @property
    def depth(self) -> int:
        """Stateful operators in a row, of the query with most of them."""
        depths: list[int] = []
        for read in self.reads:
            depths.append(1 + max((depths[each] for each in read), default=0))
        return max(depths)

    def window_of(self, query: int) -> int:
        """The length of the window of a query that counts [ms]: of each a slide shorter than of the one before."""
        return self.window_ms - query * self.slide_ms

    @model_validator(mode="after")
    def _one_priority_a_query(self) -> HashtagsSpec:
        if len(self.priorities) not in (0, queries := len(self.reads)):
            raise Misfit("priorities", f"{len(self.priorities)} values", f"one for each of {queries} queries, or none")
        return self

    @model_validator(mode="after")
    def _every_window_has_a_slide(self) -> HashtagsSpec:
        windows = self.reads.count(WINDOW)
        if self.window_of(windows - 1) < self.slide_ms:
            reason = f"each of {windows} windows is a slide shorter than the one before"
            raise Misfit("window_s", self.window_s, f"at least {windows} times slide_s: {reason}")
        return self
