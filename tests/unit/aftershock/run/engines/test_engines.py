"""Each engine is one object: which experiment gets which, how it is drained, and what its generator reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aftershock.run.engines import dataflow, engine
from aftershock.run.engines.choice import engine_of
from aftershock.run.engines.dataflow import DataflowEngine
from aftershock.run.engines.own_job import OwnJob
from aftershock.run.engines.structured_streaming import StructuredStreaming, checkpoint_of
from experiments import spec
from experiments.engines import EngineName
from experiments.errors import BadInput
from experiments.spec import ClusterSpec, Experiment
from infra.cluster import Handle
from infra.services.jars import Jars
from infra.services.startup import handle_of
from journal.events.testbed import Finished
from testbed.operators import Delivery

ROOT = Path(__file__).parents[5]


@pytest.fixture
def own_job(monkeypatch) -> Experiment:
    monkeypatch.chdir(ROOT)
    return spec.load(str(ROOT / "docs" / "examples" / "own-job" / "experiment.yaml"))


@pytest.fixture
def handle(tmp_path) -> Handle:
    made = handle_of(ClusterSpec(), "run-1", tmp_path, subnet=9, network="127.0.9")
    made.orders.mkdir(parents=True)
    return made


def test_every_engine_of_the_spec_and_an_own_job_have_an_object_of_their_own(own_job):
    testbed = spec.load("dataflow-q12")
    assert {type(engine_of(each)) for each in (Experiment(), testbed)} == {StructuredStreaming, DataflowEngine}
    assert {each.engine.name for each in (Experiment(), testbed)} == set(EngineName)
    assert type(engine_of(own_job)) is OwnJob


def test_only_the_testbed_is_told_to_drain_and_answers(handle, own_job):
    assert [engine_of(each).drain(handle) for each in (Experiment(), own_job)] == [None, None]
    assert list(handle.orders.iterdir()) == []
    assert engine_of(spec.load("dataflow-q12")).drain(handle) is Finished
    assert [path.name for path in handle.orders.iterdir()] == ["query.drain"]


def test_the_generator_reads_the_copies_of_an_own_jobs_input_on_the_cluster(handle, own_job):
    copies = engine_of(own_job).workload_on(handle).inputs
    assert {source.file for source in copies.values()} == {f"{handle.root}/job/inputs/orders.jsonl"}
    assert engine_of(Experiment()).workload_on(handle) == Experiment().workload


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], (2, 1, "passive")),
        (["engine.standby=0"], (3, 0, "passive")),
        (["engine.recovery=global"], (2, 1, "global")),
    ],
)
def test_slots_that_stand_by_are_of_those_that_the_cluster_has_cores_for(handle, overrides, expected):
    job = dataflow.testbed_job(spec.load("dataflow-passive", overrides), handle, Path("store"), "run-1")
    assert (job.slots, job.standby, job.recovery) == expected


@pytest.mark.parametrize(("overrides", "expected"), [([], None), (["load.batch_records=300"], 300)])
def test_the_job_reads_its_input_as_the_load_has_it(handle, overrides, expected):
    job = dataflow.testbed_job(spec.load("dataflow-q12", overrides), handle, Path("store"), "run-1")
    assert job.input.batch_records == job.output.batch_records == job.output.tentative.batch_records == expected


COPIES = ["engine.recovery=partially-active", "engine.replication_ratio=1", "engine.replication_planner=greedy"]


def test_the_job_has_the_copies_and_the_failure_domains_of_the_experiment(handle):
    hosts = "faults={hosts: {worker-1: [a, site], worker-2: [b, site], worker-3: [site]}}"
    experiment = spec.load("dataflow-passive", [*COPIES, "engine.standby=2", hosts, "engine.partitions=16"])
    job = dataflow.testbed_job(experiment, handle, Path("store"), "run-1")
    assert (job.recovery, job.replication_ratio, job.replication_planner) == ("partially-active", 1.0, "greedy")
    addresses = [handle.hosts[f"worker-{number}"].address for number in (1, 2, 3)]
    assert job.domains == dict(zip(addresses, [("a",), ("b",), ()], strict=True))


def test_plans_follow_the_load_where_the_experiment_says_so_and_there_is_something_to_choose():
    assert dataflow._job(spec.load("ppa-partially-active"), "a", "store", None).adapt_every_s is None
    adapted = spec.load("ppa-partially-active", ["engine.adapt_every_s=5"])
    assert dataflow._job(adapted, "a", "store", None).adapt_every_s == 5
    with pytest.raises(BadInput, match=r"^engine.adapt_every_s: 5.* left out unless some partitions have a copy"):
        engine_of(spec.load("ppa-partially-active", ["engine.adapt_every_s=5", "engine.replication_ratio=1"])).check()


def test_the_last_hosts_stand_by_as_far_as_all_of_their_slots_do(handle):
    assert dataflow.standby_hosts(spec.load("ppa-partially-active")) == ("worker-3", "worker-4")
    assert dataflow.standby_hosts(spec.load("ppa-partially-active", ["engine.standby=1"])) == ("worker-4",)
    two_cores = ["cluster.worker_cores=2", "engine.standby=3"]
    assert dataflow.standby_hosts(spec.load("ppa-partially-active", two_cores)) == ("worker-4",)
    job = dataflow.testbed_job(spec.load("dataflow-passive"), handle, Path("store"), "run-1")
    assert job.standby_hosts == (handle.hosts["worker-3"].address,)
    assert dataflow.standby_hosts(spec.load("dataflow-passive", ["engine.standby=0"])) == ()


def test_fewer_slots_that_stand_by_than_copies_need_are_refused_before_the_run():
    copied = [*COPIES, "cluster.workers=4", "cluster.worker_cores=1"]
    engine_of(spec.load("dataflow-passive", [*copied, "engine.standby=2"])).check()
    why = "^engine.standby: 1 is not usable; allowed: 3 or more: 32 copies need this many slots$"
    with pytest.raises(BadInput, match=why):
        engine_of(spec.load("dataflow-passive", [*copied, "engine.standby=1"])).check()


@pytest.mark.parametrize(
    ("changed", "lacking"),
    [
        ("faults.hosts={worker-1: [a], worker-2: [b], worker-3: [a], worker-4: [b]}", None),
        ("faults.hosts={worker-1: [a], worker-2: [b], worker-3: [a], worker-4: [a]}", "10 of 16"),
        ("faults.hosts={worker-1: [a], worker-2: [b], worker-3: [a, b], worker-4: [a, b]}", "16 of 16"),
        ("cluster={workers: 1, worker_cores: 4}", "16 of 16"),
    ],
)
def test_slots_that_share_a_domain_or_host_with_the_primaries_are_refused_before_the_run(changed, lacking):
    checked = engine_of(spec.load("ppa-partially-active", ["faults.events=[]", changed])).check
    if lacking is None:
        checked()
        return
    why = rf"^engine.standby: 2 is not usable; allowed: slots .* {lacking} copies have none, as that of .* on worker-1$"
    with pytest.raises(BadInput, match=why):
        checked()


WIDE = "engine={name: dataflow, protocol: batch-aligned, recovery: partially-active, standby: 1, partitions: 200}"


@pytest.mark.parametrize(
    ("planner", "ratio", "line"),
    [
        (
            "dp",
            0.5,
            r"^engine.replication_planner: 'dp' .* another one for .* \(topology: '40000 MC-trees' .* limit\)$",
        ),
        ("greedy", 0.0005, r"^engine.replication_ratio: 0.0005 .* 0, or above 0.00083: .* has 600 partitions, and one"),
        ("structure-aware", 0.002, r"^engine.replication_ratio: 0.002 .* structure-aware finds no use for 1 copies"),
    ],
)
def test_a_planner_without_a_plan_is_refused_in_one_line_that_names_its_field(planner, ratio, line):
    given = [WIDE, f"engine.replication_planner={planner}", f"engine.replication_ratio={ratio}"]
    with pytest.raises(BadInput, match=line):
        engine_of(spec.load("dataflow-q12", given)).check()


def test_a_replay_from_the_sources_puts_out_each_batch_once_and_stores_nothing(handle):
    job = dataflow.testbed_job(spec.load("dataflow-passive", ["engine.recovery=source-replay"]), handle, Path("s"), "r")
    assert job.output.delivery is Delivery.EXACTLY_ONCE
    assert (job.batching.per_checkpoint, job.partition_limits.retained_bytes) == (None, None)
    passive = dataflow.testbed_job(spec.load("dataflow-passive"), handle, Path("s"), "r")
    assert passive.batching.per_checkpoint
    assert passive.partition_limits.retained_bytes


def test_how_many_older_lines_are_kept_is_the_experiments_choice(handle):
    kept = [
        dataflow.testbed_job(spec.load("dataflow-q12", given), handle, Path("s"), "r").spare_lines
        for given in ([], ["engine.spare_lines=0"], ["engine.spare_lines=3"])
    ]
    assert kept == [1, 0, 3]


def test_slots_are_staggered_only_if_the_experiment_says_so(handle):
    own_clocks = "engine.protocol=uncoordinated"
    asked = [
        dataflow.testbed_job(spec.load("dataflow-q12", [own_clocks, *given]), handle, Path("s"), "r").staggered
        for given in ([], ["engine.staggered=true"], ["engine.staggered=false"])
    ]
    assert asked == [False, True, False]


@pytest.fixture
def jars(monkeypatch) -> None:
    monkeypatch.setattr(engine, "class_paths", lambda: Jars([Path("/cache/a.jar"), Path("/cache/b.jar")], []))


@pytest.mark.usefixtures("jars")
def test_the_hosts_of_a_borrowed_cluster_get_the_connector_and_an_executor_each(handle):
    experiment = spec.validate({"cluster": {"driver": "external", "workers": 2, "worker_cores": 3}})
    borrowed = engine.spark_conf(experiment, replace(handle, driver="external"))
    assert borrowed["spark.jars"] == "/cache/a.jar,/cache/b.jar"
    assert (borrowed["spark.cores.max"], borrowed["spark.executor.instances"]) == ("6", "2")
    assert "spark.executor.extraClassPath" not in borrowed
    own = engine.spark_conf(experiment, handle)
    assert own["spark.executor.extraClassPath"] == "/cache/a.jar:/cache/b.jar"
    assert own.keys().isdisjoint({"spark.jars", "spark.cores.max", "spark.executor.instances"})


def test_checkpoints_are_where_the_owner_of_a_borrowed_cluster_has_them(handle):
    assert checkpoint_of(handle) == f"{handle.root}/store/checkpoint"
    assert checkpoint_of(replace(handle, checkpoints="s3a://bucket/run-1")) == "s3a://bucket/run-1"
