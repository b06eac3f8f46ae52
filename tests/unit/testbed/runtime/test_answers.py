"""Calls of the Kafka client that never return: a sink leaves them to themselves, and goes on with another producer."""

from threading import Event
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from testbed.operators import Sink
from testbed.runtime.connectors import answers, topics
from testbed.runtime.connectors.answers import answer_of
from testbed.runtime.connectors.topics import KafkaResults
from tests.unit.testbed.small_job import JOB, rows

STEPS = ("init_transactions", "send_offsets_to_transaction", "commit_transaction")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(answers, "GRACE_S", 0.05)
    monkeypatch.setattr(topics, "ANSWER_S", 0.05)
    monkeypatch.setattr(topics, "REOPEN_S", 0.0)


@pytest.fixture
def never():
    """Set when the test is over, so that no thread is left."""
    over = Event()
    yield over
    over.set()


def test_a_call_is_answered_by_what_it_returns_or_raises():
    assert answer_of(lambda: 7, 1.0) == 7
    with pytest.raises(ZeroDivisionError):
        answer_of(lambda: 1 / 0, 1.0)


def test_a_call_that_never_returns_has_timed_out(never):
    with pytest.raises(KafkaException, match=r"no answer in 0\.1 s") as told:
        answer_of(never.wait, 0.05)
    assert told.value.args[0].code() == KafkaError._TIMED_OUT


class Transactions:
    """A producer that notes its steps, and waits for ever in one of them."""

    def __init__(self, hangs_in, never):
        self.steps, self._hangs_in, self._never = [], hangs_in, never

    def __getattr__(self, name):
        def step(*_given, **_named):
            if name == self._hangs_in:
                self._never.wait()
            self.steps.append(name)
            return 0

        return step


@pytest.mark.parametrize("hangs_in", STEPS)
def test_a_sink_whose_step_is_never_answered_goes_on_with_another_producer(hangs_in, never, monkeypatch):
    opened = []

    def producer(_settings):
        opened.append(Transactions("" if opened else hangs_in, never))
        return opened[-1]

    group = SimpleNamespace(
        committed=lambda places, _s: [SimpleNamespace(error=None, offset=-1001)],
        consumer_group_metadata=lambda: None,
        close=lambda: None,
    )
    monkeypatch.setattr(topics, "Producer", producer)
    monkeypatch.setattr(topics, "Consumer", lambda _settings: group)
    monkeypatch.setattr(topics, "reach", lambda _broker: {})
    monkeypatch.setattr(topics, "as_messages", lambda *_given: [("key", "value")])
    sink = KafkaResults(JOB, next(each for each in JOB.layout().partitions if isinstance(each.element, Sink)))
    assert sink.publish({1: [rows(1)]}) == 1
    hung, other = opened
    whole = ["init_transactions", "begin_transaction", "produce", "flush", *STEPS[1:]]
    assert other.steps == whole
    assert hung.steps == whole[: whole.index(hangs_in)], "nothing follows, also if it is answered late"
