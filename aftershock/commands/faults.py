"""`aftershock plan faults`: the faults that a spec and a seed give."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.commands.declare import PASSED, add_seed, command, require_seed, show


def add(commands: Any) -> None:
    declared = command(commands, "faults", "draw the fault plan of a fault spec", plan_faults)
    declared.add_argument("faults", help="a YAML file: duration, hosts, processes")
    add_seed(declared)


def plan_faults(arguments: argparse.Namespace) -> int:
    """Draw a fault plan and print it."""
    from chaos.plan import load_fault_spec, plan

    require_seed(arguments.seed)
    events = [event.to_json() for event in plan(load_fault_spec(arguments.faults), arguments.seed)]
    rows = [f"{'at [s]':>12}  {'kind':6} {'heal after [s]':>14}  targets (cause)"]
    for event in events:
        targets = f"{', '.join(event['targets'])} ({event['cause']})"
        rows.append(f"{event['at']:12.3f}  {event['kind']:6} {event['heal_after']:14.3f}  {targets}")
    show(arguments, {"events": events}, "\n".join(rows) if events else "no fault within the duration")
    return PASSED
