"""Waits for calls of librdkafka that may never return, whatever time they were given (its issues 5456 and 5511)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

GRACE_S = 5.0  # beyond the time that the call was given, which most calls keep
T = TypeVar("T")


def answer_of(call: Callable[[], T], given_s: float) -> T:
    """What the call returns or raises; `KafkaException` (timed out) if it does neither in the given time and `GRACE_S`.

    Then its thread is left to it, and whatever the call was made on must not be used again.
    """
    found: Future[T] = Future()

    def run() -> None:
        try:
            found.set_result(call())
        except BaseException as error:
            found.set_exception(error)

    Thread(target=run, name="answer", daemon=True).start()  # no daemon would keep a slot from ending
    try:
        return found.result(given_s + GRACE_S)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer in {given_s + GRACE_S:g} s")) from None
