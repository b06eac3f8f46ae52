"""The extent of an output log whose windows are saved only when they open.

`.venv/bin/python -m benchmarks.testbed.output_log`: the oldest of 90,000 windows decides the extent, so it differs from
moment to moment. Printed is the extent at 12 of them, of 100,000 items and windows of 10 records. Section IV of `cec`
is measured by `aftershock reproduce cec/fig-06` and its neighbours.
"""

from __future__ import annotations

import argparse

from benchmarks.one_line_errors import one_line_errors
from reproductions.cec.operator import BATCH, NAME, Dropping, Stream, new_operator
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import OpensOnly

FIRST, EVERY = 3_500_000, 500_000  # records before the first moment, and between two


@one_line_errors()
def main() -> None:
    """Run both seeds, and print how the log grows."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print("seed  records    open windows   extent")
    for seed in (1, 2):
        stream = Stream(100_000, 10, 6_000_000, seed)
        operator, _ = new_operator(stream.size)
        logged = LoggedOperator(operator, OutputLog(Dropping(), NAME), OpensOnly())
        for number, batch in enumerate(stream.batches(), 1):
            logged.process(0, batch)
            logged.commit()
            if number * BATCH >= FIRST and number * BATCH % EVERY == 0:
                extent = logged.extent
                print(f"{seed:4}  {number * BATCH:9,}  {len(extent):12,}  {extent.length:7,}", flush=True)


if __name__ == "__main__":
    main()
