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
    answering = Thread(target=_answer, args=(call, found), name="answer", daemon=True)
    answering.start()  # no daemon would keep a slot from ending
    answering.join(given_s + GRACE_S)
    try:
        if found.done():
            return found.result()
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer in {given_s + GRACE_S:g} s"))
    finally:
        del found  # see `_answer`


def _answer(call: Callable[[], T], found: Future[T]) -> None:
    """An error knows the frames that it has passed, and `found` knows the error.

    If such a frame knew `found`, all of them, and the producer that was called, would live on until the next search for
    garbage. The producer would go on meanwhile, and could fence its successor.
    """
    try:
        found.set_result(call())
    except BaseException as error:
        found.set_exception(error)
    finally:
        del call, found
