"""How many bytes the protocol CIC adds to messages of one record: simulated, beside what was measured in runs.

    .venv/bin/python -m benchmarks.testbed.simulated_bytes

simulates each measured cell of CIC at one record per message in the published `checkmate/table-2`. Prints a Markdown
table: what the protocol adds, in percent of the bytes without it, and the simulated share over the measured one. Takes
about a minute.
"""

from __future__ import annotations

import argparse

import pandas as pd

from aftershock.reference import markdown
from benchmarks.one_line_errors import one_line_errors
from experiments.engines import ProtocolName
from experiments.workloads.catalogue import NexmarkQuery
from reproductions.checkmate.by_protocol import CIC
from reproductions.checkmate.simulated import SimulatedCell
from results.runs import published

TABLE = "reproductions/checkmate/table-2/checkmate-table-2.parquet"
HEAD = ("query", "workers", "measured [%]", "simulated [%]", "simulated / measured")


def added(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows of CIC at one record per message; `measured` and `simulated` are bytes added over bytes without."""
    asked = (measured["protocol"] == CIC) & (measured["records_per_message"] == 1) & ~measured["simulated"]
    rows = measured[asked].dropna(subset=["message_overhead"])
    cells = [
        SimulatedCell(NexmarkQuery(row.query), ProtocolName.COMMUNICATION_INDUCED, int(row.workers))
        for row in rows.itertuples()
    ]
    simulated = [cell.saturated().message_overhead - 1 for cell in cells]
    return rows[["query", "workers"]].assign(measured=rows["message_overhead"] - 1, simulated=simulated)


@one_line_errors()
def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    told = (
        (
            row.query,
            str(row.workers),
            f"{100 * row.measured:.1f}",
            f"{100 * row.simulated:.1f}",
            f"{row.simulated / row.measured:.2f}",
        )
        for row in added(pd.read_parquet(published.folder() / TABLE)).itertuples()
    )
    print(markdown.table(HEAD, told))


if __name__ == "__main__":
    main()
