"""What the protocol testbed can run, and what each engine refuses, in one line each."""

import pytest

from experiments import spec
from experiments.engines import ProtocolName
from experiments.errors import BadInput
from experiments.recovery_modes import OF_THE_TESTBED, PARTIAL, RecoveryMode, RecoveryPlanner, ReplicationPlanner
from experiments.workloads.catalogue import TESTBED
from models.recovery import planners as recovery_planners
from models.replication import planners as replication_planners
from testbed.protocols import PROTOCOLS
from testbed.queries import QUERIES
from testbed.recovery import STRATEGIES

EXAMPLE, BATCHED = "dataflow-q12", "{name: dataflow, protocol: batch-aligned"
COPIED = f"{BATCHED}, recovery: partially-active"
LOGGED = "{name: dataflow, protocol: output-log"


def test_experiments_and_the_testbed_know_the_same_queries_and_protocols():
    assert set(QUERIES) == TESTBED
    assert [protocol.value for protocol in ProtocolName] == list(PROTOCOLS)


def test_experiments_and_the_testbed_know_the_same_recovery_strategies():
    assert [mode.value for mode in OF_THE_TESTBED] == list(STRATEGIES)
    assert [mode.value for mode in PARTIAL] == [name for name, each in STRATEGIES.items() if each.partial]


def test_experiments_and_the_models_know_the_same_planners():
    assert [planner.value for planner in ReplicationPlanner] == list(replication_planners.PLANNERS)
    assert [planner.value for planner in RecoveryPlanner] == list(recovery_planners.PLANNERS)


def test_half_of_the_partitions_have_a_copy_unless_it_is_said():
    copied = spec.load(EXAMPLE, [f"engine={COPIED}}}"]).engine
    assert (copied.replication_ratio_run, copied.replication_planner_run) == (0.5, ReplicationPlanner.STRUCTURE_AWARE)
    assert spec.load(EXAMPLE, [f"engine={COPIED}, replication_ratio: 0}}"]).engine.replication_ratio_run == 0
    assert spec.load(EXAMPLE).engine.replication_ratio_run == 0


def test_the_default_of_recovery_is_that_of_the_engine():
    assert spec.load("wordcount").engine.recovery_run is RecoveryMode.QUERY
    assert spec.load(EXAMPLE).engine.recovery_run is RecoveryMode.GLOBAL
    passive = spec.load(EXAMPLE, ["engine.recovery=passive", "engine.protocol=batch-aligned", "engine.standby=1"])
    assert (passive.engine.recovery_run, passive.engine.standby_run) == (RecoveryMode.PASSIVE, 1)
    assert passive.engine.recovers_in_parts
    assert not spec.load(EXAMPLE).engine.recovers_in_parts


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("engine.tentative=true", "a partition that missed input has no checkpoint"),
        ("engine.store=s3://bucket/runs", "nothing is stored"),
    ],
)
def test_a_replay_from_the_sources_has_no_checkpoints(setting, why):
    replaying = ["engine.recovery=source-replay", "engine.protocol=batch-aligned"]
    engine = spec.load(EXAMPLE, replaying).engine
    assert (engine.takes_checkpoints, engine.puts_out_once, engine.recovers_in_parts) == (False, True, True)
    with pytest.raises(BadInput, match=why) as mistake:
        spec.load(EXAMPLE, [*replaying, setting])
    assert mistake.value.field == setting.split("=")[0]
    assert "\n" not in str(mistake.value)


def test_a_slot_that_stands_by_needs_no_partition():
    spare = ["cluster.workers=3", "engine.standby=1", "engine.partitions=2"]
    assert spec.load(EXAMPLE, spare).engine.partitions == 2
    with pytest.raises(BadInput, match=r"at least 2 with engine dataflow: each of .* slots that does not stand by"):
        spec.load(EXAMPLE, [*spare[:2], "engine.partitions=1"])


@pytest.mark.parametrize("more", ["", "checkpoint_interval_s: 2, partitions: 4, protocol: coordinated"])
def test_who_asks_the_testbed_for_a_recovery_that_it_lacks_is_refused(more):
    """Though a file of theirs, as documents of old runs, says nothing of slots that stand by."""
    with pytest.raises(BadInput, match=r"engine.recovery: .*query.* allowed: global, .* with engine dataflow"):
        spec.load("nexmark-q1", [f"engine={{name: dataflow, trigger: micro-batch, recovery: query, {more}}}"])


def test_the_testbed_has_defaults_of_its_own():
    engine = spec.load("nexmark-q1", ["engine.name=dataflow"]).engine
    assert (engine.protocol_run, engine.records_per_message_run) == (ProtocolName.COORDINATED, 1024)
    assert engine.chaining_run
    assert not spec.load(EXAMPLE, ["engine.chaining=false"]).engine.chaining_run


@pytest.mark.parametrize(
    ("override", "field", "allowed"),
    [
        ("engine.protocol=hope", "engine.protocol", "'none', 'coordinated', 'uncoordinated'"),
        ("engine.records_per_message=0", "engine.records_per_message", "1 or more"),
        ("workload.query=q5", "workload.query", "q1, q3, q8, q12 with engine dataflow"),
        (
            "workload={}",
            "workload.name",
            "nexmark, reachability, window-tree, top-100, incidents, hashtags or cec-prices with",
        ),
        ("workload={name: reachability}", "engine.protocol", "uncoordinated, .* would wait for itself"),
        ("engine.batch_length_s=0.5", "engine.batch_length_s", "left out unless engine.protocol is batch-aligned"),
        (f"engine={BATCHED}, batch_length_s: 60}}", "engine.batch_length_s", "at most the checkpoint interval, 8"),
        (f"engine={BATCHED}, batch_length_s: 0}}", "engine.batch_length_s", "a number of 0.001 or more"),
        ("workload={name: window-tree}", "engine.partitions", "16 with window-tree, as many as its source has"),
        ("workload={name: window-tree, window_s: 9.5}", "workload.window_s", "a multiple of slide_s, 1"),
        ("workload={name: window-tree, slide_s: 0.0005}", "workload.slide_s", "a whole number of milliseconds"),
        ("workload={name: window-tree, selectivity: 0}", "workload.selectivity", "0.01 or more"),
        ("workload={name: window-tree, selectivity: 1.5}", "workload.selectivity", "1 or less"),
        ("workload={name: window-tree, parallelism: [2, 1, 2]}", "workload.parallelism.2", "at most 1, as many as"),
        ("workload={name: window-tree, parallelism: [2]}", "workload.parallelism", "2 or more"),
        ("workload={name: window-tree, parallelism: [2, 0]}", "workload.parallelism.1", "1 or more"),
        ("workload={name: window-tree, sources: 2}", "workload.sources", "no such field"),
        ("workload={name: top-100}", "engine.partitions", "8 with top-100, as many as its source has"),
        ("workload={name: top-100, parallelism: [2, 1]}", "workload.parallelism", "3 or more"),
        ("workload={name: top-100, parallelism: [2, 1, 1, 1]}", "workload.parallelism", "at most 3"),
        ("workload={name: top-100, parallelism: [2, 1, 2]}", "workload.parallelism.2", "at most 1, as many as"),
        ("workload={name: top-100, binding: tied}", "workload.binding", "'bound' or 'spread'"),
        ("workload={name: top-100, entries: 99}", "workload.entries", "100 or more"),
        ("workload={name: top-100, entries: 100, parallelism: [101, 1, 1]}", "workload.entries", "at least 101, one"),
        ("workload={name: top-100, skew: -1}", "workload.skew", "0 or more"),
        ("workload={name: incidents}", "engine.partitions", "4 with incidents, as many as its source has"),
        ("workload={name: incidents, slide_s: 2.5}", "workload.slide_s", "whole seconds with incidents"),
        ("workload={name: incidents, segments: 3}", "workload.segments", "at least 4, one for each partition"),
        ("workload={name: incidents, events_per_incident: 20001}", "workload.events_per_incident", "a multiple of 4"),
        (
            "workload={name: incidents, events_per_incident: 4000}",
            "workload.events_per_incident",
            "at least 6472: all",
        ),
        ("workload={name: incidents, jam_share: 1.1}", "workload.jam_share", "1 or less"),
        ("workload={name: incidents, users: 0}", "workload.users", "1 or more"),
        ("engine.planner=exact", "engine.planner", "left out unless engine.recovery is query-centric"),
        ("engine.planner_limit_s=0.5", "engine.planner_limit_s", "left out unless engine.planner is exact"),
        ("engine.planner_limit_s=0", "engine.planner_limit_s", "more than 0|above 0|greater"),
        ("engine.planner_limit_s=1.5", "engine.planner_limit_s", "a number of 1 or less"),
        ("engine.capacity=3", "engine.capacity", "left out unless engine.recovery is query-centric"),
        ("engine.replication_ratio=1", "engine.replication_ratio", "left out unless engine.recovery is partially-act"),
        ("engine.replication_planner=dp", "engine.replication_planner", "left out unless engine.recovery is partial"),
        ("engine.adapt_every_s=5", "engine.adapt_every_s", "left out unless engine.recovery is partially-active"),
        ("engine.trim_every_s=5", "engine.trim_every_s", "left out unless engine.recovery is partially-active"),
        (f"engine={COPIED}, trim_every_s: 0}}", "engine.trim_every_s", "above 0|greater|more than 0"),
        (f"engine={COPIED}, adapt_every_s: 0}}", "engine.adapt_every_s", "above 0|greater|more than 0"),
        ("workload={name: window-tree, moves_every: 0}", "workload.moves_every", "1 or more"),
        (
            "workload={name: window-tree, moves_every: 9, selectivity: 1}",
            "workload.moves_every",
            "left out with selectivity 1",
        ),
        (
            "workload={name: window-tree, moves_every: 9, parallelism: [3, 1]}",
            "workload.moves_every",
            "left out with fewer than 4 partitions of the source",
        ),
        (f"engine={COPIED}, replication_ratio: 1.5}}", "engine.replication_ratio", "1 or less"),
        ("engine.copied=[out.0]", "engine.copied", "left out unless engine.recovery is partially-active"),
        *(
            (f"engine={COPIED}, copied: [out.0], {name}: {value}}}", f"engine.{name}", "left out with engine.copied")
            for name, value in (("replication_ratio", 0.5), ("replication_planner", "dp"), ("adapt_every_s", 5))
        ),
        (f"engine={COPIED}, replication_ratio: -0.5}}", "engine.replication_ratio", "0 or more"),
        (
            f"engine={COPIED}, replication_planner: best}}",
            "engine.replication_planner",
            "'structure-aware' or",
        ),
        ("engine.recovery=query-centric", "engine.recovery", "global unless engine.protocol is batch-aligned"),
        ("workload={name: hashtags, topology: three}", "workload.topology", "'two-windows' or 'fifteen-queries'"),
        ("workload={name: hashtags, priorities: [1, 2]}", "workload.priorities", "one for each of 15 queries, or none"),
        ("workload={name: hashtags, topology: two-windows, priorities: [1, -2]}", "workload.priorities.1", "1 or more"),
        (
            "workload={name: hashtags, topology: two-windows, priorities: [1, 11]}",
            "workload.priorities.1",
            "10 or less",
        ),
        ("workload={name: hashtags, window_s: 3}", "workload.window_s", "at least 4 times slide_s: each of 4 windows"),
        ("workload={name: hashtags, window_s: 5.5}", "workload.window_s", "a multiple of slide_s, 1"),
        ("workload={name: hashtags, hashtags: 1}", "workload.hashtags", "2 or more"),
        ("engine.log_extent=5", "engine.log_extent", "left out unless engine.protocol is output-log"),
        (f"engine={LOGGED}, recovery: partially-active}}", "engine.recovery", "passive, query-centric with protocol"),
        (f"engine={LOGGED}, recovery: source-replay}}", "engine.recovery", "passive, query-centric with protocol"),
        ("engine={cpu_limit: 1}", "engine.cpu_limit", "left out with engine structured-streaming"),
        (f"engine={LOGGED}, log_extent: 0}}", "engine.log_extent", "1 or more"),
        (f"engine={LOGGED}, log_replay: 0}}", "engine.log_replay", "1 or more"),
        (f"engine={LOGGED}, log_failure_rate: 0}}", "engine.log_failure_rate", "0"),
        (
            f"engine={LOGGED}, log_failure_rate: 1, log_replay: 9}}",
            "engine.log_failure_rate",
            "left out with engine.lo",
        ),
        ("engine.log_failure_rate=1", "engine.log_failure_rate", "left out unless engine.protocol is output-log"),
        (f"engine={LOGGED}, check_interval_s: 0.1}}", "engine.check_interval_s", "below the check period, 0.1 s"),
        (f"engine={LOGGED}, check_period_s: 0.004}}", "engine.check_period_s", "above the check interval, 0.005 s"),
        (
            f"engine={LOGGED}, check_interval_s: 0.02, check_period_s: 0.01}}",
            "engine.check_interval_s",
            "below the check period, 0.01 s",
        ),
        (
            f"engine={LOGGED}, recovery: passive, tentative: true}}",
            "engine.tentative",
            "left out with protocol output-log",
        ),
        ("engine={name: structured-streaming, log_extent: 5}", "engine.log_extent", "left out with engine structured"),
        (
            "workload={name: cec-prices, items: 1}",
            "workload.items",
            "at least 2, the number of partitions: each partition has all",
        ),
        ("workload={name: cec-prices, window_records: 0}", "workload.window_records", "1 or more"),
        ("workload={name: cec-prices, least_price: 1001}", "workload.least_price", "1000 or less"),
        ("engine.store=/tmp/x", "engine.store", "s3://"),
        ("engine.store_endpoint=http://127.0.0.1:9000", "engine.store_endpoint", "left out without engine.store"),
        ("engine.partitions=1", "engine.partitions", "at least 2 with engine dataflow"),
        ("engine.trigger=real-time", "engine.trigger", "left out with engine dataflow"),
        (
            "engine.recovery=task",
            "engine.recovery",
            "global, blocking, passive, partially-active, query-centric, source-replay with engine dataflow",
        ),
        (
            "engine.recovery=query",
            "engine.recovery",
            "global, blocking, passive, partially-active, query-centric, source-replay with engine dataflow",
        ),
        ("engine.recovery=source-replay", "engine.recovery", "global unless engine.protocol is batch-aligned"),
        ("engine.recovery=hope", "engine.recovery", "'partially-active', 'query-centric' or 'source-replay'"),
        ("engine.recovery=passive", "engine.recovery", "global unless engine.protocol is batch-aligned"),
        ("engine.spare_lines=11", "engine.spare_lines", "10 or less"),
        ("engine={name: dataflow, protocol: uncoordinated, spare_lines: 0}", "engine.spare_lines", "is coordinated"),
        ("engine.staggered=true", "engine.staggered", "left out unless engine.protocol is uncoordinated or communicat"),
        ("engine={staggered: false}", "engine.staggered", "left out with engine structured-streaming"),
        ("engine.standby=2", "engine.standby", "at most 1: of workers x worker_cores slots, one at least must host"),
        ("engine.standby=-1", "engine.standby", "0 or more"),
        ("engine.name=structured-streaming", "engine.protocol", "left out with engine structured-streaming"),
        ("engine={recovery: passive}", "engine.recovery", "query, task with engine structured-streaming"),
        ("engine={standby: 1}", "engine.standby", "left out with engine structured-streaming"),
        ("engine.tentative=true", "engine.tentative", "left out unless engine.recovery is blocking, passive"),
        (f"engine={BATCHED}, tentative: true}}", "engine.tentative", "left out unless engine.recovery is blocking"),
        ("engine={tentative: true}", "engine.tentative", "left out with engine structured-streaming"),
    ],
)
def test_what_does_not_fit_is_named_in_one_line(override, field, allowed):
    with pytest.raises(BadInput, match=allowed) as mistake:
        spec.load(EXAMPLE, [override])
    assert mistake.value.field == field
    assert "\n" not in str(mistake.value)


def test_a_query_that_the_testbed_lacks_is_refused_first():
    """No protocol that the other messages allow would help."""
    for protocol in ProtocolName:
        with pytest.raises(BadInput, match="q1, q3, q8, q12 with engine dataflow") as mistake:
            spec.load(EXAMPLE, [f"engine.protocol={protocol.value}", "workload.query=q5"])
        assert mistake.value.field == "workload.query"


def test_the_driver_may_die_where_checkpoints_outlive_it():
    death = "faults={events: [{at: 1, kind: driver-kill}]}"
    assert spec.load(EXAMPLE, [death]).faults.kinds
    assert spec.load(EXAMPLE, [death, f"engine={BATCHED}, recovery: passive}}"]).faults.kinds
    with pytest.raises(BadInput, match=r"any other kind with engine\.recovery source-replay") as mistake:
        spec.load(EXAMPLE, [death, f"engine={BATCHED}, recovery: source-replay}}"])
    assert mistake.value.field == "faults"


@pytest.mark.parametrize("workload", ["reachability", "window-tree", "top-100", "incidents", "hashtags", "cec-prices"])
def test_structured_streaming_refuses_what_only_the_testbed_has(workload):
    with pytest.raises(BadInput, match="wordcount, nexmark or own-job with engine structured-streaming") as mistake:
        spec.load("wordcount", [f"workload={{name: {workload}}}"])
    assert mistake.value.field == "workload.name"
    assert "\n" not in str(mistake.value)


def test_a_tree_needs_a_partition_for_each_slot():
    narrow = ["workload={name: window-tree, parallelism: [2, 1]}", "engine.partitions=2", "cluster.worker_cores=2"]
    with pytest.raises(BadInput, match="at least 4 with engine dataflow: each of workers x worker_cores slots"):
        spec.load(EXAMPLE, narrow)
    assert spec.load(EXAMPLE, narrow[:2]).workload.depth == 1
