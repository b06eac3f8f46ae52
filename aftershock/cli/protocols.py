"""`aftershock simulate protocols`: the testbed's checkpointing protocols on more workers than this machine holds."""

from __future__ import annotations

import argparse
import os
import sys
from math import nan
from typing import Any

from aftershock.cli.declare import PASSED, command, show
from experiments.wording import percent, significant

QUERIES, MOST_WORKERS = ("q1", "q3", "q8", "q12"), 200  # with 200 workers a point takes some minutes


def add_simulation(commands: Any) -> None:
    """Declare `aftershock simulate protocols`."""
    text = "simulate the testbed's protocols on many workers, with costs that are measured on this machine first"
    declared = command(commands, "protocols", text, simulate_protocols)
    declared.add_argument("--query", choices=QUERIES, default="q1", help="query of NexMark; default q1")
    declared.add_argument(
        "--workers",
        type=int,
        nargs="+",
        default=[10, 50],
        help=f"numbers of workers, each up to {MOST_WORKERS}; default 10 50",
    )
    declared.add_argument("--records-per-message", type=int, default=1024, help="records in a message; default 1024")


def simulate_protocols(arguments: argparse.Namespace) -> int:
    """Measure, simulate, and show a row for each number of workers and protocol."""
    from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
    from models.inputs import require, require_count
    from testbed.scaling.measure import costs
    from testbed.scaling.study import study

    for workers in arguments.workers:
        require("--workers", workers, 1 <= workers <= MOST_WORKERS, f"whole numbers from 1 to {MOST_WORKERS}")
    require_count("--records-per-message", arguments.records_per_message)
    spec = NexmarkSpec(query=NexmarkQuery(arguments.query))

    def tell(point: Any) -> None:
        print(f"simulated: {point.protocol} on {point.workers} workers", file=sys.stderr, flush=True)

    load = f"{os.getloadavg()[0]:.0f}: the quieter the machine, the better the costs"
    print(f"measuring what things cost here, at a load of {load}", file=sys.stderr, flush=True)
    found = study(spec, costs(spec), arguments.workers, arguments.records_per_message, tell)
    rows = found.astype(object).where(found.notna(), None).to_dict("records")
    show(arguments, {"simulated": True, "points": rows}, _text(rows))
    return PASSED


def _text(points: list[dict[str, Any]]) -> str:
    head = f"{'query and protocol':24}{'workers':>8}{'events/s':>15}{'of none':>9}"
    tail = f"{'bytes':>8}{'checkpoint':>12}{'restart':>10}{'checkpoints':>13}{'invalid':>9}"
    return "\n".join([head + tail, *map(_row, points)])


def _row(point: dict[str, Any]) -> str:
    checkpoint_s, restart_s = (
        point[name] if point[name] is not None else nan for name in ("checkpoint_s", "restart_s")
    )
    return (
        f"{point['query']} {point['protocol']:21}{point['workers']:8}"
        f"{significant(point['throughput']):>15}{percent(point['relative']):>9}"
        f"{significant(point['message_overhead']):>7}x{significant(checkpoint_s):>10} s{significant(restart_s):>8} s"
        f"{point['checkpoints']:13}{point['invalid']:9}"
    ).replace("nan s", " -  ")
