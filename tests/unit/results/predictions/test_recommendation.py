"""What a run advises follows from what it measured, by formulas that can be done by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments import spec
from experiments.errors import BadInput
from experiments.wording import significant
from models import partial_rollback
from models.uncertainty import predict_run
from models.utilization import optimal_interval, utilization
from results.predictions.advised import advise
from results.predictions.described import REASONS
from results.predictions.process import MeasuredProcess
from results.predictions.recommendation import _Counted, recommend
from results.runs.store import Run, write_json
from results.summary.findings import REPLAY_MODEL, model_inputs
from results.views.recommended import option, recommended, remark
from results.views.terminal import summary
from tests.unit.results import synthetic


def made(root: Path, **options) -> Run:
    run = synthetic.make_run(root, **options)
    write_json(run.experiment_path, synthetic.experiment().model_dump(mode="json"))
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return made(tmp_path_factory.mktemp("recommended"))


@pytest.fixture(scope="module")
def measured(run) -> MeasuredProcess:
    return MeasuredProcess(run, synthetic.experiment())


def test_the_interval_is_the_optimum_at_the_measured_rate_and_cost(run):
    found, inputs = recommend(run), model_inputs(run)
    costs = inputs.failure_rate, inputs.checkpoint_cost_s
    best_s = float(optimal_interval(*costs))
    assert found.advice.optimal_interval_s == pytest.approx(best_s)
    assert found.interval_s[0] < best_s < found.interval_s[1]
    assert found.advice.optimal_expected == pytest.approx(utilization(*costs, inputs.recovery_time_s, best_s))
    assert found.advice.optimal_expected >= found.advice.expected


def test_more_evidence_narrows_the_interval(tmp_path):
    """Four times the window with four times the kills: the rate is known twice as well."""
    kills = tuple(shift + at for shift in (0, 240, 480, 720) for at in synthetic.KILLS_S)
    few, many = recommend(made(tmp_path / "few")), recommend(made(tmp_path / "many", kills=kills, window_s=960.0))
    widths = [math.log(high / low) for low, high in (few.interval_s, many.interval_s)]
    assert 1.6 < widths[0] / widths[1] < 2.6


def test_one_run_at_the_advised_interval_may_be_struck_at_another_rate_than_this_one(run, measured):
    """A few kills do not say at which rate hosts fail: the interval is wider than at a rate that is known."""
    found, inputs = recommend(run), model_inputs(run)
    known = predict_run(
        window_s=measured.window_s,
        interval_s=found.advice.optimal_interval_s,
        checkpoint_costs_s=measured.costs_s,
        recovery_times_s=measured.recoveries_s,
        hop_delay_s=inputs.hop_delay_s,
        depth=inputs.depth,
        failures=None,
        failure_rate=inputs.failure_rate,
        seed=1,
    )
    low, high = found.utilization
    assert high - low > 1.2 * (known.high - known.low)
    assert low < found.advice.optimal_expected < high


def test_the_latency_is_recovery_and_the_age_of_the_checkpoint(run, measured):
    """The mean age of the last checkpoint when a failure strikes a period T: 1 / L - T / (exp(L T) - 1)."""
    found, rate = recommend(run), model_inputs(run).failure_rate
    for interval_s, latency_s in (
        (found.advice.optimal_interval_s, found.latency.value),
        (found.advice.interval_s, found.latency_now_s),
    ):
        age_s = 1 / rate - interval_s / math.expm1(rate * interval_s)
        assert latency_s == pytest.approx(np.mean(measured.recoveries_s) + age_s)
    assert min(measured.recoveries_s) <= found.latency.low < found.latency.value < found.latency.high
    assert found.latency.high <= max(measured.recoveries_s) + found.advice.optimal_interval_s


def test_the_latency_counts_that_a_checkpoint_is_complete_when_its_token_has_travelled(tmp_path):
    """With D = (n - 1) delta, a failure of a system that is up undoes 1 / L - T exp(-L D) / (exp(L T) - 1)."""
    slow = {"predictions": lambda rows: rows.assign(hop_delay_s=2.0, depth=3)}
    delayed = made(tmp_path, changes=slow)
    found, inputs = recommend(delayed), model_inputs(delayed)
    rate, interval_s, recovery_s = inputs.failure_rate, found.advice.interval_s, inputs.recovery_time_s
    age_s = 1 / rate - interval_s * math.exp(-rate * 4.0) / math.expm1(rate * interval_s)
    assert found.latency_now_s == pytest.approx(recovery_s + age_s)


def test_of_one_recovery_it_is_not_known_how_others_differ(tmp_path):
    found = advise(made(tmp_path, kills=(50.9,)))
    document, text = found.to_json(), recommended(found)
    assert document["recovery_latency"] > 0
    assert (document["recovery_latency_low"], document["recovery_latency_high"]) == (None, None)
    assert "not known: one recovery" in text
    assert all(len(line) <= 92 for line in text.splitlines())


def test_time_to_spare_shortens_the_latency(tmp_path):
    """At half the service rate the work since the last checkpoint is done again twice as fast."""
    half = made(tmp_path, changes={"runs": lambda runs: runs.assign(load_rate=runs["service_rate"] / 2)})
    full = made(tmp_path / "full")
    recovery_s = np.mean(MeasuredProcess(full, synthetic.experiment()).recoveries_s)
    spare, none = recommend(half).latency_now_s - recovery_s, recommend(full).latency_now_s - recovery_s
    assert spare == pytest.approx(none / 2, rel=1e-3)


@pytest.mark.parametrize(("load", "share"), [({"mode": "saturating"}, 1.0), ({"mode": "rate", "rate": 3000}, 0.9)])
def test_a_load_that_saturates_the_testbed_leaves_no_time_although_checkpoints_kept_it_down(tmp_path, load, share):
    """The load is a quarter above what the calibration found, of which checkpoints took more than a fifth."""
    run = synthetic.make_run(tmp_path, changes={"runs": lambda runs: runs.assign(load_rate=0.9 * runs["service_rate"])})
    engine, query = {"name": "dataflow", "protocol": "coordinated"}, {"name": "nexmark", "query": "q12"}
    experiment = synthetic.experiment(engine=engine, workload=query, load=load)
    write_json(run.experiment_path, experiment.model_dump(mode="json"))
    assert recommend(run).redone_share == pytest.approx(share)


def test_the_best_interval_is_longer_where_a_failure_takes_a_part_of_the_work(tmp_path):
    """To first order by the square root of that part; eq. 10 counts all of it."""
    spare = made(tmp_path, changes={"runs": lambda runs: runs.assign(load_rate=runs["service_rate"] / 2)})
    half, full = recommend(spare), recommend(made(tmp_path / "full"))
    assert (half.redone_share, full.redone_share) == (pytest.approx(0.5), 1.0)
    ratio = half.advice.optimal_interval_s / full.advice.optimal_interval_s
    assert ratio == pytest.approx(math.sqrt(2), rel=0.1)
    assert half.interval_s == pytest.approx([end * math.sqrt(2) for end in full.interval_s], rel=0.15)
    assert half.interval_s[0] < half.advice.optimal_interval_s < half.interval_s[1]
    assert half.advice.expected > full.advice.expected
    assert (half.utilization, full.utilization is None) == (None, False)
    assert "0.5 of the time since the last checkpoint" in half.models["interval"]
    text = recommended(advise(spare))
    assert "not known where failures take a part" in text
    assert all(len(line) <= 92 for line in text.splitlines())


def by_task(root: Path, workers: int = 3, **changes) -> Run:
    """A run in mode task: a fault takes a part of the work, and the ledger always books more as lost to it."""
    task = {"runs": lambda runs: runs.assign(recovery="task")}
    run = synthetic.make_run(root, changes=task | changes)
    fields = {"engine": {"recovery": "task"}, "cluster": {"workers": workers}}
    write_json(run.experiment_path, synthetic.experiment(**fields).model_dump(mode="json"))
    return run


def test_by_task_a_failure_costs_at_the_interval_as_run_what_it_cost_in_the_run(tmp_path):
    """Hosts that are away slow batches down, however old the last checkpoint is. The latency ends before that."""
    run = by_task(tmp_path)
    found, inputs, ledger = recommend(run), model_inputs(run), run.table("ledger")
    per_failure_s = ledger["seconds"][ledger["fault"].notna()].sum() / len(found.failures)
    assert found.redone_share == pytest.approx(1 / 3)
    assert found.latency_now_s + found.besides_s == pytest.approx(per_failure_s)
    assert found.besides_s > 1
    costs = inputs.checkpoint_cost_s, inputs.recovery_time_s + found.besides_s
    expected = partial_rollback.utilization(inputs.failure_rate, *costs, inputs.interval_s, 1 / 3)
    assert found.advice.expected == pytest.approx(expected)
    assert f"A failure also cost {found.besides_s:.3g} s, since batches are slow" in found.models["interval"]
    text = recommended(advise(run))
    assert all(len(line) <= 92 for line in text.splitlines())


def lost_times(factor: float):
    """A change of the ledger: so many times as much is lost."""

    def change(ledger: pd.DataFrame) -> pd.DataFrame:
        return ledger.assign(seconds=ledger["seconds"].where(ledger["class"] != "lost", factor * ledger["seconds"]))

    return change


def test_of_a_single_worker_a_failure_takes_all_work_and_the_limits_have_what_it_costs_besides(tmp_path):
    found = recommend(by_task(tmp_path, workers=1, ledger=lost_times(5)))
    assert (found.redone_share, found.is_of_eq_10) == (1.0, False)
    assert found.besides_s > 10
    low, high = found.utilization
    assert low < found.advice.optimal_expected < high


def test_strikes_that_count_as_one_failure_cost_together_what_they_cost_apart(tmp_path):
    """The longer the interval, the more strikes of one cause are one failure."""
    run = by_task(tmp_path)
    process, inputs = MeasuredProcess(run, synthetic.experiment(engine={"recovery": "task"})), model_inputs(run)
    vars(process)["strikes"] = [replace(each, cause="one clock") for each in process.strikes]
    apart, together = (_Counted.at(interval_s, process, inputs, 4.0) for interval_s in (0.5, 60.0))
    assert len(apart.struck) > len(together.struck)
    for counted in (apart, together):
        assert counted.besides_s * len(counted.struck) == pytest.approx(4.0 * len(process.strikes))


def test_by_task_what_the_share_explains_costs_nothing_besides(tmp_path):
    found = recommend(by_task(tmp_path, ledger=lost_times(0.1)))
    assert found.besides_s == 0.0
    assert "also cost" not in str(found.models)


def test_where_the_query_stops_as_a_whole_nothing_is_counted_besides(run):
    assert recommend(run).besides_s == 0.0


def test_what_was_measured_stands_beside_what_the_model_gives_for_it(run, tmp_path):
    found, facts, recoveries = advise(run).to_json(), run.table("runs").iloc[0], run.table("recoveries")
    latencies_s = recoveries[["detect_s", "restart_s", "restore_s"]].sum(axis=1)
    assert found["utilization_measured"] == facts["utilization"]
    assert found["recovery_latency_measured"] == pytest.approx(latencies_s.mean())
    (utilization,) = (
        line.split() for line in recommended(advise(run)).splitlines() if line.startswith("  utilization")
    )
    assert utilization[1] == significant(facts["utilization"])
    unseen = {"recoveries": lambda rows: rows.assign(restored_ns=None, restore_s=None, normal_ns=None, catch_up_s=None)}
    assert advise(made(tmp_path, changes=unseen)).to_json()["recovery_latency_measured"] is None
    unknown = advise(made(tmp_path / "unknown", changes={"runs": lambda rows: rows.assign(utilization=None)}))
    assert unknown.to_json()["utilization_measured"] is None
    (row,) = (line.split() for line in recommended(unknown).splitlines() if line.startswith("  utilization"))
    assert row[1] == "-"


def test_where_recoveries_fill_the_time_the_limits_are_still_around_the_best_interval(tmp_path):
    """With L R = 0.4 the best interval is much shorter than to first order, and 240 faults tell the rate well."""
    kills, window_s = tuple(10 + 12.3 * number for number in range(240)), 3000.0
    changes = {
        "runs": lambda runs: runs.assign(load_rate=runs["service_rate"] / 5),
        "predictions": lambda rows: rows.assign(failure_rate=len(kills) / window_s),
    }
    found = recommend(made(tmp_path, kills=kills, window_s=window_s, changes=changes))
    low_s, high_s = found.interval_s
    assert found.redone_share == pytest.approx(0.2)
    assert low_s < found.advice.optimal_interval_s < high_s < 1.3 * low_s


def test_the_document_has_the_fields_of_the_contract(run):
    found = advise(run).to_json()
    contract = {"interval", "interval_low", "interval_high", "utilization_now", "utilization_then", "copies"}
    assert contract | {"tentative_fidelity", "recovery_latency", "models"} <= set(found)
    json.dumps(found, allow_nan=False)


def test_a_person_reads_whether_to_change_anything(run, tmp_path):
    assert "may be the best one already" in recommended(advise(run))
    rarely = {"checkpoints": lambda rows: rows.assign(checkpoint_s=rows["checkpoint_s"] / 100)}
    cheap = {"predictions": lambda rows: rows.assign(checkpoint_cost_s=rows["checkpoint_cost_s"] / 100)}
    text = recommended(advise(made(tmp_path, changes=rarely | cheap)))
    assert "--set engine.checkpoint_interval_s=" in text
    assert all(len(line) <= 92 for line in text.splitlines())


def test_in_real_time_mode_no_shorter_interval_is_advised_than_spark_runs(tmp_path):
    cheap = {
        "checkpoints": lambda rows: rows.assign(checkpoint_s=rows["checkpoint_s"] / 100),
        "predictions": lambda rows: rows.assign(checkpoint_cost_s=rows["checkpoint_cost_s"] / 100),
    }
    run = synthetic.make_run(tmp_path, changes=cheap)
    write_json(run.experiment_path, spec.load("real-time").model_dump(mode="json"))
    found = recommend(run)
    inputs = model_inputs(run)
    assert optimal_interval(inputs.failure_rate, inputs.checkpoint_cost_s) < 1
    assert (found.advice.optimal_interval_s, *found.interval_s) == (5.0, 5.0, 5.0)
    assert found.advice.optimal_expected == pytest.approx(inputs.at(5.0))
    assert found.models["interval"].endswith("; not below 5 s, the shortest interval that the engine can run")
    assert option(advise(run)) == "--set engine.checkpoint_interval_s=5"


@pytest.mark.parametrize(("best_s", "told"), [(0.0413, "0.0413"), (0.25, "0.25"), (5.361, "5.36"), (1234.5, "1234")])
def test_the_option_has_the_interval_of_the_table_however_short_or_long(run, best_s, told):
    found = advise(run)
    advice = replace(found.interval.advice, optimal_interval_s=best_s)
    known = replace(found, interval=replace(found.interval, advice=advice, interval_s=(0.9 * best_s, 1.1 * best_s)))
    assert option(known) == f"--set engine.checkpoint_interval_s={told}"


def test_a_run_without_faults_advises_nothing(tmp_path):
    with pytest.raises(BadInput, match="faults lost work"):
        advise(made(tmp_path, kills=()))


OWN_RATE = 2e-5  # a failure in 14 hours


def test_at_a_given_rate_the_advice_is_of_that_rate_with_the_costs_of_the_run(run, measured):
    found, inputs = recommend(run, OWN_RATE), model_inputs(run)
    costs = OWN_RATE, inputs.checkpoint_cost_s
    best_s = float(optimal_interval(*costs))
    assert found.advice.optimal_interval_s == pytest.approx(best_s)
    at_both = [utilization(*costs, inputs.recovery_time_s, interval_s) for interval_s in (inputs.interval_s, best_s)]
    assert (found.advice.expected, found.advice.optimal_expected) == pytest.approx(at_both)
    age_s = 1 / OWN_RATE - best_s / math.expm1(OWN_RATE * best_s)
    assert found.latency.value == pytest.approx(np.mean(measured.recoveries_s) + age_s)
    assert found.latency.low < found.latency.value < found.latency.high <= max(measured.recoveries_s) + best_s
    assert (found.utilization, found.failure_rate, found.measured_rate) == (None, OWN_RATE, inputs.failure_rate)


def test_at_a_given_rate_the_limits_are_those_of_the_checkpoint_cost(tmp_path):
    """Student's at 95 %, as if nothing else were unknown."""
    run = made(tmp_path, changes={"checkpoints": _scattered})
    costs_s = np.array(MeasuredProcess(run, synthetic.experiment()).costs_s)
    error = costs_s.std(ddof=1) / math.sqrt(len(costs_s))
    low_s, high_s = stats.t.interval(0.95, len(costs_s) - 1, costs_s.mean(), error)
    ends_s = [float(optimal_interval(OWN_RATE, cost_s)) for cost_s in (low_s, high_s)]
    assert recommend(run, OWN_RATE).interval_s == pytest.approx(ends_s)
    assert low_s < 0.9 * high_s


def _scattered(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(checkpoint_s=rows["checkpoint_s"] * np.where(np.arange(len(rows)) % 2, 0.5, 1.5))


def test_at_a_given_rate_a_failure_undoes_the_share_that_it_did_in_the_run(tmp_path):
    spare = made(tmp_path, changes={"runs": lambda runs: runs.assign(load_rate=runs["service_rate"] / 2)})
    half, inputs = recommend(spare, OWN_RATE), model_inputs(spare)
    assert half.redone_share == pytest.approx(0.5)
    best_s = partial_rollback.optimal_interval(OWN_RATE, inputs.checkpoint_cost_s, inputs.recovery_time_s, 0.5)
    assert half.advice.optimal_interval_s == pytest.approx(best_s)
    assert half.interval_s[0] <= half.advice.optimal_interval_s <= half.interval_s[1]


def test_the_run_s_own_rate_given_advises_as_without_one_but_for_the_limits(run):
    own, given = recommend(run), recommend(run, model_inputs(run).failure_rate)
    assert (given.advice, given.latency) == (own.advice, own.latency)
    assert own.interval_s[0] < given.interval_s[0] <= given.advice.optimal_interval_s
    assert given.advice.optimal_interval_s <= given.interval_s[1] < own.interval_s[1]


def test_a_person_and_a_program_read_which_rate_was_used(run):
    own, given = advise(run), advise(run, failure_rate=OWN_RATE)
    assert "  at 0.027 failures per second, as in the run\n" in recommended(own)
    text = recommended(given)
    assert "  at 0.00002 failures per second, as given; the run had 0.027\n" in text
    assert "none: it is the mean in the long run" in text
    assert "the limits of the checkpoint cost (Student); the given failure rate has none" in " ".join(text.split())
    assert all(len(line) <= 92 for line in text.splitlines())
    assert (own.to_json()["failure_rate"], given.to_json()["failure_rate"]) == (pytest.approx(0.027), OWN_RATE)
    assert (given.to_json()["utilization_low"], given.to_json()["utilization_high"]) == (None, None)


def test_an_interval_for_another_rate_is_no_option_of_the_next_run(run):
    given = advise(run, failure_rate=OWN_RATE)
    low_s, _ = given.interval.interval_s
    assert given.interval.advice.interval_s < low_s
    assert (option(given), remark(given)) == (None, None)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf, 1e-300, 1000.0])
def test_a_rate_that_cannot_be_is_refused(run, rate):
    with pytest.raises(BadInput, match=r"^--failure-rate: "):
        advise(run, failure_rate=rate)


@pytest.mark.parametrize("why", [*REASONS, "0 recoveries were seen to their end; at least 2 are needed"])
def test_a_run_without_a_prediction_is_refused_in_the_words_of_its_summary(tmp_path, why):
    def nothing(rows: pd.DataFrame) -> pd.DataFrame:
        model = why if why in REASONS else REPLAY_MODEL
        return rows[:1].assign(model=model, predicted=None, low=None, high=None, recovery_time_s=None, why=why)

    run = made(tmp_path, changes={"predictions": nothing})
    told = why if why in REASONS else f"unknown: {why}"
    assert f"predicted {told}" in " ".join(summary(run).split())
    with pytest.raises(BadInput, match=f"a run whose utilization is predicted; the summary of this one says: {told}$"):
        advise(run)
