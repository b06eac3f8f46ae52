"""Follows the journals of live runs, so that steps, the observer and pages read each line only once.

Every process follows for itself; nothing is shared but the journals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from threading import Lock

from aftershock.run.engines.choice import engine_of
from aftershock.run.engines.engine import Engine
from aftershock.run.fault_state import FaultState
from aftershock.run.partition_states import PartitionStates
from experiments import spec
from journal.event import Event
from journal.events.injector import INJECTOR
from journal.events.services import HOSTS, HostSample
from journal.reader import JournalFollower
from results.runs import store
from results.runs.store import Run

MOST_WATCHED = 64  # runs; if 64 others were looked at since, the journals of a run are read again from the beginning


@dataclass(frozen=True)
class Sample:
    """A sample of a host, and how many cores its processes kept busy since the sample before."""

    seen: HostSample
    cores: float | None


class Samples:
    """The last sample of every host, by its name."""

    def __init__(self) -> None:
        self.last: dict[str, Sample] = {}

    def take(self, event: Event) -> None:
        """Take in the next event of the sampler's journal."""
        if isinstance(event, HostSample):
            before = self.last.get(event.host)
            self.last[event.host] = Sample(event, event.cores_since(before.seen if before else None))


class Query:
    """The query's journal: which kinds of events it has, when something was committed, how far the query is, and how
    its partitions are."""

    def __init__(self, engine: Engine) -> None:
        self.kinds: set[type[Event]] = set()
        self.commits, self.pace, self.partitions = engine.commits(), engine.pace(), PartitionStates()

    def take(self, event: Event) -> None:
        """Take in the next event of the query's journal."""
        self.kinds.add(type(event))
        self.commits.take(event)
        self.pace.take(event)
        self.partitions.take(event)


class RunJournals:
    """The followed journals of one run, for one thread at a time."""

    def __init__(self, run: Run) -> None:
        self.lock = Lock()
        self._run = run
        self.injector = JournalFollower(run.journal_path("injector"), INJECTOR, FaultState)
        self.hosts = JournalFollower(run.journal_path("hosts"), HOSTS, Samples)

    @cached_property
    def query(self) -> JournalFollower[Query]:
        """The follower of the query's journal, which needs the experiment."""
        experiment = spec.validate(store.read_json(self._run.experiment_path))
        engine = engine_of(experiment)
        return JournalFollower(self._run.journal_path("query"), engine.vocabulary, partial(Query, engine))


class JournalStates:
    """What the journals of a run say by now, each read on when it is first asked for; within `journals` only."""

    def __init__(self, watch: RunJournals) -> None:
        self._watch = watch

    @cached_property
    def faults(self) -> FaultState:
        """The state of faults and injector by now."""
        return self._watch.injector.poll()

    @cached_property
    def hosts(self) -> Samples:
        """The latest sample of each host by now."""
        return self._watch.hosts.poll()

    @cached_property
    def query(self) -> Query:
        """The progress of the query by now."""
        return self._watch.query.poll()


@contextmanager
def journals(run_id: str) -> Iterator[JournalStates]:
    """What the journals of a live run say, which does not change before this is left."""
    watch = _watch(store.live_directory(run_id))
    with watch.lock:
        yield JournalStates(watch)


def forget() -> None:
    """Read every journal from its beginning when it is looked at next."""
    _watch.cache_clear()


@lru_cache(maxsize=MOST_WATCHED)
def _watch(live: Path) -> RunJournals:
    return RunJournals(store.live(live.name))
