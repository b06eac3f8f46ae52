"""`aftershock plan faults`: the faults of a fault spec, or of an experiment's run, and what the spec implies."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from aftershock.cli.declare import PASSED, add_overrides, command, require_seed, show
from experiments.errors import LEFT_OUT, BadInput, in_file
from experiments.fault_kinds import FaultOptions
from experiments.wording import significant

if TYPE_CHECKING:
    from chaos.events import FaultEvent
    from chaos.implications import PlanToll, Toll
    from experiments.faults import FaultSpec
    from experiments.spec import Experiment


def add(commands: Any) -> None:
    """Declare `aftershock plan faults`."""
    declared = command(commands, "faults", "draw the fault plan of a fault spec, or of an experiment", plan_faults)
    fields = "duration, hosts, processes, events, bursts, trace, max_down, time_scale"
    text = f"a YAML file: {fields}; or an experiment, as `aftershock benchmark` takes it"
    declared.add_argument("faults", help=text)
    text = "a whole number; the same seed gives the same plan; default: the seed of the experiment"
    declared.add_argument("--seed", type=int, help=f"{text}; a fault spec has none, so it is required there")
    add_overrides(declared)


def plan_faults(arguments: argparse.Namespace) -> int:
    """Draw a fault plan and print it; that of an experiment is the one that its run will have."""
    from chaos.implications import drawn, implied
    from experiments.faults import FaultSpec

    if arguments.seed is not None:
        require_seed(arguments.seed)
    found, about = _loaded(arguments.faults, arguments.overrides), dict[str, Any]()
    if isinstance(found, FaultSpec):
        spec, events = found, _of_spec(found, arguments.seed, arguments.faults)
    else:
        seed = found.seed if arguments.seed is None else arguments.seed
        spec, events = found.fault_spec, _of_experiment(found, seed)
        about = {"experiment": found.name, "seed": seed}
    law, held, told = implied(spec), drawn(spec, events), [event.to_json() for event in events]
    document = {"events": told, "implied": law.to_json(), "drawn": held.to_json()} | about
    heading = [f"experiment {about['experiment']}, seed {about['seed']}", ""] if about else []
    text = "" if arguments.json else "\n".join([*heading, *_rows(told), "", *_tolls(law, held)])
    show(arguments, document, text)
    return PASSED


def _of_spec(spec: FaultSpec, seed: int | None, file: str) -> list[FaultEvent]:
    from chaos.plan import plan

    if seed is None:
        raise BadInput("--seed", LEFT_OUT, "a whole number: a fault spec has no seed of its own")
    with in_file(file):
        return plan(spec, seed)


def _of_experiment(experiment: Experiment, seed: int) -> list[FaultEvent]:
    from chaos.plan import faults_of

    return list(faults_of(experiment.model_copy(update={"seed": seed})))


def _loaded(source: str, overrides: list[str]) -> Experiment | FaultSpec:
    """The experiment or the fault spec of that name, by its fields; a pipe can be read only once."""
    from chaos.plan import fault_spec_in
    from experiments import spec
    from experiments.documents.kinds import DocumentKind
    from experiments.documents.parsing import read_mapping, user_path

    examples = spec.available()
    if source in examples:
        return spec.load(source, overrides)
    document = read_mapping(user_path(source), "faults", source, f", or one of {', '.join(examples)}")
    if DocumentKind.EXPERIMENT.fits(document) > DocumentKind.FAULTS.fits(document):
        return spec.in_document(document, source, overrides)
    if overrides:
        raise BadInput("--set", overrides[0], "left out with a fault spec: it sets a field of an experiment")
    return fault_spec_in(document, source)


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
        ("heals after the end", held.late_heals),
    ]
    return rows + [f"{name:34}  {'':>10}  {count:>10}" for name, count in counts]


def _number(value: float | None) -> str:
    return "-" if value is None else significant(value)
