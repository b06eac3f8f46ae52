"""The fault plan: literal, deterministic, of the right law, and untouched by what is added beside it."""

import json
import math
import random
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.events import FaultEvent
from chaos.plan import draw, load_fault_spec, plan
from experiments.errors import BadInput
from experiments.fault_kinds import FaultKind
from experiments.faults import FaultSpec
from tests.unit.docs.fences import fenced

HOSTS = {"node-1": ("rack-a",), "node-2": ("rack-a",), "node-3": ("rack-b",)}
LITERAL = [
    ("kill", 1313.093384, ["node-3"], "host node-3 (process 0)", 30.0),
    ("kill", 2462.545528, ["node-2"], "host node-2 (process 0)", 30.0),
    ("kill", 3252.473361, ["node-1"], "domain rack-a (process 1)", 272.877233),
    ("kill", 3254.314398, ["node-2"], "domain rack-a (process 1)", 311.677904),
    ("pause", 3389.858374, ["node-1", "node-2"], "domain rack-a (process 2)", 5.0),
]
NESTED = {"node-1": ("rack-a", "power"), "node-2": ("rack-a", "power"), "node-3": ("rack-b", "power")}
MIXED = [
    ("kill", 275.339205, ["node-1", "node-2"], "domain rack-a (process 1)", 266.752056),
    ("kill", 1800.0, ["node-3", "node-2"], "listed", 60.0),
    ("kill", 1942.789211, ["node-1"], "host node-1 (process 0)", 30.0),
    ("kill", 2619.134886, ["node-3"], "domain rack-b (process 1)", 134.769441),
    ("pause", 3034.318099, ["node-2"], "cluster all (process 2)", 5.0),
    ("pause", 3038.460428, ["node-1"], "cluster all (process 2)", 5.0),
    ("pause", 3042.615732, ["node-3"], "cluster all (process 2)", 5.0),
    ("pause", 3356.553383, ["node-2"], "cluster all (process 2)", 5.0),
    ("pause", 3361.321239, ["node-3"], "cluster all (process 2)", 5.0),
    ("pause", 3361.810895, ["node-1"], "cluster all (process 2)", 5.0),
]


def spec(*processes, duration=3600.0, hosts=HOSTS, events=()) -> FaultSpec:
    document = {"duration": duration, "hosts": hosts, "processes": processes, "events": events}
    return FaultSpec.model_validate(document)


def test_a_plan_as_it_must_be_on_every_machine():
    drawn = plan(
        spec(
            {"kind": "kill", "rate": 0.0002, "heal_after": 30},
            {"kind": "kill", "scope": "domain", "rate": 0.0003, "spread": 20, "heal_after": {"low": 120, "high": 360}},
            {"kind": "pause", "scope": "domain", "rate": 0.0002, "heal_after": 5},
        ),
        seed=28,
    )
    fields = ("kind", "at", "targets", "cause", "heal_after")
    assert [event.to_json() for event in drawn] == [dict(zip(fields, event, strict=True)) for event in LITERAL]


def test_a_plan_of_every_law_and_scope_and_a_listed_fault_on_every_machine():
    drawn = plan(
        spec(
            {"rate": 0.0002, "law": "weibull", "shape": 0.7, "heal_after": 30},
            {
                "rate": 0.0003, "law": "lognormal", "shape": 1.2, "scope": "domain", "domains": ["rack-*"],
                "heal_after": {"low": 120, "high": 360},
            },
            {"kind": "pause", "scope": "cluster", "rate": 0.0002, "spread": 20, "heal_after": 5},
            hosts=NESTED,
            events=[{"at": 1800, "targets": ["node-3", "node-2"], "heal_after": 60}],
        ),
        seed=7,
    )  # fmt: skip
    fields = ("kind", "at", "targets", "cause", "heal_after")
    assert [event.to_json() for event in drawn] == [dict(zip(fields, event, strict=True)) for event in MIXED]
    assert [FaultEvent.from_json(event.to_json()) for event in drawn] == drawn


def test_a_clock_is_the_inverse_transform_of_its_own_stream():
    stream = random.Random("11\nhost node-2 (process 0)\nclock")
    first = -math.log(1 - stream.random()) / 0.01
    second = first - math.log(1 - stream.random()) / 0.01
    drawn = plan(spec({"rate": 0.01, "heal_after": 2}, hosts={"node-2": ()}), seed=11)
    assert [event.at for event in drawn[:2]] == pytest.approx([first, second], abs=1e-6)
    assert drawn[0] == FaultEvent(drawn[0].at, "host node-2 (process 0)", ("node-2",), FaultKind.KILL, 2.0)


def test_the_rate_of_the_cluster_is_the_sum_of_its_clocks():
    law = spec(
        {"rate": 0.02},
        {"kind": "pause", "rate": 0.01, "heal_after": 5},
        {"scope": "domain", "rate": 0.03},
        duration=50_000.0,
    )
    expected = law.failure_rate * law.duration
    assert law.failure_rate == pytest.approx(3 * 0.03 + 2 * 0.03)
    assert abs(len(plan(law, seed=2)) - expected) < 4 * math.sqrt(expected)


def test_gaps_of_one_clock_are_exponential():
    times = [event.at for event in plan(spec({"rate": 0.1}, duration=100_000.0, hosts={"h": ()}), seed=4)]
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    empirical = [(rank + 0.5) / len(gaps) for rank in range(len(gaps))]
    distance = max(abs(share - -math.expm1(-0.1 * gap)) for share, gap in zip(empirical, gaps, strict=True))
    assert len(gaps) > 9000
    assert distance < 1.95 / math.sqrt(len(gaps))  # Kolmogorov-Smirnov at 0.1 %


def test_clocks_of_different_hosts_and_seeds_are_independent():
    counts = [Counter(event.targets for event in plan(spec({"rate": 0.001}), seed)) for seed in range(2000)]
    one, two = ([count[(host,)] - 3.6 for count in counts] for host in ("node-1", "node-2"))
    assert abs(sum(a * b for a, b in zip(one, two, strict=True)) / 2000 / 3.6) < 4 / math.sqrt(2000)
    assert abs(sum(a * b for a, b in pairwise(one)) / 1999 / 3.6) < 4 / math.sqrt(1999)


@given(st.integers(0, 2**63), st.floats(0, 60))
def test_what_is_added_leaves_the_other_events_as_they_were(seed, spread):
    shocks = {"scope": "domain", "rate": 0.001, "spread": spread, "heal_after": {"low": 1, "high": 9}}
    processes = ({"rate": 0.002}, shocks)
    before = plan(spec(*processes), seed)
    grown_hosts = {"node-0": ("rack-c",), **HOSTS, "node-4": ("rack-c",)}
    after = plan(spec(*processes, {"kind": "pause", "rate": 0.002, "heal_after": 5}, hosts=grown_hosts), seed)
    added = {"node-0", "node-4"}
    assert [e for e in after if not added.intersection(e.targets) and e.kind is FaultKind.KILL] == before


def test_a_host_more_in_a_spread_domain_leaves_its_other_hosts_as_they_were():
    shocks = {"scope": "domain", "rate": 0.01, "spread": 30, "heal_after": {"low": 1, "high": 9}}
    before = plan(spec(shocks), seed=6)
    after = plan(spec(shocks, hosts={"node-0": ("rack-a",), **HOSTS}), seed=6)
    assert [event for event in after if event.targets != ("node-0",)] == before


def test_a_longer_duration_only_adds_events():
    processes = ({"rate": 0.01}, {"scope": "domain", "rate": 0.01, "spread": 30})
    short, long = (plan(spec(*processes, duration=duration), seed=9) for duration in (500.0, 5000.0))
    assert [event for event in long if event.at < 500.0] == short


def test_a_domain_without_spread_dies_in_one_event():
    drawn = plan(spec({"scope": "domain", "rate": 0.01, "heal_after": 7}), seed=1)
    targets = {event.cause: event.targets for event in drawn}
    assert targets == {
        "domain rack-a (process 0)": ("node-1", "node-2"),
        "domain rack-b (process 0)": ("node-3",),
    }


def test_a_domain_with_spread_dies_host_by_host_within_it():
    spread_s = 20.0
    shocks = {"scope": "domain", "rate": 1e-4, "spread": spread_s}
    drawn = plan(spec(shocks, duration=3e6, hosts={"a": ("r",), "b": ("r",)}), seed=3)
    a, b = ([event.at for event in drawn if event.targets == (host,)] for host in "ab")
    assert len(a) == len(b) > 200
    assert {event.cause for event in drawn} == {"domain r (process 0)"}
    gaps = [abs(one - other) for one, other in zip(a, b, strict=True)]
    assert max(gaps) < spread_s
    # two uniform offsets lie spread / 3 apart on average, with a standard deviation of spread / sqrt(18)
    assert abs(sum(gaps) / len(gaps) - spread_s / 3) < 4 * spread_s / math.sqrt(18 * len(gaps))


def test_domains_nest_overlap_and_are_picked_by_pattern():
    hosts = {"a": ("rack-1", "power"), "b": ("rack-1", "switch"), "c": ("rack-2", "power", "switch")}
    every = plan(spec({"scope": "domain", "rate": 0.01}, hosts=hosts), seed=1)
    assert {(event.cause.split()[1], event.targets) for event in every} == {
        ("rack-1", ("a", "b")), ("rack-2", ("c",)), ("power", ("a", "c")), ("switch", ("b", "c")),
    }  # fmt: skip
    picked = plan(spec({"scope": "domain", "domains": ["rack-?", "power"], "rate": 0.01}, hosts=hosts), seed=1)
    assert picked == [event for event in every if "switch" not in event.cause]
    bracketed = plan(spec({"scope": "domain", "domains": ["row[1]"], "rate": 0.01}, hosts={"a": ("row[1]", "row1")}), 1)
    assert {event.cause.split()[1] for event in bracketed} == {"row[1]", "row1"}


def test_the_whole_cluster_has_one_clock():
    drawn = plan(spec({"scope": "cluster", "rate": 0.01}), seed=1)
    assert {(event.cause, event.targets) for event in drawn} == {("cluster all (process 0)", tuple(HOSTS))}
    assert abs(len(drawn) - 36) < 4 * 6


@pytest.mark.parametrize("law", [{}, {"law": "weibull", "shape": 0.6}, {"law": "lognormal", "shape": 1.2}])
@pytest.mark.parametrize("part", [(0, 5), (5, 20)], ids=["as the window opens", "later"])
def test_the_rate_holds_from_the_first_moment_on(law, part):
    start, end = part
    hosts = {f"h{i}": () for i in range(4000)}
    drawn = plan(spec({"rate": 0.05, **law}, duration=20.0, hosts=hosts), seed=3)
    counts = Counter(event.targets for event in drawn if start <= event.at < end)
    found = [counts[(host,)] for host in hosts]
    mean = sum(found) / len(found)
    deviation = math.sqrt(sum((count - mean) ** 2 for count in found) / len(found))
    assert abs(mean - 0.05 * (end - start)) < 4 * deviation / math.sqrt(len(found))


def test_a_plan_is_drawn_as_it_is_asked_for():
    law = spec({"rate": 1e-3}, {"scope": "domain", "rate": 1e-3, "spread": 900}, duration=3e7)
    stream = draw(law, seed=5)
    first = list(islice(stream, 100))
    assert first == plan(law.model_copy(update={"duration": first[-1].at + 1e-6}), seed=5)
    assert next(stream).at >= first[-1].at


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**63), st.floats(0, 5000))
def test_a_streamed_plan_is_in_order_whatever_the_spread(seed, spread):
    law = spec(
        {"rate": 0.002}, {"scope": "domain", "rate": 0.003, "spread": spread}, {"scope": "cluster", "rate": 0.001}
    )
    drawn = list(draw(law, seed))
    assert drawn == sorted(drawn)


def test_listed_faults_are_in_the_plan_in_the_order_of_their_times():
    events = [{"at": 30, "targets": ["node-1"]}, {"at": 4.25, "targets": ["node-2", "node-3"], "kind": "pause",
              "cause": "drill", "heal_after": 7}]  # fmt: skip
    assert plan(spec(events=events), seed=1) == [
        FaultEvent(4.25, "drill", ("node-2", "node-3"), FaultKind.PAUSE, 7.0),
        FaultEvent(30.0, "listed", ("node-1",), FaultKind.KILL, 240.0),
    ]
    both = plan(spec({"rate": 0.001}, events=events), seed=1)
    assert [event for event in both if event.cause not in ("drill", "listed")] == plan(spec({"rate": 0.001}), seed=1)


def test_a_plan_replays_as_a_trace(tmp_path):
    law = spec({"rate": 0.002, "heal_after": 5}, {"scope": "cluster", "rate": 0.0005})
    drawn = plan(law, seed=8)
    trace, path = tmp_path / "plan.json", tmp_path / "FAULTS.yaml"
    trace.write_text(json.dumps({"events": [event.to_json() for event in drawn]}), encoding="utf-8")
    path.write_text(
        f"duration: 1000\nhosts: {{node-1: [], node-2: [], node-3: []}}\ntrace: {trace}\n", encoding="utf-8"
    )
    assert plan(load_fault_spec(path), seed=99) == [event for event in drawn if event.at < 1000] != drawn


def test_heal_delays_are_uniform_between_their_bounds():
    delays = [event.heal_after for event in plan(spec({"rate": 0.5, "heal_after": {"low": 120, "high": 360}}), seed=1)]
    assert 120 <= min(delays) < 125
    assert 355 < max(delays) <= 360
    assert abs(sum(delays) / len(delays) - 240) < 4 * 240 / math.sqrt(12 * len(delays))


def test_events_are_ordered_and_within_the_duration():
    drawn = plan(spec({"rate": 0.1}, {"scope": "domain", "rate": 0.1, "spread": 500}), seed=1)
    assert [event.at for event in drawn] == sorted(event.at for event in drawn)
    assert all(0 <= event.at < 3600 for event in drawn)


def test_no_process_no_fault():
    assert plan(spec(), seed=1) == []


@pytest.mark.parametrize(
    ("field", "law"),
    [
        ("duration", FaultSpec(hosts={"a": ()}, processes=({"rate": 1},))),
        ("hosts", FaultSpec(duration=10, processes=({"rate": 1},))),
        ("processes.1.scope", spec({"rate": 1e-3}, {"scope": "domain", "rate": 1e-3}, hosts={"a": ()})),
        ("processes", spec({"rate": 1e6})),
        ("processes.0.domains", spec({"scope": "domain", "domains": ["rack-a", "row-*"], "rate": 1e-3})),
        ("events.0.at", spec(events=[{"at": 3600, "targets": ["node-1"]}])),
        ("events.1.targets", spec(events=[{"at": 1, "targets": ["node-1"]}, {"at": 1, "targets": ["node-9"]}])),
        ("events.0.targets", spec(events=[{"at": 1, "targets": ["node-1", "node-1"]}])),
    ],
    ids=["no duration", "no hosts", "no domain", "too many", "domain", "too late", "unknown target", "twice"],
)
def test_a_spec_that_gives_no_plan_is_refused(field, law):
    with pytest.raises(BadInput) as caught:
        plan(law, seed=1)
    assert caught.value.field == field


def test_a_fault_spec_is_read_as_the_design_writes_it(tmp_path):
    path = tmp_path / "FAULTS.yaml"
    path.write_text(
        "duration: 3600\n"
        "hosts: {node-1: [rack-a], node-2: [rack-a], node-3: [rack-b]}\n"
        "processes:\n"
        "  - {kind: kill, scope: host, rate: 0.001, heal_after: 30}\n"
        "  - {kind: kill, scope: domain, rate: 0.0002, spread: 20, heal_after: {low: 120, high: 360}}\n"
        "  - {kind: pause, scope: host, rate: 0.0005, heal_after: 5}\n"
    )
    law = load_fault_spec(path)
    assert law.hosts == HOSTS
    assert law.failure_rate == pytest.approx(3 * 0.001 + 3 * 0.0002 + 3 * 0.0005)


def test_the_documented_spec_is_the_example_and_gives_a_plan():
    docs = Path(__file__).parents[3] / "docs"
    (shown,) = fenced((docs / "guides" / "faults.md").read_text(encoding="utf-8"), "yaml")
    path = docs / "examples" / "rack-faults.yaml"
    assert shown == path.read_text(encoding="utf-8").splitlines()
    assert {event.cause.split()[0] for event in plan(load_fault_spec(path), seed=2)} == {
        "host", "domain", "cluster", "listed",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("faults", "- a list"),
        ("faults", ": : :"),
        ("durations", "durations: 5"),
        ("duration", "duration: -1"),
        ("duration", "duration: .inf"),
        ("hosts.a", "hosts: {a: }"),
        ("processes.0.kind", "processes: [{kind: boom, rate: 1}]"),
        ("processes.0.rate", "processes: [{rate: -0.5}]"),
        ("processes.0.rate", "processes: [{kind: kill}]"),
        ("processes.0.heal_after", "processes: [{rate: 1, heal_after: -3}]"),
        ("processes.0.heal_after.high", "processes: [{rate: 1, heal_after: {low: 3, high: 1}}]"),
        ("processes.0.heal_after.high", "processes: [{rate: 1, heal_after: {low: 3}}]"),
        ("processes.0.spread", "processes: [{rate: 1, spread: 3}]"),
        ("processes.0.domains", "processes: [{rate: 1, domains: [a]}]"),
        ("processes.0.shape", "processes: [{rate: 1, shape: 2}]"),
        ("processes.0.shape", "processes: [{rate: 1, law: weibull}]"),
        ("processes.0.shape", "processes: [{rate: 1, law: weibull, shape: 0.1}]"),
        ("processes.0.shape", "processes: [{rate: 1, law: lognormal, shape: 3}]"),
        ("processes.0.law", "processes: [{rate: 1, law: normal}]"),
        ("processes.0.scope", "processes: [{rate: 1, scope: planet}]"),
        ("events.0.at", "events: [{at: -1, targets: [a]}]"),
        ("events.0.targets", "events: [{at: 1, targets: []}]"),
        ("events.0.targets", "events: [{at: 1}]"),
        ("events.0.kind", "events: [{at: 1, targets: [a], kind: boom}]"),
        ("trace", "trace: nowhere.csv"),
    ],
)
def test_a_bad_fault_spec_is_one_line_that_names_the_field(tmp_path, field, text):
    path = tmp_path / "FAULTS.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        load_fault_spec(path)
    assert caught.value.field == field
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_fault_spec_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"faults: .*nowhere\.yaml.*No such file"):
        load_fault_spec(tmp_path / "nowhere.yaml")
