"""Runs side by side by what protects them: what they cost follows by hand from ledgers with round figures."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from experiments import matrix as cells
from results.protection import matrix
from results.protection.matrix import LeftOut, Matrix, matrices
from results.runs import store
from results.summary import index
from tests.unit.results.protection.runs import KILLS, QUERY, TASK, write_run

pytestmark = pytest.mark.usefixtures("home")

IN_PARTS = {"name": "dataflow", "protocol": "batch-aligned", "recovery": "passive"}


def fast(run_id: str, **options: Any) -> None:
    """900 records/s without failures; a failure costs 10 s, in the mean of two."""
    write_run(run_id, **({"engine": QUERY, "useful_s": 90.0, "checkpoint_s": 10.0, "costs_s": (8.0, 12.0)} | options))


def safe(run_id: str, **options: Any) -> None:
    """800 records/s without failures; a failure costs 4 s."""
    write_run(run_id, **({"engine": TASK, "useful_s": 80.0, "checkpoint_s": 20.0, "costs_s": (4.0, 4.0)} | options))


def both(**options: Any) -> None:
    """Three runs of each."""
    for number in range(3):
        fast(f"fast-{number}", **options)
        safe(f"safe-{number}", **options)


def found(workload: str | None = None) -> list[Matrix]:
    return matrices(index.rows(), workload)


def values(of: Matrix, name: str) -> list[float | None]:
    return [None if each.estimates[name] is None else each.estimates[name].value for each in of.protections]


def test_rates_costs_and_who_wins_follow_from_the_ledgers():
    both()
    (one,) = found()
    assert [each.label for each in one.protections] == [
        "structured-streaming (micro-batch, recovery by query), T = 8 s",
        "structured-streaming (micro-batch, recovery by task), T = 8 s",
    ]
    assert values(one, "rate") == pytest.approx([900.0, 800.0])
    assert values(one, "checkpoint_share") == pytest.approx([0.1, 0.2])
    assert values(one, "cost_s") == pytest.approx([10.0, 4.0])
    assert [each.faults for each in one.protections] == [6, 6]
    assert [each.failure_rate for each in one.protections] == pytest.approx([0.02, 0.02])
    assert [win.winner for win in one.wins] == [each.label for each in one.protections]
    assert one.wins[0].until == pytest.approx(1 / 44)
    low, high = one.wins[0].until_between
    assert low < 1 / 44 < high
    assert one.why_no_winner is None
    assert one.failures == "kill of host, healed after 2 s"


@pytest.mark.parametrize("unbooked_s", [0.0, 6.0])
def test_at_the_failure_rate_of_its_runs_a_protection_does_what_they_did(unbooked_s):
    both(unbooked_s=unbooked_s)
    (one,) = found()
    for each in one.contestants:
        (same,) = [row for row in one.protections if row.label == each.name]
        done = sum(run.rate * run.left_s for run in same.runs)
        assert float(each.at(same.failure_rate)) == pytest.approx(done / sum(run.window_s for run in same.runs))


def test_a_failure_rate_that_a_run_of_each_saw_was_run():
    """The second span begins at 1/44, which is above .0225, the failure rate of all runs of a protection together."""
    both()
    (one,) = found()
    assert [win.tried for win in one.wins] == [True, False]
    fast("fast-often", costs_s=(10.0,) * 3)
    safe("safe-often", costs_s=(4.0,) * 3)
    (one,) = found()
    assert [each.failure_rate for each in one.protections] == pytest.approx([0.0225, 0.0225])
    assert [win.tried for win in one.wins] == [True, True]


def test_what_the_ledger_books_for_no_fault_is_shared_by_all():
    fast("one", unbooked_s=6.0)
    (one,) = found()
    assert one.protections[0].runs[0].fault_costs_s == pytest.approx((8.0, 12.0))
    assert one.protections[0].runs[0].shared_cost_s == pytest.approx(6.0)
    assert values(one, "cost_s") == pytest.approx([13.0])
    assert one.protections[0].failure_rate == pytest.approx(2 / 100)


def test_what_the_faults_of_a_run_share_is_one_value_however_many_they_are():
    """Three runs of twenty faults: three shared costs of 4, 6 and 8 s a fault are no sixty of them."""
    for number, each_s in enumerate((4.0, 6.0, 8.0)):
        fast(f"run-{number}", costs_s=(1.0,) * 20, unbooked_s=20 * each_s)
    (one,) = found()
    cost_s = one.protections[0].estimates["cost_s"]
    assert cost_s.value == pytest.approx(7.0)
    low, high = cost_s.limits
    assert low < 3.0
    assert high > 11.0


def test_two_runs_are_too_few_to_say_how_much_their_faults_share():
    for number in range(2):
        fast(f"run-{number}", unbooked_s=6.0 + number)
    (one,) = found()
    cost_s = one.protections[0].estimates["cost_s"]
    assert (cost_s.value, cost_s.count, cost_s.limits) == (pytest.approx(13.25), 2, None)


def test_runs_without_faults_tell_a_rate_and_a_latency_and_stand_beside_every_kind_of_failure():
    load = {"load": {"mode": "rate", "rate": 3000}}
    pause = {"processes": [{"kind": "pause", "rate": 0.01, "heal_after": 2}]}
    fast("quiet", costs_s=(), p99_s=1.0, fields=load)
    fast("killed", p99_s=5.0, fields=load | {"faults": KILLS})
    fast("paused", p99_s=3.0, fields=load | {"faults": pause})
    kinds = {each.failures.split(" of")[0]: each for each in found()}
    assert set(kinds) == {"kill", "pause"}
    for kind, p99_s in (("kill", 5.0), ("pause", 3.0)):
        assert (values(kinds[kind], "quiet_p99_s"), values(kinds[kind], "struck_p99_s")) == ([1.0], [p99_s])
        assert len(kinds[kind].protections[0].runs) == 2


def test_how_often_faults_come_sets_no_runs_apart_and_when_they_heal_does():
    often = {"processes": [KILLS["processes"][0] | {"rate": 0.02}]}
    later = {"processes": [KILLS["processes"][0] | {"heal_after": 9}]}
    for name, faults in (("usual", KILLS), ("often", often), ("later", later)):
        fast(name, fields={"faults": faults})
    assert sorted(len(each.protections[0].runs) for each in found()) == [1, 2]


def run_a_night(number):
    """The cells of the matrix that the DAG `nightly` runs; a failure costs more under recovery by query."""
    for cell in cells.load("nightly"):
        costs_s = () if not cell.faults.processes else (10.0, 12.0) if cell.engine.recovery == "query" else (4.0, 5.0)
        run_id, fields = f"{cell.name}-{cell.seed}-{number}", cell.model_dump(mode="json")
        write_run(run_id, engine={}, useful_s=80.0, checkpoint_s=20.0, costs_s=costs_s, fields=fields)


def test_one_night_of_the_nightly_matrix_names_no_winner_and_two_do():
    run_a_night(1)
    first = {each.load: each for each in found()}
    assert {load: [len(row.runs) for row in each.protections] for load, each in first.items()} == {
        "saturating": [4, 2],
        "rate": [4, 2],
    }
    assert first["saturating"].why_no_winner == matrix.TOO_FEW
    run_a_night(2)
    second = {each.load: each for each in found()}
    assert second["saturating"].wins
    assert second["rate"].wins


def test_a_low_rate_is_told_to_three_digits():
    for name, engine in (("a", QUERY), ("b", TASK)):
        fields = {"load": {"mode": "rate", "rate": 0.425}}
        write_run(name, engine=engine, useful_s=90.0, checkpoint_s=10.0, fields=fields)
    (one,) = matrices(index.rows())
    assert one.setting.load == "0.425 records/s"


RACKS = {f"worker-{number}": [f"rack-{number % 2}"] for number in range(1, 5)}
ALONE = {f"worker-{number}": [f"rack-{number}"] for number in range(1, 5)}
BY_RACK = {"processes": [{"kind": "kill", "scope": "domain", "rate": 0.01, "heal_after": 2}]}
SLOW_HEAL = {"processes": [{"kind": "kill", "rate": 0.01}]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SLOW_HEAL | {"time_scale": 0.1}, SLOW_HEAL | {"time_scale": 0.25}),
        (KILLS | {"max_down": 1}, KILLS | {"max_down": 2}),
        (BY_RACK | {"hosts": RACKS}, BY_RACK | {"hosts": ALONE}),
    ],
    ids=["how long a new machine takes", "how many may be down", "how many hosts a domain has"],
)
def test_what_costs_of_a_failure_depend_on_sets_runs_apart(one, other):
    fast("one", fields={"cluster": {"workers": 4}, "faults": one})
    fast("other", fields={"cluster": {"workers": 4}, "faults": other})
    assert [len(each.protections[0].runs) for each in found()] == [1, 1]


@pytest.mark.parametrize(
    "other",
    [
        {"machine": "another machine"},
        {"fields": {"workload": {"name": "wordcount", "depth": 2}}},
        pytest.param({"fields": {"cluster": {"workers": 5}}}, marks=pytest.mark.extended),
        pytest.param({"fields": {"cluster": {"worker_memory_mb": 900}}}, marks=pytest.mark.extended),
        pytest.param({"fields": {"load": {"mode": "rate", "rate": 3000}}}, marks=pytest.mark.extended),
    ],
)
def test_runs_of_another_setting_are_in_another_matrix(other):
    both()
    fast("other", **other)
    assert [len(each.protections) for each in found()] == [2, 1]
    assert len({each.setting.key for each in found()}) == 2  # the page's address has nothing but the key


def test_seed_window_and_tolerances_set_no_runs_apart():
    fast("one")
    fast("two", fields={"seed": 9, "window_s": 100, "tolerances": {"utilization": 0.05}})
    (one,) = found()
    assert len(one.protections[0].runs) == 2


def test_engines_that_differ_in_a_field_are_never_pooled_and_say_which():
    for partitions in (3, 6):
        fast(f"parts-{partitions}", engine=QUERY | {"partitions": partitions})
    (one,) = found()
    assert [each.label.rpartition(", ")[2] for each in one.protections] == ["partitions 3", "partitions 6"]


def test_runs_that_do_not_count_are_counted_and_change_nothing():
    both()
    wild = {"useful_s": 10.0, "checkpoint_s": 90.0, "costs_s": (500.0,)}
    fast("inexact", wrong=1, **wild)
    fast("failed", state="failed", **wild)
    fast("outdated", schema_version=1, **wild)
    fast("damaged", **wild)
    (store.home() / "runs" / "damaged" / "tables" / "ledger.parquet").write_text("no table")
    (one,) = found()
    assert values(one, "rate") == pytest.approx([900.0, 800.0])
    assert values(one, "cost_s") == pytest.approx([10.0, 4.0])
    assert one.left_out == {
        LeftOut.INEXACT: 1, LeftOut.FAILED: 1, LeftOut.OUTDATED: 1, LeftOut.UNREADABLE: 1
    }  # fmt: skip


@pytest.mark.parametrize(
    "empty",
    ["rows", pytest.param("file", marks=pytest.mark.extended), pytest.param("window", marks=pytest.mark.extended)],
)
def test_a_run_whose_ledger_tells_no_costs_is_unreadable_and_not_one_whose_faults_were_free(empty):
    both()
    fast("without")
    tables = store.home() / "runs" / "without" / "tables"
    if empty == "file":
        (tables / "ledger.parquet").unlink()
    else:
        name, change = {"rows": ("ledger", lambda rows: rows[:0]), "window": ("runs", _without_window)}[empty]
        path = tables / f"{name}.parquet"
        change(pd.read_parquet(path, dtype_backend="pyarrow")).to_parquet(path)
    (one,) = found()
    assert one.left_out == {LeftOut.UNREADABLE: 1}
    assert values(one, "cost_s") == pytest.approx([10.0, 4.0])


def _without_window(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.assign(window_end_ns=runs["window_start_ns"])


def test_a_run_that_nothing_struck_needs_no_ledger():
    fast("quiet", costs_s=(), p99_s=1.0, fields={"load": {"mode": "rate", "rate": 3000}})
    (store.home() / "runs" / "quiet" / "tables" / "ledger.parquet").unlink()
    (one,) = found()
    assert (values(one, "quiet_p99_s"), one.left_out) == ([1.0], {})


def test_of_faults_that_cost_nothing_the_higher_rate_wins():
    both(costs_s=(0.0, 0.0))
    (one,) = found()
    assert [win.winner for win in one.wins] == [one.protections[0].label]
    assert one.why_no_winner is None


def test_old_runs_give_way_to_newer_ones(monkeypatch):
    monkeypatch.setattr(matrix, "MOST_RUNS", 2)
    for number in range(3):
        fast(f"run-{number}", started_ns=10**18 + number)
    (one,) = found()
    assert [run.run_id for run in one.protections[0].runs] == ["run-2", "run-1"]
    assert one.left_out == {LeftOut.OLDER: 1}


def test_a_run_of_which_nothing_is_known_but_its_tables_is_of_no_setting():
    fast("one")
    (store.home() / "runs" / "one" / "experiment.json").unlink()
    assert found() == []


def test_a_run_of_the_testbed_from_before_it_had_strategies_is_shown():
    engine, q1 = {"name": "dataflow"}, {"workload": {"name": "nexmark", "query": "q1"}}
    run = write_run("old", engine=engine, fields=q1, useful_s=90.0, checkpoint_s=10.0, costs_s=(4.0,))
    document = store.read_json(run.experiment_path)
    document["engine"]["recovery"] = "query"
    store.write_json(run.experiment_path, document)
    (one,) = found()
    assert [each.run_id for each in one.protections[0].runs] == ["old"]


def test_under_a_set_rate_utilization_is_compared():
    """Of the time not lost to faults, 100 of 200 s, checkpoints leave .95 and .9: equal again at 1/104."""
    both(fields={"load": {"mode": "rate", "rate": 3000}, "faults": KILLS}, idle_s=100.0)
    (one,) = found()
    assert one.compared == "utilization"
    assert values(one, "rate") == [None, None]
    assert values(one, "utilization") == pytest.approx([0.95, 0.9])
    assert values(one, "cost_s") == pytest.approx([10.0, 4.0])
    assert one.wins[0].until == pytest.approx(0.05 / (0.9 * 10 - 0.95 * 4))
    assert one.why_no_winner is None


def test_under_a_set_rate_utilization_is_what_the_runs_measured():
    """At the failure rate of its runs a protection has the utilization of their ledgers: what is useful or idle."""
    both(fields={"load": {"mode": "rate", "rate": 3000}, "faults": KILLS}, idle_s=100.0)
    (one,) = found()
    measured = [(90 + 100) / 220, (80 + 100) / 208]
    for row, contestant, utilization in zip(one.protections, one.contestants, measured, strict=True):
        assert float(contestant.at(row.failure_rate)) == pytest.approx(utilization)


def test_two_runs_of_each_are_too_few_for_a_winner():
    for number in range(2):
        fast(f"fast-{number}")
        safe(f"safe-{number}")
    (one,) = found()
    assert values(one, "rate") == pytest.approx([900.0, 800.0])
    assert one.protections[0].estimates["rate"].limits is None
    assert (one.wins, one.why_no_winner) == ([], matrix.TOO_FEW)


def test_of_a_search_the_rate_that_was_found_counts():
    write_run(
        "searched", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, facts={"sustainable_rate": 4321.0},
        fields={"load": {"mode": "sustainable"}},
    )  # fmt: skip
    (one,) = found()
    assert values(one, "rate") == [4321.0]


@pytest.mark.parametrize(("mode", "cost_s"), [({"mode": "saturating"}, 13.0), ({"mode": "rate", "rate": 3000}, 10.0)])
def test_partitions_that_wait_for_lost_ones_cost_too_where_input_never_lacks(mode, cost_s):
    bids = {"workload": {"name": "nexmark", "query": "q12"}}
    fast("one", engine=IN_PARTS, idle_s=6.0, fields=bids | {"load": mode, "faults": KILLS})
    (one,) = found()
    assert values(one, "cost_s") == pytest.approx([cost_s])


@pytest.mark.parametrize(
    ("engine", "costs_s", "mode", "starved"),
    [
        (IN_PARTS, (), {"mode": "saturating"}, 1),
        (IN_PARTS, (9.0,), {"mode": "saturating"}, 0),
        (QUERY, (9.0,), {"mode": "saturating"}, 1),
        (QUERY, (9.0,), {"mode": "rate", "rate": 3000}, 0),
    ],
)
def test_a_run_that_waits_for_input_without_a_fault_was_not_saturated(engine, costs_s, mode, starved):
    fields = {"workload": {"name": "nexmark", "query": "q12"}, "load": mode, "faults": KILLS}
    fast("one", engine=engine, costs_s=costs_s, idle_s=20.0, fields=fields)
    assert found()[0].protections[0].starved == starved


def test_what_idles_while_the_whole_query_recovers_is_no_cost():
    fast("one", engine=QUERY, idle_s=6.0)
    assert values(found()[0], "cost_s") == pytest.approx([10.0])


def test_accuracy_is_of_runs_with_faults_and_a_run_without_an_oracle_is_told():
    fast("one", facts={"tentative_accuracy": 0.25}, wrong=None)
    fast("two", facts={"tentative_accuracy": 0.75})
    (one,) = found()
    assert values(one, "accuracy") == [0.5]
    assert one.protections[0].uncompared == 1


def test_no_interval_of_a_share_reaches_beyond_1():
    """Student's interval of three such accuracies reaches to 1.1."""
    for number, accuracy in enumerate((1.0, 1.0, 0.9)):
        fast(f"run-{number}", facts={"tentative_accuracy": accuracy})
    assert found()[0].protections[0].estimates["accuracy"].limits[1] == 1.0


def test_one_workload_is_named_by_its_first_word_or_by_all():
    fast("words")
    fast("bids", fields={"workload": {"name": "nexmark", "query": "q12"}})
    assert len(found()) == 2
    assert [each.setting.workload for each in found("nexmark")] == ["nexmark q12"]
    assert [each.setting.workload for each in found("wordcount depth 1")] == ["wordcount depth 1"]
    assert found("nexma") == []


def test_own_jobs_are_told_apart_by_their_programs_and_are_all_named_by_the_word_own_job():
    for name in ("orders/job.py", "clicks/job.py"):
        job = {"name": "own-job", "program": f"/jobs/{name}", "inputs": {"a": {"file": "/jobs/a.jsonl"}}}
        fast(name.partition("/")[0], engine=TASK, fields={"workload": job, "load": {"mode": "rate"}, "faults": KILLS})
    assert sorted(each.setting.workload for each in found()) == ["own-job clicks/job.py", "own-job orders/job.py"]
    assert len(found("own-job")) == 2
    assert [each.setting.workload for each in found("own-job clicks/job.py")] == ["own-job clicks/job.py"]
