"""Topics on somebody else's broker: a run makes its own, and removes no other."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import (
    KafkaConnectionError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from experiments.errors import EnvironmentFailure
from experiments.hosts import Role
from infra import tokens
from infra.cluster import Handle, Host
from infra.external import topics

NAMES = {"input": 2, "output": 2}


@dataclass
class FakeBroker:
    """What `KafkaAdminClient` is asked here; a topic in `stuck` is never removed."""

    there: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    refuses: Exception | None = None
    meanwhile: set[str] = field(default_factory=set)
    closed: int = 0

    def __call__(self, **_: Any) -> FakeBroker:
        return self

    def list_topics(self) -> list[str]:
        if self.refuses:
            raise self.refuses
        return sorted(self.there)

    def create_topics(self, wanted: list[Any]) -> None:
        self.there |= self.meanwhile
        for topic in wanted:
            if topic.name in self.there:
                raise TopicAlreadyExistsError
            self.there.add(topic.name)

    def delete_topics(self, names: list[str]) -> None:
        if not self.there.issuperset(names):
            raise UnknownTopicOrPartitionError
        self.there -= set(names) - self.stuck

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    fake = FakeBroker({"orders"})
    monkeypatch.setattr(topics, "KafkaAdminClient", fake)
    monkeypatch.setattr(topics.kafka, "create_topics", lambda *_: None)
    return fake


@pytest.fixture
def handle(tmp_path: Path) -> Handle:
    (tmp_path / "external").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "kafka.properties").touch()
    hosts = {"gateway": Host("gateway", "127.0.0.1", Role.GATEWAY, 1, 512)}
    return Handle("run-1", "external", tokens.new("external"), str(tmp_path), hosts, broker="127.0.0.1:9092")


def test_a_run_removes_the_topics_that_it_has_made_and_no_other(broker: FakeBroker, handle: Handle) -> None:
    topics.create(handle, NAMES)
    assert broker.there == {"orders", *NAMES}
    topics.create(handle, NAMES)
    topics.remove(handle)
    assert broker.there == {"orders"}
    topics.remove(handle)
    assert broker.closed == 5


def test_of_two_runs_at_the_same_time_one_gets_the_topics_and_the_other_removes_none(
    broker: FakeBroker, handle: Handle
) -> None:
    """The other run creates its topic after this one has looked, and before it creates its own."""
    broker.meanwhile = {"output"}
    with pytest.raises(EnvironmentFailure, match=r"has a topic output already, and a run makes its own"):
        topics.create(handle, NAMES)
    topics.remove(handle)
    assert broker.there == {"orders", "output"}


def test_a_topic_that_is_there_already_is_neither_used_nor_removed(broker: FakeBroker, handle: Handle) -> None:
    broker.there.add("output")
    with pytest.raises(
        EnvironmentFailure, match=r"^the broker at 127.0.0.1:9092 has a topic output already, and a run"
    ):
        topics.create(handle, NAMES)
    topics.remove(handle)
    assert broker.there == {"orders", "output"}


def test_a_run_that_has_made_nothing_asks_no_broker(broker: FakeBroker, handle: Handle) -> None:
    topics.remove(handle)
    assert broker.closed == 0


def test_topics_that_stay_are_told_and_tried_again(
    broker: FakeBroker, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "GONE_LIMIT_S", 0.0)
    topics.create(handle, NAMES)
    broker.stuck = {"input"}
    with pytest.raises(
        EnvironmentFailure, match=r"^topics of run run-1 stay on the broker at 127.0.0.1:9092: input, out"
    ):
        topics.remove(handle)
    broker.stuck = set()
    topics.remove(handle)
    assert broker.there == {"orders"}


def test_a_broker_that_refuses_is_told(broker: FakeBroker, handle: Handle) -> None:
    topics.create(handle, NAMES)
    broker.refuses = TopicAuthorizationFailedError()
    with pytest.raises(
        EnvironmentFailure, match=r"cannot be removed \(TopicAuthorizationFailedError\); remove them by"
    ):
        topics.remove(handle)
    with pytest.raises(EnvironmentFailure, match=r"cannot be created \(TopicAuthorizationFailedError\); look at"):
        topics.create(handle, {"other": 1})


def test_a_broker_that_does_not_answer_is_told(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(**_: Any) -> None:
        raise KafkaConnectionError("nobody")

    monkeypatch.setattr(topics, "KafkaAdminClient", nobody)
    with pytest.raises(
        EnvironmentFailure, match=r"^the broker at 127.0.0.1:9092 does not answer \(KafkaConnectionError"
    ):
        topics.create(handle, NAMES)
