"""What a campaign strikes: a run of the testbed whose slots can be killed and come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from testbed.runtime.job import Job
from tests.integration.testbed.kills.moments import Moment


class Rig(ABC):
    """A run that goes on until it is told to drain, and the victims in it: processes or hosts.

    can_pause        whether a victim can be held up, too
    sees_alignment   whether it is seen which partitions align; else any time amid a round counts
    own_deaths       how many slots ended without a strike
    """

    can_pause, sees_alignment = False, True

    def __init__(self, job: Job, journal: Path) -> None:
        self.job, self.journal, self.own_deaths = job, journal, 0

    @abstractmethod
    def victims(self) -> list[Any]:
        """Those that can be struck now."""

    @abstractmethod
    def revive(self) -> None:
        """Start again what is dead, as a supervisor would; called again and again."""

    @abstractmethod
    def kill(self, victims: list[Any]) -> list[Moment]:
        """Kill at once; returns what they themselves were seen to be doing."""

    def pause(self, victim: Any, replaced: bool) -> list[Moment]:
        """Hold one up until it is given up; only where `can_pause` is."""
        raise NotImplementedError

    def resume(self, victim: Any) -> None:
        """Let one that was paused go on."""
        raise NotImplementedError

    @abstractmethod
    def is_now(self, moment: Moment) -> list[Any] | None:
        """Whom to strike if it is the moment: of those that the journal does not tell."""

    @abstractmethod
    def has_ended(self) -> bool:
        """Whether the coordinator is gone."""

    @abstractmethod
    def drain(self) -> None:
        """Let the sources end."""

    @abstractmethod
    def close(self) -> None:
        """End what is left."""
