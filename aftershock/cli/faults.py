"""`aftershock plan faults`: the faults that a spec and a seed give, and what the spec implies."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from aftershock.cli.declare import PASSED, add_seed, command, require_seed, show
from experiments.errors import in_file
from experiments.fault_kinds import FaultOptions
from experiments.wording import significant

if TYPE_CHECKING:
    from chaos.implications import PlanToll, Toll


def add(commands: Any) -> None:
    """Declare `aftershock plan faults`."""
    declared = command(commands, "faults", "draw the fault plan of a fault spec", plan_faults)
    fields = "duration, hosts, processes, events, bursts, trace, max_down, time_scale"
    declared.add_argument("faults", help=f"a YAML file: {fields}")
    add_seed(declared)


def plan_faults(arguments: argparse.Namespace) -> int:
    """Draw a fault plan and print it."""
    from chaos.implications import drawn, implied
    from chaos.plan import load_fault_spec, plan

    require_seed(arguments.seed)
    spec = load_fault_spec(arguments.faults)
    with in_file(arguments.faults):
        events = plan(spec, arguments.seed)
    law, held, told = implied(spec), drawn(spec, events), [event.to_json() for event in events]
    document = {"events": told, "implied": law.to_json(), "drawn": held.to_json()}
    text = "" if arguments.json else "\n".join([*_rows(told), "", *_tolls(law, held)])
    show(arguments, document, text)
    return PASSED


def _rows(events: list[dict[str, Any]]) -> list[str]:
    if not events:
        return ["no fault within the duration"]
    rows = [f"{'at [s]':>12}  {'kind':11} {'heal after [s]':>14}  targets (cause)"]
    for event in events:
        targets = f"{', '.join(event['targets'])} ({event['cause']}){_options(event)}"
        rows.append(f"{event['at']:12.3f}  {event['kind']:11} {event['heal_after']:14.3f}  {targets}")
    return rows


def _options(event: dict[str, Any]) -> str:
    told = {name: event[name] for name in FaultOptions._fields if name in event}
    return "".join(f"; {name} {_text(value)}" for name, value in told.items())


def _text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple | list) else str(value)


def _tolls(law: Toll, held: PlanToll) -> list[str]:
    """What the spec implies beside what this plan holds."""
    lines = [
        ("faults per second", law.failure_rate, held.failure_rate),
        ("host failures per second", law.host_failure_rate, held.host_failure_rate),
        ("correlated share of host failures", law.correlated_share, held.correlated_share),
        ("hosts down on average", law.hosts_down, held.hosts_down),
    ]
    rows = [f"{'':34}  {'implied':>10}  {'this plan':>10}"]
    rows += [f"{name:34}  {_number(by_law):>10}  {_number(in_plan):>10}" for name, by_law, in_plan in lines]
    counts = [
        ("hosts down at most", held.most_hosts_down),
        ("strikes absorbed", held.absorbed),
        ("strikes withheld", held.withheld),
    ]
    return rows + [f"{name:34}  {'':>10}  {count:>10}" for name, count in counts]


def _number(value: float | None) -> str:
    return "-" if value is None else significant(value)
