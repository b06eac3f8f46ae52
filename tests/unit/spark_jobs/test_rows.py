"""The rows of the small tables from hand-made logs, column by column as the schema names them."""

from dataclasses import replace
from typing import Any

import pytest

from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from experiments.fault_kinds import FaultKind
from experiments.spec import Experiment
from journal.events.injector import Absorbed, Armed, Ended, Healed, Injected, Joined, Withheld
from journal.events.search import Found, ProbeJudged
from journal.events.services import HostSample, LoadStarted, MachineSample
from results.tables.schema import RUN_TABLES, LedgerClass
from spark_jobs.tables import rows
from spark_jobs.tables.ledger import NS, LedgerSegment
from spark_jobs.tables.streaming.batches import Batch
from tests.unit.example_events import example, micro_batch

START_NS = 1_000 * NS
WINDOW = (START_NS, START_NS + 20 * NS)


def named(table: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, of which each must have every column of its table and no other."""
    assert [set(row) for row in found] == [set(RUN_TABLES[table].by_name)] * len(found)
    assert RUN_TABLES[table].of(found).num_rows == len(found)
    return found


def batch(number, start_s, end_s, records=1000):
    span = (START_NS + round(start_s * NS), START_NS + round(end_s * NS))
    return Batch(number, *span, NS // 2, records, 0.1, 0.2, 0.3, 50, 6000, {"0": (0, 0)}, 2, 0.05)


def planned(*events):
    made = (FaultEvent(at, "clock", tuple(targets), FaultKind.KILL, 2.0) for at, *targets in events)
    return FaultPlan(*WINDOW, tuple(made))


def injected(fault, host, at_s, processes=4, survivors=0, ports=0):
    fired_ns = START_NS + round(at_s * NS)
    proof = {"done": {"processes killed": processes}, "left": {"survivors": survivors, "open ports": ports}}
    stamps = {"fired_ns": fired_ns, "proved_ns": fired_ns + 5}
    return example(Injected, fired_ns + 9, fault=fault, host=host, **stamps, **proof)


def healed(fault, host, at_s, down=0):
    return example(Healed, START_NS + round(at_s * NS), fault=fault, host=host, left={"hosts down": down})


def joined(fault, host, at_s):
    return example(Joined, START_NS + round(at_s * NS), fault=fault, host=host)


def test_a_fault_with_its_proof():
    log = [Armed(1), injected(0, "worker-1", 3.25), healed(0, "worker-1", 5)]
    log.append(joined(0, "worker-1", 7))
    up = {"worker-1": [START_NS, START_NS + 9 * NS]}
    (found,) = named("faults", rows.faults(planned((3.0, "worker-1")), log, up))
    assert found == {
        "fault": 0, "kind": "kill", "targets": "worker-1", "cause": "clock", "planned_ns": START_NS + 3 * NS,
        "actual_ns": START_NS + round(3.25 * NS), "proved_ns": START_NS + round(3.25 * NS) + 5,
        "healed_ns": START_NS + 5 * NS, "joined_ns": START_NS + 7 * NS, "executors_ns": START_NS + 9 * NS,
        "lateness_s": 0.25, "outcome": "injected",
        "proof": "4 processes killed; 0 survivors, 0 open ports", "violations": 0, "heal_violations": 0,
    }  # fmt: skip


def test_a_fault_on_several_hosts_is_one_row_with_the_worst_of_them():
    log = [injected(0, "worker-1", 3.01), injected(0, "worker-2", 3.4, processes=2, survivors=1, ports=3)]
    log += [healed(0, "worker-2", 5, down=1), healed(0, "worker-1", 7), joined(0, "worker-1", 9)]
    (found,) = named("faults", rows.faults(planned((3.0, "worker-1", "worker-2")), log))
    assert found["targets"] == "worker-1,worker-2"
    assert found["actual_ns"] == START_NS + round(3.01 * NS)
    assert found["proved_ns"] == START_NS + round(3.4 * NS) + 5
    assert found["healed_ns"] == START_NS + 7 * NS
    assert found["lateness_s"] == pytest.approx(0.4)
    assert found["proof"] == "6 processes killed; 1 survivors, 3 open ports"
    assert (found["violations"], found["heal_violations"]) == (4, 1)
    assert found["joined_ns"] is None, "one of them has not"


def test_a_fault_that_a_stronger_one_put_an_end_to_is_over_then():
    log = [injected(0, "worker-1", 3), example(Ended, START_NS + 4 * NS, host="worker-1")]
    (found,) = named("faults", rows.faults(planned((3.0, "worker-1")), log))
    assert (found["healed_ns"], found["heal_violations"]) == (START_NS + 4 * NS, None)


def test_the_lateness_is_the_largest_in_size_with_its_sign():
    log = [injected(0, "worker-1", 2.9), injected(0, "worker-2", 3.05)]
    (found,) = named("faults", rows.faults(planned((3.0, "worker-1", "worker-2")), log))
    assert found["lateness_s"] == pytest.approx(-0.1)


def test_a_fault_on_hosts_that_were_all_down_is_absorbed():
    log = [example(Absorbed, fault=1, host="worker-1"), injected(0, "worker-2", 1)]
    found = named("faults", rows.faults(planned((1.0, "worker-2"), (2.0, "worker-1")), log))
    assert [fault["outcome"] for fault in found] == ["injected", "absorbed"]
    assert {found[1][name] for name in ("actual_ns", "lateness_s", "proof", "violations")} == {None}


def test_a_fault_that_was_withheld_from_any_host_is_shown_so():
    log = [example(Absorbed, host="a"), example(Withheld, host="b")]
    (found,) = named("faults", rows.faults(planned((2.0, "a", "b")), log))
    assert (found["outcome"], found["proof"]) == ("withheld", None)


def test_a_fault_that_found_one_of_its_hosts_up_is_not_absorbed():
    log = [example(Absorbed, host="worker-1"), injected(0, "worker-2", 3)]
    (found,) = named("faults", rows.faults(planned((3.0, "worker-1", "worker-2")), log))
    assert (found["outcome"], found["proof"]) == ("injected", "4 processes killed; 0 survivors, 0 open ports")


def test_a_host_that_was_not_struck_need_not_have_an_executor_again():
    log = [injected(0, "worker-1", 3), example(Withheld, host="worker-2")]
    up = {"worker-1": [START_NS, START_NS + 9 * NS], "worker-2": [START_NS]}
    (found,) = named("faults", rows.faults(planned((3.0, "worker-1", "worker-2")), log, up))
    assert found["executors_ns"] == START_NS + 9 * NS


@pytest.mark.parametrize("kind", [FaultKind.PAUSE, FaultKind.PARTITION, FaultKind.DRIVER_KILL])
def test_a_later_executor_of_a_host_that_was_not_lost_is_not_the_faults(kind):
    event = planned((3.0, "worker-1")).events[0]._replace(kind=kind)
    log = [replace(injected(0, "worker-1", 3), kind=kind)]
    (found,) = named("faults", rows.faults(replace(planned(), events=(event,)), log, {"worker-1": [START_NS + 9 * NS]}))
    assert (found["actual_ns"], found["executors_ns"]) == (START_NS + 3 * NS, None)


def test_a_fault_that_never_came_is_missing():
    (found,) = named("faults", rows.faults(planned((3.0, "worker-1")), [Armed(1)]))
    assert (found["outcome"], found["actual_ns"], found["healed_ns"]) == ("missing", None, None)


def test_strikes_by_what_became_of_them():
    log = [Armed(3), injected(0, "a", 3.0), example(Absorbed, fault=1, host="a"), healed(0, "a", 5)]
    log += [example(Withheld, fault=1, host="b"), example(Ended, fault=0, host="a"), joined(0, "a", 6)]
    assert rows.strikes_ns(log) == {(0, "a"): START_NS + 3 * NS, (1, "a"): None, (1, "b"): None}


def test_the_fit_of_a_plan_and_its_injection():
    experiment = Experiment.model_validate({"window_s": 20, "faults": {"processes": [{"rate": 0.01}]}})
    plan = planned((3.0, "worker-1"), (5.0, "worker-2"))
    events = (event._replace(cause=f"host {event.targets[0]} (process 0)") for event in plan.events)
    plan = replace(plan, events=tuple(events))
    found = named("fault_fit", rows.fault_fit(experiment, plan, [injected(0, "worker-1", 3.0)]))
    assert [(row["test"], row["subject"], row["samples"]) for row in found] == [
        ("count", "process 0", 2), ("lateness", "injected", 1), ("missing", "injected", 2),
        ("composition", "injected", 2),
    ]  # fmt: skip
    assert found[0]["statistic"] == pytest.approx(3 * 0.01 * 20)
    assert [row["statistic"] for row in found[2:]] == [1.0, 0.0]


def test_without_faults_there_is_nothing_to_fit():
    assert rows.fault_fit(Experiment(), planned(), []) == []


def test_checkpoints_say_which_batches_lie_within_the_window():
    made = [batch(0, -3, 1), batch(1, 1, 9), batch(2, 15, 20), batch(3, 20, 29)]
    found = named("checkpoints", rows.checkpoints(made, WINDOW, made[1:]))
    assert [row["in_window"] for row in found] == [False, True, True, False]
    assert [row["undisturbed"] for row in found] == [False, True, True, True]
    assert (found[1]["duration_s"], found[1]["checkpoint_s"], found[1]["processing_s"]) == (8.0, 0.5, 7.5)
    assert (found[1]["wal_s"], found[1]["commit_log_s"], found[1]["state_commit_s"]) == (0.1, 0.2, 0.3)


def test_throughput_by_second_with_the_lag_at_its_end():
    schedule = LoadStarted(START_NS - 10 * NS, 100.0, 1)
    window = (START_NS, START_NS + 4 * NS)
    made = [batch(0, -5, -2, 600), batch(1, -2, 1.5, 300), batch(2, 1.5, 3.0, 200), batch(3, 3, 4.5, 500)]
    found = named("throughput", rows.throughput([each.commit for each in made], schedule, window))
    assert [row["second"] for row in found] == [0, 1, 2, 3]
    assert [row["due_records"] for row in found] == [100.0] * 4
    assert [row["committed_records"] for row in found] == [0, 300, 0, 200]
    assert [row["lag_records"] for row in found] == [500, 300, 400, 300]


def test_throughput_without_a_generator_knows_of_nothing_due():
    found = named("throughput", rows.throughput([batch(0, 0, 1.5).commit], None, (START_NS, START_NS + 2 * NS)))
    assert [row["due_records"] for row in found] == [0, 0]


def sample(host, at_s, cpu_s, rss=7):
    return HostSample(host, cpu_s, rss, at_ns=START_NS + round(at_s * NS))


def test_hosts_use_what_their_clocks_gained_since_the_last_sample():
    log = [sample("a", -0.5, 10.0), sample("b", -0.5, 1.0), sample("a", 0.5, 10.75), sample("b", 0.5, 1.25)]
    found = named("hosts", rows.hosts([*log, sample("a", 1.5, 11.5), sample("a", 20.0, 99.0)], WINDOW))
    assert [(row["second"], row["host"], row["cpu_s"]) for row in found] == [
        (0, "a", 0.75), (0, "b", 0.25), (1, "a", 0.75),
    ]  # fmt: skip


def test_the_use_of_a_host_is_per_second_however_far_its_samples_lie_apart():
    log = [sample("a", 0.5, 10.0), sample("a", 2.5, 11.5), sample("a", 2.75, 11.75)]
    found = named("hosts", rows.hosts(log, WINDOW))
    assert [(row["second"], row["cpu_s"]) for row in found] == [(0, None), (2, 0.75), (2, 1.0)]


def test_what_a_host_used_is_unknown_where_a_process_ended_and_zero_only_where_none_worked():
    log = [sample("a", -0.5, 10.0), sample("a", 0.5, 9.0), sample("a", 1.5, 0.0, rss=0), sample("a", 2.5, 0.0, rss=0)]
    found = named("hosts", rows.hosts([*log, sample("a", 3.5, 0.5)], WINDOW))
    assert [row["cpu_s"] for row in found] == [None, None, 0.0, 0.5]


def clocks(*looks):
    """Looks at both clocks: at which second of the monotonic one, and by how many seconds the other is ahead then."""
    return [
        example(MachineSample, START_NS + round((second + ahead) * NS), monotonic_ns=round(second * NS))
        for second, ahead in looks
    ]


@pytest.mark.parametrize(
    ("looks", "step_s"),
    [
        ([(second, 0.0) for second in range(-3, 23)], 0.0),
        ([(second, 0.0 if second < 5 else 0.25) for second in range(-3, 23)], 0.25),
        ([(second, 0.0 if second < 5 else -0.25) for second in range(-3, 23)], 0.25),
        ([(second, 0.004 * (second > 2) + 0.004 * (second > 6)) for second in range(-3, 23)], 0.008),
        ([(second, 0.0 if second < 0 else 0.25) for second in range(-1, 23)], 0.25),  # as the window opens
        ([(second, 0.0 if second < -1 else 0.25) for second in range(-3, 23)], 0.0),
        ([(second, 0.0 if second < 5 else 3600.0) for second in range(-3, 23)], 3600.0),  # past the window's end
        ([(second, -3600.0 if 5 < second < 8 else 0.0) for second in range(-3, 23)], 3600.0),  # and back again
        ([(second, 0.0 if second < 5 else -3600.0) for second in range(-3, 23)], 3600.0),  # to before the window
        ([(second, 0.0) for second in (-3, -2, -1)], None),
        ([(second, 0.0) for second in range(23)], None),  # it may have moved before the first look
        ([(second, 0.0) for second in range(-3, 14)], None),  # or after the last one
        ([(5, 0.0)], None),
        ([], None),
    ],
)
def test_by_how_much_the_clock_moved_in_the_window(looks, step_s):
    found = rows.clock_step_s(clocks(*looks), WINDOW)
    assert found == (None if step_s is None else pytest.approx(step_s, abs=1e-9))


def test_logs_without_the_second_clock_tell_of_no_step():
    log = [MachineSample(1.0, 2, at_ns=START_NS + second * NS) for second in range(5)]
    assert rows.clock_step_s(log, WINDOW) is None


def run_row(batches, segments, service_rate=100.0, **fields):
    experiment = Experiment.model_validate({"faults": {"processes": [{"rate": 0.01}]}, "seed": 3} | fields)
    row = rows.run("run-1", experiment, planned((1.0, "worker-1")), segments, batches, service_rate, 125.0)
    return named("runs", [row])[0]


def segments(**seconds):
    made, at = [], START_NS
    for kind, length_s in seconds.items():
        made.append(LedgerSegment(at, at + round(length_s * NS), LedgerClass(kind)))
        at = made[-1].end_ns
    return made


def test_a_batch_at_the_edge_of_the_window_counts_by_its_share():
    half_before, inside, quarter_after = batch(0, -4, 4, 800), batch(1, 4, 14, 1000), batch(2, 18, 26, 800)
    found = run_row([half_before, inside, quarter_after], segments(useful=16, checkpoint=4))
    assert found["records_committed"] == 400 + 1000 + 200
    assert found["utilization"] == pytest.approx(16 / 20)
    assert found["utilization_by_records"] == pytest.approx(1600 / 100 / 20)


def test_a_batch_that_spans_the_window_or_misses_it():
    assert run_row([batch(0, -20, 40, 6000)], segments(useful=20))["records_committed"] == 2000
    assert run_row([batch(0, -9, 0), batch(1, 20, 30)], segments(idle=20))["records_committed"] == 0


def test_idle_time_is_utilization_too():
    found = run_row([batch(0, 0, 10, 500)], segments(useful=5, idle=10, lost=5))
    assert found["utilization"] == pytest.approx(15 / 20)
    assert found["utilization_by_records"] == pytest.approx((500 / 100 + 10) / 20)


def test_the_second_estimate_needs_a_saturated_source_and_a_service_rate():
    assert run_row([batch(0, 0, 10)], segments(useful=20), service_rate=None)["utilization_by_records"] is None
    found = run_row([batch(0, 0, 10)], segments(useful=20), load={"mode": "rate"})
    assert found["utilization_by_records"] is None


def test_the_run_names_what_it_ran():
    found = run_row([], segments(idle=20), cluster={"workers": 2}, workload={"depth": 2})
    named_so = {"run_id": "run-1", "engine": "structured-streaming", "recovery": "query", "seed": 3, "workers": 2}
    named_so |= {"depth": 2, "window_s": 20.0, "failure_rate": 0.02, "load_rate": 125.0, "faults": 1}
    assert named_so.items() <= found.items()


PROBED = {"watched_ns": 4, "ended_ns": 9, "due": 500, "delivered": 500, "read": 480.0, "lag_begin": 5, "lag_end": 25}
PROBED |= {"lag": 15, "growth": None, "outcome": "unseen", "why": "fewer than 3 commits"}


def test_every_probe_is_a_row_and_the_run_has_the_bracket():
    search = [ProbeJudged(probe=number, rate=100.0 * number, started_ns=number, **PROBED) for number in (0, 1)]
    found = Found(100.0, 104.0, "closed")
    first, second = named("probes", rows.probes([*search, found]))
    assert (first["probe"], second["rate"], second["lag_median"], second["verdict"]) == (0, 100.0, 15, "unseen")
    assert rows.bracket([*search, found]) == (100.0, 104.0, "closed")
    assert rows.bracket([]) == rows.bracket(search) == (None, None, None)


def test_the_ledger_in_seconds():
    found = named("ledger", rows.ledger([LedgerSegment(START_NS, START_NS + NS // 4, LedgerClass.LOST, None, 2)]))
    assert found == [
        {
            "start_ns": START_NS,
            "end_ns": START_NS + NS // 4,
            "class": "lost",
            "seconds": 0.25,
            "batch": None,
            "fault": 2,
        }
    ]


def with_watermark(text):
    return micro_batch(eventTime={"watermark": text} if text else {})


def test_windows_are_closed_up_to_the_last_watermark():
    found = [with_watermark("1970-01-01T00:00:00.000Z"), with_watermark("2026-11-20T11:23:19.675Z")]
    assert rows.closed_until_ms([*found, with_watermark(None)]) == 1_795_173_799_675


def test_without_a_watermark_no_window_is_closed():
    assert rows.closed_until_ms([with_watermark(None)]) is rows.closed_until_ms([]) is None
    assert rows.closed_until_ms([micro_batch()]) is None  # a stateless query's report says nothing of it
