"""Which host did which task of a batch, from Spark's event log."""

from results.tables.schema import RUN_TABLES
from spark_jobs.tables.streaming.batches import MS
from spark_jobs.tables.streaming.spark_tasks import spark_tasks

NAMES = {"127.0.1.2": "worker-1", "127.0.1.3": "worker-2"}


def job(batch, *stages, query="q", run="life-1"):
    told = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch), "spark.jobGroup.id": run}
    return {
        "Event": "SparkListenerJobStart",
        "Properties": told,
        "Stage Infos": [{"Stage ID": each} for each in stages],
    }


def ended(stage, task, start_ms, end_ms, *, host="127.0.1.2", reason="Success"):
    told = {"Index": task, "Executor ID": "4", "Host": host, "Launch Time": start_ms, "Finish Time": end_ms}
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task Info": told,
        "Task End Reason": {"Reason": reason},
    }


def found(*events):
    return spark_tasks(events, "q", NAMES)


def test_a_task_is_told_with_its_host_and_its_stage_in_the_batch():
    rows = found(job(7, 20, 21), ended(20, 3, 100, 250), ended(21, 0, 300, 400, host="127.0.1.3"))
    assert rows[0] == {
        "batch": 7, "stage": 0, "task": 3, "host": "worker-1", "executor": "4",
        "launched_ns": 100 * MS, "ended_ns": 250 * MS, "succeeded": True,
    }  # fmt: skip
    assert (rows[1]["stage"], rows[1]["host"]) == (1, "worker-2")
    assert RUN_TABLES["spark_tasks"].of(rows).num_rows == 2


def test_a_stage_that_is_done_again_has_its_number():
    """Its tasks were run for stage 20 again, after some of stage 21."""
    rows = found(job(7, 20, 21), ended(20, 0, 0, 1), ended(21, 0, 1, 2, reason="FetchFailed"), ended(20, 0, 3, 4))
    assert [(row["stage"], row["succeeded"]) for row in rows] == [(0, True), (1, False), (0, True)]


def test_stages_that_spark_skipped_have_no_number():
    rows = found(job(7, 20, 21), ended(20, 0, 0, 1), job(7, 22, 23), ended(23, 0, 2, 3))
    assert [row["stage"] for row in rows] == [0, 1]


def test_each_life_of_the_query_numbers_the_stages_of_a_batch_anew():
    rows = found(job(7, 20), ended(20, 0, 0, 1), job(7, 30, run="life-2"), ended(30, 0, 2, 3))
    assert [row["stage"] for row in rows] == [0, 0]


def test_a_driver_that_was_started_again_numbers_its_stages_from_0():
    rows = found(job(7, 0), ended(0, 0, 0, 1), job(8, 0, run="life-2"), ended(0, 0, 2, 3))
    assert [(row["batch"], row["stage"]) for row in rows] == [(7, 0), (8, 0)]


def test_a_stage_of_another_query_may_have_the_number_of_one_in_an_earlier_life_of_the_driver():
    rows = found(job(7, 0), ended(0, 0, 0, 1), job(1, 0, query="calibration"), ended(0, 0, 2, 3))
    assert [row["launched_ns"] for row in rows] == [0]


def test_output_that_was_lost_is_no_task_that_was_run():
    rows = found(job(7, 20), ended(20, 0, 0, 1), ended(20, 0, 0, 1, reason="Resubmitted"))
    assert len(rows) == 1


def test_tasks_of_other_queries_are_not_told():
    assert found(job(7, 20, query="calibration"), ended(20, 0, 0, 1), {"Event": "SparkListenerJobStart"}) == []


def test_a_host_without_a_name_keeps_its_address():
    assert found(job(7, 20), ended(20, 0, 0, 1, host="10.0.0.9"))[0]["host"] == "10.0.0.9"
