"""Every check passes on a sound run, fails on planted damage, and is unknown where it cannot be evaluated."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from experiments.spec import Experiment
from results.checks import validate
from results.checks.catalogue import CHECKS, checks_for
from results.checks.evidence import Evidence
from results.predictions.tables import write_predictions
from results.runs.store import Run
from results.tables.schema import TABLES
from results.verdict import Verdict
from tests.unit.results import synthetic
from tests.unit.results.judging import every, judged, move, null, put, verdict_of


def test_of_an_own_job_only_an_oracle_allows_a_word_on_its_output() -> None:
    own = {"name": "own-job", "program": "job.py", "inputs": {"orders": {"file": "x"}}, "output_topic": "totals"}
    rest = {"load": {"mode": "rate"}, "engine": {"recovery": "task"}}
    without, named = (Experiment(workload=own | more, **rest) for more in ({}, {"oracle": "oracle.py"}))
    left_out = {check.name for check in checks_for(named)} - {check.name for check in checks_for(without)}
    assert left_out == {"quality.schema", "quality.values", "quality.nothing_lost", "quality.nothing_wrong"}


def test_a_sound_run_passes_every_check(good_run: Run) -> None:
    verdicts = good_run.table("verdicts")
    assert list(verdicts.columns) == TABLES["verdicts"].names
    assert list(verdicts["check"]) == [check.name for check in checks_for(synthetic.experiment())]
    assert set(verdicts["verdict"]) == {"pass"}, verdicts[verdicts["verdict"] != "pass"].to_string()
    assert verdicts[["observed", "expected"]].notna().all(axis=None)


Q12 = {"name": "nexmark", "query": "q12"}


def shifted(recoveries: pd.DataFrame, row: int, by_s: float) -> pd.DataFrame:
    """A recovery that says that it was ready later, and was so for less time."""
    later = move("ready_ns", row, int(by_s * 1e9))(recoveries)
    return move("restore_s", row, -by_s)(move("restart_s", row, by_s)(later))


DAMAGE = [
    ("runs.schema", "runs", lambda frame: frame.rename(columns={"seed": "sed"})),
    ("ledger.schema", "ledger", lambda frame: frame[frame.columns[::-1]]),
    ("hosts.schema", "hosts", lambda frame: frame.assign(extra=1)),
    ("latency.schema", "latency", lambda frame: frame.drop(columns="p999_s")),
    ("throughput.schema", "throughput", lambda frame: frame.assign(lag_records="many")),
    ("faults.values", "faults", null("cause", 0)),
    ("recoveries.values", "recoveries", put("detect_s", 1, -0.5)),
    ("recoveries.values", "recoveries", move("restart_s", 1, 0.1)),
    ("recoveries.values", "recoveries", null("restore_s", 1)),
    ("recoveries.values", "recoveries", null("notice_ns", 1)),
    ("recoveries.values", "recoveries", lambda frame: frame.drop(index=2)),  # a kill without a recovery
    ("recoveries.values", "recoveries", lambda frame: shifted(frame, 1, 0.1)),
    ("recoveries.values", "ledger", put("class", 5, "useful")),  # the time of an outage
    ("checkpoints.values", "checkpoints", put("checkpoint_s", 1, -0.001)),
    ("runs.values", "runs", put("utilization", 0, 1.01)),
    ("ledger.values", "ledger", put("class", 3, "napping")),
    ("hosts.values", "hosts", put("cpu_s", 3, -1.0)),
    ("ledger.adds_up", "ledger", move("seconds", 0, 0.3)),
    ("ledger.contiguous", "ledger", move("end_ns", 4, 1)),
    ("ledger.contiguous", "ledger", move("end_ns", 4, -1)),
    ("ledger.contiguous", "ledger", lambda frame: frame.iloc[1:]),
    ("ledger.contiguous", "ledger", lambda frame: frame.iloc[:-1]),
    ("faults.on_time", "faults", put("lateness_s", 0, 0.06)),  # its first host was on time, its worst was not
    ("faults.on_time", "faults", put("lateness_s", 0, -0.06)),
    ("faults.on_time", "faults", put("actual_ns", 1, pd.NA)),
    ("faults.proved", "faults", put("violations", 0, 1)),
    ("faults.proved", "faults", put("violations", 0, pd.NA)),
    ("faults.proved", "faults", put("proved_ns", 0, pd.NA)),
    ("faults.healed", "faults", put("joined_ns", 0, pd.NA)),
    ("faults.healed", "faults", put("heal_violations", 2, 1)),
    ("faults.values", "faults", put("outcome", 0, "forgotten")),
    ("faults.healed", "faults", put("healed_ns", 1, pd.NA)),
    ("faults.follow_their_law", "fault_fit", put("p_value", 1, 0.00009)),
    ("faults.as_planned", "fault_fit", put("statistic", 3, 1.0)),
    ("faults.as_planned", "fault_fit", put("statistic", 3, None)),
    ("quality.nothing_lost", "quality", put("lost", 7, 1)),
    ("quality.nothing_wrong", "quality", put("wrong", 7, 1)),
    ("utilization.predicted", "predictions", put("measured", 0, 0.5)),
    ("utilization.predicted", "predictions", put("measured", 0, 0.9)),
    ("utilization.long_run", "predictions", put("predicted", 2, 0.5)),
    ("utilization.long_run", "predictions", put("predicted", 2, 0.99)),
    ("utilization.estimates_agree", "runs", put("utilization_by_records", 0, 0.6)),
    ("load.saturated", "ledger", lambda frame: frame.replace({"class": {"lost": "idle"}})),
    ("clock.steady", "runs", put("clock_step_s", 0, 0.0051)),
    ("replayed_recoveries.values", "replayed_recoveries", lambda frame: frame.drop(index=2)),
    ("replayed_recoveries.values", "replayed_recoveries", put("fault", 2, 3)),  # which was absorbed
    ("replayed_recoveries.values", "replayed_recoveries", move("down_s", 1, 0.05)),
    ("replayed_recoveries.values", "replayed_recoveries", move("lost_s", 1, -0.05)),
    ("replayed_recoveries.values", "replayed_recoveries", move("difference_s", 1, 0.05)),
    ("replayed_recoveries.values", "replayed_recoveries", put("replayed_lost_s", 1, -0.5)),
    ("replayed_recoveries.values", "ledger", put("class", 5, "useful")),  # work that was lost
    ("replayed_recoveries.values", "predictions", move("recovery_time_s", 0, 0.05)),
    ("useful_time.values", "useful_time", move("measured_s", 100, -3.0)),
    ("useful_time.values", "useful_time", move("replayed_s", 100, -3.0)),
    ("useful_time.values", "useful_time", move("replayed_s", 100, 3.0)),
    ("useful_time.values", "useful_time", move("measured_s", 0, 0.05)),
    ("useful_time.values", "useful_time", lambda frame: frame[1:]),
    ("useful_time.values", "useful_time", lambda frame: frame[:-1]),
    ("useful_time.values", "useful_time", move("second", 7, 5)),
    ("useful_time.values", "useful_time", lambda frame: frame.assign(measured_s=0.99 * frame["measured_s"])),
    ("useful_time.values", "useful_time", lambda frame: frame.assign(replayed_s=0.99 * frame["replayed_s"])),
    ("useful_time.values", "runs", move("utilization", 0, 0.001)),
    ("useful_time.values", "predictions", move("predicted", 0, 0.001)),
    ("useful_time.values", "replayed_recoveries", lambda frame: frame.assign(replayed_down_s=5.9)),
]


@pytest.mark.extended
@pytest.mark.parametrize(("name", "table", "change"), DAMAGE, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(DAMAGE)])
def test_damage_fails_the_check(name: str, table: str, change: synthetic.Change, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, changes={table: change})
    row = verdict_of(name, run, tmp_path)
    assert row["verdict"] == "fail", row
    assert row["detail"]


def test_every_kind_of_check_is_seen_to_fail() -> None:
    """No check may be unable to fail: schemas and values share code over tables, the others are each listed."""
    seen = {name for name, _, _ in DAMAGE}
    apart = {"sustainable.bracketed", "sustainable.sustained"}  # of a run that searched
    apart |= {"tentative.apart", "tentative.corrected", "tentative.accuracy"}  # `test_tentative_checks`
    apart |= {"restores.as_modelled"}  # of a run that recovers in parts: see test_restores
    apart |= {"query_recoveries.as_planned", "query_recoveries.on_time"}  # see test_query_recoveries
    apart |= {"output_logs.open_windows"}  # of a run that keeps output logs: see test_output_logs
    of_logs = ("extent", "replay", "modelled_extent", "modelled_replay")  # see test_output_log_targets
    apart |= {f"output_logs.{name}" for name in of_logs}
    apart |= {"copies.cpu"}  # of a run that has copies: see test_copies
    apart |= {"quality.nothing_duplicated"}  # of the testbed: see below
    others = {check.name for check in CHECKS if not check.name.endswith((".schema", ".values"))}
    assert others - seen == apart


@pytest.mark.parametrize(
    ("faults", "off", "verdict"),
    [(6, 0.019, "pass"), (6, 0.021, "fail"), (20, 0.009, "pass"), (20, 0.011, "fail"), (20, -0.011, "fail")],
)
def test_a_replay_is_held_to_half_the_tolerance_from_20_faults_on(tmp_path, faults, off, verdict) -> None:
    def replayed(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(predicted=frame["measured"] + off)

    def struck(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([frame[:1]] * faults).assign(fault=range(faults))

    run = synthetic.make_run(tmp_path, changes={"predictions": replayed, "faults": struck})
    assert verdict_of("utilization.predicted", run, tmp_path)["verdict"] == verdict


@pytest.mark.parametrize(("beyond", "digits", "verdict"), [(-0.0015, 3, "pass"), (0.00004, 4, "fail")])
def test_eq_10_has_three_digits_or_as_many_as_tell_it_from_its_limits(tmp_path, beyond, digits, verdict) -> None:
    limits = {"low": 0.74151, "high": 0.74651}

    def simulated(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.reset_index(drop=True)
        for name, value in {**limits, "predicted": limits["high"] + beyond}.items():
            frame.loc[2, name] = value
        return frame

    row = verdict_of("utilization.long_run", synthetic.make_run(tmp_path, changes={"predictions": simulated}), tmp_path)
    shown = re.findall(r"0\.\d+", f"{row['observed']} {row['expected']}")
    assert (row["verdict"], {len(each) - 2 for each in shown}) == (verdict, {digits})
    assert shown[0] not in shown[1:]


def test_a_measurement_just_outside_its_limits_is_not_shown_like_one_of_them(tmp_path) -> None:
    def just_outside(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.reset_index(drop=True)
        frame.loc[0, "measured"] = frame.loc[0, "predicted"] - 0.0201
        return frame

    run = synthetic.make_run(tmp_path, changes={"predictions": just_outside})
    row = verdict_of("utilization.predicted", run, tmp_path)
    low = row["expected"].split(" to ")[0]
    assert row["verdict"] == "fail"
    assert row["observed"] != f"measured {low}"
    assert row["detail"].startswith(f"measured: {row['observed'].removeprefix('measured ')} outside {low} to "), row


def test_the_chance_of_a_plan_has_three_digits(tmp_path) -> None:
    run = synthetic.make_run(tmp_path, changes={"fault_fit": put("p_value", 1, 0.000043219)})
    assert verdict_of("faults.follow_their_law", run, tmp_path)["observed"].startswith("p 0.0000432 in the worst")


def test_where_too_few_faults_are_expected_utilization_is_not_judged() -> None:
    judged = {"utilization.predicted", "utilization.long_run", "replayed_recoveries.values", "useful_time.values"}
    for rate, found in ((0.0041, set()), (0.0043, judged)):  # of three hosts in 240 s
        names = {check.name for check in checks_for(synthetic.experiment(faults={"processes": [{"rate": rate}]}))}
        assert names & judged == found


def test_a_replay_that_was_not_possible_says_why(tmp_path) -> None:
    def nothing(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(predicted=None, low=None, high=None, why="2 faults took effect; at least 3 are needed")

    empty = dict.fromkeys(("replayed_recoveries", "useful_time"), lambda frame: frame[:0])
    run = synthetic.make_run(tmp_path, changes={"predictions": nothing} | empty)
    for name in ("utilization.predicted", "replayed_recoveries.values", "useful_time.values"):
        row = verdict_of(name, run, tmp_path)
        assert (row["verdict"], row["detail"]) == ("unknown", "2 faults took effect; at least 3 are needed"), name


@pytest.mark.extended
@pytest.mark.parametrize("kills", [synthetic.KILLS_S, (5.0, 60.0, 100.5, 137.0, 200.0, 237.5)])
def test_the_tables_that_the_product_writes_pass_their_checks(tmp_path, kills) -> None:
    """In the second run a fault takes back the first batch of the window, and the window cuts an outage off."""
    run = synthetic.make_run(tmp_path, kills=kills)
    write_predictions(run, synthetic.experiment())
    for name in ("replayed_recoveries.values", "useful_time.values"):
        assert verdict_of(name, run, tmp_path)["verdict"] == "pass", name


LACKS = [
    ("utilization.predicted", "predictions", every("low", None), "no interval: that needs 3 checkpoints"),
    ("utilization.predicted", "predictions", every("measured", None), "there is no measurement"),
    ("utilization.predicted", "predictions", lambda frame: frame.iloc[3:], "no utilization was predicted"),
    ("utilization.long_run", "predictions", lambda frame: frame.iloc[:2], "eq. 10 was not simulated"),
    ("utilization.estimates_agree", "runs", every("utilization_by_records", None), "no second estimate"),
    ("quality.nothing_lost", "quality", lambda frame: frame.iloc[:0], "no event-time window closed"),
    ("quality.nothing_wrong", "quality", lambda frame: frame.iloc[:0], "no event-time window closed"),
    ("faults.on_time", "faults", every("outcome", "absorbed"), "absorbed"),
    ("faults.follow_their_law", "fault_fit", lambda frame: frame.iloc[2:], "no comparison of the plan with a law"),
    ("faults.as_planned", "fault_fit", lambda frame: frame.iloc[:2], "no planned fault"),
    ("ledger.adds_up", "ledger", lambda frame: frame.iloc[:0], "no segments"),
    ("ledger.adds_up", "runs", lambda frame: frame.assign(window_end_ns=frame["window_start_ns"]), "window is empty"),
    ("ledger.adds_up", "ledger", lambda frame: frame.assign(seconds="long"), "ledger.seconds is"),
    ("clock.steady", "runs", every("clock_step_s", None), "there is no sample of the gateway's clock"),
    ("hosts.values", "hosts", lambda frame: frame.iloc[:0], "no rows"),
    ("replayed_recoveries.values", "replayed_recoveries", lambda frame: frame.iloc[:0], "nothing was replayed"),
    ("useful_time.values", "useful_time", lambda frame: frame.iloc[:0], "nothing was replayed"),
    ("useful_time.values", "predictions", lambda frame: frame.iloc[1:], "no utilization was predicted by a replay"),
    ("useful_time.values", "predictions", every("predicted", None), "no utilization was predicted by a replay"),
    ("useful_time.values", "ledger", lambda frame: frame.iloc[:0], "ledger"),
    ("hosts.values", "hosts", lambda frame: frame.drop(columns="cpu_s"), "no column cpu_s"),
]


@pytest.mark.extended
@pytest.mark.parametrize(("name", "table", "change", "why"), LACKS, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(LACKS)])
def test_too_little_is_unknown(name: str, table: str, change: synthetic.Change, why: str, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, changes={table: change})
    row = verdict_of(name, run, tmp_path)
    assert row["verdict"] == "unknown", row
    assert why in row["detail"]


def test_without_any_table_every_verdict_is_unknown_and_takes_the_place_of_that_of_before(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, without=tuple(TABLES))
    verdicts, again = (validate(run, synthetic.experiment()) for _ in range(2))
    assert set(verdicts["verdict"]) == {"unknown"}
    assert verdicts["detail"].str.contains("missing").all()
    pd.testing.assert_frame_equal(verdicts, again)


def test_an_unreadable_table_is_unknown(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path)
    (run.tables / "quality.parquet").write_bytes(b"half a file")
    row = verdict_of("quality.nothing_lost", run, tmp_path)
    assert (row["verdict"], "cannot be read" in row["detail"]) == ("unknown", True)


@pytest.mark.parametrize("name", ["replayed_recoveries.values", "useful_time.values"])
def test_a_table_with_a_hole_does_not_end_the_judging(name: str, tmp_path: Path) -> None:
    """What replays a run reads its tables by their schemas, and cannot use one with a hole: `faults.values` fails."""
    run = synthetic.make_run(tmp_path, changes={"faults": null("cause", 0)})
    row = verdict_of(name, run, tmp_path)
    assert row["verdict"] == "unknown"
    assert "1 of its values of cause are missing" in row["detail"]


def test_a_fault_without_targets_does_not_end_the_judging(tmp_path: Path) -> None:
    """Whether one of its hosts was struck again cannot be told: `faults.values` fails."""
    changes = {"faults": lambda frame: null("targets", 0)(put("joined_ns", 0, pd.NA)(frame))}
    assert verdict_of("faults.healed", synthetic.make_run(tmp_path, changes=changes), tmp_path)["verdict"] == "unknown"


def test_an_error_inside_great_expectations_is_unknown(tmp_path: Path) -> None:
    """A rule on a column that is not there raises inside Great Expectations, which reports it as a result."""
    from results.checks.check import Check
    from results.checks.rules import between

    check = next(check for check in CHECKS if check.name == "hosts.values")
    broken = Check(**vars(check) | {"rules": lambda evidence: [between("cpu_s", 0, None), between("absent", 0, 1)]})
    evidence = Evidence(synthetic.make_run(tmp_path), synthetic.experiment())
    row = judged(broken, evidence, tmp_path)
    assert row["verdict"] == "unknown"
    assert "absent" in row["detail"]


@pytest.mark.parametrize(
    ("cpu_s", "verdict"), [([], "unknown"), ([None, None], "unknown"), ([None, 1.0], "pass"), ([None, -1.0], "fail")]
)
def test_rules_that_look_at_no_value_decide_nothing(cpu_s: list, verdict: str, tmp_path: Path) -> None:
    """Great Expectations calls a rule on no value met."""
    from results.checks.check import Check
    from results.checks.rules import between

    sound = next(check for check in CHECKS if check.name == "hosts.values")
    frame = pd.DataFrame({"cpu_s": pd.array(cpu_s, dtype="Float64")})
    check = Check(
        **vars(sound) | {"subject": lambda evidence: frame, "rules": lambda evidence: [between("cpu_s", 0, None)]}
    )
    row = judged(check, Evidence(synthetic.make_run(tmp_path), synthetic.experiment()), tmp_path)
    assert row["verdict"] == verdict, row


@pytest.mark.parametrize("column", ["healed_ns", "joined_ns"])
def test_a_short_fault_is_not_excused_by_a_long_one_of_the_spec(column: str, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, changes={"faults": put(column, 0, pd.NA)})
    short, long = ({"kind": "kill", "rate": 0.009, "heal_after": delay} for delay in (2, {"low": 120, "high": 360}))
    experiment = synthetic.experiment(faults={"processes": [short, long]})
    assert verdict_of("faults.healed", run, tmp_path, experiment)["verdict"] == "fail"


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [(("broker-kill", "broker-kill"), "pass"), (("broker-kill", "driver-kill"), "fail"), (("kill", "pause"), "pass")],
)
def test_only_a_strike_on_the_same_place_excuses_a_return(kinds: tuple[str, str], verdict: str, tmp_path: Path) -> None:
    """The services of the gateway are places of their own: the death of the driver does not keep the broker away."""
    target = "worker-1" if "kill" in kinds else "gateway"

    def twice(frame: pd.DataFrame) -> pd.DataFrame:
        frame = put("joined_ns", 0, pd.NA)(frame)
        soon = frame["actual_ns"].where(frame.index != 1, frame["healed_ns"].iat[0] + 10**9)
        kind = frame["kind"].where(frame.index > 1, pd.Series([*kinds, *frame["kind"][2:]]))
        return frame.assign(actual_ns=soon, kind=kind, targets=frame["targets"].where(frame.index > 1, target))

    run = synthetic.make_run(tmp_path, changes={"faults": twice})
    assert verdict_of("faults.healed", run, tmp_path)["verdict"] == verdict


@pytest.mark.parametrize(("healed_s", "verdict"), [(209.9, "fail"), (210.1, "pass"), (240.5, "pass")])
def test_a_host_that_was_healed_too_late_to_start_need_not_join(healed_s: float, verdict: str, tmp_path: Path) -> None:
    """The window ends after 240 s. What is still held then is healed when the run ends."""
    healed, absent = put("healed_ns", 6, synthetic.ns(healed_s)), put("joined_ns", 6, pd.NA)
    run = synthetic.make_run(tmp_path, changes={"faults": lambda frame: absent(healed(frame))})
    assert verdict_of("faults.healed", run, tmp_path)["verdict"] == verdict


def no_rows(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[:0]


def no_outage(ledger: pd.DataFrame) -> pd.DataFrame:
    return ledger[ledger["class"].isin(["useful", "checkpoint"])]


@pytest.mark.parametrize(
    ("faults", "ledger", "verdict", "told"),
    [
        (every("kind", "broker-kill"), no_outage, "pass", "no recovery, 0 s of outages"),
        (every("kind", "broker-kill"), lambda same: same, "fail", "outage_s: "),
        (put("kind", 0, "broker-kill"), no_outage, "unknown", "a fault that loses work took effect"),
        (every("outcome", "absorbed"), no_outage, "unknown", "no fault took effect"),
        (no_rows, no_outage, "unknown", "no fault took effect"),
        (every("kind", "broker-kill"), no_rows, "unknown", "the ledger has no segments"),
    ],
)
def test_no_recovery_is_sound_only_where_none_was_needed(
    faults: synthetic.Change, ledger: synthetic.Change, verdict: str, told: str, tmp_path: Path
) -> None:
    changes = {"recoveries": no_rows, "faults": faults, "ledger": ledger}
    row = verdict_of("recoveries.values", synthetic.make_run(tmp_path, changes=changes), tmp_path)
    assert (row["verdict"], told in row["observed"] if verdict == "pass" else told in row["detail"]) == (verdict, True)


def test_a_batch_without_records_may_come_before_the_query_is_at_its_usual_pace(tmp_path: Path) -> None:
    """The recovery from the kill at 50.9 s takes .5 s longer than the ledger says: that long such a batch takes."""
    empty = {"batch": 107, "started_ns": synthetic.ns(56.4), "completed_ns": synthetic.ns(56.7), "records": 0}

    def with_empty(batches: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([batches, batches.iloc[[0]].assign(**empty)], ignore_index=True)

    changes = {"recoveries": lambda frame: shifted(frame, 1, 0.5)}
    for folder, more, verdict in (("all", {}, "fail"), ("one-empty", {"checkpoints": with_empty}, "pass")):
        run = synthetic.make_run(tmp_path / folder, changes=changes | more)
        assert verdict_of("recoveries.values", run, tmp_path / folder)["verdict"] == verdict


@pytest.mark.parametrize(
    ("engine", "verdict"),
    [
        ({"recovery": "query"}, "fail"),
        ({"recovery": "task"}, "fail"),
        ({"name": "dataflow", "protocol": "coordinated"}, "fail"),
        ({"name": "dataflow", "protocol": "coordinated", "standby": 1}, "pass"),
        ({"name": "dataflow", "protocol": "batch-aligned", "recovery": "passive"}, "pass"),
    ],
    ids=["query", "task", "global", "with a slot that stands by", "in parts"],
)
def test_a_strike_in_no_recovery_counts_only_where_it_must_take_work(engine, verdict, tmp_path: Path) -> None:
    """What is not judged is no demand either."""
    run = synthetic.make_run(tmp_path, changes={"recoveries": lambda frame: frame.drop(index=2)})
    experiment = synthetic.experiment(engine=engine, workload=Q12)
    found = verdict_of("recoveries.values", run, tmp_path, experiment)
    assert found["verdict"] == verdict, found
    (check,) = (each for each in CHECKS if each.name == "recoveries.values")
    asked = {rule.arguments["column"] for rule in check.rules(Evidence(run, experiment))}
    assert ("left_out" in asked) == (verdict == "fail")
    assert ("each fault that loses work struck in a recovery" in found["expected"]) == (verdict == "fail")
    assert verdict == "pass" or "left_out" in found["detail"]


def unended(recoveries: pd.DataFrame, row: int) -> pd.DataFrame:
    """Of this recovery, nothing that comes after the notice was seen."""
    for name in ("ready_ns", "restored_ns", "normal_ns", "restart_s", "restore_s", "catch_up_s"):
        recoveries = null(name, row)(recoveries)
    return recoveries


@pytest.mark.parametrize(
    ("row", "window_s", "verdict"),
    [(5, 240.0, "pass"), (5, 263.0, "pass"), (5, 264.5, "fail"), (2, 240.0, "fail")],
)
def test_an_outage_ends_unless_too_little_time_was_left(row, window_s, verdict, tmp_path: Path) -> None:
    """The last fault strikes at 201.7 s, and its host is away for 2 s."""

    def still_down(ledger: pd.DataFrame) -> pd.DataFrame:
        return ledger.assign(**{"class": ledger["class"].where(ledger["start_ns"] < synthetic.ns(201.7), "restart")})

    changes = {"recoveries": lambda frame: unended(frame, row), "ledger": still_down}
    run = synthetic.make_run(tmp_path, window_s=window_s, changes=changes)
    found = verdict_of("recoveries.values", run, tmp_path)
    assert found["verdict"] == verdict, found
    assert verdict == "pass" or "ended" in found["detail"]


def test_lateness_is_judged_at_p99(tmp_path: Path) -> None:
    """One late kill in 100 is allowed, two are not."""
    kills = tuple(10.0 + 11 * i for i in range(101))
    run = synthetic.make_run(tmp_path, kills=kills, window_s=1200.0, changes=_on_time_but(0))
    assert verdict_of("faults.on_time", run, tmp_path)["verdict"] == "pass"
    run = synthetic.make_run(tmp_path, run_id="two-late", kills=kills, window_s=1200.0, changes=_on_time_but(0, 1))
    assert verdict_of("faults.on_time", run, tmp_path)["verdict"] == "fail"


def test_the_lateness_that_is_shown_is_the_one_that_decides(tmp_path: Path) -> None:
    """Of 50 kills none may be late; between the last two the p99 would be 30 ms."""
    kills = tuple(10.0 + 11 * i for i in range(50))
    run = synthetic.make_run(tmp_path, kills=kills, window_s=600.0, changes=_on_time_but(0))
    row = verdict_of("faults.on_time", run, tmp_path)
    assert (row["verdict"], row["observed"]) == ("fail", "60 ms off at p99, 60 at most, 50 faults")


@pytest.mark.parametrize("lateness_s", [0.06, -0.06])
def test_a_strike_off_its_time_is_told_by_the_column_of_the_table(lateness_s: float, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, changes={"faults": put("lateness_s", 0, lateness_s)})
    detail = verdict_of("faults.on_time", run, tmp_path)["detail"]
    assert detail == f"lateness_s: 1 of 6 values outside -0.01 to 0.01, such as {lateness_s}"


def test_where_no_fault_struck_they_were_not_on_time(tmp_path: Path) -> None:
    lost = dict.fromkeys(("actual_ns", "lateness_s", "proved_ns", "violations"), pd.NA)
    changes = {"faults": lambda frame: frame.assign(outcome="missing", **lost)}
    row = verdict_of("faults.on_time", synthetic.make_run(tmp_path, changes=changes), tmp_path)
    assert (row["verdict"], row["observed"]) == ("fail", "none struck, 7 faults")


def test_strikes_whose_lateness_is_not_known_were_not_on_time(tmp_path: Path) -> None:
    changes = {"faults": lambda frame: frame.assign(lateness_s=pd.NA)}
    assert verdict_of("faults.on_time", synthetic.make_run(tmp_path, changes=changes), tmp_path)["verdict"] == "fail"


def _on_time_but(*late: int) -> dict[str, synthetic.Change]:
    """Faults on time, but for those numbers, which are 60 ms late."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(
            lateness_s=frame["lateness_s"].where(frame["outcome"] == "absorbed", 0.06 * frame["fault"].isin(late))
        )

    return {"faults": change}


def test_duplicates_are_told_but_not_judged(good_run: Run) -> None:
    verdicts = good_run.table("verdicts").set_index("check")
    assert verdicts.loc["quality.nothing_lost", "verdict"] == "pass"
    assert "225 duplicated" in verdicts.loc["quality.nothing_lost", "observed"]


ONCE = {"name": "dataflow", "protocol": "coordinated"}


@pytest.mark.parametrize(("copies", "verdict"), [(0, "pass"), (1, "fail")])
def test_a_copy_fails_a_run_that_promises_every_result_once(copies: int, verdict: str, tmp_path: Path) -> None:
    def written(frame: pd.DataFrame) -> pd.DataFrame:
        return put("duplicated", 7, copies)(frame.assign(duplicated=0))

    run = synthetic.make_run(tmp_path, changes={"quality": written})
    experiment = synthetic.experiment(engine=ONCE, workload=Q12)
    assert verdict_of("quality.nothing_duplicated", run, tmp_path, experiment)["verdict"] == verdict


@pytest.mark.parametrize(
    ("engine", "promised"),
    [
        ({}, False),
        (ONCE, True),
        ({"name": "dataflow", "protocol": "none"}, False),
        ({"name": "dataflow", "protocol": "uncoordinated"}, True),
        ({"name": "dataflow", "protocol": "output-log"}, True),
        ({"name": "dataflow", "protocol": "batch-aligned", "recovery": "source-replay", "partitions": 16}, True),
    ],
)
def test_each_result_is_promised_once_by_what_publishes_in_transactions(engine: dict, promised: bool) -> None:
    asks = checks_for(synthetic.experiment(engine=engine, workload=Q12))
    assert ("quality.nothing_duplicated" in {check.name for check in asks}) == promised


@pytest.mark.extended
def test_a_control_run_is_held_against_the_model_without_faults(control_run: Run) -> None:
    verdicts = control_run.table("verdicts").set_index("check")
    assert verdicts.loc["utilization.predicted", "verdict"] == "pass"
    assert "(no faults: " in verdicts.loc["utilization.predicted", "expected"]
    meaningless = {"faults.values", "recoveries.values", "faults.on_time", "faults.proved", "faults.healed"}
    assert meaningless.isdisjoint(verdicts.index)
    assert set(verdicts["verdict"]) == {"pass"}


def test_at_a_set_rate_there_is_no_second_estimate_and_nothing_to_saturate() -> None:
    at_a_rate = {check.name for check in checks_for(synthetic.experiment(load={"mode": "rate"}))}
    saturating = {check.name for check in checks_for(synthetic.experiment())}
    assert saturating - at_a_rate == {"utilization.estimates_agree", "load.saturated"}


def test_what_recovers_in_parts_may_wait_for_input_of_what_is_down() -> None:
    for recovery in ("global", "passive"):
        engine = {"name": "dataflow", "protocol": "batch-aligned", "recovery": recovery, "partitions": 16}
        asks = checks_for(synthetic.experiment(engine=engine, workload={"name": "window-tree"}))
        assert ("load.saturated" in {check.name for check in asks}) == (recovery == "global")


def test_observed_and_expected_are_short_texts(good_run: Run) -> None:
    row = good_run.table("verdicts").set_index("check").loc["utilization.predicted"]
    assert re.fullmatch(r"measured 0\.\d{1,3}", row["observed"])
    assert re.fullmatch(r"0\.\d{1,3} to 0\.\d{1,3} \(replayed faults: 0\.\d{1,3}\)", row["expected"])


def test_a_broken_expectation_without_a_configuration_still_fails() -> None:
    from results.checks.judge import ExpectationValidationResult, decide

    verdict, detail = decide([ExpectationValidationResult(success=False)])
    assert (verdict, detail) == (Verdict.FAIL, "an expectation of which nothing is told")
