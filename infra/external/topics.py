"""The topics that a run makes on an existing broker: it uses no topic that was there before, and leaves none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError

from experiments.errors import EnvironmentFailure
from experiments.waiting import wait_for
from infra import credentials
from infra.cluster import Handle
from infra.external.borrowed import TOPICS_FILE, Borrowing
from infra.services import kafka

GONE_LIMIT_S, GONE_POLL_S = 30.0, 0.2


def create(handle: Handle, topics: Mapping[str, int]) -> None:
    """Create these topics with their partition counts; raises `EnvironmentFailure` if one is there already.

    A topic counts as the run's only once the broker has created it for this run: another run may create the same ones
    at the same time. Those of an earlier try are kept.
    """
    path = Borrowing(handle).folder / TOPICS_FILE
    own = _noted(path)
    cause = f"the topics of run {handle.run_id} cannot be created"
    with kafka.failing_as(cause, "look at the broker, and at what the login may do there"):
        _refuse_taken(handle, (topics.keys() - own) & _there(handle))
        with _admin(handle) as admin:
            for name in sorted(topics.keys() - own):
                try:
                    admin.create_topics([kafka.new_topic(name, topics[name])])
                except TopicAlreadyExistsError:
                    _refuse_taken(handle, {name})
                own.add(name)
                credentials.write_private(path, json.dumps(sorted(own)))
    kafka.create_topics(handle.kafka, dict(topics))  # all are there: it waits until the broker shows them


def _noted(path: Path) -> set[str]:
    return set(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else set()


def _refuse_taken(handle: Handle, taken: Set[str]) -> None:
    if taken:
        cause = f"the broker at {handle.broker} has a topic {min(taken)} already, and a run makes its own"
        raise EnvironmentFailure(cause, "wait for the other run that uses this broker, or remove the topic yourself")


def remove(handle: Handle) -> None:
    """Remove the topics that the run has noted; raises `EnvironmentFailure` for what stays."""
    path = Borrowing(handle).folder / TOPICS_FILE
    if not path.exists():
        return
    names = _noted(path)
    listed = ", ".join(sorted(names))
    cause = f"the topics of run {handle.run_id} cannot be removed"
    with kafka.failing_as(cause, f"remove them by hand: {listed}"), _admin(handle) as admin:
        for name in sorted(names & set(admin.list_topics())):
            try:
                admin.delete_topics([name])
            except UnknownTopicOrPartitionError:
                continue
        wait_for(
            lambda: not names & set(admin.list_topics()),
            f"topics of run {handle.run_id} stay on the broker at {handle.broker}: {listed}",
            "remove them by hand",
            interval_s=GONE_POLL_S,
            limit_s=GONE_LIMIT_S,
        )
    path.unlink()


def _there(handle: Handle) -> set[str]:
    with _admin(handle) as admin:
        return set(admin.list_topics())


@contextmanager
def _admin(handle: Handle) -> Iterator[KafkaAdminClient]:
    with ExitStack() as stack:
        with kafka.failing_as(f"the broker at {handle.broker} does not answer"):
            admin = stack.enter_context(kafka.client(KafkaAdminClient, handle.kafka))
        yield admin
