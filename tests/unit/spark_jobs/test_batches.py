"""Batches from progress events and chains from the Spark event log, both as Spark 4 writes them."""

import pytest

from journal.events.query import BatchCommitted, QueryReady
from spark_jobs.streaming.progress import micro_batches
from spark_jobs.tables.streaming.batches import MS, StageChain, batches, chains

STARTED_NS = 1_795_173_799_675 * MS  # 2026-11-20T11:23:19.675Z
QUERY, FIRST_RUN, SECOND_RUN = "899128dc", "57160b9b", "0a1b2c3d"


def progress(batch=4, start=None, operators=1, **durations):
    timed = {"latestOffset": 40, "walCommit": 50, "queryPlanning": 60, "addBatch": 900, "commitOffsets": 30}
    state = {"commitTimeMs": 120, "numRowsTotal": 1000, "memoryUsedBytes": 5000}
    return {
        "id": QUERY,
        "batchId": batch,
        "timestamp": "2026-11-20T11:23:19.675Z",
        "numInputRows": 1400,
        "durationMs": {**timed, "triggerExecution": 1100, **durations},
        "stateOperators": [state] * operators,
        "sources": [{"startOffset": start, "endOffset": {"input": {"0": 400, "1": 300}}}],
    }


def reported(*reports):
    return list(micro_batches([QueryReady(()), *map(BatchCommitted, reports)]))


def test_a_batch_and_what_its_checkpoint_cost():
    (found,) = batches(reported(progress(start={"input": {"0": 10, "1": 20}})), {4: StageChain(2, 0.05)}, 3)
    assert (found.batch, found.records) == (4, 670)  # by the offsets: a join has numInputRows twice
    assert (found.started_ns, found.ended_ns) == (STARTED_NS, STARTED_NS + 1100 * MS)
    assert found.checkpoint_ns == (1100 - 900 + 120 / 3) * MS
    assert found.processing_ns == (1100 - 240) * MS
    assert (found.wal_s, found.commit_log_s, found.state_commit_s) == (0.05, 0.03, 0.04)
    assert (found.state_rows, found.state_bytes) == (1000, 5000)
    assert found.offsets == {("input", "0"): (10, 400), ("input", "1"): (20, 300)}
    assert (found.stages, found.hop_delay_s) == (2, 0.05)


def test_a_duration_that_was_not_reported_is_unknown_and_not_zero():
    lacking = progress()
    for name in ("walCommit", "commitOffsets"):
        del lacking["durationMs"][name]
    (found,) = batches(reported(lacking), {}, 1)
    assert (found.wal_s, found.commit_log_s) == (None, None)


def test_the_first_batch_begins_at_offset_zero_and_may_be_unknown_to_the_event_log():
    (found,) = batches(reported(progress(start=None)), {}, 1)
    assert found.offsets == {("input", "0"): (0, 400), ("input", "1"): (0, 300)}
    assert (found.stages, found.hop_delay_s) == (None, None)


def test_of_several_sources_each_topic_counts_once_and_what_has_no_offsets_by_topic_does_not():
    sources = [
        {"startOffset": {"orders": {"0": 5}}, "endOffset": {"orders": {"0": 9}, "refunds": {"0": 2}}},
        {"startOffset": {"orders": {"0": 1}}, "endOffset": {"orders": {"0": 7}}},
        {"startOffset": 17, "endOffset": 23},
        {"startOffset": {"logOffset": 1}, "endOffset": {"logOffset": 2}},
    ]
    (found,) = batches(reported({**progress(), "sources": sources}), {}, 1)
    assert found.offsets == {("orders", "0"): (5, 9), ("refunds", "0"): (0, 2)}
    assert found.records == 6
    (found,) = batches(reported({**progress(), "sources": sources}), {}, 1, ("orders", "returns"))
    assert found.offsets == {("orders", "0"): (5, 9)}, "refunds are no input: nobody sends them on a schedule"
    assert found.records == 4


def test_the_state_of_a_chain_is_that_of_all_its_operators():
    (found,) = batches(reported(progress(operators=3)), {}, 2)
    assert found.state_commit_s == pytest.approx(3 * 0.12 / 2)
    assert (found.state_rows, found.state_bytes) == (3000, 15000)


def test_a_checkpoint_never_outlasts_its_batch():
    (found,) = batches(reported(progress(operators=9)), {}, 1)
    assert found.checkpoint_ns == found.ended_ns - found.started_ns
    assert found.processing_ns == 0


def test_a_progress_event_of_a_trigger_that_ran_no_batch_is_left_out():
    idle = progress(batch=5)
    idle["durationMs"] = {"latestOffset": 3}
    assert [b.batch for b in batches(reported(progress(), idle, progress(batch=6)), {}, 1)] == [4, 6]


def job(batch, *stages, run=FIRST_RUN, query=QUERY, start_ms=0):
    properties = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch), "spark.jobGroup.id": run}
    infos = [{"Stage ID": stage} for stage in stages]
    told = {"Event": "SparkListenerJobStart", "Submission Time": start_ms}
    return told | {"Stage Infos": infos, "Properties": properties}


def stage(number, start_ms, end_ms, **more):
    info = {"Stage ID": number, "Submission Time": start_ms, "Completion Time": end_ms, **more}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def test_a_chain_of_stages_and_its_mean_hop_delay():
    events = [job(1, 10, 11, 12), stage(10, 0, 400), stage(11, 430, 600), stage(12, 650, 900)]
    assert chains(events, QUERY) == {1: StageChain(3, pytest.approx(0.04))}


def test_a_single_stage_has_no_hop():
    assert chains([job(1, 10), stage(10, 0, 400)], QUERY) == {1: StageChain(1, None)}


def test_stages_of_several_jobs_of_a_batch_are_one_chain_in_the_order_of_time():
    events = [job(1, 10), stage(10, 0, 400), job(1, 12), stage(12, 500, 700)]
    assert chains(events, QUERY) == {1: StageChain(2, pytest.approx(0.1))}


def test_only_stages_that_completed_for_this_query_count():
    other_work = {"Event": "SparkListenerJobStart", "Stage Infos": [{"Stage ID": 1}], "Properties": None}
    skipped, failed = job(2, 20, 21), stage(20, 0, 5, **{"Failure Reason": "lost"})
    events = [other_work, job(9, 2, query="calibration"), stage(1, 0, 9), stage(2, 0, 9), skipped, failed]
    events += [stage(21, 10, 40)]
    assert chains(events, QUERY) == {2: StageChain(1, None)}


def test_a_stage_of_another_query_may_have_the_number_of_one_in_an_earlier_life_of_the_driver():
    events = [job(1, 0), stage(0, 0, 400), job(9, 0, query="calibration"), stage(0, 900, 950)]
    assert chains(events, QUERY) == {1: StageChain(1, None)}


def test_a_retry_of_a_stage_that_had_nothing_left_to_do_is_no_hop():
    empty = {"Event": "SparkListenerStageCompleted", "Stage Info": {"Stage ID": 10, "Completion Time": 420}}
    events = [job(1, 10, 11), stage(10, 0, 400), empty, stage(11, 430, 600)]
    assert chains(events, QUERY) == {1: StageChain(2, pytest.approx(0.03))}


def test_of_a_batch_that_ran_again_only_the_last_attempt_counts():
    cut_off = [job(3, 30, 31), stage(30, 0, 100)]
    again = [job(3, 40, 41, run=SECOND_RUN, start_ms=8990), stage(40, 9000, 9100), stage(41, 9130, 9300)]
    for logs in (cut_off + again, again + cut_off):  # of two drivers, whose logs have names without an order
        assert chains(logs, QUERY) == {3: StageChain(2, pytest.approx(0.03))}


def test_a_batch_whose_last_attempt_completed_nothing_has_no_chain():
    assert chains([job(3, 30), stage(30, 0, 100), job(3, 40, run=SECOND_RUN, start_ms=200)], QUERY) == {}
