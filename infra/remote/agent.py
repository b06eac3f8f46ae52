"""The agent on a host: carries out requests of the drivers that work over sessions.

The driver runs it as `python -m infra.remote.agent HOST ADDRESS DISK`. Requests and answers are JSON lines. The agent
ends when its input ends. It carries a mark of its own, not that of its host: so a kill of the host, which the agent
carries out, does not kill the agent. The token is in the mark and not in the arguments, which other users can read.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind, FaultOptions
from infra import disks, launch
from infra.processes import MARK, members, take_precedence, usage
from infra.remote import requests
from infra.remote.requests import AgentRequest
from infra.strikes.blackout import is_up
from infra.strikes.datagrams import DatagramListener, send
from infra.strikes.delay import interface_of, may_be_delayed
from infra.strikes.partition import rules_in_force
from infra.strikes.ready import Target, ready, undo
from infra.strikes.strike import StrikeOnHost
from infra.threads import started_thread

PROOF_POLL_S = 0.005
SWITCH_INTERVAL_S = 0.0005  # Python's switch interval between threads, so that a proof does not delay a strike


class Agent:
    """Carries requests out: each method takes the fields of one (`infra.remote.requests`) and returns the answer."""

    def __init__(self, host: str, address: str, disk: str | None) -> None:
        """`disk` is the folder of the host's work files, on which a disk of its own may be mounted; None: none is."""
        self.token = os.environ[MARK].partition("/")[0]
        self.mark = f"{self.token}/{host}"
        connection = os.environ.get("SSH_CONNECTION", "").split()  # absent where something else carries the session
        own_disk = disk if disk and os.path.ismount(disk) else None
        self.target = Target(self.mark, address, frozenset(map(int, connection[3:])), own_disk)
        self.strikes: dict[int, StrikeOnHost] = {}
        self.provers: dict[int, ThreadPoolExecutor] = {}  # a thread for each strike
        self.proofs: dict[int, Future[dict[str, Any]]] = {}
        self.listeners: dict[int, tuple[DatagramListener, bool, bool]] = {}  # what was in force when each began

    def usage(self) -> dict[str, Any]:
        """What the host's processes have used and hold now."""
        return asdict(usage(members(self.mark)))

    def clock(self) -> int:
        """UTC nanoseconds, by this machine's clock."""
        return time.time_ns()

    def running(self) -> list[str]:
        """The names of the host's services that have a live process."""
        return sorted(launch.running(self.mark))

    def spawn(self, command: list[str], folder: str, log: str, variables: dict[str, str]) -> int:
        """Start a command that carries a mark of the host, its output in `log`; returns the process id."""
        return launch.spawn(command, Path(folder), Path(log), variables)

    def stop(self, service: str, limit_s: float) -> None:
        """Ask a service to end, and kill it after `limit_s`."""
        launch.stop(f"{self.mark}/{service}", limit_s)

    def empty_disk(self) -> None:
        """Delete everything on the host's own disk, if it has one."""
        if self.target.disk:
            disks.empty(Path(self.target.disk))

    def prepare(self, number: int, kind: FaultKind, options: FaultOptions) -> None:
        """Prepare a strike; later requests refer to it by `number`."""
        take_precedence()
        self.strikes[number] = ready(self.target, kind, options)
        self.provers[number] = started_thread()  # now, so that none is started while a strike is due

    def refresh(self, number: int) -> bool:
        """Look again at what the strike that was made ready will act on."""
        return self.strikes[number].refresh()

    def shoot(self, number: int, due_ns: int) -> None:
        """Carry out the strike that was made ready when `due_ns` has come, by the host's clock [UTC ns]."""
        self.strikes[number].shoot(due_ns)

    def fire(self, number: int) -> dict[str, Any] | None:
        """Complete a strike: its proof and the ports that it should have closed, or None while the proof goes on.

        A proof can take seconds and must not delay the next strike. So it runs in a thread, and the driver asks again.
        """
        if number not in self.proofs:
            self.proofs[number] = self.provers[number].submit(_prove, self.strikes.pop(number))
        if not wait([self.proofs[number]], PROOF_POLL_S).done:
            return None
        self.provers.pop(number).shutdown()
        return self.proofs.pop(number).result()  # without a limit: a `TimeoutError` is the proof's own

    def close(self, number: int) -> None:
        """Give up a strike."""
        self.provers.pop(number).shutdown()
        self.strikes.pop(number).close()

    def undo(self, kind: FaultKind) -> dict[str, Any]:
        """Undo a fault of this kind; returns the proof."""
        return undo(self.target, kind).to_json()

    def listen(self) -> int:
        """Listen for datagrams; returns the port."""
        drops, delays = self._in_force()
        listener = DatagramListener(self.target.address)
        self.listeners[listener.port] = listener, drops, delays
        return listener.port

    def _in_force(self) -> tuple[bool, bool]:
        """Whether this host has rules that drop packets, or its interface is down, as amid a power-off; and a delay."""
        interface = interface_of(self.target.address)
        is_down = bool(interface) and not is_up(interface)
        return is_down or rules_in_force() > 0, may_be_delayed(self.target.address)

    def call(self, word: str, to: list[tuple[str, int]], times: int) -> int:
        """Send a word in `times` datagrams to each address and port; returns how many left."""
        return send(self.target.address, word, to, times)

    def heard(self, port: int) -> tuple[dict[str, int], bool, bool] | None:
        """Close the port; returns how often each word arrived, and whether packets were dropped and delayed here.

        A fault may have struck this host since it listens. None if an agent before this one has listened there.
        """
        if port not in self.listeners:
            return None
        listener, dropped, delayed = self.listeners.pop(port)
        words = listener.received()
        listener.close()
        drops, delays = self._in_force()
        return words, dropped or drops, delayed or delays


def _prove(strike: StrikeOnHost) -> dict[str, Any]:
    proof = strike.fire().to_json()
    return {"proof": proof, "ports": sorted(strike.ports)}


def serve(agent: Agent) -> None:
    """Carry out each line of the input, until it ends."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    for line in sys.stdin:
        request = requests.decode(line)
        answer = _carry_out(agent, request)
        if request.answered:
            print(json.dumps(answer), flush=True)


def _carry_out(agent: Agent, request: AgentRequest[Any]) -> dict[str, Any]:
    """The answer to a request: `{"done": ...}`, or `{"failed": reason}` if the system refused it."""
    try:
        return {"done": getattr(agent, request.do)(**vars(request))}
    except OSError as error:
        return {"failed": f"{error.filename or request.do}: {error.strerror}"}
    except EnvironmentFailure as failure:
        return {"failed": str(failure)}


if __name__ == "__main__":
    serve(Agent(*sys.argv[1:]))
