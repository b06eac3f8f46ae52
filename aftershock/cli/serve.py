"""`aftershock serve`: Airflow with the DAGs and the pages on this machine."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.cli.declare import PASSED
from experiments.errors import BadInput

PORTS = range(1, 65_536)


def add(commands: Any) -> None:
    """Declare `aftershock serve`."""
    text = "start Airflow with the DAGs and the result pages on this machine"
    declared = commands.add_parser("serve", help=text, description=text)
    declared.add_argument("--port", type=int, default=8080, help="port of the pages; default 8080")
    declared.set_defaults(run=open_airflow)


def open_airflow(arguments: argparse.Namespace) -> int:
    """Serve Airflow until it is interrupted."""
    from aftershock.airflow.serve import serve

    if arguments.port not in PORTS:
        raise BadInput("--port", arguments.port, f"a whole number from {PORTS[0]} to {PORTS[-1]}")
    serve(arguments.port)
    return PASSED
