"""The spec of the dataflow of `ppa` figure 6, for the protocol testbed: sliding windows, ever fewer partitions wide."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from experiments.documents.parsing import Misfit
from experiments.workloads.base import Slide, WindowLength, WorkloadName
from experiments.workloads.layered import WIDTHS, LayeredSpec, Width

QUARTERS = 4  # of the sources, which have most of the load in turn


class WindowTreeSpec(LayeredSpec):
    """A source and a chain of operators, each of which keeps a sliding window and passes on a share of its input.

    Each partition reads from neighbours side by side, so the partitions form a tree: of figure 6 a binary one, from 16
    of the source to 1. The load is that of all partitions of the source together: 16,000 records/s are the paper's
    1,000 tuples/s a source.
    """

    name: Literal[WorkloadName.WINDOW_TREE] = WorkloadName.WINDOW_TREE
    window_s: WindowLength = 10.0
    slide_s: Slide = 1.0
    parallelism: Annotated[tuple[Width, ...], Field(min_length=2, max_length=10, description=WIDTHS)] = (16, 8, 4, 2, 1)
    selectivity: Annotated[
        float, Field(ge=0.01, le=1, description="window-tree: share of its input that each operator passes on")
    ] = 0.5
    moves_every: Annotated[
        int | None,
        Field(
            ge=1,
            le=10**12,
            description="window-tree: number of tuples after which the load moves to the next quarter of the sources;"
            " this quarter has most of the tuples that the first operator passes on. By default all sources are alike",
        ),
    ] = None
    stream_seed: Annotated[int, Field(ge=0, lt=2**63, description="window-tree: seed of the events")] = 1

    @property
    def depth(self) -> int:
        """Stateful operators in a row: all but the source."""
        return len(self.parallelism) - 1

    @model_validator(mode="after")
    def _load_can_move(self) -> WindowTreeSpec:
        if self.moves_every is not None and self.selectivity == 1:
            raise Misfit("moves_every", self.moves_every, "left out with selectivity 1, which lets all tuples pass")
        if self.moves_every is not None and self.sources < QUARTERS:
            allowed = f"left out with fewer than {QUARTERS} partitions of the source: a quarter would have none"
            raise Misfit("moves_every", self.moves_every, allowed)
        return self
