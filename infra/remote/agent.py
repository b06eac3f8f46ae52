"""The far end of a driver whose hosts are asked over sessions: does on its host what each line of its input asks.

The driver runs it as `python -m infra.remote.agent HOST ADDRESS DISK`. It answers each line with a line, and ends when
its input ends. Its own mark is not that of its host, so a kill of the host spares the agent, which carries it out.
The mark also tells it the token, which other users could read among its arguments.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind, FaultOptions
from infra import disks, launch
from infra.processes import MARK, members, take_precedence, usage
from infra.strikes.ear import Ear, call
from infra.strikes.partition import rules_in_force
from infra.strikes.ready import Target, ready, undo
from infra.strikes.strike import Strike

PROOF_POLL_S = 0.005
SWITCH_INTERVAL_S = 0.0005  # between threads: a proof must not hold up a strike


class Agent:
    """What can be asked; every method takes the fields of a request and returns what is answered."""

    def __init__(self, host: str, address: str, disk: str) -> None:
        """`disk` is the folder of the host's work files, on which a disk of its own may be mounted."""
        self.token = os.environ[MARK].partition("/")[0]
        self.mark = f"{self.token}/{host}"
        connection = os.environ.get("SSH_CONNECTION", "").split()  # absent where something else carries the session
        own_disk = disk if os.path.ismount(disk) else None
        self.target = Target(self.mark, address, frozenset(map(int, connection[3:])), own_disk)
        self.strikes: dict[int, Strike] = {}
        self.proofs: dict[int, Future[dict[str, Any]]] = {}
        self.beside = ThreadPoolExecutor()
        self.ears: dict[int, Ear] = {}

    def count(self) -> int:
        """How many processes the host has."""
        return len(members(self.mark))

    def usage(self) -> dict[str, Any]:
        """What the host's processes have used and hold now."""
        return asdict(usage(members(self.mark)))

    def clock(self) -> int:
        """UTC nanoseconds, by this machine's clock."""
        return time.time_ns()

    def running(self) -> list[str]:
        return sorted(launch.running(self.mark))

    def spawn(self, command: list[str], folder: str, log: str, variables: dict[str, str]) -> int:
        return launch.spawn(command, Path(folder), Path(log), variables)

    def stop(self, service: str, limit_s: float) -> None:
        launch.stop(f"{self.mark}/{service}", limit_s)

    def empty_disk(self) -> None:
        """Make the host's own disk as it was when it was new."""
        if self.target.disk:
            disks.empty(Path(self.target.disk))

    def prepare(self, number: int, kind: str, options: dict[str, Any]) -> None:
        """Make a strike ready, to be known by this number."""
        take_precedence()
        self.strikes[number] = ready(self.target, FaultKind(kind), FaultOptions(**options))

    def refresh(self, number: int) -> bool:
        return self.strikes[number].refresh()

    def shoot(self, number: int, due_ns: int) -> None:
        self.strikes[number].shoot(due_ns)

    def fire(self, number: int) -> dict[str, Any] | None:
        """The proof, and beside it the ports that the strike should have closed; None while it is being proved.

        That goes on beside and is asked for again: some take seconds, and the next strike must not wait for them.
        """
        if number not in self.proofs:
            self.proofs[number] = self.beside.submit(_prove, self.strikes.pop(number))
        with suppress(TimeoutError):
            proof = self.proofs[number].result(PROOF_POLL_S)
            del self.proofs[number]
            return proof
        return None

    def close(self, number: int) -> None:
        """Give up a strike."""
        self.strikes.pop(number).close()

    def undo(self, kind: str) -> dict[str, Any]:
        return undo(self.target, FaultKind(kind)).to_json()

    def listen(self) -> tuple[int, bool]:
        """The port on which words are heard from now on, and whether this host drops packets of some."""
        ear = Ear(self.target.address)
        self.ears[ear.port] = ear
        return ear.port, rules_in_force() > 0

    def call(self, word: str, to: list[tuple[str, int]], times: int) -> int:
        """Send a word to addresses with ports."""
        return call(self.target.address, word, to, times)

    def heard(self, port: int) -> dict[str, int]:
        """Which words came to the port, and how often; it is closed then."""
        ear = self.ears.pop(port)
        words = ear.heard()
        ear.close()
        return words


def _prove(strike: Strike) -> dict[str, Any]:
    proof = strike.fire().to_json()
    return {"proof": proof, "ports": sorted(strike.ports)}


SILENT = {"shoot", "close", "leave"}  # no answer: the driver shoots at other hosts meanwhile


def serve(agent: Agent) -> None:
    """Do what each line of the input asks, until it ends."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    for line in sys.stdin:
        request = json.loads(line)
        what = request.pop("do")
        answer = _carry_out(agent, what, request)
        if what not in SILENT:
            print(json.dumps(answer), flush=True)


def _carry_out(agent: Agent, what: str, request: dict[str, Any]) -> dict[str, Any]:
    """What came of a request: `{"done": ...}`, or `{"failed": reason}` when the system refused it."""
    try:
        return {"done": getattr(agent, what)(**request)}
    except OSError as error:
        return {"failed": f"{error.filename or what}: {error.strerror}"}
    except EnvironmentFailure as failure:
        return {"failed": str(failure)}


if __name__ == "__main__":
    serve(Agent(*sys.argv[1:]))
