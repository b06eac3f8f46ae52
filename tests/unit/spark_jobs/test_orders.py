"""The orders of a batch job: each is taken once, and done when the job says so."""

import threading

import pytest

from spark_jobs.tables.orders import Orders


@pytest.fixture
def orders(tmp_path):
    return Orders(tmp_path / "tables")


def test_a_stage_is_done_when_the_job_says_so(orders):
    orders.give("archive", ["127.0.1.1:9092", "/run/secret"])
    assert orders.take(0.0) == ("archive", ["127.0.1.1:9092", "/run/secret"])
    assert not orders.finished("archive")
    orders.finish("archive")
    assert orders.finished("archive")
    with pytest.raises(TimeoutError):
        orders.take(0.0)


def test_a_stage_that_is_ordered_again_is_not_done(orders):
    orders.give("build", [])
    orders.finish("build")
    orders.give("build", ["again"])
    assert not orders.finished("build")
    assert orders.take(0.0) == ("build", ["again"])


def test_the_job_may_wait_before_anything_is_ordered(orders):
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(orders.take(30.0)))
    waiting.start()
    orders.give("build", [])
    waiting.join()
    assert taken == [("build", [])]


def test_a_job_that_nobody_wants_gives_up(orders):
    with pytest.raises(TimeoutError, match="no order came in 0 s"):
        orders.take(0.0)
