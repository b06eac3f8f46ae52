"""Measured figures of `incremental`, on made-up runs: sound ones pass, and each check fails on its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from chaos.bursts import burst_events
from experiments.spec import Experiment, LoadMode
from reproductions.catalogue import CATALOGUE
from reproductions.incremental.availability import queries
from reproductions.incremental.experiments import (
    BURST_AT_S,
    INTERVALS_S,
    KILL_AT_S,
    KILL_EVERY_S,
    Order,
    Place,
    Waits,
    hosts_lost,
    order_of,
    place_of,
    waits_for,
)
from reproductions.incremental.relative_latency import slides
from reproductions.judging import judge
from reproductions.measured import Cell
from reproductions.reproduce import missing_runs, reproduce
from reproductions.reproduction import Computed, ReproductionCheck
from spark_jobs.tables.dataflow.tentative import layout_of
from testbed.recovery.query_partitions import queries_of
from tests.unit.reproductions.runs import Tables, computed_on, computed_once, facts, ns, put_run

pytestmark = pytest.mark.usefixtures("home")

IDS = tuple(f"incremental/fig-{n:02}" for n in (7, 10, 11, 12, 13, 14, 15, 18, 19, 20))
CHECKS = [pytest.param(id, check, id=f"{id} {check.name}") for id in IDS for check in CATALOGUE[id].checks]
IN_PAIRS = {f"incremental/fig-{n}": 3 for n in (10, 15, 18, 19, 20)}  # of runs, which take more than one replicate
SINKS = 6  # of which all but the last are lost, and all where the hosts are upstream
RATE, END_S, USUAL_S = 4000.0, 180, 0.6
RECOVERY = [{"fault": 0, "death_ns": ns(BURST_AT_S)}]


def returns_s(experiment: Experiment) -> list[float]:
    """When the hosts are back, since the first loss."""
    events = burst_events(experiment.fault_spec, experiment.seed)
    first_s = min(event.at for event in events)
    return sorted(event.at + event.heal_after - first_s for event in events)


def back_s(experiment: Experiment) -> list[float]:
    """When each lost query is back, since the first loss."""
    arrivals_s = returns_s(experiment)
    lost = SINKS if place_of(experiment) is Place.UPSTREAM else SINKS - 1
    steps = [arrivals_s[min(i, len(arrivals_s) - 1)] for i in range(lost)]
    return {
        Waits.NOTHING: [3.0] * lost,
        Waits.ROOM: steps,
        Waits.ALL: [1.5 * arrivals_s[-1]] * lost,
    }[waits_for(experiment)]


def burst(experiment: Experiment) -> Tables:
    """Queries lost at once, and late by what their recovery took: all caught up with at second 165."""
    backs_s = back_s(experiment)
    lost = [
        {"query": f"q{i}.0", "priority": 1.0, "death_ns": ns(BURST_AT_S), "planned_ns": ns(BURST_AT_S + back - 2)}
        | {"normal_ns": ns(BURST_AT_S + back)}
        for i, back in enumerate(backs_s)
    ]
    latencies = [
        slide(f"q{i}", BURST_AT_S + due_s, USUAL_S + max(0.0, back - due_s) * hosts_lost(experiment))
        for i, back in enumerate([*backs_s, 0.0][:SINKS])
        for due_s in range(END_S)
    ]
    events = burst_events(experiment.fault_spec, experiment.seed)
    faults = [
        {"fault": i, "kind": "kill", "targets": event.targets[0], "outcome": "injected", "actual_ns": ns(event.at)}
        | {"healed_ns": ns(event.at + event.heal_after), "executors_ns": ns(event.at + event.heal_after + 5)}
        for i, event in enumerate(events)
    ]
    return {"query_recoveries": lost, "query_latencies": latencies, "faults": faults, "recoveries": RECOVERY}


def slide(query: str, due_s: float, latency_s: float) -> dict[str, object]:
    facts = {"query": query, "latency_s": latency_s, "relative_latency": latency_s / USUAL_S}
    return facts | {"due_ns": ns(due_s), "arrived_ns": ns(due_s + latency_s)}


def killed(experiment: Experiment) -> list[dict[str, object]]:
    about = {"kind": "kill", "targets": "worker-1", "outcome": "injected"}
    return [{"fault": i} | about for i in range(hosts_lost(experiment))]


def replayed(experiment: Experiment) -> Tables:
    """What was due at the first kill waits for the replay after the last one, 7 s or a little more."""
    kills = hosts_lost(experiment)
    done_s = KILL_AT_S + KILL_EVERY_S * (kills - 1) + 7.0 + 0.01 * experiment.seed
    latencies = [
        slide("q0", due_s, USUAL_S + max(0.0, done_s - due_s) * (due_s >= KILL_AT_S)) for due_s in range(END_S)
    ]
    replays = [replay(kill, done_s if kill else None) for kill in range(kills)]
    found: Tables = {"query_latencies": latencies, "partition_recoveries": replays}
    return found | {"faults": killed(experiment), "recoveries": RECOVERY}


def replay(kill: int, reached_s: float | None) -> dict[str, object]:
    """A partition that reads its input again until it arrives, if it is seen to."""
    struck_s = KILL_AT_S + KILL_EVERY_S * kill
    moments = {"death_ns": ns(struck_s), "notice_ns": ns(struck_s + 0.05), "ready_ns": ns(struck_s + 0.1)}
    about = {"fault": kill, "epoch": kill + 2, "partition": "parse.0", "how": "restored"} | moments
    return about if reached_s is None else about | {"reached_ns": ns(reached_s)}


def small(experiment: Experiment) -> Tables:
    """Lag that grows by a third of the load from the loss on, or stays; one host alone sustains less than the load."""
    grows = RATE / 3 * hosts_lost(experiment)
    rows = [
        {"second": second, "lag_records": 500 + 2 * second + grows * max(0, second - 20)}
        for second in range(round(experiment.window_s))
    ]
    sustained = 1.25 * RATE if experiment.cluster.workers > 1 else 0.7 * RATE
    rates = {"sustainable_rate": sustained, "unsustainable_rate": 1.04 * sustained, "load_rate": 0.8 * sustained}
    about = facts(experiment, **rates)
    return {"runs": about, "throughput": rows, "faults": killed(experiment), "recoveries": RECOVERY}


def undisturbed(experiment: Experiment) -> Tables:
    """Batches are 1 % slower, and later; each checkpoint takes a hundredth of a second."""
    in_batches = order_of(experiment) is Order.BATCHES
    share = (0.99 if in_batches else 1.0) * (1 - 0.01 / experiment.engine.checkpoint_interval_s)
    tables: Tables = {"runs": facts(experiment, records_committed=round(10_000 * share * experiment.window_s))}
    if experiment.load.mode is LoadMode.RATE:
        latency_s = (0.7 if in_batches else 0.5) / share
        tables["query_latencies"] = [slide("q0", due_s, latency_s + 0.001 * due_s) for due_s in range(60)]
    return tables


def paper(experiment: Experiment) -> Tables:
    if experiment.faults.bursts:
        return burst(experiment)
    if experiment.name.startswith("incremental-replay"):
        return replayed(experiment)
    return small(experiment) if experiment.name.startswith("incremental-small") else undisturbed(experiment)


found_in = computed_once(paper)


@pytest.mark.extended
@pytest.mark.parametrize("id", IDS)
def test_the_papers_shape_passes(id, tmp_path):
    size = IN_PAIRS.get(id, 1)
    computed_on(id, paper, size)
    found = reproduce(id, tmp_path, size)
    assert [row for row in found.verdicts if row["verdict"] != "pass"] == []
    assert pd.read_parquet(found.files["parquet"])["run_id"].notna().all()
    assert found.files["png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("id", "check"), CHECKS)
def test_a_check_notices_the_error_that_it_names(id: str, check: ReproductionCheck, found_in) -> None:
    sound = found_in(id, IN_PAIRS.get(id, 1))
    assert judge(check, sound)["verdict"] == "pass", judge(check, sound)
    assert judge(check, replace(sound, table=check.plant.change(sound.rows())))["verdict"] == "fail"


OF_PAIRS = ("replay.later_with_each_kill", "more.takes_longer", "order.throughput_equal", "interval.throughput_rises",
            "interval.latency_falls")  # fmt: skip


@pytest.mark.parametrize(("id", "check"), [each for each in CHECKS if each.values[1].name in OF_PAIRS])
def test_one_run_of_each_cell_decides_no_ratio_of_runs(id: str, check: ReproductionCheck, found_in) -> None:
    judged = judge(check, found_in(id))
    assert judged["verdict"] == "unknown"
    assert "but from one pair; two or more are needed" in str(judged["detail"])


@pytest.mark.parametrize("second", [replay(1, None) | {"ready_ns": None}, replay(1, KILL_AT_S + 2 * KILL_EVERY_S)])
def test_a_kill_that_strikes_no_replay_does_not_count(second, home):
    """Latency grows, but the third kill struck before the replay after the second had begun, or after it was done."""

    def replay_missed(experiment: Experiment) -> Tables:
        tables = replayed(experiment)
        if hosts_lost(experiment) == 3:
            tables["partition_recoveries"][1] = second
        return tables

    (check,) = CATALOGUE["incremental/fig-10"].checks
    judged = judge(check, computed_on("incremental/fig-10", replay_missed, 3))
    assert judged["verdict"] == "unknown"
    assert "only 1 of 2 kills after the first struck during a replay" in str(judged["detail"])


@pytest.mark.parametrize("not_sustained", [0.96 * RATE, 1.3 * RATE, None], ids=str)
def test_a_cluster_that_is_not_too_small_shows_nothing_of_one_that_is(not_sustained, home):
    """As measured on 2026-11-26: on two cores one slot processes as much as two, so what waits shrinks."""

    def roomy(experiment: Experiment) -> Tables:
        tables = paper(experiment)
        alone = experiment.cluster.workers == 1
        if alone and not_sustained:
            tables["runs"] = facts(experiment, sustainable_rate=0.9 * RATE, unsustainable_rate=not_sustained)
        shrinks = [row | {"lag_records": 90_000 - 400 * row["second"]} for row in tables["throughput"]]
        return tables | {"throughput": shrinks}

    for each in missing_runs("incremental/fig-11", 1):
        if each.cluster.workers > 1 or not_sustained:
            put_run(each, roomy(each))
    found = Computed("incremental/fig-11", CATALOGUE["incremental/fig-11"].compute(1, lambda done, total: None))
    judged = {check.name: judge(check, found) for check in CATALOGUE["incremental/fig-11"].checks}
    told = "not known to be too small" if not_sustained else "it is not known what one host sustains"
    assert judged["too_small.grows"]["verdict"] == "unknown"
    assert told in str(judged["too_small.grows"]["detail"])
    assert judged["enough.bounded"]["verdict"] == "pass"


def one(id: str, waits: Waits) -> Experiment:
    return next(each for each in missing_runs(id, 1) if waits_for(each) is waits)


def test_the_same_hosts_die_whatever_the_recovery_waits_for():
    plans = [burst_events(each.fault_spec, each.seed) for each in missing_runs("incremental/fig-12", 1)]
    assert plans[0] == plans[1] == plans[2]
    assert plans[3] == plans[4] == plans[5]
    assert [len(plans[0]), len(plans[3])] == [3, 8]


def test_in_the_best_case_as_many_hosts_stand_by_as_die():
    for each in missing_runs("incremental/fig-12", 1):
        assert each.engine.standby_run == (hosts_lost(each) if waits_for(each) is Waits.NOTHING else 0)


def test_figures_share_their_runs():
    for id in ("incremental/fig-12", "incremental/fig-13"):
        for each in missing_runs(id, 1):
            put_run(each, paper(each))
    assert missing_runs("incremental/fig-07", 1) == missing_runs("incremental/fig-14", 1) == []
    assert [each.name for each in missing_runs("incremental/fig-15", 1)] == [
        "incremental-burst-t2-lost4-anywhere-incremental",
        "incremental-burst-t2-lost4-anywhere-blocking",
    ]


def test_what_lacks_a_run_is_unknown_by_name_and_the_rest_is_judged():
    for each in missing_runs("incremental/fig-12", 1):
        if each.name != "incremental-burst-t2-lost8-anywhere-bestcase":
            put_run(each, paper(each))
    found = Computed("incremental/fig-12", CATALOGUE["incremental/fig-12"].compute(1, lambda done, total: None))
    rows = {check.name: judge(check, found) for check in CATALOGUE["incremental/fig-12"].checks}
    assert rows["best_case.never_behind"]["verdict"] == "unknown"
    assert "BestCase on topology 2 #1" in rows["best_case.never_behind"]["detail"]
    assert rows["incremental.never_behind"]["verdict"] == "pass"


def test_a_query_that_never_comes_back_keeps_its_run_behind(found_in):
    sound = found_in("incremental/fig-12")
    table = sound.rows()
    gone = (table["waits"] == Waits.ROOM.value) & (table["query"] == "q0.0")
    spoilt = replace(sound, table=table.assign(normal_s=table["normal_s"].mask(gone)))
    check = next(each for each in CATALOGUE["incremental/fig-12"].checks if each.name == "incremental.never_behind")
    assert judge(check, spoilt)["verdict"] == "fail"


@pytest.mark.parametrize(("waits", "other"), [(Waits.NOTHING, Waits.ROOM), (Waits.ROOM, Waits.ALL)])
def test_a_recovery_that_is_no_sooner_than_the_other_is_not_ahead_of_it(waits, other, found_in):
    """Nowhere behind is not enough: so would be a recovery query by query that waits for the last host."""
    sound = found_in("incremental/fig-12")
    table = sound.rows()
    as_late = table[table["waits"] == other.value].assign(waits=waits.value)
    name = {Waits.NOTHING: "best_case", Waits.ROOM: "incremental"}[waits]
    check = next(each for each in CATALOGUE["incremental/fig-12"].checks if each.name == f"{name}.never_behind")
    alike = replace(sound, table=pd.concat([table[table["waits"] != waits.value], as_late], ignore_index=True))
    assert (judge(check, sound)["verdict"], judge(check, alike)["verdict"]) == ("pass", "fail")


def test_lost_queries_that_are_as_late_as_under_blocking_are_not_below_it(found_in):
    sound = found_in("incremental/fig-13")
    table = sound.rows()
    alike = [table[table["waits"] == Waits.ALL.value].assign(waits=waits.value) for waits in (Waits.ALL, Waits.ROOM)]
    check = next(each for each in CATALOGUE["incremental/fig-13"].checks if each.name == "incremental.below_blocking")
    assert judge(check, sound)["verdict"] == "pass"
    assert judge(check, replace(sound, table=pd.concat(alike, ignore_index=True)))["verdict"] == "fail"


def never_back(experiment: Experiment) -> Tables:
    tables = paper(experiment)
    return tables | {"query_recoveries": [row | {"normal_ns": None} for row in tables["query_recoveries"]]}


@pytest.mark.parametrize("known", [[], [slide("q0", 1, 2.0) | {"relative_latency": None}]], ids=["none", "none usual"])
def test_a_run_of_which_nobody_knows_the_latencies_has_measured_nothing(known):
    experiment = one("incremental/fig-12", Waits.ROOM)
    tables = never_back(experiment) | {"query_latencies": known}
    assert list(queries(Cell(experiment, put_run(experiment, tables)))) == []


@pytest.mark.parametrize(
    ("gone", "verdicts"),
    [
        ({Waits.ROOM}, {"best_case": "unknown", "incremental": "fail"}),
        ({Waits.NOTHING, Waits.ROOM}, {"best_case": "unknown", "incremental": "fail"}),
        ({Waits.ALL}, {"best_case": "pass", "incremental": "unknown"}),
    ],
    ids=["incremental", "both", "blocking"],
)
def test_a_run_in_which_no_query_came_back_is_behind_and_shows_of_no_other_that_it_is_ahead(gone, verdicts):
    for each in missing_runs("incremental/fig-12", 1):
        put_run(each, never_back(each) if waits_for(each) in gone else paper(each))
    found = Computed("incremental/fig-12", CATALOGUE["incremental/fig-12"].compute(1, lambda done, total: None))
    judged = {check.name: judge(check, found)["verdict"] for check in CATALOGUE["incremental/fig-12"].checks}
    assert judged["best_case.never_behind"] == verdicts["best_case"]
    assert judged["incremental.never_behind"] == judged["incremental.first_query"] == verdicts["incremental"]


def test_a_query_that_never_comes_back_under_blocking_does_not_show_that_others_are_sooner(found_in):
    sound = found_in("incremental/fig-12")
    table = sound.rows()
    gone = (table["waits"] == Waits.ALL.value) & (table["query"] == "q0.0")
    spoilt = replace(sound, table=table.assign(normal_s=table["normal_s"].mask(gone)))
    judged = {check.name: judge(check, spoilt) for check in CATALOGUE["incremental/fig-12"].checks}
    assert judged["best_case.never_behind"]["verdict"] == "pass"
    for name, topology in (("never_behind", 1), ("first_query", 2)):
        row = judged[f"incremental.{name}"]
        told = f"not available again under Blocking on topology {topology} #1: q0.0"
        assert (row["verdict"], row["detail"]) == ("unknown", told)


@pytest.mark.parametrize(("place", "lost"), [(Place.UPSTREAM, 15), (Place.DOWNSTREAM, 6)])
def test_the_place_of_hosts_decides_which_queries_are_lost(place, lost):
    """Hosts get partitions in their own order: see `test_best_case`."""
    experiment = next(each for each in missing_runs("incremental/fig-13", 1) if place_of(each) is place)
    hosts = {event.targets[0] for event in burst_events(experiment.fault_spec, experiment.seed)}
    layout = layout_of(experiment)
    gone = {each.number for each in layout.partitions if f"worker-{each.number % 10 + 1}" in hosts}
    assert sum(not of.isdisjoint(gone) for of in queries_of(layout).values()) == lost


def test_a_slide_is_of_a_lost_query_or_of_another():
    experiment = next(each for each in missing_runs("incremental/fig-14", 1) if place_of(each) is Place.DOWNSTREAM)
    found = list(slides(Cell(experiment, put_run(experiment, paper(experiment)))))
    assert {each["query"] for each in found if not each["lost"]} == {"q5"}
    assert min(each["due_s"] for each in found) == 0
    others = [each for each in found if not each["lost"]]
    assert [each["arrived_s"] - each["due_s"] for each in others] == [pytest.approx(USUAL_S)] * END_S
    assert {each["lost_s"] for each in found} == {0.0}
    assert [each["planned_s"] for each in found] == [pytest.approx(min(back_s(experiment)) - 2)] * len(found)


def test_where_all_queries_were_lost_nothing_is_said_of_the_others(found_in):
    sound = found_in("incremental/fig-14")
    spoilt = replace(sound, table=sound.rows().assign(lost=True))
    for name in ("others.back_to_normal", "others.undisturbed_until_recovery"):
        judged = judge(named("incremental/fig-14", name), spoilt)
        assert (judged["verdict"], "all queries were lost" in str(judged["detail"])) == ("unknown", True)


@pytest.mark.parametrize("began_s", [0.4, None])
@pytest.mark.parametrize("name", ["others.undisturbed_until_recovery", "upstream.silent_until_recovery"])
def test_a_recovery_that_begins_at_once_says_nothing_of_the_time_before_it(name, began_s, found_in):
    """As measured on 2026-11-26: survivors have room for everything, so nothing waits for a host."""
    sound = found_in("incremental/fig-14")
    spoilt = replace(sound, table=sound.rows().assign(planned_s=began_s))
    judged = judge(named("incremental/fig-14", name), spoilt)
    assert (judged["verdict"], "not known to have begun later" in str(judged["detail"])) == ("unknown", True)


@pytest.mark.parametrize(
    ("due_s", "times", "name", "verdict"),
    [
        (5.0, 2.0, "others.undisturbed_until_recovery", "fail"),
        (5.0, 1.3, "others.undisturbed_until_recovery", "pass"),  # on average over 3 s this is normal
        (END_S - 1, 2.0, "others.undisturbed_until_recovery", "pass"),
        (5.0, 2.0, "upstream.silent_until_recovery", "fail"),
    ],
)
def test_what_comes_before_the_recovery_decides(due_s, times, name, verdict, found_in):
    """One slide of each query is late, or arrives at once."""
    sound = found_in("incremental/fig-14")
    table, it = sound.rows(), sound.rows()["due_s"] == due_s
    late, at_once = table["relative_latency"].mask(it, times), table["arrived_s"].mask(it, table["due_s"] + USUAL_S)
    spoilt = replace(sound, table=table.assign(relative_latency=late, arrived_s=at_once))
    assert judge(named("incremental/fig-14", name), spoilt)["verdict"] == verdict


def test_a_run_without_results_in_the_end_is_not_back_to_normal(found_in):
    sound = found_in("incremental/fig-13")
    table = sound.rows()
    early = replace(sound, table=table[(table["waits"] != Waits.ALL.value) | (table["due_s"] < 60)])
    judged = judge(named("incremental/fig-13", "lost.back_to_normal"), early)
    assert (judged["verdict"], "no results of the last" in str(judged["detail"])) == ("unknown", True)


@pytest.mark.parametrize(("id", "check"), [each for each in CHECKS if each.values[1].name.endswith("back_to_normal")])
def test_a_query_without_results_in_the_end_is_not_back_to_normal(id: str, check: ReproductionCheck, found_in) -> None:
    sound = found_in(id, IN_PAIRS.get(id, 1))
    table = sound.rows()
    query = "q5" if check.name == "others.back_to_normal" else "q0"
    spoilt = replace(sound, table=table[(table["query"] != query) | (table["due_s"] < 60)])
    assert judge(check, spoilt)["verdict"] == "fail"


def test_a_lost_query_without_results_since_the_loss_is_infinitely_late(home):
    found = computed_on("incremental/fig-15", without_results("q0", Waits.ROOM), 3)
    judged = {check.name: judge(check, found) for check in CATALOGUE["incremental/fig-15"].checks}
    assert judged["lost.back_to_normal"]["verdict"] == judged["incremental.below_blocking"]["verdict"] == "fail"
    assert judged["more.takes_longer"]["detail"] == "a lost query has no results in the end"


def without_results(query: str, *waits: Waits) -> Callable[[Experiment], Tables]:
    """Sound runs; in those that wait so, the last result of this query was due a second before the loss."""

    def tables_of(experiment: Experiment) -> Tables:
        tables = paper(experiment)
        if waits_for(experiment) in waits:
            others = [row for row in tables["query_latencies"] if row["query"] != query]
            tables["query_latencies"] = [slide(query, BURST_AT_S - 1, USUAL_S), *others]
        return tables

    return tables_of


@pytest.mark.parametrize("waits", [(Waits.ALL,), (Waits.ROOM, Waits.ALL)], ids=["blocking", "both"])
def test_where_a_lost_query_has_no_results_under_blocking_nothing_is_below_it(waits, home):
    found = computed_on("incremental/fig-13", without_results("q0", *waits))
    judged = judge(named("incremental/fig-13", "incremental.below_blocking"), found)
    assert (judged["verdict"], judged["detail"]) == ("unknown", "a lost query has no results in the end under Blocking")


def test_a_lost_query_that_falls_silent_after_the_first_results_is_not_below_blocking(home):
    """These may be of before it was missed: they say nothing of how late the others would be."""

    def silent(experiment: Experiment) -> Tables:
        tables = paper(experiment)
        if waits_for(experiment) is Waits.ROOM:
            found, until_ns = tables["query_latencies"], ns(BURST_AT_S + 1)
            tables["query_latencies"] = [row for row in found if row["query"] != "q0" or row["due_ns"] < until_ns]
        return tables

    found = computed_on("incremental/fig-13", silent)
    assert judge(named("incremental/fig-13", "incremental.below_blocking"), found)["verdict"] == "fail"


def test_a_query_that_was_not_lost_and_has_no_results_is_infinitely_late(home):
    found = computed_on("incremental/fig-14", without_results("q5", Waits.ROOM))
    judged = {each.name: judge(each, found)["verdict"] for each in CATALOGUE["incremental/fig-14"].checks}
    assert judged == {
        "others.undisturbed_until_recovery": "unknown",
        "upstream.silent_until_recovery": "pass",
        "others.back_to_normal": "fail",
    }


def test_a_host_that_never_came_back_is_no_delay_of_the_model(found_in):
    sound = found_in("incremental/fig-07")
    table = sound.rows()
    gone = replace(sound, table=table.assign(back_min=table["back_min"].mask(table["topology"] == 2)))
    assert {judge(each, gone)["verdict"] for each in CATALOGUE["incremental/fig-07"].checks} == {"fail"}
    missing = replace(sound, table=table.assign(host=table["host"].mask(table["topology"] == 2)))
    assert {judge(each, missing)["verdict"] for each in CATALOGUE["incremental/fig-07"].checks} == {"unknown"}


def named(id: str, name: str) -> ReproductionCheck:
    return next(each for each in CATALOGUE[id].checks if each.name == name)


def test_the_points_of_two_runs_are_not_joined(found_in):
    """A line from the end of one run to the beginning of the next would show nothing that was measured."""
    table = found_in("incremental/fig-19", 2).rows()
    (axes,) = CATALOGUE["incremental/fig-19"].plot(table).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [list(INTERVALS_S)] * 2
