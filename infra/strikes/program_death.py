"""Death of a program whose supervisor (`infra.services.supervisor`) keeps it down until it is resumed."""

from __future__ import annotations

import time

from experiments.errors import EnvironmentFailure
from experiments.waiting import poll_until
from infra import launch
from infra.launch import GO_ON, HOLD, PROGRAM
from infra.process_handles import ProcessHandles
from infra.processes import members
from infra.strikes.death import Death
from infra.strikes.strike import Proof

RESUME_LIMIT_S, POLL_S = 5.0, 0.02


class ProgramDeath(Death):
    """Kills what the supervisor of a service runs, not the supervisor; none of it listens on a known port."""

    def __init__(self, service_mark: str, address: str) -> None:
        self._name, self._service = service_mark.rpartition("/")[2], ProcessHandles(service_mark)
        self._supervisors: list[int] = []
        super().__init__(f"{service_mark}/{PROGRAM}", address, own_ports=frozenset())

    def refresh(self) -> bool:
        """Look for the supervisor, too: a search takes tens of milliseconds, which a strike that is due has not.

        Raises `EnvironmentFailure` for a program without a supervisor, since nothing would start it again.
        """
        self._supervisors = list(filter(launch.leads_session, self._service.scan()))
        is_up = super().refresh()
        if is_up and not self._supervisors:
            raise EnvironmentFailure(f"{self._name} runs without its supervisor", f"see {self._name}.log of the run")
        return is_up

    def shoot(self, due_ns: int = 0) -> None:
        self._service.signal(HOLD, self._supervisors)
        super().shoot(due_ns)

    def close(self) -> None:
        self._service.close()
        super().close()


def resume(service_mark: str) -> Proof:
    """Let the supervisor start its program again, if it holds it down; the proof is that the program runs."""
    fired_ns, before = time.time_ns(), len(members(f"{service_mark}/{PROGRAM}"))
    launch.tell(service_mark, GO_ON)
    now = poll_until(lambda: members(f"{service_mark}/{PROGRAM}"), interval_s=POLL_S, limit_s=RESUME_LIMIT_S)
    started = 1 if now and not before else 0
    return Proof(fired_ns, time.time_ns(), {"services started": started}, {"services down": 0 if now else 1})
