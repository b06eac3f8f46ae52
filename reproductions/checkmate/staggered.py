"""`checkmate`, tables III and IV, if the clocks of workers are not in step.

The paper lets every operator take its checkpoints by the clock of its worker, and does not say how these clocks stand
to each other. In our tables III and IV they are in step; here they are spread evenly over the interval.
"""

from __future__ import annotations

from collections.abc import Iterator

from experiments.engines import BY_OWN_CLOCK
from experiments.workloads.catalogue import NexmarkQuery
from reproductions.checkmate.by_protocol import facts
from reproductions.checkmate.checkpoints import (
    check_counts,
    checkpoint_counts,
    few_invalid_of,
    plot_counts,
    simulated_counts,
    simulated_some_invalid,
    some_invalid,
)
from reproductions.checkmate.experiments import CYCLE, SHUFFLED, staggered
from reproductions.checkmate.simulated import SimulatedCell, simulated
from reproductions.measured_rows import Row, measured
from reproductions.plants import put_in_rows
from results.checks.rules import between


def simulated_staggered_counts(cell: SimulatedCell) -> Iterator[Row]:
    """As `simulated_counts`, with clocks that are out of step."""
    yield from simulated_counts(cell._replace(staggered=True))


NONE_TOLD = "UNC and CIC: none invalid, since no worker sends anything to another"
NONE_INVALID = ("none_invalid", between("invalid", 0, 0), NONE_TOLD, put_in_rows("invalid", 1, query=NexmarkQuery.Q1))

REPRODUCTIONS = (
    measured(
        "checkmate/staggered",
        "tables 3 and 4 if the checkpoint clocks of workers are spread over the interval",
        needs=staggered,
        of_cell=checkpoint_counts,
        plot=plot_counts,
        about=facts,
        checks=(
            check_counts(NexmarkQuery.Q1, *NONE_INVALID),
            *(some_invalid(query) for query in SHUFFLED),
            some_invalid(CYCLE, "1.4 to 1.7 %"),
            *(few_invalid_of(query) for query in (*SHUFFLED, CYCLE)),
        ),
        simulation=simulated(
            BY_OWN_CLOCK, simulated_staggered_counts, tuple(simulated_some_invalid(query) for query in SHUFFLED)
        ),
    ),
)
