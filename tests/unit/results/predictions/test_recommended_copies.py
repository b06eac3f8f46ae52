"""Which partitions a run advises to copy, by rates that can be weighed by hand."""

import shlex

import pandas as pd
import pytest

from aftershock.run.engines.choice import engine_of
from experiments import spec
from experiments.errors import BadInput
from results.predictions.advised import advise
from results.predictions.recommended_copies import recommend_copies
from results.runs.store import write_json
from results.tables.schema import TABLES
from results.views.recommended import recommended
from tests.unit.results import synthetic

TREE = {"name": "window-tree", "parallelism": [4, 2, 1]}
ENGINE = {
    "name": "dataflow",
    "protocol": "batch-aligned",
    "partitions": 4,
    "recovery": "partially-active",
    "standby": 2,
}
ENGINE |= {"replication_ratio": 0.0}
CLUSTER = {"workers": 4, "worker_cores": 1}
# window-1.1 puts out nine times what window-1.0 does, and reads from tuples.2 and tuples.3.
RATES = {f"tuples.{number}": 100.0 for number in range(4)}
RATES |= {"window-1.0": 10.0, "window-1.1": 90.0, "window-2.0": 50.0, "out.0": 50.0}
HEAVY_PATH = {"tuples.2", "window-1.1", "window-2.0", "out.0"}


def made(root, rates=None, engine=None, workload=None, **options):
    run = synthetic.make_run(root, **options)
    fields = {"cluster": CLUSTER, "workload": workload or TREE, "engine": ENGINE | (engine or {})}
    write_json(run.experiment_path, synthetic.experiment(**fields).model_dump(mode="json"))
    rows = (RATES if rates is None else rates).items()
    synthetic.write_table(run, "partition_rates", pd.DataFrame(rows, columns=TABLES["partition_rates"].names))
    return run


def test_copies_go_where_the_output_is(tmp_path):
    """One of the two sources of the heavy path: half of nine tenths of the output."""
    found = recommend_copies(made(tmp_path), 4)
    assert found.fidelity == pytest.approx(0.45)
    assert set(found.partitions) in (HEAVY_PATH, HEAVY_PATH - {"tuples.2"} | {"tuples.3"})
    assert (found.budget, found.count, found.copied_now, found.fidelity_now) == (4, 8, 0, 0.0)


def test_other_rates_give_another_plan(tmp_path):
    turned = RATES | {"window-1.0": 90.0, "window-1.1": 10.0}
    assert "window-1.0" in recommend_copies(made(tmp_path, turned), 4).partitions


@pytest.mark.parametrize(("budget", "fidelity"), [(0, 0.0), (3, 0.0), (5, 0.9), (8, 1.0)])
def test_more_copies_keep_more_of_the_output(tmp_path, budget, fidelity):
    """Less than one path through the dataflow keeps nothing."""
    assert recommend_copies(made(tmp_path), budget).fidelity == pytest.approx(fidelity)


def test_without_a_number_there_are_as_many_as_in_the_run_or_half(tmp_path):
    assert recommend_copies(made(tmp_path / "none")).budget == 4
    found = recommend_copies(made(tmp_path / "some", engine={"replication_ratio": 0.625}))
    assert (found.budget, found.copied_now) == (5, 5)
    assert found.fidelity == pytest.approx(0.9)
    assert found.fidelity_now in (pytest.approx(0.9), pytest.approx(0.1))


@pytest.mark.parametrize("budget", [-1, 9])
def test_a_number_that_cannot_be_is_refused_in_one_line(tmp_path, budget):
    with pytest.raises(BadInput, match=r"--budget.* 0 to 8, the partitions of the dataflow"):
        advise(made(tmp_path), budget)


def test_a_run_whose_interval_is_not_known_advises_copies_all_the_same(tmp_path):
    rates = {f"requests.{number}": 100.0 for number in range(4)} | {"slices.0": 10.0, "slices.1": 90.0}
    found = advise(made(tmp_path, rates, workload=TREE | {"name": "top-100"}, kills=()), 5)
    document = found.to_json()
    assert found.interval is None
    assert (document["interval"], document["recovery_latency"]) == (None, None)
    assert set(document["copies"]) == set(found.copies.partitions)
    assert document["tentative_fidelity"] == document["tentative_accuracy"] == pytest.approx(0.45)
    assert set(document["models"]) == {"copies", "tentative_fidelity"}
    text = recommended(found)
    assert "at most 5 of 9" in text
    assert "Copy requests." in text
    assert "checkpoint interval" not in text
    assert all(len(line) <= 92 for line in text.splitlines() if not line.startswith("--set"))


WITHOUT_COPIES = ["engine.recovery=passive", "engine.standby=0", "engine.replication_ratio=null"]
EXAMPLE = ["workload={name: window-tree, parallelism: [4, 2, 1]}", "engine.partitions=4"]


@pytest.mark.parametrize("changed", [[], ["engine.adapt_every_s=5"], WITHOUT_COPIES])
def test_a_run_that_follows_the_advice_has_these_copies_and_the_promised_fidelity(tmp_path, changed):
    """The options are pasted as they stand on the terminal, after the command of the run that advises them."""
    experiment = spec.load("ppa-partially-active", [*EXAMPLE, *changed])
    found = advise(of(tmp_path / "one", experiment), 5)
    (line,) = (each for each in recommended(found).splitlines() if each.startswith("--set engine") and "copied" in each)
    pasted = [each for each in shlex.split(line) if each != "--set"]
    followed = spec.load("ppa-partially-active", [*EXAMPLE, *changed, *pasted])
    assert set(followed.engine.copied) == set(found.copies.partitions)
    engine_of(followed).check()
    then = recommend_copies(of(tmp_path / "two", followed))
    assert (then.copied_now, then.budget) == (5, 5)
    assert then.fidelity_now == pytest.approx(found.copies.fidelity)


RACKS = "faults.hosts={worker-1: [a], worker-2: [a], worker-3: [b], worker-4: [b]}"


@pytest.mark.parametrize("budget", [5, 8])
@pytest.mark.parametrize(
    ("changed", "hosts"),
    [
        ([], 4),
        (["cluster={workers: 2, worker_cores: 2}"], 2),
        (["cluster={workers: 1, worker_cores: 1}"], 2),
        ([RACKS], None),
    ],
)
def test_the_advised_copies_have_places_whatever_slots_the_run_had(tmp_path, changed, hosts, budget):
    """Without standby slots: the advice takes hosts of the primaries, and asks for more if domains leave no place."""
    given = [*EXAMPLE, *WITHOUT_COPIES, "faults.events=[]", *changed]
    found = advise(of(tmp_path, spec.load("ppa-partially-active", given)), budget)
    pasted = [each for each in shlex.split(found.copies.options) if each != "--set"]
    followed = spec.load("ppa-partially-active", [*given, *pasted])
    engine_of(followed).check()
    assert len(followed.engine.copied) == len(found.copies.partitions)
    assert hosts is None or followed.cluster.workers == hosts


def of(root, experiment):
    """A run of an experiment with these rates."""
    run = made(root)
    write_json(run.experiment_path, experiment.model_dump(mode="json"))
    return run


def test_fidelity_is_no_accuracy_where_many_records_make_up_a_result(tmp_path):
    found = advise(made(tmp_path), 4)
    assert found.to_json()["tentative_fidelity"] is not None
    assert found.to_json()["tentative_accuracy"] is None
    assert "not the accuracy of this query" in recommended(found)


def test_without_measured_rates_nothing_is_said_of_copies(tmp_path):
    run = made(tmp_path, rates={})
    assert advise(run).copies is None
    with pytest.raises(BadInput, match="all partitions ran undisturbed"):
        advise(run, 4)


def test_of_the_other_engine_nothing_is_said_of_copies(tmp_path):
    run = synthetic.make_run(tmp_path)
    write_json(run.experiment_path, synthetic.experiment().model_dump(mode="json"))
    assert advise(run).copies is None
    with pytest.raises(BadInput, match="a run of engine dataflow"):
        advise(run, 4)


def test_a_run_that_fell_back_advises_no_copies(tmp_path):
    """It had none, and another run of the same dataflow would fall back again."""
    told = {"fell_back": "recovery global", "recovery": "global", "protocol": "coordinated"}
    run = made(tmp_path, engine={"replication_ratio": 0.625}, changes={"runs": lambda frame: frame.assign(**told)})
    assert advise(run).copies is None
    with pytest.raises(BadInput, match="protocol batch-aligned"):
        advise(run, 4)


@pytest.mark.parametrize("protocol", ["output-log", "coordinated"])
def test_a_protocol_without_copies_is_refused_in_one_line(tmp_path, protocol):
    engine = {"protocol": protocol, "recovery": "global", "replication_ratio": None, "standby": 0}
    run = made(tmp_path, engine=engine, workload={"name": "cec-prices"})
    assert advise(run).copies is None
    with pytest.raises(BadInput, match=rf"engine\.protocol.*{protocol}.*protocol batch-aligned"):
        advise(run, 4)
