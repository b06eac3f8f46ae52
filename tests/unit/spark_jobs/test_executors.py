"""When the hosts of a fault had executors again, from Spark's event log."""

from spark_jobs.tables.streaming.batches import MS
from spark_jobs.tables.streaming.executors import all_back_ns, registered

NAMES = {"127.0.1.2": "worker-1", "127.0.1.3": "worker-2"}


def added(host, at_ms):
    return {"Event": "SparkListenerExecutorAdded", "Timestamp": at_ms, "Executor Info": {"Host": host}}


LOG = [
    added("127.0.1.3", 900),
    added("127.0.1.2", 10),
    added("127.0.1.3", 20),
    added("127.0.1.2", 500),
    added("127.0.1.9", 600),
    {"Event": "SparkListenerJobStart"},
]


def back_ms(targets, struck_ms):
    struck_ns = None if struck_ms is None else struck_ms * MS
    found_ns = all_back_ns(targets.split(","), struck_ns, registered(LOG, NAMES))
    return found_ns and found_ns / MS


def test_executors_are_known_by_host_in_the_order_of_time():
    assert registered(LOG, NAMES) == {"worker-1": [10 * MS, 500 * MS], "worker-2": [20 * MS, 900 * MS]}


def test_a_host_is_back_with_the_first_executor_after_the_strike():
    assert back_ms("worker-1", 5) == 10
    assert back_ms("worker-1", 10) == 500, "the one that died with it registered no later than that"


def test_of_several_hosts_the_last_one_counts():
    assert back_ms("worker-1,worker-2", 100) == 900


def test_without_a_strike_or_an_executor_there_is_no_return():
    assert back_ms("worker-1", None) is None
    assert back_ms("worker-1", 500) is None
    assert back_ms("worker-1,worker-2", 600) is None
    assert back_ms("worker-7", 5) is None
