"""Kinds of faults with what goes with them: options, peers, services, ends; and every kind there and back again."""

import json

import pytest

from chaos.events import FaultEvent
from chaos.plan import load_fault_spec, plan
from experiments.errors import BadInput
from experiments.fault_kinds import GATEWAY, OPTIONS, PLAIN, Direction, FaultKind, FaultOptions
from experiments.faults import FaultSpec, ListedFault
from experiments.trace import with_trace

HEAD = "duration: 100\nhosts: {a: [rack], b: [rack], c: [row]}\n"
EVERY_KIND = """
processes:
  - {kind: kill, rate: 0.02}
  - {kind: terminate, rate: 0.02, heal_after: {median: 5, sigma: 1}}
  - {kind: power-off, scope: domain, rate: 0.02, spread: 4, heal_after: {low: 1, high: 9}}
  - {kind: pause, scope: cluster, rate: 0.05, heal_after: 3.25}
  - {kind: slow, rate: 0.02, cpu_share: 0.3, heal_after: 4}
  - {kind: slow, rate: 0.02, delay: 0.05, heal_after: 4}
  - {kind: partition, rate: 0.02, heal_after: 4}
  - {kind: partition, scope: domain, rate: 0.02, peers: [c, gateway], direction: in, heal_after: 4}
  - {kind: disk-full, rate: 0.02, heal_after: 4}
  - {kind: broker-kill, rate: 0.05}
  - {kind: driver-kill, rate: 0.05, heal_after: 2}
events:
  - {at: 7, kind: master-kill}
  - {at: 7, kind: partition, targets: [a, b], peers: [a, b, c], direction: out, heal_after: 1, cause: drill}
"""


@pytest.fixture
def written(tmp_path):
    """Read a fault spec of this text."""

    def read(text, name="FAULTS.yaml"):
        path = tmp_path / name
        path.write_text(HEAD + text, encoding="utf-8")
        return load_fault_spec(path)

    return read


@pytest.mark.parametrize("limit", ["", "max_down: 1\n"])
def test_a_plan_of_every_kind_replays_exactly(written, tmp_path, limit):
    law = written(limit + EVERY_KIND)
    drawn = plan(law, seed=4)
    assert {event.kind for event in drawn} == set(FaultKind)
    trace = tmp_path / "plan.json"
    trace.write_text(json.dumps({"events": [event.to_json() for event in drawn]}), encoding="utf-8")
    again = written(f"trace: {trace}\n", "again.yaml")
    assert plan(again, seed=99) == drawn
    assert [FaultEvent.from_json(json.loads(json.dumps(event.to_json()))) for event in drawn] == drawn
    assert FaultSpec.model_validate(again.model_dump(mode="json")) == again


def test_options_are_written_only_where_they_say_something(written):
    options = {frozenset(event.to_json()) & set(FaultOptions._fields) for event in plan(written(EVERY_KIND), seed=4)}
    assert options == {frozenset(), frozenset({"cpu_share"}), frozenset({"delay"}), frozenset({"peers", "direction"})}


def test_a_csv_trace_has_columns_for_the_options(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(
        "at,targets,kind,heal_after,peers,direction,cpu_share,delay\n"
        "1,a,partition,5,b; gateway,in,,\n2,a;b,slow,5,,,0.25,\n3,b,slow,5,,,,0.1\n4,,broker-kill,,,,,\n5,a,,,,,,\n",
        encoding="utf-8",
    )
    law = with_trace(FaultSpec(duration=9, hosts={"a": (), "b": ()}, trace=str(path), time_scale=0.1))
    assert law.events == (
        ListedFault(
            at=1, targets=("a",), kind="partition", heal_after=5, peers=("b", GATEWAY), direction="in", cause="trace"
        ),
        ListedFault(at=2, targets=("a", "b"), kind="slow", heal_after=5, cpu_share=0.25, cause="trace"),
        ListedFault(at=3, targets=("b",), kind="slow", heal_after=5, delay=0.1, cause="trace"),
        ListedFault(at=4, targets=(GATEWAY,), kind="broker-kill", cause="trace"),
        ListedFault(at=5, targets=("a",), cause="trace"),
    )  # fmt: skip
    assert [event.heal_after for event in plan(law, 1)] == [5, 5, 5, 0, 24]


def test_a_service_has_one_clock_and_one_target(written):
    law = written("processes: [{kind: driver-kill, rate: 0.5}]\n")
    events = plan(law, seed=1)
    assert {(event.targets, event.cause) for event in events} == {((GATEWAY,), "service query (process 0)")}
    assert law.failure_rate == 0.5


def test_no_host_is_a_peer_of_its_own():
    told = FaultOptions(("a", "b"), Direction.IN)
    assert told.on("a") == FaultOptions(("b",), Direction.IN)
    assert told.on("c") == told
    assert PLAIN.on("a") is PLAIN


def test_every_option_is_known_to_one_kind():
    assert sorted(name for names in OPTIONS.values() for name in names) == sorted(FaultOptions._fields)


PROCESS, EVENT = "processes: [{rate: 0.01, %s}]\n", "events: [{at: 1, %s}]\n"


@pytest.mark.parametrize(
    ("text", "field", "allowed"),
    [
        (PROCESS % "peers: [b]", "processes.0.peers", "an option of kind partition"),
        (PROCESS % "kind: slow, heal_after: 1, delay: 1, direction: in", "processes.0.direction", "kind partition"),
        (PROCESS % "kind: pause, heal_after: 1, cpu_share: .5", "processes.0.cpu_share", "of kind slow"),
        (EVENT % "targets: [a], delay: 3", "events.0.delay", "of kind slow"),
        (EVENT % "kind: broker-kill, delay: 3", "events.0.delay", "of kind slow"),
        (PROCESS % "kind: slow, heal_after: 1", "processes.0.cpu_share", "below 1, or a delay above 0"),
        (PROCESS % "kind: slow, heal_after: 1, cpu_share: 0", "processes.0.cpu_share", "above 0"),
        (PROCESS % "kind: slow, heal_after: 1, cpu_share: 1.5", "processes.0.cpu_share", "1 or less"),
        (PROCESS % "kind: slow, heal_after: 1, delay: .nan", "processes.0.delay", "finite"),
        (PROCESS % "kind: slow, heal_after: 1, delay: -1", "processes.0.delay", "0 or more"),
        (PROCESS % "kind: partition, heal_after: 1, direction: up", "processes.0.direction", "'both'"),
        *((PROCESS % f"kind: {kind}, cpu_share: .5" if kind == "slow" else PROCESS % f"kind: {kind}",
           "processes.0.heal_after", f"of kind {kind}") for kind in ("pause", "slow", "partition", "disk-full")),
        (EVENT % "targets: [a], kind: pause", "events.0.heal_after", "a delay in seconds"),
        (PROCESS % "heal_after: soon", "processes.0.heal_after", "a number"),
        (PROCESS % "heal_after: .nan", "processes.0.heal_after", "finite"),
        (PROCESS % "heal_after: {median: 3}", "processes.0.heal_after.sigma", "required"),
        (PROCESS % "heal_after: {median: 0, sigma: 1}", "processes.0.heal_after.median", "above 0"),
        (PROCESS % "heal_after: {median: 3, sigma: 9}", "processes.0.heal_after.sigma", "2.5 or less"),
        (PROCESS % "heal_after: {median: 3, sigma: 1, low: 2}", "processes.0.heal_after.low", "no such field"),
        (PROCESS % "heal_after: {}", "processes.0.heal_after.low", "required"),
        (EVENT % "targets: [a], heal_after: {low: 1, high: 2}", "events.0.heal_after", "a number"),
        (PROCESS % "kind: broker-kill, scope: cluster", "processes.0.scope", "one service of the gateway"),
        (PROCESS % "kind: broker-kill, domains: [rack]", "processes.0.domains", "for scope domain"),
        (PROCESS % "kind: broker-kill, spread: 5", "processes.0.spread", "none with scope host"),
        (EVENT % "kind: master-kill, targets: [a]", "events.0.targets", "no target, or gateway"),
        (EVENT % "kind: kill", "events.0.targets", "required"),
        (EVENT % "targets: [gateway]", "events.0.targets", "broker-kill, driver-kill and master-kill"),
        (EVENT % "targets: [a, gateway], kind: power-off", "events.0.targets", "no fault strikes the gateway"),
        (PROCESS % "kind: partition, heal_after: 1, peers: [d]", "processes.0.peers", "gateway, or a host of the spec"),
        (PROCESS % "kind: partition, heal_after: 1, peers: [b, b]", "processes.0.peers", "every host once"),
        (PROCESS % "kind: partition, heal_after: 1, peers: [b]", "processes.0.peers", "another host"),
        (EVENT % "kind: partition, heal_after: 1, targets: [a], peers: [a]", "events.0.peers", "another host"),
        (EVENT % "kind: partition, heal_after: 1, targets: [a], peers: [d]", "events.0.peers", "a host of the spec"),
        ("max_down: 0\n", "max_down", "1 or more"),
        ("max_down: 1.5\n", "max_down", "whole number"),
        ("max_down: true\n", "max_down", "whole number"),
        (PROCESS % "law: lognormal", "processes.0.shape", "a number from 0.01 to 2.5"),
        ("time_scale: 0\n", "time_scale", "above 0"),
        ("time_scale: .nan\n", "time_scale", "finite"),
        (PROCESS.replace("0.01", "-1") % "kind: kill", "processes.0.rate", "above 0"),
        (PROCESS.replace("0.01", ".nan") % "kind: kill", "processes.0.rate", "finite"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_one_line_with_the_remedy(written, text, field, allowed):
    with pytest.raises(BadInput) as mistake:
        plan(written(text), seed=1)
    assert mistake.value.field == field
    assert allowed in mistake.value.allowed
    assert "\n" not in str(mistake.value)


def test_hosts_must_not_name_the_gateway(tmp_path):
    path = tmp_path / "FAULTS.yaml"
    path.write_text("duration: 9\nhosts: {a: [], gateway: []}\nprocesses: [{rate: 1}]\n", encoding="utf-8")
    with pytest.raises(BadInput, match="no fault strikes the gateway") as mistake:
        load_fault_spec(path)
    assert (mistake.value.field, mistake.value.value) == ("hosts", GATEWAY)


@pytest.mark.parametrize(
    ("row", "value", "allowed"),
    [
        ("1,a,partition,,b", "heal_after left out", "a delay in seconds"),
        ("1,a,kill,5,b", "peers ['b']", "an option of kind partition"),
        ("1,a,partition,5,d", "peers 'd'", "a host of the spec"),
        ("1,gateway,kill,5,", "targets 'gateway'", "no fault strikes the gateway"),
    ],
)
def test_a_trace_with_such_a_mistake_names_the_fault(tmp_path, row, value, allowed):
    path = tmp_path / "t.csv"
    path.write_text(f"at,targets,kind,heal_after,peers\n{row}\n", encoding="utf-8")
    with pytest.raises(BadInput) as mistake:
        with_trace(FaultSpec(duration=100, hosts={"a": (), "b": ()}, trace=str(path)))
    assert mistake.value.field == "trace"
    assert f"fault 1: {value}" in mistake.value.value
    assert allowed in mistake.value.allowed
