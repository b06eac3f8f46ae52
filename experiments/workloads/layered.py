"""Shared by the specs of the `ppa` dataflows: each operator has its own number of partitions."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, field_validator

from experiments.documents.parsing import Misfit
from experiments.workloads.base import Windowed

WIDEST = 1000
Width = Annotated[int, Field(ge=1, le=WIDEST)]
WIDTHS = "window-tree, top-100, incidents: number of partitions of the source, then of each operator"


class LayeredSpec(Windowed):
    """A workload for the protocol testbed that says how many partitions its operators have.

    Each has at most as many as the one before it, so that its partitions read from neighbours side by side.
    """

    parallelism: tuple[Width, ...]

    @property
    def sources(self) -> int:
        """Partitions of the source, and so of the input topic."""
        return self.parallelism[0]

    @field_validator("parallelism")
    @classmethod
    def _never_widens(cls, parallelism: tuple[int, ...]) -> tuple[int, ...]:
        for index, (before, here) in enumerate(pairwise(parallelism), 1):
            if here > before:
                raise Misfit(str(index), here, f"at most {before}, as many as the one before it has")
        return parallelism
