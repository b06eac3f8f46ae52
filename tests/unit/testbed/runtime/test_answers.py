"""Calls of the Kafka client that never return: a sink leaves them to themselves, and goes on with another producer.

A call that goes on in the background is repeated instead."""

import gc
import weakref
from contextlib import suppress
from threading import Event
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from testbed.operators import Sink
from testbed.runtime.connectors import answers, topics
from testbed.runtime.connectors.answers import answer_of
from testbed.runtime.connectors.sinks import Superseded
from testbed.runtime.connectors.topics import KafkaResults
from tests.unit.testbed.small_job import JOB, rows

STEPS = ("init_transactions", "send_offsets_to_transaction", "commit_transaction")
TRANSACTION = ["begin_transaction", "produce", "flush", *STEPS[1:]]
WHOLE = [STEPS[0], *TRANSACTION]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(answers, "GRACE_S", 0.05)
    monkeypatch.setattr(topics, "ANSWER_S", 0.05)
    monkeypatch.setattr(topics, "OPENING_S", 0.05)
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


@pytest.fixture
def no_search_for_garbage():
    gc.disable()
    yield
    gc.enable()


class Refusing:
    def step(self):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


@pytest.mark.usefixtures("no_search_for_garbage")
def test_what_has_failed_is_gone_as_soon_as_nobody_needs_it():
    """A producer that lives on until the next search for garbage goes on until then, too."""
    refusing = Refusing()
    gone = weakref.ref(refusing)
    with suppress(KafkaException):
        answer_of(refusing.step, 1.0)
    del refusing
    assert gone() is None


class Transactions:
    """A producer that notes its steps, and waits for ever in one of them.

    `refusals`: how often it says of its first step that it has timed out and goes on in the background.
    """

    def __init__(self, hangs_in="", never=None, refusals=0):
        self.steps, self._hangs_in, self._never, self._refusals = [], hangs_in, never, refusals

    def __getattr__(self, name):
        def step(*_given, **_named):
            if name == self._hangs_in:
                self._never.wait()
            self.steps.append(name)
            return 0

        return step

    def init_transactions(self, limit_s):
        self.__getattr__("init_transactions")()
        if self.steps.count("init_transactions") <= self._refusals:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "not yet", retriable=True))


@pytest.fixture
def opened(monkeypatch):
    """Two lists: the producers that a sink is given, and those that it has opened.

    If none is left to give, it opens one whose steps all succeed.
    """
    given, taken = [], []

    def producer(_settings):
        taken.append(given.pop(0) if given else Transactions())
        return taken[-1]

    group = SimpleNamespace(
        committed=lambda places, _s: [SimpleNamespace(error=None, offset=-1001)],
        consumer_group_metadata=lambda: None,
        close=lambda: None,
    )
    monkeypatch.setattr(topics, "Producer", producer)
    monkeypatch.setattr(topics, "Consumer", lambda _settings: group)
    monkeypatch.setattr(topics, "reach", lambda _broker: {})
    monkeypatch.setattr(topics, "as_messages", lambda *_given: [("key", "value")])
    return given, taken


def sink():
    return KafkaResults(JOB, next(each for each in JOB.layout().partitions if isinstance(each.element, Sink)))


@pytest.mark.parametrize("hangs_in", STEPS)
def test_a_sink_whose_step_is_never_answered_goes_on_with_another_producer(hangs_in, never, opened):
    given, taken = opened
    given.append(Transactions(hangs_in, never))
    assert sink().publish({1: [rows(1)]}) == 1
    hung, other = taken
    assert other.steps == WHOLE
    assert hung.steps == WHOLE[: WHOLE.index(hangs_in)], "nothing follows, also if it is answered late"


def test_a_sink_goes_on_with_the_producer_whose_opening_goes_on_in_the_background(opened):
    """The producer would fence any other that the sink opened."""
    given, taken = opened
    given.append(Transactions(refusals=3))
    assert sink().publish({1: [rows(1)]}) == 1
    (only,) = taken
    assert only.steps == ["init_transactions"] * 3 + WHOLE


@pytest.mark.usefixtures("no_search_for_garbage")
def test_a_sink_that_is_abandoned_while_it_opens_leaves_no_producer(opened):
    given, taken = opened
    old, opening = sink(), Transactions()

    def init_transactions(_limit_s):
        old.abandon()
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "not yet", retriable=True))

    opening.init_transactions = init_transactions
    given.append(opening)
    gone = weakref.ref(opening)
    del opening
    with suppress(Superseded):
        old.publish({1: [rows(1)]})
    taken.clear()
    assert gone() is None


@pytest.mark.usefixtures("no_search_for_garbage")
def test_a_sink_that_is_abandoned_amid_a_transaction_leaves_no_producer(opened):
    """Its error has passed frames that know the producer."""
    given, taken = opened
    old, producer = sink(), Transactions()
    producer.flush = lambda _limit_s: old.abandon() or 1
    given.append(producer)
    gone = weakref.ref(producer)
    del producer
    with suppress(Superseded):
        old.publish({1: [rows(1)]})
    old.close()
    taken.clear()
    assert gone() is None
