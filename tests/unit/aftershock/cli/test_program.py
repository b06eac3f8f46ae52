"""The command line's contract: one JSON document on stdout, one line of error on stderr, the exit codes."""

from __future__ import annotations

import errno
import json
import subprocess
import sys

import pytest

from chaos.implications import implied
from chaos.plan import load_fault_spec, plan
from experiments.wording import significant
from models import utilization as model
from models.simulation.simulate import simulate
from results.runs import store
from tests.unit.results import synthetic

RATE, COST, RECOVERY, INTERVAL, DELAY, DEPTH = 0.01, 1.0, 5.0, 20.0, 0.1, 3
PREDICT = f"predict utilization --failure-rate {RATE} --checkpoint-cost {COST} --recovery-time {RECOVERY}"
SIMULATE = f"{PREDICT.replace('predict', 'simulate')} --interval {INTERVAL}"
FAULTS = """
duration: 3600
hosts: {node-1: [rack-a], node-2: [rack-a], node-3: [rack-b]}
processes:
  - {kind: kill, scope: host, rate: 0.001, heal_after: 30}
  - {kind: pause, scope: domain, rate: 0.002, spread: 20, heal_after: {low: 1, high: 2}}
"""


@pytest.fixture
def faults(tmp_path):
    path = tmp_path / "faults.yaml"
    path.write_text(FAULTS, encoding="utf-8")
    return path


def test_predict_utilization_is_the_model(as_json):
    found = as_json(f"{PREDICT} --interval {INTERVAL} --hop-delay {DELAY} --depth {DEPTH}")
    assert found == {
        "utilization": model.utilization(RATE, COST, RECOVERY, INTERVAL, DELAY, DEPTH),
        "optimal_interval": model.optimal_interval(RATE, COST),
        "optimal_utilization": model.optimal_utilization(RATE, COST, RECOVERY, DELAY, DEPTH),
        "intervals": {
            "young": model.young(RATE, COST),
            "daly": model.daly(RATE, COST, RECOVERY),
            "daly_higher_order": model.daly_higher_order(RATE, COST) + COST,
            "zhuang": model.zhuang(RATE, COST, RECOVERY),
        },
    }


def test_the_higher_order_of_daly_contains_the_checkpoint_as_the_optimum_does(as_json):
    found = as_json("predict utilization --failure-rate 0.1 --checkpoint-cost 20 --recovery-time 5 --interval 30")
    assert found["intervals"]["daly_higher_order"] == 30.0  # his tau is 1 / L = 10 s, less than the checkpoint takes


def test_predict_utilization_defaults_to_one_operator_without_delay(as_json):
    found = as_json(f"{PREDICT} --interval {INTERVAL}")
    assert found["utilization"] == model.utilization(RATE, COST, RECOVERY, INTERVAL, 0.0, 1)


def test_predict_utilization_without_an_interval_is_of_the_best_one(as_json, call):
    chain = f"--hop-delay {DELAY} --depth {DEPTH}"
    assert as_json(f"{PREDICT} {chain}") == as_json(f"{PREDICT} {chain} --interval {INTERVAL}") | {"utilization": None}
    with_interval = call(f"{PREDICT} {chain} --interval {INTERVAL}")[1].splitlines()
    assert call(f"{PREDICT} {chain}")[1].splitlines() == with_interval[1:]


def test_predict_utilization_for_a_person(call):
    code, out, err = call(f"{PREDICT} --interval {INTERVAL}")
    assert (code, err) == (0, "")
    assert f"utilization at T = 20 s    {significant(model.utilization(RATE, COST, RECOVERY, INTERVAL))}" in out
    assert "young" in out


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_what_is_beyond_the_largest_number_is_null_in_json(call):
    words = "predict utilization --failure-rate 5e-324 --checkpoint-cost 1e300 --recovery-time 0 --interval 1e301"
    code, out, _ = call(f"{words} --json")
    found = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert (code, found["utilization"], found["optimal_interval"]) == (0, pytest.approx(0.9), None)
    assert found["intervals"] == dict.fromkeys(("young", "daly", "daly_higher_order", "zhuang"))
    assert "optimal interval T*        inf s" in call(words)[1]


def test_simulate_utilization_is_the_simulation(as_json, call):
    words = f"{SIMULATE} --depth {DEPTH} --hop-delay {DELAY}"
    found = as_json(f"{words} --runs 20 --failures 50 --seed 3")
    system = {
        "failure_rate": RATE,
        "checkpoint_cost": COST,
        "recovery_time": RECOVERY,
        "interval": INTERVAL,
        "hop_delay": DELAY,
        "depth": DEPTH,
    }
    simulated = simulate(**system, runs=20, failures=50, seed=3)
    predicted = model.utilization(RATE, COST, RECOVERY, INTERVAL, DELAY, DEPTH)
    assert found == {"mean": simulated.mean, "std": simulated.std, "runs": 20, "model": predicted}
    text = call(f"{words} --runs 20 --failures 50 --seed 3")[1]
    assert f"simulated utilization    {significant(simulated.mean)}   mean of 20 runs" in text


def test_plan_faults_is_the_plan(as_json, faults):
    spec = load_fault_spec(faults)
    drawn = [event.to_json() for event in plan(spec, 5)]
    found = as_json(f"plan faults {faults} --seed 5")
    assert set(found) == {"events", "implied", "drawn"}
    assert found["events"] == drawn
    assert found["implied"] == implied(spec).to_json()
    assert found["drawn"]["failure_rate"] == len(drawn) / spec.duration
    assert len(drawn) > 5
    assert set(drawn[0]) == {"at", "kind", "targets", "cause", "heal_after"}
    assert as_json(f"plan faults {faults} --seed 6")["events"] != drawn


def test_plan_faults_for_a_person(call, faults):
    drawn = plan(load_fault_spec(faults), 5)
    code, out, err = call(f"plan faults {faults} --seed 5")
    assert (code, err) == (0, "")
    events, tolls = out.split("\n\n")
    assert events.count("\n") == len(drawn)
    assert [line.split()[:2] for line in tolls.splitlines()] == [
        ["implied", "this"], ["faults", "per"], ["host", "failures"], ["correlated", "share"],
        ["hosts", "down"], ["hosts", "down"], ["strikes", "absorbed"], ["strikes", "withheld"],
        ["heals", "after"],
    ]  # fmt: skip
    faults.write_text("duration: 1\nhosts: {h: []}\nprocesses: [{rate: 1.0e-9}]\n", encoding="utf-8")
    assert call(f"plan faults {faults} --seed 5")[1].startswith("no fault within the duration\n")


def test_results_lists_the_runs(call, as_json, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert as_json("results") == {"runs": [], "published_runs": 0}
    assert call("results")[1].startswith("no run yet")
    older, newer = (synthetic.make_run(home / "runs", run_id=name) for name in ("older", "newer"))
    store.write_json(newer.root / "status.json", newer.status().to_json() | {"started_ns": synthetic.START_NS})
    (home / "runs" / "stray").mkdir()
    failed = store.Run("failed", home / "runs" / "failed")
    status = {"run_id": "failed", "experiment": "mine", "state": "failed", "started_ns": 0, "error": "disk full"}
    store.write_json(failed.root / "status.json", status)
    told = as_json("results")["runs"]
    for found, run in zip(told, (newer, older, failed), strict=True):
        assert run.status().to_json().items() <= found.items()
    assert [found["verdict"] for found in told] == ["unknown"] * 3
    assert (told[0]["engine"], told[0]["protocol"], told[0]["recovery"]) == ("structured-streaming", None, "query")
    assert 0 < told[0]["utilization"]["low"] < told[0]["utilization"]["predicted"]
    assert told[2]["utilization"] == dict.fromkeys(("measured", "predicted", "low", "high"))
    code, out, _ = call("results")
    head, *lines = out.splitlines()
    assert head.split("  ")[-1] == "run"
    assert (code, [line.split()[-1] for line in lines[:2]]) == (0, ["newer", "older"])
    assert lines[2].endswith("failed  disk full")
    assert f"({significant(told[0]['utilization']['predicted'])})" in lines[0]


def test_a_fault_that_the_driver_cannot_inject_is_refused_in_one_line_before_airflow_starts(call, home):
    code, out, err = call("benchmark --set faults.processes.0.kind=power-off")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "faults.processes.0.kind: 'power-off'" in err
    assert not (home / "airflow").exists()


def test_a_run_of_an_earlier_version_says_how_it_can_be_shown(call, home):
    run = synthetic.make_run(home / "runs", run_id="old")
    faults = run.table("faults").drop(columns="outcome")
    faults.to_parquet(run.tables / "faults.parquet")
    code, out, err = call("results old")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "aftershock results recompute old" in err


def test_results_shows_a_run_as_the_benchmark_does(call, as_json, home):
    run = synthetic.make_run(home / "runs", run_id="run-1")
    found = as_json("results run-1")
    names = ["run_id", "verdicts", "utilization", "sustainable", "ledger", "faults", "recoveries", "quality"]
    assert list(found) == names
    assert found["run_id"] == "run-1"
    assert sum(v for k, v in found["ledger"].items() if k != "window") == pytest.approx(found["ledger"]["window"])
    assert len(found["faults"]) == len(run.table("faults"))
    assert set(found["recoveries"][0]) == {"fault", "detect", "restart", "restore", "catch_up"}
    code, out, err = call("results run-1")
    assert (code, err) == (0, "")
    assert "run-1" in out
    assert as_json("results show run-1") == found


def test_recommend_says_what_to_run_next(call, as_json, home):
    run = synthetic.make_run(home / "runs", run_id="run-1")
    store.write_json(run.experiment_path, synthetic.experiment().model_dump(mode="json"))
    assert as_json("recommend run-1")["interval"] == pytest.approx(7.44, abs=0.01)
    code, out, err = call("recommend run-1")
    assert (code, err) == (0, "")
    assert "7.44 s   5.04 to 13.9 s" in out
    found = as_json("recommend run-1 --failure-rate 2e-5")
    assert (found["failure_rate"], found["interval"]) == (2e-5, pytest.approx(265, abs=1))
    code, out, err = call("recommend run-1 --failure-rate 0")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--failure-rate: 0.0 is not usable; allowed: a finite rate above 0" in err


def test_recommend_of_a_run_without_faults_is_one_line(call, home):
    run = synthetic.make_run(home / "runs", run_id="calm", kills=())
    store.write_json(run.experiment_path, synthetic.experiment(faults={}).model_dump(mode="json"))
    code, out, err = call("recommend calm")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "calm" in err


def test_results_of_a_failed_run_say_why(call, as_json, home):
    run = synthetic.make_run(home / "runs", run_id="run-1", without=("ledger",))
    failed = run.status().to_json() | {"state": "failed", "error": "no broker; start one", "exit_code": 3}
    store.write_json(run.root / "status.json", failed)
    assert as_json("results run-1") == failed
    assert "no broker; start one" in call("results run-1")[1]
    assert "no broker; start one" in call("results")[1]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("", "COMMAND"),
        ("nonsense", "'nonsense'"),
        ("predict", "WHAT"),
        ("predict utilization --interval 5", "--failure-rate"),
        (PREDICT.replace("0.01", "1/60"), "--failure-rate: '1/60' is no number: write 0.0166667"),
        ("recommend run-1 --failure-rate 1/60", "--failure-rate: '1/60' is no number: write 0.0166667"),
        (f"{PREDICT} --interval ten", "'ten'"),
        (f"{PREDICT} --depth 0", "depth: 0"),
        (f"{PREDICT.replace('predict', 'simulate')} --seed 1", "--interval"),
        (f"{PREDICT} --interval 0.5", "above checkpoint_cost (1)"),
        (f"{PREDICT} --interval nan", "interval: nan"),
        (f"{PREDICT} --interval 20 --depth 0", "depth: 0"),
        (f"{PREDICT} --interval 20 --depth 1.5", "'1.5'"),
        (f"{PREDICT} --interval 20 --hop-delay -1", "hop_delay: -1.0"),
        (f"{PREDICT} --interval 20 --failure-rate 0", "failure_rate: 0.0"),
        (f"{SIMULATE} --seed 1 --runs 1", "runs: 1"),
        (f"{SIMULATE} --seed 1 --failures 0", "failures: 0"),
        (f"{SIMULATE} --seed -1", "--seed: -1"),
        (SIMULATE, "--seed"),
        (f"{SIMULATE} --seed 1 --interval inf", "interval: inf"),
        ("reproduce --size 3", "--size: 3"),
        ("reproduce utilization/fig-04 --out README.md", "out: "),
        (f"{PREDICT} --inter 20", "--inter"),
        ("reproduce utilization/fig-99", "id: 'utilization/fig-99'"),
        ("reproduce utilization/fig-04 --size 5", "size: 5"),
        ("reproduce utilization/fig-05 --size 0", "size: 0"),
        ("plan faults no/such/file.yaml --seed 1", "'no/such/file.yaml'"),
        ("plan faults FILE", "--seed: left out"),
        ("plan faults FILE --seed 1 --set seed=2", "--set: 'seed=2'"),
        ("plan faults gone --seed 1", "twenty-kills"),
        ("plan faults FILE --seed -1", "--seed: -1"),
        ("plan faults FILE --seed 1.5", "'1.5'"),
        ("results no-such-run", "'no-such-run'"),
        ("results ../../etc", "'../../etc'"),
        ("benchmark no-such-experiment", "'no-such-experiment'"),
        ("benchmark wordcount --set cluster.workers=0", "cluster.workers: 0"),
        ("benchmark wordcount --set nonsense", "--set: 'nonsense'"),
        ("benchmark wordcount --set workload.corpus=/no/such", "workload.corpus: '/no/such'"),
        ("benchmark FILE", "this is a fault spec, for `aftershock plan faults FILE`"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(call, faults, words, named):
    code, out, err = call(words.replace("FILE", str(faults)))
    assert (code, out) == (2, "")
    assert err.startswith("aftershock: ")
    assert err.count("\n") == 1
    assert named in err
    assert "allowed: " in err


@pytest.mark.parametrize("port", [-1, 0, 65_536])
def test_a_port_that_is_none_is_one_line(call, home, port):
    code, out, err = call(f"serve --port {port}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"--port: {port}" in err
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("duration: -1", "duration: -1"),
        ("duration: 5\nhosts: {h: []}\nprocesses: [{rate: 1, kind: explode}]", "processes.0.kind: 'explode'"),
        ("duration: 5\nprocesses: []", "hosts: left out"),
        ("duration: 5\nhosts: {}\nprocesses: []", "hosts: {}"),
        ("hosts: {h: []}\nprocesses: [{rate: 1}]", "duration: left out"),
        ("nonsense: 1", "nonsense: 1"),
        ("- 1", "a YAML mapping"),
        ("a: [", "valid YAML"),
    ],
)
def test_a_fault_spec_that_cannot_be_used_is_named(call, faults, text, named):
    faults.write_text(text, encoding="utf-8")
    code, out, err = call(f"plan faults {faults} --seed 1 --json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert named in err
    assert str(faults) in err


@pytest.mark.extended
def test_a_reader_that_stops_early_is_no_failure(tmp_path):
    path = tmp_path / "faults.yaml"
    path.write_text("duration: 1.0e5\nhosts: {h: []}\nprocesses: [{rate: 0.1}]\n", encoding="utf-8")
    command = [sys.executable, "-m", "aftershock.cli.program", "plan", "faults", str(path), "--seed", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_the_command_itself_exits_with_the_code(home):
    command = [sys.executable, "-m", "aftershock.cli.program", "results", "no-such-run", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.extended
def test_the_command_itself_writes_nothing_but_the_document(home):
    command = [sys.executable, "-m", "aftershock.cli.program", "results", "--json"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (listed.returncode, json.loads(listed.stdout), listed.stderr) == (0, {"runs": [], "published_runs": 0}, "")


@pytest.mark.parametrize(
    ("words", "where", "told"),
    [
        ("clean", "watch.clean.clean", "what it was to end may still run: call it again"),
        ("abort run-1", "watch.live.abort_with_leftovers", "what it was to end may still run: call it again"),
        ("doctor", "run.doctor.examine", "nothing of it is left running"),
    ],
)
def test_who_interrupts_a_command_is_told_whether_something_may_be_left(call, home, monkeypatch, words, where, told):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"aftershock.{where}", interrupted)
    assert call(words) == (130, "", f"aftershock: interrupted; {told}\n")


@pytest.mark.parametrize("workers", ["0", "201", "10 1000000000"])
def test_simulated_clusters_are_bounded(call, workers):
    code, out, err = call(f"simulate protocols --workers {workers}")
    assert (code, out) == (2, "")
    assert "allowed: whole numbers from 1 to 200" in err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileNotFoundError("/runs/one/tables/runs.parquet"), "/runs/one/tables/runs.parquet is missing"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/x"), "/x: No such file or directory"),
        (TimeoutError("no answer in time"), "the system: no answer in time"),
        (OSError(errno.ENOSPC, "No space left on device"), "the system: No space left on device"),
        (MemoryError("Unable to allocate 64.0 PiB"), "the memory of this machine does not suffice"),
    ],
)
def test_what_the_system_refuses_is_one_line_that_says_what_it_is(call, monkeypatch, error, told):
    def refused():
        raise error

    monkeypatch.setattr(store, "all_finished", refused)
    assert call("results prune --keep 1") == (3, "", f"aftershock: {told}; mend that and try again\n")
